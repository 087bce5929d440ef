//! The claim `oauth_consumer_key_sign` of LTI 1.3: the proof of a platform that it has the secret of a key of LTI 1.1 (LTI 1.3
//! Migration Guide, "LTI 1.1 Migration Claim").

use aws_lc_rs::hmac;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use crate::{
    base::{
        clock::UnixTime,
        secret::Secret,
        text::names::{ConsumerKey, InvalidName},
    },
    operator::manage::{ManageError, Management},
    records::values::record::Consumer,
};

/// The claims of a launch that the proof covers. All others are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LaunchClaims {
    iss: String,
    aud: Audience,
    azp: Option<String>,
    exp: u64,
    nonce: String,
    #[serde(rename = "https://purl.imsglobal.org/spec/lti/claim/deployment_id")]
    deployment_id: String,
    #[serde(rename = "https://purl.imsglobal.org/spec/lti/claim/lti1p1")]
    lti1p1: OldLaunch,
}

/// The claim with the values of LTI 1.1.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct OldLaunch {
    oauth_consumer_key: String,
    oauth_consumer_key_sign: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

/// Why claims prove nothing.
#[derive(Debug, Error)]
pub enum KeySignError {
    /// The claims lack something, or it has another type.
    #[error("these are not the claims of a launch with the claim lti1p1")]
    Claims(#[source] serde_json::Error),
    /// There is more than one audience, and none is the authorized party.
    #[error(
        "aud has several values, and azp is not one of them, so that the client_id is not known"
    )]
    Client,
    /// A value has the separator in it.
    #[error("{0} has an & in it, so that the proof would fit other claims too")]
    Ambiguous(&'static str),
    /// The key is no key of a consumer.
    #[error("oauth_consumer_key")]
    Key(#[source] InvalidName),
    /// The consumer cannot be read.
    #[error(transparent)]
    Manage(#[from] ManageError),
    /// The secret of the consumer proves nothing.
    #[error(
        "the consumer {0:?} has no secret that proves anything: it is empty, or the consumer signs by RSA alone"
    )]
    NoSecret(ConsumerKey),
    /// There is no proof.
    #[error("the claim lti1p1 has no oauth_consumer_key_sign")]
    Absent,
    /// The proof was made with another secret, or for other claims.
    #[error(
        "oauth_consumer_key_sign was not made with the secret of {0:?} for these claims: the platform has not proved that it has the key"
    )]
    Wrong(ConsumerKey),
    /// The launch is over.
    #[error("the launch expired at {0}: a proof is good until then")]
    Expired(UnixTime),
}

impl LaunchClaims {
    /// Reads the claims.
    ///
    /// # Errors
    /// [`KeySignError::Claims`]
    pub fn read(claims: Value) -> Result<Self, KeySignError> {
        serde_json::from_value(claims).map_err(KeySignError::Claims)
    }

    /// The key of LTI 1.1.
    ///
    /// # Errors
    /// [`KeySignError::Key`]
    pub fn key(&self) -> Result<ConsumerKey, KeySignError> {
        self.lti1p1
            .oauth_consumer_key
            .parse()
            .map_err(KeySignError::Key)
    }

    /// The text that is signed: "`<oauth_consumer_key>&<deployment_id>&<iss>&<client_id>&<exp>&<nonce>`".
    ///
    /// # Errors
    /// [`KeySignError::Client`] and [`KeySignError::Ambiguous`]
    fn base_string(&self) -> Result<String, KeySignError> {
        let client_id = match (&self.aud, &self.azp) {
            (Audience::One(client), _) => client,
            (Audience::Several(clients), _) if clients.len() == 1 => &clients[0],
            (Audience::Several(clients), Some(party)) if clients.contains(party) => party,
            (Audience::Several(_), _) => return Err(KeySignError::Client),
        };
        let exp = self.exp.to_string();
        let parts = [
            ("oauth_consumer_key", &self.lti1p1.oauth_consumer_key),
            ("deployment_id", &self.deployment_id),
            ("iss", &self.iss),
            ("client_id", client_id),
            ("exp", &exp),
            ("nonce", &self.nonce),
        ];
        match parts.iter().find(|(_, value)| value.contains('&')) {
            Some((name, _)) => Err(KeySignError::Ambiguous(name)),
            None => Ok(parts.map(|(_, value)| value.as_str()).join("&")),
        }
    }

    /// The proof of who has this secret.
    ///
    /// # Errors
    /// As [`Self::base_string`].
    fn sign(&self, secret: &Secret) -> Result<String, KeySignError> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose());
        let tag = hmac::sign(&key, self.base_string()?.as_bytes());
        Ok(STANDARD.encode(tag))
    }

    /// Whether the proof was made with this secret, compared in constant time.
    fn is_signed_by(&self, secret: &Secret) -> Result<bool, KeySignError> {
        let sent = self.lti1p1.oauth_consumer_key_sign.as_ref();
        let sent = sent.ok_or(KeySignError::Absent)?;
        let base_string = self.base_string()?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose());
        let tag = STANDARD.decode(sent).unwrap_or_default();
        Ok(hmac::verify(&key, base_string.as_bytes(), &tag).is_ok())
    }
}

impl Management {
    /// Checks that the platform which made these claims has the secret of the key of LTI 1.1 that they name: the present one, or
    /// the previous one in its grace. The claims have to be those of an id_token whose signature is right.
    ///
    /// # Errors
    /// [`KeySignError`]
    pub async fn check_key_sign(&self, claims: &LaunchClaims) -> Result<Consumer, KeySignError> {
        let consumer = self.signer(claims).await?;
        let now = self.clock.now();
        let previous = consumer.graced_secret(now).map(|(secret, _)| secret);
        let mut is_signed = claims.is_signed_by(&consumer.secret)?;
        if let Some(previous) = previous.filter(|secret| !secret.is_empty()) {
            is_signed |= claims.is_signed_by(previous)?;
        }
        if !is_signed {
            return Err(KeySignError::Wrong(consumer.key));
        }
        let end = UnixTime(claims.exp);
        if end <= now {
            return Err(KeySignError::Expired(end));
        }
        Ok(consumer)
    }

    /// Makes the proof that belongs into these claims.
    ///
    /// # Errors
    /// All of [`KeySignError`] but `Absent`, `Wrong` and `Expired`.
    pub async fn make_key_sign(&self, claims: &LaunchClaims) -> Result<String, KeySignError> {
        claims.sign(&self.signer(claims).await?.secret)
    }

    /// The consumer that the claims name, if its secret proves anything.
    async fn signer(&self, claims: &LaunchClaims) -> Result<Consumer, KeySignError> {
        let consumer = self.consumer(&claims.key()?).await?;
        if !consumer.enabled {
            return Err(ManageError::ConsumerDisabled(consumer.key).into());
        }
        match consumer.rsa_only || consumer.secret.is_empty() {
            true => Err(KeySignError::NoSecret(consumer.key)),
            false => Ok(consumer),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The example of the guide.
    fn example() -> Value {
        json!({
            "nonce": "172we8671fd8z",
            "iat": 1_551_290_796,
            "exp": 1_551_290_856,
            "iss": "https://lmsvendor.com",
            "aud": "PM48OJSfGDTAzAo",
            "sub": "3",
            "https://purl.imsglobal.org/spec/lti/claim/deployment_id": "689302",
            "https://purl.imsglobal.org/spec/lti/claim/lti1p1": {
                "user_id": "34212",
                "oauth_consumer_key": "179248902",
                "oauth_consumer_key_sign": "lWd54kFo5qU7xshAna6v8BwoBm6tmUjc6GTax6+12ps=",
            },
        })
    }

    #[test]
    fn makes_and_accepts_the_published_sign() {
        let claims = LaunchClaims::read(example()).unwrap();
        let secret = Secret::from("my-lti11-secret");
        let sign = claims.sign(&secret).unwrap();
        assert_eq!(Some(&sign), claims.lti1p1.oauth_consumer_key_sign.as_ref());
        assert!(claims.is_signed_by(&secret).unwrap());
        assert!(
            !claims
                .is_signed_by(&Secret::from("my-lti11-secreu"))
                .unwrap()
        );
    }

    #[test]
    fn covers_each_value() {
        const LTI1P1: &str = "/https:~1~1purl.imsglobal.org~1spec~1lti~1claim~1lti1p1";
        let secret = Secret::from("my-lti11-secret");
        for (place, value, expected) in [
            ("/nonce", json!("172we8671fd8y"), Some(false)),
            ("/exp", json!(1_551_290_857), Some(false)),
            ("/iss", json!("https://lmsvendor.con"), Some(false)),
            ("/aud", json!("PM48OJSfGDTAzAp"), Some(false)),
            ("/aud", json!(["PM48OJSfGDTAzAo"]), Some(true)),
            ("/aud", json!(["PM48OJSfGDTAzAo", "b"]), None),
            ("/sub", json!("4"), Some(true)),
            (
                "/https:~1~1purl.imsglobal.org~1spec~1lti~1claim~1deployment_id",
                json!("689303"),
                Some(false),
            ),
            (
                "/https:~1~1purl.imsglobal.org~1spec~1lti~1claim~1deployment_id",
                json!("a&b"),
                None,
            ),
            (
                &format!("{LTI1P1}/oauth_consumer_key"),
                json!("179248903"),
                Some(false),
            ),
            (
                &format!("{LTI1P1}/oauth_consumer_key_sign"),
                json!(""),
                Some(false),
            ),
            (
                &format!("{LTI1P1}/oauth_consumer_key_sign"),
                json!("lWd54kFo5qU7xshAna6v8BwoBm6tmUjc6GTax6+12p"),
                Some(false),
            ),
            (
                &format!("{LTI1P1}/oauth_consumer_key_sign"),
                json!(null),
                None,
            ),
        ] {
            let mut claims = example();
            *claims.pointer_mut(place).unwrap() = value.clone();
            let claims = LaunchClaims::read(claims).unwrap();
            assert_eq!(
                claims.is_signed_by(&secret).ok(),
                expected,
                "{place} {value}"
            );
        }
        let mut claims = example();
        claims["aud"] = json!(["b", "PM48OJSfGDTAzAo"]);
        claims["azp"] = json!("PM48OJSfGDTAzAo");
        assert!(
            LaunchClaims::read(claims.clone())
                .unwrap()
                .is_signed_by(&secret)
                .unwrap()
        );
        claims["azp"] = json!("c");
        assert!(LaunchClaims::read(claims).unwrap().sign(&secret).is_err());
        assert!(LaunchClaims::read(json!({ "iss": "a" })).is_err());
    }
}
