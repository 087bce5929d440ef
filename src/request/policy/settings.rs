//! The settings of operations.

use std::{collections::BTreeMap, time::Duration};

use http::{HeaderName, HeaderValue, Method};
use ipnet::IpNet;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::json;
use strum::VariantArray as _;

use super::{
    access::CallerKind,
    operations::{frame_ancestors::FrameAncestor, pattern::PathPattern},
    path::SegmentData,
};
use crate::{
    base::{
        settings::{
            DAY, LONGEST, choices, deserialize_text, distinct, filled, one_of, optional,
            optional_duration, optional_seconds, plain_values, section, texts,
        },
        text::names::Permission,
    },
    records::values::record::BodyHash,
    request::{route::settings::Role, verify::settings::Enforcement},
};

/// The longest value of a parameter that goes on as a header field, in bytes: servers limit the head of a request.
const MAX_HEADER_BYTES: usize = 4_096;

section! {
    /// Settings of all operations.
    UnlistedSettings["operations"] {
        /// The kinds of caller that may call a path that no `[[operation]]` lists: a list, or "nobody".
        unlisted: Option<Unlisted> [else "consumer, application and anonymous where service.role is \"guard\"; else consumer while there is no [[operation]], else \"nobody\"": ["consumer", "application"]], reload;
        /// Status of a call without permission: 404 hides whether the path exists.
        forbidden_status: u16 = 404, reload;
    }
}

section! {
    /// A protected operation. The most specific pattern wins; another method of a listed path gets 405.
    OperationSettings["operation", list] {
        /// {name} is one segment, {*rest} the rest, which may end in a slash. /members/ is another path than /members;
        /// /members/{*rest} matches only the first. For similar paths see paths.similar.
        path: PathPattern [required: "/members/{id}"], reload;
        /// GET covers HEAD.
        #[serde(default, deserialize_with = "filled")] methods: Vec<Method> [else "every method": ["GET"]], reload;
        /// The token and the consumer must both have it.
        #[serde(default, deserialize_with = "optional")]
        permission: Option<Permission> [else "none is needed": "members.read"], reload;
        /// Callers allowed: "consumer" (with an access token), "application" (without one), "user" (logged in directly),
        /// "anonymous".
        #[serde(deserialize_with = "filled")] access: Vec<CallerKind> = ["consumer"], reload;
        /// Networks of every kind of caller, checked after the credentials. From a trusted proxy the address that it reports
        /// counts; without one the call is rejected.
        #[serde(default, deserialize_with = "filled")] from: Vec<IpNet> [else "everywhere": ["10.0.0.0/8"]], reload;
        /// "enforce" or "observe" here.
        enforcement: Option<Enforcement> [else "signature.enforcement": "observe"], reload;
        /// Protocols to switch to: "websocket".
        #[serde(default, deserialize_with = "filled")]
        upgrade: Vec<UpgradeProtocol> [else "none": ["websocket"]], reload;
        /// "required": a body that is not a form needs oauth_body_hash, else it is not signed. Also a setting of a consumer.
        body_hash: BodyHash = "optional", reload;
        /// The error that a consumer's clock may have here, either way. Nonces are kept for twice the longest of these windows.
        #[serde(default, deserialize_with = "optional_seconds::<DAY, _>")]
        timestamp_window: Option<Duration> [else "signature.timestamp_window": "90m"], reload;
        /// The same here, for long polls.
        #[serde(default, deserialize_with = "optional_duration::<1, LONGEST, _>")]
        response_timeout: Option<Duration> [else "upstream.response_timeout": "10m"], reload;
        /// The same here, for a stream of rare events.
        #[serde(default, deserialize_with = "optional_duration::<1, LONGEST, _>")]
        silence_timeout: Option<Duration> [else "upstream.silence_timeout": "1h"], reload;
        /// The same here.
        forward_authorization: Option<bool> [else "identity.forward_authorization": true], reload;
        /// Signed parameters that the API also gets as header fields, such as { X-LTI-Context = "context_id" }. Callers' own
        /// are dropped everywhere. See docs/receiving.md.
        headers: ParameterHeaders = {}, reload;
        /// true: browsers post forms here (LTI), and the user of a failed launch gets a page. See docs/lti.md.
        launch: bool = false, reload;
        /// Sites that may frame the page of a failed launch. A failed launch with a right signature goes back to its
        /// launch_presentation_return_url there.
        #[serde(default, deserialize_with = "filled")]
        framed_by: Vec<FrameAncestor> [else "none: no site may frame it, and it goes back nowhere": ["https://lms.example", "https://*.lms.example"]], reload;
    }
}

section! {
    /// Paths that an API may take for others, where there are operations.
    #[derive(Copy)]
    PathSettings["paths"] {
        /// A call that an API may read as one of a more specific pattern: by letter case, white space, a dot, a slash, an
        /// extension, the name of a script, or a parameter _method or X-HTTP-Method-Override. "reject" rejects it, unless it is
        /// listed too. "wider" treats it as what it matches, for an API that compares paths exactly and ignores these
        /// parameters. See docs/setup.md.
        similar: Similar = "reject", reload;
        /// %2F, %5C, %25 and %3B in a path: "reject" or, for an API that splits a path before it decodes it, once, "data". With
        /// "data", here and below, another reading with a dot segment is still rejected, or one that asks more of the caller
        /// (unless similar is "wider"). See docs/setup.md.
        encoded: Ambiguous = "reject", reload;
        /// A ; in a path: "reject" or, for an API that takes it for a part of the segment, "data".
        parameters: Ambiguous = "reject", reload;
        /// Two slashes: "reject" or, for an API that sees an empty segment there, "data".
        empty_segments: Ambiguous = "reject", reload;
    }
}

impl PathSettings {
    /// The treatment of each part of a path that has more than one reading, by its key.
    pub const fn ambiguities(self) -> [(&'static str, Ambiguous); 3] {
        [
            ("paths.encoded", self.encoded),
            ("paths.parameters", self.parameters),
            ("paths.empty_segments", self.empty_segments),
        ]
    }

    /// What is data of a segment.
    pub fn data(self) -> SegmentData {
        SegmentData {
            encoded: self.encoded == Ambiguous::Data,
            parameters: self.parameters == Ambiguous::Data,
            empty: self.empty_segments == Ambiguous::Data,
        }
    }
}

/// The treatment of a path that an API may take for one of a more specific pattern than the pattern that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Similar {
    /// It is rejected like a path that no caller may call.
    Reject,
    /// It is what it matches.
    Wider,
}

/// The treatment of a part of a path that has more than one reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ambiguous {
    /// Its path is rejected.
    Reject,
    /// It is data of its segment.
    Data,
}

impl UnlistedSettings {
    /// Who may call what no `[[operation]]` lists: as written, else whoever an API that is the provider itself may have to
    /// serve, else
    /// `consumer` while there is no `[[operation]]`, and `"nobody"` from then on.
    pub fn kinds(&self, listed: &[OperationSettings], role: Role) -> &[CallerKind] {
        use CallerKind::{Anonymous, Application, Consumer};
        match &self.unlisted {
            Some(Unlisted(kinds)) => kinds,
            None if role == Role::Guard => &[Consumer, Application, Anonymous],
            None if listed.is_empty() => &[Consumer],
            None => &[],
        }
    }
}

impl OperationSettings {
    /// The keys that set it apart from other operations, as `check` names them.
    pub fn distinctions(&self) -> Vec<&'static str> {
        let all = [
            ("from", !self.from.is_empty()),
            (
                "body_hash = \"required\"",
                self.body_hash == BodyHash::Required,
            ),
            ("a timestamp_window", self.timestamp_window.is_some()),
            ("a response_timeout", self.response_timeout.is_some()),
            ("a silence_timeout", self.silence_timeout.is_some()),
            (
                "forward_authorization",
                self.forward_authorization.is_some(),
            ),
            ("headers", !self.headers.0.is_empty()),
            ("launch", self.launch),
            ("framed_by", !self.framed_by.is_empty()),
        ];
        let set = all
            .into_iter()
            .filter_map(|(key, is_set)| is_set.then_some(key));
        set.collect()
    }
}

/// The kinds of caller who may call what no `[[operation]]` lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unlisted(pub Vec<CallerKind>);

impl<'de> Deserialize<'de> for Unlisted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let kinds: Vec<UnlistedKind> = distinct(deserializer)?;
        match kinds.as_slice() {
            [UnlistedKind(None)] => Ok(Self(Vec::new())),
            kinds => {
                let kinds: Option<Vec<CallerKind>> = kinds.iter().map(|kind| kind.0).collect();
                let mixed = "\"nobody\" stands alone; leave it out, or leave the kinds out";
                kinds.map(Self).ok_or_else(|| D::Error::custom(mixed))
            }
        }
    }
}

/// One item of [`Unlisted`]; `None`: no caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UnlistedKind(Option<CallerKind>);

/// A header field that has the value of a signed parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterHeader {
    /// The name of the field.
    pub name: HeaderName,
    /// The name of the parameter, decoded.
    pub parameter: String,
}

impl ParameterHeader {
    /// The value of the field where the signature covers these values of the parameter: one, or equal copies, with bytes that a
    /// field may have, and no white space at an end, which a recipient would take away.
    pub fn value(&self, values: &[&[u8]]) -> Option<HeaderValue> {
        let (first, others) = values.split_first()?;
        let is_clear = others.iter().all(|other| other == first);
        let fits = first.len() <= MAX_HEADER_BYTES && first.trim_ascii() == *first;
        let value = HeaderValue::from_bytes(first).ok();
        value.filter(|_| is_clear && fits)
    }
}

/// Header fields that have the values of signed parameters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParameterHeaders(pub Vec<ParameterHeader>);

impl<'de> Deserialize<'de> for ParameterHeaders {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = BTreeMap::<String, String>::deserialize(deserializer);
        let expected = "expected a table of names, such as { X-LTI-Context = \"context_id\" }";
        let written = written.map_err(|_| D::Error::custom(expected))?;
        let headers = written.into_iter().map(|(name, parameter)| {
            let invalid = |_| format!("{name:?} is not the name of a header field");
            let name = name.parse().map_err(invalid)?;
            match parameter.as_str() {
                "" => Err(format!("{name}: name the parameter that it has")),
                oauth if oauth.starts_with("oauth_") => {
                    let fix = "identity.consumer_header has the consumer key, and forward_authorization = true keeps the credentials";
                    Err(format!("{name}: {oauth} is one of the credentials; {fix}"))
                }
                _ => Ok(ParameterHeader { name, parameter }),
            }
        });
        let headers: Result<_, String> = headers.collect();
        headers.map(Self).map_err(D::Error::custom)
    }
}

/// A protocol that an operation may switch to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpgradeProtocol {
    /// RFC 6455.
    Websocket,
}

texts! {
    CallerKind: "\"consumer\", \"application\", \"user\" or \"anonymous\"" =>
        |text| Self::VARIANTS.iter().copied().find(|kind| kind.as_str() == text).ok_or(""),
        one_of(<Self as strum::VariantNames>::VARIANTS);
    PathPattern: "a path such as \"/members/{id}\" or \"/files/{*rest}\"" => str::parse::<Self>;
    UnlistedKind: "\"consumer\", \"application\", \"user\", \"anonymous\" or \"nobody\"" => |text| match text {
        "nobody" => Ok(Self(None)),
        kind => CallerKind::parse(kind).map(|kind| Self(Some(kind))).map_err(|_| ""),
    }, json!({ "anyOf": [CallerKind::schema(), one_of(&["nobody"])] });
    UpgradeProtocol: "\"websocket\"" => |text| if text == "websocket" { Ok(Self::Websocket) } else { Err("") }, one_of(&["websocket"]);
}
deserialize_text!(PathPattern);
choices!(Similar, Ambiguous);
plain_values!(
    ParameterHeaders: json!({ "type": "object", "additionalProperties": { "type": "string" } }),
    Unlisted: Vec::<UnlistedKind>::schema(),
);
