//! Logins of local accounts: the store's users and their password hashes.

use std::{net::IpAddr, sync::Arc};

use async_trait::async_trait;

use super::{Login, LoginBackend, LoginError, LoginFault, PasswordPool, password};
use crate::{
    base::{secret::Secret, text::longest},
    records::{store::Store, values::use_cases::Account},
};

/// Checks local accounts.
pub struct LocalLogin {
    store: Arc<Store>,
    pool: Arc<PasswordPool>,
}

impl LocalLogin {
    /// Checks against the users of `store`, hashing on `pool`.
    pub fn new(store: Arc<Store>, pool: Arc<PasswordPool>) -> Self {
        Self { store, pool }
    }
}

#[async_trait]
impl LoginBackend for LocalLogin {
    async fn login(
        &self,
        address: IpAddr,
        name: &str,
        password: Secret,
    ) -> Result<Login, LoginError> {
        // A password that cannot be right is rejected before it costs anything; the caller knows its own lengths.
        if !password::is_length_allowed(&password)
            || !(1..=longest::LOGIN_NAME).contains(&name.len())
        {
            return Err(LoginError::Rejected { account: None });
        }
        let account = self.store.account(name).await;
        let Account { user, costs } = account.map_err(LoginFault::Store)?;
        // Unknown, without a password, disabled, imported: all do the same work and get the same response.
        let hash = user.as_ref().and_then(|user| user.password_hash.clone());
        let is_enabled = user.as_ref().is_some_and(|user| user.enabled);
        let check = move || {
            let is_right = password::verify_evenly(hash.as_ref(), &costs, &password);
            // This takes time that a rejection does not: only a login that succeeds may come here.
            let rehashed = hash
                .filter(|hash| is_right && is_enabled && !password::has_our_cost(hash))
                .and_then(|_| password::hash(&password).ok());
            (is_right, rehashed)
        };
        let (is_right, rehashed) = self.pool.run(Some(address), check).await?;
        match user {
            Some(user) if is_right && user.enabled => Ok(Login { user, rehashed }),
            user => Err(LoginError::Rejected {
                account: user.map(|user| user.id),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::records::{
        store::test_double::{TestStore, user},
        values::record::User,
    };

    const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn backend(store: &Arc<TestStore>) -> LocalLogin {
        LocalLogin::new(store.store(), Arc::new(PasswordPool::start(1, 4).unwrap()))
    }

    fn with_password(name: &str, password: &str) -> User {
        let mut user = user(name);
        user.password_hash = Some(password::hash(&Secret::from(password)).unwrap());
        user
    }

    #[tokio::test]
    async fn every_name_costs_a_turn_on_the_pool() {
        let store = Arc::new(TestStore::default());
        let mut disabled = with_password("disabled", "enchantress");
        disabled.enabled = false;
        store.put_user(disabled);
        store.put_user(with_password("ada", "enchantress"));
        store.put_user(user("outside"));
        let pool = Arc::new(PasswordPool::start(1, 1).unwrap());
        let backend = LocalLogin::new(store.store(), Arc::clone(&pool));
        // The one thread is held and the one place in the queue is taken: the next login gets `Busy`.
        let (release, held) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = tokio::sync::oneshot::channel();
        let holder = Arc::clone(&pool);
        let running = tokio::spawn(async move {
            let job = move || {
                let _ = begin.send(());
                let _ = held.recv();
            };
            holder.run(None, job).await
        });
        begun.await.unwrap();
        let waiting = tokio::spawn(async move { pool.run(None, || ()).await });
        tokio::task::yield_now().await;
        for name in ["ada", "unknown", "disabled", "outside"] {
            for password in ["enchantress", "wrong"] {
                let outcome = backend.login(ADDRESS, name, Secret::from(password)).await;
                assert!(
                    matches!(outcome, Err(LoginError::Busy)),
                    "{name} {password}"
                );
            }
        }
        release.send(()).unwrap();
        assert_eq!(
            (running.await.unwrap(), waiting.await.unwrap()),
            (Ok(()), Ok(()))
        );
        let outcome = backend
            .login(ADDRESS, "unknown", Secret::from("enchantress"))
            .await;
        assert!(matches!(
            outcome,
            Err(LoginError::Rejected { account: None })
        ));
    }

    #[tokio::test]
    async fn rejects_impossible_lengths_before_asking_the_store() {
        let store = Arc::new(TestStore::default());
        store.fail(true);
        let backend = backend(&store);
        for (name, password) in [
            ("ada", String::new()),
            ("ada", "x".repeat(1025)),
            ("", "x".to_owned()),
            (&"x".repeat(256), "x".to_owned()),
        ] {
            let outcome = backend.login(ADDRESS, name, Secret::from(password)).await;
            assert!(matches!(
                outcome,
                Err(LoginError::Rejected { account: None })
            ));
        }
    }
}
