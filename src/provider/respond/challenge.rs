//! The challenge of a 401 (RFC 9110 §11.6.1).

/// The most characters of a value in `WWW-Authenticate`: proxies take heads of 4 KiB.
const MAX_PARAMETER_CHARS: usize = 1024;

/// The value of `WWW-Authenticate` with a code of Problem Reporting and advice. Each value is a quoted-string (RFC 9110 §5.6.4),
/// without what cannot be in a field.
pub(super) fn challenge(realm: &str, code: Option<&str>, advice: Option<&str>) -> String {
    let parameters = [
        ("realm", Some(realm)),
        ("oauth_problem", code),
        ("oauth_problem_advice", advice),
    ];
    let written = parameters.into_iter().filter_map(|(name, value)| {
        let value = value?.chars().filter(|it| matches!(it, ' '..='~'));
        let value: String = value.take(MAX_PARAMETER_CHARS).collect();
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        Some(format!("{name}=\"{value}\""))
    });
    format!("OAuth {}", written.collect::<Vec<_>>().join(", "))
}
