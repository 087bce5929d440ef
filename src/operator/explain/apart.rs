//! The signature doctor of the API, the console and the page of developers: a pasted request with the secrets of the store,
//! on a thread that serves no requests. No secret is shown, and no expected signature, since that would be valid for any
//! consumer.

use std::{net::IpAddr, sync::Arc};

use async_trait::async_trait;

use super::{
    Asked, ExplanationView, FindError, KnownSecrets, ParsedRequest, Reading, RequestText, Rules,
    find, pasted,
};
use crate::{
    base::{
        clock::{Clock, UnixTime},
        secret::random::NoRandomness,
        text::names::ConsumerKey,
    },
    oauth::percent,
    provider::{
        login::{PasswordPool, pool::PoolError},
        pages::developer::{Checked, ChecksSignatures, Unchecked},
    },
    records::store::Store,
    request::verify::Purpose,
};

/// The explanation of a request.
pub struct Explained {
    /// What a front shows.
    pub view: ExplanationView,
    /// The base string that makes the signature that was sent, if it is known.
    pub signed: Option<String>,
    /// The server accepts the request, as far as that is known.
    pub is_accepted: bool,
    /// Its operation, and whether it has the permission.
    pub permission: Option<String>,
}

/// Explains requests.
pub struct Explainer<'a> {
    /// Has the secrets.
    pub store: &'a Store,
    /// The rules of the server.
    pub rules: &'a Rules,
    /// Examines signatures.
    pub pool: &'a PasswordPool,
    /// The time.
    pub now: UnixTime,
    /// The address of the developer who asks; `None`: an operator, who is told all.
    pub address: Option<IpAddr>,
}

impl Explainer<'_> {
    /// Explains a request.
    ///
    /// # Errors
    /// [`Unchecked`]
    pub async fn explain(&self, message: RequestText) -> Result<Explained, Unchecked> {
        let known = self.known(&message).await?;
        let is_developer = self.address.is_some();
        let named = known.as_ref().ok().filter(|known| known.has_token());
        let unknown = match named.filter(|_| is_developer) {
            Some(known) => Some(without_token(known.clone())?),
            None => None,
        };
        // A developer gets the text of the request back as it was sent: a value that is hidden because it equals a secret would
        // confirm a guess.
        let shows_all = is_developer;
        let explained = self.pool.run(self.address, move || {
            let request = message.request().ok()?;
            let explain = |known| Reading::new(&request).explain(known, shows_all);
            let server = known.as_ref().ok().and_then(|known| known.server.as_ref());
            let permission = server.and_then(|server| server.permission(&request));
            let mut explanation = explain(known);
            // In any case, so that the time tells nothing.
            let unknown = unknown.map(|unknown| explain(Ok(unknown)));
            if is_developer && !explanation.proves_secrets(unknown.as_ref()) {
                explanation = unknown.unwrap_or(explanation).without_states();
            }
            Some(Explained {
                permission,
                is_accepted: explanation.is_accepted(),
                signed: explanation.consumer_base_string(),
                view: explanation.view(),
            })
        });
        let explained = explained.await.map_err(Unchecked::Pool)?;
        explained.ok_or_else(|| Unchecked::Unreadable("this is not a request".to_owned()))
    }

    /// The secrets of what the request names, or the reason why there are none. For a developer a token that is unknown has
    /// a secret that is random.
    async fn known(
        &self,
        message: &RequestText,
    ) -> Result<Result<KnownSecrets, String>, Unchecked> {
        let request = message.request();
        let request = request.map_err(|error| Unchecked::Unreadable(error.to_string()))?;
        let reading = Reading::new(&request);
        let Some(mut asked) = reading.asked() else {
            return Ok(Err(String::new()));
        };
        if reading.purpose(self.rules) == Purpose::RequestToken {
            // The server ignores the token of such a call.
            asked.token = None;
        }
        let found =
            async |asked: &Asked<'_>| find(self.store, self.rules.clone(), self.now, asked).await;
        let mut known = found(&asked).await;
        if self.address.is_some() && matches!(known, Err(FindError::Token)) {
            asked.token = None;
            known = match found(&asked).await {
                Ok(known) => Ok(without_token(known)?),
                Err(error) => Err(error),
            };
        }
        match known {
            Ok(known) => Ok(Ok(known)),
            Err(FindError::Store(error)) => Err(Unchecked::Store(error)),
            Err(FindError::Consumer) => Ok(Err(
                "consumer_key_unknown: no consumer has this key".to_owned()
            )),
            Err(FindError::Token) => Ok(Err(
                "token_rejected: the consumer has no such token".to_owned()
            )),
            Err(error @ FindError::RsaKey(_)) => Ok(Err(error.to_string())),
        }
    }
}

fn without_token(known: KnownSecrets) -> Result<KnownSecrets, Unchecked> {
    let failed = |NoRandomness| Unchecked::Pool(PoolError::Failed);
    known.with_unknown_token().map_err(failed)
}

/// Checks the requests of developers.
pub struct DeveloperCheck {
    /// Has the secrets.
    pub store: Arc<Store>,
    /// The rules of the server.
    pub rules: Rules,
    /// Examines signatures, apart from logins and operators.
    pub pool: Arc<PasswordPool>,
    /// The wall clock.
    pub clock: Clock,
}

#[async_trait(?Send)]
impl ChecksSignatures for DeveloperCheck {
    async fn check(
        &self,
        consumer: &ConsumerKey,
        request: &str,
        address: IpAddr,
    ) -> Result<Option<Checked>, Unchecked> {
        let explainer = Explainer {
            store: &self.store,
            rules: &self.rules,
            pool: &self.pool,
            now: self.clock.now(),
            address: Some(address),
        };
        let message = pasted::parse(request).map_err(Unchecked::Unreadable)?;
        if names_another(&message, consumer) {
            return Ok(None);
        }
        let explained = explainer.explain(message).await?;
        Ok(Some(Checked {
            is_right: explained.is_accepted,
            diagnosis: explained.view.diagnosis,
            right: explained.view.base_string,
            signed: explained.signed,
            previous_secret_until: explained.view.previous_secret_until,
        }))
    }

    fn rebuilt(&self, base_string: &str) -> Result<String, String> {
        rebuilt(base_string)
    }
}

/// Whether a request is not of this consumer: nothing is read of another one.
fn names_another(message: &RequestText, consumer: &ConsumerKey) -> bool {
    let Ok(request) = message.request() else {
        return false;
    };
    let reading = Reading::new(&request);
    let asked = reading.asked();
    asked.is_some_and(|asked| asked.consumer_key != consumer.as_str().as_bytes())
}

/// The base string of the request that a base string describes: method, URL and parameters, each percent-encoded, with `&`
/// between them (RFC 5849 §3.4.1.1).
fn rebuilt(base_string: &str) -> Result<String, String> {
    const PARTS: &str =
        "a base string consists of the method, the URL and the parameters, with & between them";

    let parts = Vec::from_iter(base_string.splitn(3, '&'));
    let [method, url, parameters] = parts[..] else {
        return Err(PARTS.to_owned());
    };
    // One that was not encoded is read as it is.
    let decoded = |text: &str| match text.contains("%3D") || text.contains("%3A") {
        true => {
            let bytes = percent::decode(text.as_bytes()).ok()?;
            String::from_utf8(bytes.into_owned()).ok()
        }
        false => Some(text.to_owned()),
    };
    let url = decoded(url).ok_or(PARTS)?;
    let query = decoded(parameters).ok_or(PARTS)?;
    let joint = if url.contains('?') { '&' } else { '?' };
    let message = RequestText {
        method: method.to_owned(),
        url: match query.is_empty() {
            true => url,
            false => format!("{url}{joint}{query}"),
        },
        ..RequestText::default()
    };
    let request: ParsedRequest<'_> = message.request().map_err(|error| error.to_string())?;
    let explanation = Reading::new(&request).explain(Err(String::new()), false);
    Ok(explanation.view().base_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_string_is_written_again_as_the_rfc_has_it() {
        let right = "GET&http%3A%2F%2Fa.example%2Fr&a%3D1%26b%3D%2520%26oauth_token%3Dt";
        for text in [
            right,
            "GET&http%3A%2F%2FA.example%3A80%2Fr&b%3D%2520%26a%3D1%26oauth_token%3Dt",
            "GET&http://a.example/r&a=1&oauth_token=t&b=%20",
            "GET&http%3A%2F%2Fa.example%2Fr%3Fa%3D1&b%3D%2520%26oauth_token%3Dt",
        ] {
            assert_eq!(rebuilt(text).as_deref(), Ok(right), "{text}");
        }
        for text in [
            "",
            "GET",
            "GET&",
            "GET&x&",
            "GET&%ff%3A&a%3D1",
            "a b&http://a/&",
        ] {
            assert!(rebuilt(text).is_err(), "{text}");
        }
    }
}
