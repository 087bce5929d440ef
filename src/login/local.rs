//! Logins of local accounts: the store's users and their argon2id hashes.

use std::sync::Arc;

use super::{
    LoginBackend, LoginFault, LoginFuture, LoginOutcome, MAX_NAME_BYTES, Pool, password,
    pool::PoolError,
};
use crate::{secret::Secret, store::Store};

/// Checks local accounts.
pub struct LocalLogin {
    store: Arc<dyn Store>,
    pool: Arc<Pool>,
}

impl LocalLogin {
    /// Checks against the users of `store`, hashing on `pool`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, pool: Arc<Pool>) -> Self {
        Self { store, pool }
    }

    async fn check(&self, name: &str, password: Secret) -> LoginOutcome {
        // What cannot be right is refused before it costs anything; the caller knows its own lengths.
        if !password::is_length_allowed(&password) || !(1..=MAX_NAME_BYTES).contains(&name.len()) {
            return LoginOutcome::Refused { account: None };
        }
        let user = match self.store.user_by_name(name).await {
            Ok(user) => user,
            Err(error) => return LoginOutcome::Fault(error.into()),
        };
        // Unknown, without a password, disabled: all do the same work and get the same answer.
        let known = user.as_ref().and_then(|user| user.password_hash.clone());
        let has_password = known.is_some();
        let hash = known.unwrap_or_else(password::dummy_hash);
        let is_right = match self
            .pool
            .run(move || password::verify(&hash, &password))
            .await
        {
            Ok(is_right) => is_right,
            Err(PoolError::Busy) => return LoginOutcome::Busy,
            Err(error @ PoolError::Failed) => {
                return LoginOutcome::Fault(LoginFault::Check(error));
            }
        };
        match user {
            Some(user) if is_right && has_password && user.enabled => LoginOutcome::User {
                user,
                rehashed: None,
            },
            user => LoginOutcome::Refused {
                account: user.map(|user| user.id),
            },
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
    use crate::login::double::{MemoryStore, user};

    fn backend(store: &Arc<MemoryStore>) -> LocalLogin {
        LocalLogin::new(Arc::clone(store) as _, Arc::new(Pool::start(1, 4).unwrap()))
    }

    fn with_password(name: &str, password: &str) -> crate::store::record::User {
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
            assert!(matches!(outcome, LoginOutcome::User { user, .. } if user.name == "Ada"));
        }
        let ada = store.user_named("Ada").id;
        let outcome = backend.login("Ada", Secret::from("Enchantress")).await;
        assert!(matches!(outcome, LoginOutcome::Refused { account: Some(id) } if id == ada));
        let outcome = backend.login("Eve", Secret::from("enchantress")).await;
        assert!(matches!(outcome, LoginOutcome::Refused { account: None }));
    }

    #[tokio::test]
    async fn refuses_disabled_users_and_users_without_a_password() {
        let store = Arc::new(MemoryStore::default());
        let mut disabled = with_password("disabled", "enchantress");
        disabled.enabled = false;
        store.put_user(disabled);
        store.put_user(user("outside"));
        let backend = backend(&store);
        for name in ["disabled", "outside"] {
            let outcome = backend.login(name, Secret::from("enchantress")).await;
            assert!(
                matches!(outcome, LoginOutcome::Refused { account: Some(_) }),
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
        let pool = Arc::new(Pool::start(1, 1).unwrap());
        let backend = LocalLogin::new(Arc::clone(&store) as _, Arc::clone(&pool));
        // The one thread is held and the one place in the queue is taken: whoever needs a turn is told so.
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
                assert!(matches!(outcome, LoginOutcome::Busy), "{name} {password}");
            }
        }
        release.send(()).unwrap();
        assert_eq!(
            (running.await.unwrap(), waiting.await.unwrap()),
            (Ok(()), Ok(()))
        );
        let outcome = backend.login("unknown", Secret::from("enchantress")).await;
        assert!(matches!(outcome, LoginOutcome::Refused { account: None }));
    }

    #[tokio::test]
    async fn refuses_impossible_lengths_before_asking_anybody() {
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
            assert!(matches!(outcome, LoginOutcome::Refused { account: None }));
        }
    }

    #[tokio::test]
    async fn a_store_that_is_away_is_a_fault_and_lets_nobody_in() {
        let store = Arc::new(MemoryStore::default());
        store.put_user(with_password("ada", "enchantress"));
        store.fail(true);
        let outcome = backend(&store)
            .login("ada", Secret::from("enchantress"))
            .await;
        assert!(matches!(outcome, LoginOutcome::Fault(LoginFault::Store(_))));
    }
}
