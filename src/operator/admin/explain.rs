//! The signature doctor of the API and the console: a pasted request with the secrets of the store. No secret is shown,
//! and no expected signature, since that would be valid for any consumer.

use super::{Admin, Backend};
use crate::{
    operator::explain::{ExplanationView, FindError, Reading, RequestText, find},
    provider::login::pool::PoolError,
    records::store::StoreError,
};

/// The explanation of a request.
pub(super) struct Explained {
    pub(super) view: ExplanationView,
    /// The base string that makes the signature that was sent, if it is known.
    pub(super) signed: Option<String>,
    pub(super) is_accepted: bool,
}

/// The reason why a request was not explained.
pub(super) enum Unexplained {
    /// It cannot be read; the reason.
    Request(String),
    Store(StoreError),
    Pool(PoolError),
}

impl Admin {
    /// Explains a request, apart from the workers.
    pub(super) async fn explain(
        &self,
        backend: &Backend,
        message: RequestText,
    ) -> Result<Explained, Unexplained> {
        let known = {
            let request = message.request();
            let request = request.map_err(|error| Unexplained::Request(error.to_string()))?;
            let (store, now) = (&*self.readiness.store, self.control.clock.now());
            match Reading::new(&request).asked() {
                None => Err(String::new()),
                Some(asked) => match find(store, backend.rules.clone(), now, &asked).await {
                    Ok(known) => Ok(known),
                    Err(FindError::Store(error)) => return Err(Unexplained::Store(error)),
                    Err(FindError::Consumer) => {
                        Err("consumer_key_unknown: no consumer has this key".to_owned())
                    }
                    Err(FindError::Token) => {
                        Err("token_rejected: the consumer has no such token".to_owned())
                    }
                    Err(error @ FindError::RsaKey(_)) => Err(error.to_string()),
                },
            }
        };
        let explained = self.control.passwords.run(None, move || {
            let request = message.request().ok()?;
            let explanation = Reading::new(&request).explain(known, false);
            Some(Explained {
                is_accepted: explanation.is_accepted(),
                signed: explanation.consumer_base_string(),
                view: explanation.view(),
            })
        });
        let explained = explained.await.map_err(Unexplained::Pool)?;
        explained.ok_or_else(|| Unexplained::Request("this is not a request".to_owned()))
    }
}
