//! The challenges of a rejection (RFC 9110 §11.6.1).

/// The most characters of a value in `WWW-Authenticate`: proxies take heads of 4 KiB.
const MAX_PARAMETER_CHARS: usize = 1024;

/// The schemes by which a rejected caller may try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schemes {
    /// A signature.
    OAuth,
    /// A signature, or a Bearer token: there were no credentials.
    Both,
    /// A Bearer token; the error of RFC 6750 §3.1, if it is one.
    Bearer(Option<&'static str>),
}

/// The values of `WWW-Authenticate` of a response with a code of Problem Reporting. `told` is the advice for a caller that
/// gets no body.
pub(super) fn challenges(
    schemes: Schemes,
    realm: &str,
    code: Option<&str>,
    (advice, told): (Option<&str>, Option<&str>),
) -> Vec<String> {
    let oauth = || {
        let parameters = [
            ("realm", Some(realm)),
            ("oauth_problem", code),
            ("oauth_problem_advice", told),
        ];
        challenge("OAuth", parameters)
    };
    let bearer = |error, description| {
        let parameters = [
            ("realm", Some(realm)),
            ("error", error),
            ("error_description", description),
        ];
        challenge("Bearer", parameters)
    };
    match schemes {
        Schemes::OAuth => vec![oauth()],
        // RFC 6750 §3.1: without credentials there is no error.
        Schemes::Both => vec![oauth(), bearer(None, None)],
        Schemes::Bearer(error) => vec![bearer(error, told.or(advice))],
    }
}

/// A challenge. Each value is a quoted-string (RFC 9110 §5.6.4), without what cannot be in a field.
fn challenge(scheme: &str, parameters: [(&str, Option<&str>); 3]) -> String {
    let written = parameters.into_iter().filter_map(|(name, value)| {
        let value = value?.chars().filter(|it| matches!(it, ' '..='~'));
        let value: String = value.take(MAX_PARAMETER_CHARS).collect();
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        Some(format!("{name}=\"{value}\""))
    });
    format!("{scheme} {}", written.collect::<Vec<_>>().join(", "))
}
