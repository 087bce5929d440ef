//! Unverified names from a request, for logging only.

use super::signed::Collected;
use crate::{
    base::text::names::ConsumerKey,
    oauth::{Parameters, ProtocolParameter},
    telemetry::redact::RedactedToken,
};

/// The longest consumer key, in characters; no consumer has a longer one.
const MAX_KEY_CHARS: usize = 255;

/// The consumer and the token that a call names, as a log line shows them.
#[derive(Debug)]
pub struct Claimed {
    /// The consumer key; in a text that is no key, odd characters are `?`.
    pub consumer: Option<String>,
    /// The beginning of the token.
    pub token: Option<String>,
}

impl Claimed {
    /// The names that a signed call gives; `None` for another call.
    pub fn by_signed(collected: &Collected) -> Option<Box<Self>> {
        let claimed = || Box::new(Self::by(&collected.parameters));
        collected.signed.then(claimed)
    }

    /// Reads the names from the parameters of a call.
    pub fn by(parameters: &Parameters) -> Self {
        let first = |name: ProtocolParameter| {
            let sent = parameters.find(name.as_str()).next()?;
            (!sent.value.is_empty()).then(|| String::from_utf8_lossy(sent.value).into_owned())
        };
        Self {
            consumer: first(ProtocolParameter::ConsumerKey).map(|key| shown_key(&key)),
            token: first(ProtocolParameter::Token).map(|token| RedactedToken(&token).to_string()),
        }
    }
}

/// A consumer key of a caller: it can neither end a field of a log line nor begin another. A key that a consumer can have is
/// shown as it is, so that nothing is recorded under the key of another consumer.
fn shown_key(key: &str) -> String {
    if key.parse::<ConsumerKey>().is_ok() {
        return key.to_owned();
    }
    let is_name_character = |it: &char| it.is_ascii_alphanumeric() || "._~@+:-".contains(*it);
    let characters = key.chars().take(MAX_KEY_CHARS);
    characters
        .map(|it| Some(it).filter(is_name_character).unwrap_or('?'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimed(query: &str) -> Claimed {
        let mut parameters = Parameters::default();
        parameters.read_query(query.as_bytes()).unwrap();
        Claimed::by(&parameters)
    }

    #[test]
    fn shows_a_key_that_forges_no_field_and_a_prefix_of_a_token() {
        let shown = claimed(
            "oauth_consumer_key=a%20verdict%3Dforwarded%0A%1b%22%C3%A9&oauth_token=0123456789abcdef0123",
        );
        assert_eq!(shown.consumer.unwrap(), "a?verdict?forwarded????");
        assert_eq!(shown.token.unwrap(), "01234567…");
        let shown = claimed("oauth_consumer_key=a@b.c_d~e%2Bf:g-H9&oauth_token=");
        assert_eq!(shown.consumer.unwrap(), "a@b.c_d~e+f:g-H9");
        assert_eq!(shown.token, None);
        let odd = claimed("oauth_consumer_key=school%2F1%3F%7B%3D%7D");
        assert_eq!(odd.consumer.unwrap(), "school/1?{=}");
        let long = claimed(&format!("oauth_consumer_key={}", "k".repeat(5_000)));
        assert_eq!(long.consumer.unwrap().len(), MAX_KEY_CHARS);
        assert_eq!(claimed("a=b").consumer, None);
    }
}
