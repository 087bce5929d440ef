//! Variables of the environment that look like ours and set nothing.

use strsim::damerau_levenshtein;

use super::rules::Finding;

/// The start of the names of our variables.
pub(super) const PREFIX: &str = "COUNTERSIGN_";

/// A warning of the variable `name`, which sets no key; `names` are those that do. Kubernetes gives a container variables
/// for each Service, which begin with the name of the Service: of these there is none.
pub(super) fn finding(name: &str, names: impl Iterator<Item = String>) -> Option<Finding> {
    if name == "COUNTERSIGN_CONFIG" || is_from_kubernetes(name) {
        return None;
    }
    let near = names
        .map(|known| (damerau_levenshtein(&known.replace("__", "_"), name), known))
        .filter(|(distance, _)| *distance <= name.len() / 5)
        .min_by_key(|(distance, _)| *distance);
    let fix = near.map_or(
        "write COUNTERSIGN__SECTION__KEY, with the keys of config.example.toml, or unset it"
            .to_owned(),
        |(_, known)| format!("did you mean {known}?"),
    );
    Some(Finding {
        key: name.to_owned(),
        message: format!("this variable sets nothing; {fix}"),
    })
}

/// Whether it is a variable of a Service: `…_SERVICE_HOST`, `…_SERVICE_PORT` with the name of a port, `…_PORT`,
/// `…_PORT_80_TCP` and those that begin with it.
fn is_from_kubernetes(name: &str) -> bool {
    let is_port = |rest: &str| {
        let (number, rest) = rest.split_once('_').unwrap_or((rest, ""));
        let protocols = ["TCP", "UDP", "SCTP"];
        number.bytes().all(|byte| byte.is_ascii_digit())
            && protocols.iter().any(|protocol| rest.starts_with(protocol))
    };
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.ends_with("_PORT")
        || name.split("_PORT_").skip(1).any(is_port)
}
