//! Logins of local accounts: the store's users and their argon2id hashes.

use std::sync::Arc;

use super::{
    Login, LoginBackend, LoginError, LoginFault, LoginFuture, MAX_NAME_BYTES, PasswordPool,
    password,
};
use crate::{
    secret::Secret,
    store::{Store, port::Account},
};

/// Checks local accounts.
pub struct LocalLogin {
    store: Arc<dyn Store>,
    pool: Arc<PasswordPool>,
}

impl LocalLogin {
    /// Checks against the users of `store`, hashing on `pool`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, pool: Arc<PasswordPool>) -> Self {
        Self { store, pool }
    }

    async fn check(&self, name: &str, password: Secret) -> Result<Login, LoginError> {
        // A password that cannot be right is rejected before it costs anything; the caller knows its own lengths.
        if !password::is_length_allowed(&password) || !(1..=MAX_NAME_BYTES).contains(&name.len()) {
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
        let (is_right, rehashed) = self.pool.run(check).await?;
        match user {
            Some(user) if is_right && user.enabled => Ok(Login { user, rehashed }),
            user => Err(LoginError::Rejected {
                account: user.map(|user| user.id),
            }),
        }
    }
}

impl LoginBackend for LocalLogin {
    fn login<'a>(&'a self, name: &'a str, password: Secret) -> LoginFuture<'a> {
        Box::pin(self.check(name, password))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        login::double::{MemoryStore, user},
        store::record::User,
    };

    fn backend(store: &Arc<MemoryStore>) -> LocalLogin {
        LocalLogin::new(
            Arc::clone(store) as _,
            Arc::new(PasswordPool::start(1, 4).unwrap()),
        )
    }

    fn with_password(name: &str, password: &str) -> User {
        let mut user = user(name);
        user.password_hash = Some(password::hash(&Secret::from(password)).unwrap());
        user
    }

    #[tokio::test]
    async fn lets_in_the_right_password_only() {
        let store = Arc::new(MemoryStore::default());
        store.put_user(with_password("Ada", "enchantress"));
        let backend = backend(&store);
        for name in ["Ada", "ada", "ADA"] {
            let outcome = backend.login(name, Secret::from("enchantress")).await;
            assert!(matches!(outcome, Ok(Login { user, rehashed: None }) if user.name == "Ada"));
        }
        let ada = store.user_named("Ada").id;
        let outcome = backend.login("Ada", Secret::from("Enchantress")).await;
        assert!(matches!(outcome, Err(LoginError::Rejected { account: Some(id) }) if id == ada));
        let outcome = backend.login("Eve", Secret::from("enchantress")).await;
        assert!(matches!(
            outcome,
            Err(LoginError::Rejected { account: None })
        ));
    }

    /// A hash of `enchantress` at the cost of an imported one.
    fn imported_hash() -> Secret {
        use argon2::{Algorithm, Argon2, Params, PasswordHasher, Version};
        let params = Params::new(256, 3, 1, None).unwrap();
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let hash = argon2.hash_password_with_salt(b"enchantress", b"somesalt");
        Secret::from(hash.unwrap().to_string())
    }

    #[tokio::test]
    async fn hashes_an_imported_password_anew_for_those_it_lets_in_only() {
        let store = Arc::new(MemoryStore::default());
        store.put_user(with_password("ours", "enchantress"));
        for (name, enabled) in [("imported", true), ("disabled", false)] {
            store.put_user(User {
                password_hash: Some(imported_hash()),
                enabled,
                ..user(name)
            });
        }
        let backend = backend(&store);
        let login = async |name, password| backend.login(name, Secret::from(password)).await;
        let Ok(Login { user, rehashed }) = login("imported", "enchantress").await else {
            panic!("the right password")
        };
        assert_eq!(user.password_hash, Some(imported_hash()));
        let rehashed = rehashed.unwrap();
        assert!(password::has_our_cost(&rehashed));
        assert!(password::verify_evenly(
            Some(&rehashed),
            &[],
            &Secret::from("enchantress")
        ));
        let ours = login("ours", "enchantress").await;
        assert!(matches!(ours, Ok(Login { rehashed: None, .. })));
        for (name, password) in [("imported", "wrong"), ("disabled", "enchantress")] {
            let outcome = login(name, password).await;
            assert!(matches!(
                outcome,
                Err(LoginError::Rejected { account: Some(_) })
            ));
        }
    }

    #[tokio::test]
    async fn rejects_disabled_users_and_users_without_a_password() {
        let store = Arc::new(MemoryStore::default());
        let mut disabled = with_password("disabled", "enchantress");
        disabled.enabled = false;
        store.put_user(disabled);
        store.put_user(user("outside"));
        let backend = backend(&store);
        for name in ["disabled", "outside"] {
            let outcome = backend.login(name, Secret::from("enchantress")).await;
            assert!(
                matches!(outcome, Err(LoginError::Rejected { account: Some(_) })),
                "{name}"
            );
        }
    }

    #[tokio::test]
    async fn every_name_costs_a_turn_on_the_pool() {
        let store = Arc::new(MemoryStore::default());
        let mut disabled = with_password("disabled", "enchantress");
        disabled.enabled = false;
        store.put_user(disabled);
        store.put_user(with_password("ada", "enchantress"));
        store.put_user(user("outside"));
        let pool = Arc::new(PasswordPool::start(1, 1).unwrap());
        let backend = LocalLogin::new(Arc::clone(&store) as _, Arc::clone(&pool));
        // The one thread is held and the one place in the queue is taken: the next login gets `Busy`.
        let (release, held) = std::sync::mpsc::channel::<()>();
        let (begin, begun) = tokio::sync::oneshot::channel();
        let holder = Arc::clone(&pool);
        let running = tokio::spawn(async move {
            let job = move || {
                let _ = begin.send(());
                let _ = held.recv();
            };
            holder.run(job).await
        });
        begun.await.unwrap();
        let waiting = tokio::spawn(async move { pool.run(|| ()).await });
        tokio::task::yield_now().await;
        for name in ["ada", "unknown", "disabled", "outside"] {
            for password in ["enchantress", "wrong"] {
                let outcome = backend.login(name, Secret::from(password)).await;
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
        let outcome = backend.login("unknown", Secret::from("enchantress")).await;
        assert!(matches!(
            outcome,
            Err(LoginError::Rejected { account: None })
        ));
    }

    #[tokio::test]
    async fn rejects_impossible_lengths_before_asking_the_store() {
        let store = Arc::new(MemoryStore::default());
        store.fail(true);
        let backend = backend(&store);
        for (name, password) in [
            ("ada", String::new()),
            ("ada", "x".repeat(1025)),
            ("", "x".to_owned()),
            (&"x".repeat(256), "x".to_owned()),
        ] {
            let outcome = backend.login(name, Secret::from(password)).await;
            assert!(matches!(
                outcome,
                Err(LoginError::Rejected { account: None })
            ));
        }
    }

    #[tokio::test]
    async fn an_unavailable_store_is_a_fault_and_no_login() {
        let store = Arc::new(MemoryStore::default());
        store.put_user(with_password("ada", "enchantress"));
        store.fail(true);
        let outcome = backend(&store)
            .login("ada", Secret::from("enchantress"))
            .await;
        assert!(matches!(
            outcome,
            Err(LoginError::Fault(LoginFault::Store(_)))
        ));
    }
}
