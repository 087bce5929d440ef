//! Settings that are one word out of a few.

use std::borrow::Cow;

use super::{
    setting::{Report, Setting, Text},
    suggest::nearest,
    tree::{Node, Value},
};
use crate::{oauth::SignatureMethod, store::record::Dialect};

/// Finds the value of a word.
fn choose<T: Copy>(text: &str, choices: &[(&'static str, T)]) -> Result<T, Cow<'static, str>> {
    if let Some((_, value)) = choices.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    let words = choices.iter().map(|(word, _)| *word);
    Err(
        nearest(&text.to_ascii_lowercase(), words).map_or(Cow::Borrowed(""), |word| {
            format!("did you mean {word:?}?").into()
        }),
    )
}

/// `"a", "b" or "c"`.
fn listing<'a>(words: impl Iterator<Item = &'a str>) -> Cow<'static, str> {
    let mut words: Vec<_> = words.map(|word| format!("{word:?}")).collect();
    let Some(last) = words.pop() else {
        return Cow::Borrowed("");
    };
    if words.is_empty() {
        return last.into();
    }
    format!("{} or {last}", words.join(", ")).into()
}

macro_rules! words {
    ($($(#[$doc:meta])* $type:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $type {
            $($(#[$word_doc])* $variant,)+
        }

        impl $type {
            const CHOICES: &[(&'static str, Self)] = &[$(($word, Self::$variant),)+];

            /// The word as it is written in the configuration.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl Text for $type {
            fn expected() -> Cow<'static, str> {
                listing(Self::CHOICES.iter().map(|(word, _)| *word))
            }

            fn parse(text: &str) -> Result<Self, Cow<'static, str>> {
                choose(text, Self::CHOICES)
            }
        }
    )+};
}

words! {
    /// The fields in which trusted proxies tell of the caller.
    ForwardedFamily {
        /// `X-Forwarded-For`, `X-Forwarded-Proto`, `X-Forwarded-Host`.
        XForwarded = "x-forwarded",
        /// `Forwarded` (RFC 7239).
        Forwarded = "forwarded",
    }

    /// What becomes of a path prefix in `service.public_api_urls`.
    PrefixMode {
        /// It arrives and is not forwarded.
        Strip = "strip",
        /// It arrives and is forwarded.
        Keep = "keep",
        /// The proxy in front removed it; it is put back for the signature only.
        Restore = "restore",
    }

    /// What happens to protected calls that fail verification.
    Enforcement {
        /// They are refused.
        Enforce = "enforce",
        /// They are counted, logged and let through, without any identity.
        Observe = "observe",
    }

    /// What an answer to a wrong signature tells.
    Advice {
        /// Nothing.
        Off = "off",
        /// The known mistake that would match.
        Hint = "hint",
        /// Also the base string computed here.
        Full = "full",
    }

    /// Where nonces are kept.
    NonceScope {
        /// In this process.
        Local = "local",
        /// In the store, for several replicas.
        Shared = "shared",
    }

    /// What a lost nonce window means.
    OnLost {
        /// Signed requests are refused until nothing could be replayed.
        Refuse = "refuse",
        /// Requests are accepted at once; a replay from before may pass.
        Accept = "accept",
    }

    /// The kind of store.
    StoreBackend {
        /// A file.
        Sqlite = "sqlite",
        /// A PostgreSQL server.
        Postgres = "postgres",
        /// A Redis server.
        Redis = "redis",
    }

    /// Who checks a user's password.
    LoginBackend {
        /// The store's own accounts.
        Local = "local",
        /// An HTTP endpoint.
        Http = "http",
    }

    /// A kind of caller.
    CallerKind {
        /// A signed call with an access token.
        Consumer = "consumer",
        /// A consumer's signature without a token.
        Application = "application",
        /// A user logged in directly.
        User = "user",
        /// Nobody in particular.
        Anonymous = "anonymous",
    }

    /// Who may call what no `[[operation]]` lists.
    Unlisted {
        /// A signed call with an access token.
        Consumer = "consumer",
        /// A consumer's signature without a token.
        Application = "application",
        /// A user logged in directly.
        User = "user",
        /// Nobody in particular.
        Anonymous = "anonymous",
        /// No caller at all.
        Nobody = "nobody",
    }

    /// A protocol that an operation may switch to.
    UpgradeProtocol {
        /// RFC 6455.
        Websocket = "websocket",
    }

    /// What happens to paths that break the service's conventions.
    PathPolicy {
        /// Nothing.
        Off = "off",
        /// They are logged.
        Log = "log",
        /// They are refused.
        Enforce = "enforce",
    }

    /// How log records are written.
    LogFormat {
        /// For people.
        Text = "text",
        /// For machines, an object a line.
        Json = "json",
    }
}

impl Unlisted {
    /// The kind of caller that is let in, `None` for nobody.
    #[must_use]
    pub fn kind(self) -> Option<CallerKind> {
        match self {
            Self::Consumer => Some(CallerKind::Consumer),
            Self::Application => Some(CallerKind::Application),
            Self::User => Some(CallerKind::User),
            Self::Anonymous => Some(CallerKind::Anonymous),
            Self::Nobody => None,
        }
    }
}

const DIALECTS: &[(&str, Dialect)] = &[("rfc5849", Dialect::Rfc5849), ("legacy", Dialect::Legacy)];

impl Text for Dialect {
    fn expected() -> Cow<'static, str> {
        listing(DIALECTS.iter().map(|(word, _)| *word))
    }

    fn parse(text: &str) -> Result<Self, Cow<'static, str>> {
        choose(text, DIALECTS)
    }
}

impl Text for SignatureMethod {
    fn expected() -> Cow<'static, str> {
        listing(Self::ALL.iter().map(|method| method.as_str()))
    }

    /// Takes every spelling that a request may use.
    fn parse(text: &str) -> Result<Self, Cow<'static, str>> {
        Self::from_wire(text.as_bytes()).ok_or(Cow::Borrowed(""))
    }
}

/// What a call that is not permitted is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ForbiddenStatus {
    /// 404: hides what may not be seen.
    NotFound,
    /// 403: tells.
    Forbidden,
}

impl Setting for ForbiddenStatus {
    fn expected() -> Cow<'static, str> {
        "404 or 403".into()
    }

    fn read(node: &Node, report: &mut Report<'_>) -> Option<Self> {
        match node.value {
            Value::Integer(404) => Some(Self::NotFound),
            Value::Integer(403) => Some(Self::Forbidden),
            _ => {
                report.mismatch::<Self>(node, "");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_the_word_that_was_meant() {
        assert_eq!(Advice::parse("full"), Ok(Advice::Full));
        assert_eq!(Advice::parse("Full").unwrap_err(), "did you mean \"full\"?");
        assert_eq!(
            Enforcement::parse("enforced").unwrap_err(),
            "did you mean \"enforce\"?"
        );
        assert_eq!(Advice::parse("banana").unwrap_err(), "");
        assert_eq!(
            <Advice as Text>::expected(),
            "\"off\", \"hint\" or \"full\""
        );
        assert_eq!(<UpgradeProtocol as Text>::expected(), "\"websocket\"");
    }

    #[test]
    fn folds_the_spelling_of_signature_methods() {
        for text in ["HMAC-SHA1", "hmac_sha1", "HmacSha1"] {
            assert_eq!(
                SignatureMethod::parse(text),
                Ok(SignatureMethod::HmacSha1),
                "{text}"
            );
        }
        assert!(SignatureMethod::parse("HMAC SHA1").is_err());
    }
}
