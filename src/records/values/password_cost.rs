//! The costs of password hashes, as the hashes themselves name them.

use crate::base::secret::Secret;

/// The iterations to which PBKDF2's are rounded up for its cost: systems that have raised the iterations with each
/// release hold hashes of ten numbers, and a login does the work of every cost there is.
pub const PBKDF2_STEPS: [u32; 3] = [75_000, 300_000, 1_200_000];

/// The cost of computing a hash, as the hash itself names it: everything before its salt, in one spelling for each
/// form. Not a secret. Empty for a text that is not a hash.
pub fn password_cost(hash: &Secret) -> String {
    let text = String::from_utf8_lossy(hash.expose());
    let parts: Vec<&str> = text.split('$').collect();
    match parts[..] {
        ["", "2a" | "2b" | "2y", cost, ..] => format!("$2b${cost}"),
        ["", "P" | "H", rest, ..] => format!("$P${}", rest.chars().next().unwrap_or_default()),
        ["", "S", rest, ..] => format!("$S${}", rest.chars().next().unwrap_or_default()),
        // SHA-crypt names its rounds only if they are not 5,000.
        ["", name @ ("5" | "6"), first, ..] => {
            let rounds = first.strip_prefix("rounds=").unwrap_or("5000");
            format!("${name}$rounds={}", rounds.parse().unwrap_or(0_u32))
        }
        ["", name @ ("pbkdf2-sha256" | "pbkdf2-sha512"), rounds, ..]
        | [name @ ("pbkdf2_sha256" | "pbkdf2_sha512"), rounds, ..] => {
            let iterations = pbkdf2_iterations(rounds).unwrap_or_default();
            let step = PBKDF2_STEPS.into_iter().find(|step| iterations <= *step);
            let name = name.replace('_', "-");
            format!("${name}${}", step.unwrap_or(iterations))
        }
        // The PHC form, whose salt is base64 without padding.
        ["", algorithm, ref rest @ ..] => {
            let params = rest.iter().take_while(|part| part.contains('='));
            params.fold(format!("${algorithm}"), |cost, part| {
                format!("{cost}${part}")
            })
        }
        _ => String::new(),
    }
}

/// Reads `29000`, or `i=29000` with or without `l=32` after it.
pub fn pbkdf2_iterations(text: &str) -> Option<u32> {
    let digits = match text.strip_prefix("i=") {
        Some(params) => params.split(",l=").next()?,
        None => text,
    };
    digits.parse().ok().filter(|iterations| *iterations > 0)
}
