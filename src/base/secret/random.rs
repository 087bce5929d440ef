//! Random values that countersign issues: tokens, secrets, verifiers, session ids and identifiers.
//!
//! All but the out-of-band verifier consist of `A-Z a-z 0-9`: they need no escape in a URL, a header, a form or a cookie,
//! are never read as an option on a command line, and a double click selects them whole.
//!
//! The generator is that of AWS-LC, seeded by the kernel and, where there is one, by the processor's own generator.
//! `.cargo/config.toml` leaves out a third source, which takes tens of milliseconds in each process.
//!
//! # Errors
//!
//! [`NoRandomness`] for every function that makes something.

use std::str::FromStr;

use aws_lc_rs::rand;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::base::secret::Secret;

/// Characters of a token: 190 bits, of which 142 stay unknown to a reader of the 8 characters that a log may hold.
pub const TOKEN_LENGTH: usize = 32;
/// Characters of a secret or a session id: 256 bits.
pub const SECRET_LENGTH: usize = 43;
/// Characters of a verifier that travels by redirect: 130 bits.
pub const VERIFIER_LENGTH: usize = 22;
/// Digits of a verifier that the user types.
pub const OOB_VERIFIER_LENGTH: usize = 8;

/// The system's random generator failed: a fault, nothing may be issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the system's random generator failed")]
pub struct NoRandomness;

/// Makes the identifier of a request token or an access token.
pub fn token() -> Result<String, NoRandomness> {
    text(TOKEN_LENGTH).map(|text| String::clone(&text))
}

/// Makes an identifier of 130 bits.
pub fn identifier() -> Result<String, NoRandomness> {
    text(VERIFIER_LENGTH).map(|text| String::clone(&text))
}

/// Makes the key of a consumer or the id of a user that was given none: 130 bits.
pub fn name<N: FromStr>() -> Result<N, NoRandomness> {
    // The characters that are drawn are among those of names.
    identifier()?.parse().map_err(|_| NoRandomness)
}

/// Makes the secret of a consumer or a token, or the value of a cookie.
pub fn secret() -> Result<Secret, NoRandomness> {
    text(SECRET_LENGTH).map(|text| Secret::from(text.as_str()))
}

/// Makes a verifier that travels to the consumer by redirect.
pub fn verifier() -> Result<Secret, NoRandomness> {
    text(VERIFIER_LENGTH).map(|text| Secret::from(text.as_str()))
}

/// Makes a verifier that the user types into the consumer: 8 digits, every combination equally likely.
///
/// Eight digits are enough because of the limit of wrong verifiers for a request token and the request
/// token's lifetime.
pub fn oob_verifier() -> Result<Secret, NoRandomness> {
    const COMBINATIONS: u32 = 100_000_000;
    // The numbers from here on would make the low combinations likelier: they are drawn again.
    const BIAS_FROM: u32 = u32::MAX - u32::MAX % COMBINATIONS;
    loop {
        let mut bytes = [0; 4];
        fill(&mut bytes)?;
        let number = u32::from_le_bytes(bytes);
        if number < BIAS_FROM {
            return Ok(Secret::from(format!("{:08}", number % COMBINATIONS)));
        }
    }
}

/// Writes an out-of-band verifier in two groups: `1234 5678`.
pub fn in_groups(verifier: &Secret) -> Zeroizing<String> {
    let digits = verifier.expose_text();
    match digits.split_at_checked(OOB_VERIFIER_LENGTH / 2) {
        Some((first, second)) => Zeroizing::new(format!("{first} {second}")),
        None => digits,
    }
}

/// Reads an out-of-band verifier as a user may have typed it: spaces and hyphens are dropped.
pub fn typed(verifier: &[u8]) -> Secret {
    let letters = verifier
        .iter()
        .copied()
        .filter(|byte| !b" -".contains(byte));
    Secret::from(letters.collect::<Vec<u8>>())
}

fn text(length: usize) -> Result<Zeroizing<String>, NoRandomness> {
    const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    // Bytes from 248 on would make the first eight characters likelier: they are skipped.
    const BIAS_FROM: u8 = 248;
    let mut text = Zeroizing::new(String::with_capacity(length));
    let mut bytes = Zeroizing::new([0; 64]);
    while text.len() < length {
        fill(&mut *bytes)?;
        let unbiased = bytes.iter().filter(|byte| **byte < BIAS_FROM);
        let room = length - text.len();
        text.extend(
            unbiased
                .take(room)
                .map(|byte| char::from(ALPHABET[usize::from(byte % 62)])),
        );
    }
    Ok(text)
}

fn fill(bytes: &mut [u8]) -> Result<(), NoRandomness> {
    rand::fill(bytes).map_err(|_| NoRandomness)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn tokens_and_secrets_have_their_length_and_alphabet_and_differ() {
        let mut seen = HashSet::new();
        for _ in 0..1000 {
            let token = token().unwrap();
            let secret = secret().unwrap().expose_text().to_string();
            assert_eq!((token.len(), secret.len()), (TOKEN_LENGTH, SECRET_LENGTH));
            assert!(
                (token.clone() + &secret)
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric())
            );
            assert!(seen.insert(token) && seen.insert(secret));
        }
        assert_eq!(verifier().unwrap().expose().len(), VERIFIER_LENGTH);
    }

    #[test]
    fn every_character_is_about_equally_likely() {
        let mut counts = [0u32; 128];
        for _ in 0..4000 {
            for byte in token().unwrap().bytes() {
                counts[usize::from(byte)] += 1;
            }
        }
        // 128,000 draws over 62 characters: 2,065 each, standard deviation 45; a bias of a quarter, as `% 62` without
        // skipping gives to the first eight, is far outside.
        let drawn: Vec<u32> = counts.into_iter().filter(|count| *count > 0).collect();
        assert_eq!(drawn.len(), 62);
        assert!(
            drawn.iter().all(|count| (1700..2450).contains(count)),
            "{drawn:?}"
        );
    }

    #[test]
    fn oob_verifier_is_eight_digits_with_leading_zeros_kept() {
        let mut leading = [0u32; 10];
        for _ in 0..2000 {
            let verifier = oob_verifier().unwrap();
            assert_eq!(verifier.expose().len(), OOB_VERIFIER_LENGTH);
            assert!(verifier.expose().iter().all(u8::is_ascii_digit));
            leading[usize::from(verifier.expose()[0] - b'0')] += 1;
        }
        assert!(
            leading.iter().all(|count| (100..320).contains(count)),
            "{leading:?}"
        );
    }

    #[test]
    fn a_build_has_no_generator_that_measures_the_processor_first() {
        // Cargo sets it for compilers; without it the first random value of a process takes tens of milliseconds.
        assert_eq!(option_env!("AWS_LC_SYS_NO_JITTER_ENTROPY"), Some("1"));
    }

    #[test]
    fn oob_verifier_is_shown_in_two_groups_and_read_back() {
        let verifier = Secret::from("01234567");
        assert_eq!(in_groups(&verifier).as_str(), "0123 4567");
        assert_eq!(typed(b"0123 4567"), verifier);
        assert_eq!(typed(b" 0123-45 67-"), verifier);
        assert_ne!(typed(b"0123_4567"), verifier);
    }
}
