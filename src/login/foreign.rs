//! Password hashes that other systems made: bcrypt, PBKDF2, scrypt, SHA-crypt, and phpass with its variant of Drupal.
//! They are imported and verified until their users have logged in, and never made here.

use std::num::NonZeroU32;

use aws_lc_rs::pbkdf2;
use base64::{
    Engine as _,
    alphabet::BCRYPT,
    engine::{GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD_NO_PAD},
};
use md5::{Digest, Md5};
use scrypt::scrypt;
use sha_crypt::{PasswordVerifier as _, ShaCrypt};
use sha2::Sha512;
use zeroize::Zeroizing;

use super::password::UnusableHash;
use crate::store::record::{PBKDF2_STEPS, pbkdf2_iterations};

/// What a login may take of each, which is about half a second, as with argon2id.
const MAX_BCRYPT_COST: u32 = 13;
/// SHA-512 takes twice the time of SHA-256.
const MAX_SHA512_ITERATIONS: u32 = PBKDF2_STEPS[1];
/// The memory, and the memory times lanes: scrypt takes both in turn.
const MAX_SCRYPT_BYTES: u128 = 128 << 20;
/// Each round hashes the whole password, however long.
const MAX_PHPASS_LOG: u8 = 16;
/// Each round hashes the password up to three times.
const MAX_SHA_CRYPT_ROUNDS: u32 = 100_000;

/// What determines the time of a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ForeignCost {
    Bcrypt(u32),
    /// The iterations, rounded up to one of [`PBKDF2_STEPS`].
    Pbkdf2(Sha, u32),
    Scrypt {
        log_n: u8,
        r: u32,
        p: u32,
    },
    /// The logarithm of the rounds.
    Phpass(u8),
    /// The variant of phpass with SHA-512; the logarithm of the rounds.
    Drupal(u8),
    /// The rounds.
    ShaCrypt(Sha, u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sha {
    Sha256,
    Sha512,
}

/// A hash in its parts.
pub(super) struct Parts {
    pub(super) salt: Vec<u8>,
    pub(super) expected: Vec<u8>,
    /// PBKDF2's own iterations, the cost's at most; else 0.
    pub(super) iterations: u32,
}

impl ForeignCost {
    /// Reads a cost as [`password_cost`](crate::store::record::password_cost) writes it.
    ///
    /// # Errors
    /// [`UnusableHash`]
    pub(super) fn parse(text: &str) -> Result<Self, UnusableHash> {
        let form = UnusableHash::Form;
        let parts: Vec<&str> = text.split('$').collect();
        let (cost, is_affordable) = match parts[..] {
            ["", "2b", cost] if cost.len() == 2 => {
                let cost = cost.parse().map_err(|_| form)?;
                if cost < 4 {
                    return Err(form);
                }
                (Self::Bcrypt(cost), cost <= MAX_BCRYPT_COST)
            }
            ["", "pbkdf2-sha256", iterations] => {
                let iterations = iterations.parse().map_err(|_| form)?;
                let is_affordable = PBKDF2_STEPS.contains(&iterations);
                (Self::Pbkdf2(Sha::Sha256, iterations), is_affordable)
            }
            ["", "pbkdf2-sha512", iterations] => {
                let iterations = iterations.parse().map_err(|_| form)?;
                let is_affordable = iterations <= MAX_SHA512_ITERATIONS;
                (Self::Pbkdf2(Sha::Sha512, iterations), is_affordable)
            }
            ["", "scrypt", params] => scrypt_cost(params).ok_or(form)?,
            ["", id @ ("5" | "6"), rounds] => {
                let sha = if id == "5" { Sha::Sha256 } else { Sha::Sha512 };
                let rounds = rounds.strip_prefix("rounds=").ok_or(form)?;
                let rounds = rounds.parse().map_err(|_| form)?;
                sha_crypt::Params::new(rounds).map_err(|_| form)?;
                (Self::ShaCrypt(sha, rounds), rounds <= MAX_SHA_CRYPT_ROUNDS)
            }
            ["", id @ ("P" | "S"), log] if log.len() == 1 => {
                let log = log.bytes().next().and_then(phpass_value).ok_or(form)?;
                if !(7..=30).contains(&log) {
                    return Err(form);
                }
                let cost = if id == "P" {
                    Self::Phpass(log)
                } else {
                    Self::Drupal(log)
                };
                (cost, log <= MAX_PHPASS_LOG)
            }
            _ => return Err(form),
        };
        is_affordable.then_some(cost).ok_or(UnusableHash::Cost)
    }

    /// The bytes that a hash of this cost has, where they are always the same.
    pub(super) const fn output_bytes(self) -> usize {
        match self {
            // The last of the 24 bytes is not kept.
            Self::Bcrypt(_) => 23,
            Self::Pbkdf2(Sha::Sha512, _) => 64,
            // Of a hash of Drupal half is kept.
            Self::Pbkdf2(Sha::Sha256, _) | Self::Scrypt { .. } | Self::Drupal(_) => 32,
            Self::Phpass(_) => 16,
            // In text.
            Self::ShaCrypt(Sha::Sha256, _) => 43,
            Self::ShaCrypt(Sha::Sha512, _) => 86,
        }
    }

    /// The time that a hash takes, in milliseconds of a processor of 2020.
    pub(super) fn milliseconds(self) -> u32 {
        match self {
            Self::Bcrypt(cost) => (1 << cost) / 17,
            Self::Pbkdf2(Sha::Sha256, iterations) => iterations / 3_000,
            Self::Pbkdf2(Sha::Sha512, iterations) => iterations / 1_000,
            Self::Scrypt { log_n, r, p } => {
                let kibibytes = ((u128::from(r) * u128::from(p)) << log_n) / 8;
                u32::try_from(kibibytes / 280).unwrap_or(u32::MAX)
            }
            Self::Phpass(log) => (1 << log) / 700,
            Self::Drupal(log) => (1 << log) / 500,
            Self::ShaCrypt(_, rounds) => rounds / 200,
        }
    }

    /// What a hash of no account has in place of its own bytes.
    pub(super) fn dummy_hash(self) -> Vec<u8> {
        match self {
            Self::ShaCrypt(sha, rounds) => {
                let id = if sha == Sha::Sha256 { 5 } else { 6 };
                let hash = ".".repeat(self.output_bytes());
                format!("${id}$rounds={rounds}$saltsaltsaltsalt${hash}").into_bytes()
            }
            _ => vec![0; self.output_bytes()],
        }
    }

    /// Checks a password against a hash in the text of `crypt(3)`; `None`: the hash is of another form.
    pub(super) fn matches_text(self, password: &[u8], hash: &[u8]) -> Option<bool> {
        let Self::ShaCrypt(..) = self else {
            return None;
        };
        let hash = str::from_utf8(hash).unwrap_or_default();
        Some(ShaCrypt::default().verify_password(password, hash).is_ok())
    }

    /// Takes a hash of this cost apart.
    pub(super) fn parts(self, hash: &str) -> Option<Parts> {
        let fields: Vec<&str> = hash.split('$').collect();
        let mut iterations = 0;
        let (salt, expected) = match (self, &fields[..]) {
            (Self::Bcrypt(_), ["", _, _, text]) if text.is_ascii() && text.len() == 53 => {
                let (salt, expected) = text.split_at(22);
                (from_bcrypt(salt)?, from_bcrypt(expected)?)
            }
            (Self::Pbkdf2(..), [django, rounds, salt, expected]) if !django.is_empty() => {
                iterations = pbkdf2_iterations(rounds)?;
                (salt.as_bytes().to_vec(), from_base64(expected)?)
            }
            (Self::Pbkdf2(..), ["", _, rounds, salt, expected]) => {
                iterations = pbkdf2_iterations(rounds)?;
                (from_base64(salt)?, from_base64(expected)?)
            }
            (Self::Scrypt { .. }, ["", _, _, salt, expected]) => {
                (from_base64(salt)?, from_base64(expected)?)
            }
            (Self::ShaCrypt(..), ["", _, .., expected])
                if (4..=5).contains(&fields.len())
                    && expected.len() == self.output_bytes()
                    && from_phpass(expected).is_some() =>
            {
                return Some(Parts {
                    salt: Vec::new(),
                    expected: hash.as_bytes().to_vec(),
                    iterations: 0,
                });
            }
            (Self::Drupal(_), ["", _, text]) if text.is_ascii() && text.len() == 52 => {
                let (salt, expected) = text[1..].split_at(8);
                (salt.as_bytes().to_vec(), from_phpass(expected)?)
            }
            (Self::Phpass(_), ["", _, text]) if text.is_ascii() && text.len() == 31 => {
                let (salt, expected) = text[1..].split_at(8);
                (salt.as_bytes().to_vec(), from_phpass(expected)?)
            }
            _ => return None,
        };
        let is_length = match self {
            Self::Scrypt { .. } => (16..=64).contains(&expected.len()),
            _ => expected.len() == self.output_bytes(),
        };
        let parts = Parts {
            salt,
            expected,
            iterations,
        };
        is_length.then_some(parts)
    }

    /// Computes the hash of a password with the salt of `parts` into `output`. PBKDF2 makes up for the iterations of
    /// `parts` that are missing to those of the cost.
    pub(super) fn compute(
        self,
        password: &[u8],
        Parts {
            salt, iterations, ..
        }: &Parts,
        output: &mut [u8],
    ) -> Option<()> {
        match self {
            Self::Bcrypt(cost) => {
                // The key ends with a zero byte, and what is behind 72 bytes does not count.
                let mut key = Zeroizing::new(Vec::with_capacity(password.len() + 1));
                key.extend_from_slice(password);
                key.push(0);
                key.truncate(72);
                let salt = salt.get(..16)?.try_into().ok()?;
                let digest = bcrypt::bcrypt(cost, salt, &key);
                output.copy_from_slice(digest.get(..output.len())?);
            }
            Self::Pbkdf2(sha, all) => {
                let algorithm = match sha {
                    Sha::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
                    Sha::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
                };
                let rest = NonZeroU32::new(all.saturating_sub(*iterations));
                let iterations = NonZeroU32::new(*iterations)?;
                pbkdf2::derive(algorithm, iterations, salt, password, output);
                if let Some(rest) = rest {
                    let mut unused = vec![0; output.len()];
                    pbkdf2::derive(algorithm, rest, salt, password, &mut unused);
                    std::hint::black_box(unused);
                }
            }
            Self::Scrypt { log_n, r, p } => {
                let params = scrypt::Params::new(log_n, r, p).ok()?;
                scrypt(password, salt, &params, output).ok()?;
            }
            Self::Phpass(log) => phpass::<Md5>(log, password, salt, output)?,
            Self::Drupal(log) => phpass::<Sha512>(log, password, salt, output)?,
            Self::ShaCrypt(..) => return None,
        }
        Some(())
    }
}

fn phpass<D: Digest>(log: u8, password: &[u8], salt: &[u8], output: &mut [u8]) -> Option<()> {
    let hash = |prefix: &[u8]| D::new_with_prefix(prefix).chain_update(password).finalize();
    let mut digest = hash(salt);
    for _ in 0..1_u32 << log {
        digest = hash(&digest);
    }
    output.copy_from_slice(digest.get(..output.len())?);
    Some(())
}

/// `ln=16,r=8,p=1`, and whether a login may take as much.
fn scrypt_cost(params: &str) -> Option<(ForeignCost, bool)> {
    let mut params = params.split(',');
    let mut value = |name: &str| {
        let digits = params.next()?.strip_prefix(name)?.strip_prefix('=')?;
        digits.parse::<u32>().ok()
    };
    let (log_n, r, p) = (u8::try_from(value("ln")?).ok()?, value("r")?, value("p")?);
    let is_sound = params.next().is_none() && log_n > 0 && r > 0 && p > 0;
    let cost = ForeignCost::Scrypt { log_n, r, p };
    // No bit is lost: the product has 71 at most.
    let bytes = (u128::from(r) * u128::from(p) * 128) << log_n.min(40);
    is_sound.then_some((cost, bytes <= MAX_SCRYPT_BYTES))
}

/// Base64 with or without padding, and as passlib writes it, with `.` for `+`.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=').replace('.', "+");
    STANDARD_NO_PAD.decode(text).ok()
}

fn from_bcrypt(text: &str) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::RequireNone)
        // Of the last character only some bits count, and not every system leaves the others 0.
        .with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(&BCRYPT, config).decode(text).ok()
}

/// The value of a character of phpass.
fn phpass_value(character: u8) -> Option<u8> {
    const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let value = ALPHABET.iter().position(|known| *known == character)?;
    u8::try_from(value).ok()
}

/// Reads phpass's base64, whose first character has the lowest bits.
fn from_phpass(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(16);
    for group in text.as_bytes().chunks(4) {
        let mut bits = 0_u32;
        for (index, character) in group.iter().enumerate() {
            bits |= u32::from(phpass_value(*character)?) << (6 * index);
        }
        bytes.extend_from_slice(bits.to_le_bytes().get(..group.len() * 6 / 8)?);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use crate::{
        login::password::{check_usable, verify_evenly},
        secret::Secret,
        store::record::password_cost,
    };

    /// Hashes of other programs: hash, password, and the cost in clear.
    const PUBLISHED: &[(&str, &str, &str)] = &[
        // The test vectors of crypt_blowfish and of jBCrypt.
        (
            "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
            "U*U",
            "$2b$05",
        ),
        (
            "$2a$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe",
            "a",
            "$2b$06",
        ),
        (
            "$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
            "U*U",
            "$2b$05",
        ),
        (
            "$2y$05$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui",
            "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789chars after 72 are ignored",
            "$2b$05",
        ),
        // Python's hashlib, in the form of Django; the first is of Django's own tests.
        (
            "pbkdf2_sha256$10000$seasalt$CWWFdHOWwPnki7HvkcqN9iA2T3KLW1cf2uZ5kvArtVY=",
            "lètmein",
            "$pbkdf2-sha256$75000",
        ),
        // The documentation of passlib.
        (
            "$pbkdf2-sha256$6400$.6UI/S.nXIk8jcbdHx3Fhg$98jZicV16ODfEsEZeYPGHU3kbrUrvUEXOPimVSQDD44",
            "password",
            "$pbkdf2-sha256$75000",
        ),
        (
            "$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E",
            "password",
            "$scrypt$ln=16,r=8,p=1",
        ),
        // RFC 7914 section 12.
        (
            "$scrypt$ln=10,r=8,p=16$TmFDbA$/bq+HJ00cgB4VucZDQHp/nxq18vII3gw53N2Y0s3MWIurzDZLiKjiG/xCSedmDDaxyevuUqD7m2DYMvfoswGQA",
            "password",
            "$scrypt$ln=10,r=8,p=16",
        ),
        // Python's hashlib, in PHC form.
        (
            "$pbkdf2-sha256$i=1000,l=32$MDEyMzQ1Njc4OWFiY2RlZg$hRRjgXWkW8ResfIvBP99J/T4vkgEmMRV/0tJTOjR59I",
            "password",
            "$pbkdf2-sha256$75000",
        ),
        (
            "$pbkdf2-sha512$i=1000,l=64$MDEyMzQ1Njc4OWFiY2RlZg$38DzhdBT7fPaUGBlsh42VTuuKSFAIYGZJ7l6feCDLIl+K3hdPFgxxu7xuUi4gIuH6cEIoODn18xH9Ig2ryNgUw",
            "password",
            "$pbkdf2-sha512$75000",
        ),
        // The test program of phpass.
        ("$P$9IQRaTwmfeRo7ud9Fh4E2PdI0S3r.L0", "test12345", "$P$9"),
        ("$H$9IQRaTwmfeRo7ud9Fh4E2PdI0S3r.L0", "test12345", "$P$9"),
        // The specification of SHA-crypt.
        (
            "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5",
            "Hello world!",
            "$5$rounds=5000",
        ),
        (
            "$6$rounds=10000$saltstringsaltst$OW1/O6BYHV6BcXZu8QVeXbDWra3Oeqh0sbHbbMCVNSnCM/UrjmM0Dp8vOuZeHBy/YTBmSK6H9qs/y3RnOaw5v.",
            "Hello world!",
            "$6$rounds=10000",
        ),
        // Python's hashlib, as Drupal 7 computes and cuts it.
        (
            "$S$Cabcdefgh6mR6yYMnABQaI213551nJk5P.vXhSnFQ8NKBZ1aTJIg",
            "password",
            "$S$C",
        ),
    ];

    #[test]
    fn verifies_what_other_programs_made() {
        for (hash, password, cost) in PUBLISHED {
            let (hash, password) = (Secret::from(*hash), Secret::from(*password));
            assert_eq!(check_usable(&hash), Ok(()), "{cost}");
            assert_eq!(password_cost(&hash), *cost);
            assert!(verify_evenly(Some(&hash), &[], &password), "{cost}");
            let wrong = Secret::from([&b"x"[..], password.expose()].concat());
            assert!(!verify_evenly(Some(&hash), &[], &wrong), "{cost}");
            assert!(
                verify_evenly(Some(&hash), &[(*cost).to_owned()], &password),
                "{cost}"
            );
        }
    }

    #[test]
    fn refuses_what_takes_too_long_and_what_is_no_hash() {
        let bcrypt = "CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";
        let (pbkdf2, sha512) = (&PUBLISHED[4].0[19..], &PUBLISHED[9].0[26..]);
        let scrypt = &PUBLISHED[6].0[21..];
        let phpass = &PUBLISHED[10].0[4..];
        let sha_crypt = &PUBLISHED[12].0[3..];
        let usable =
            |hash: String| check_usable(&Secret::from(hash)).map_err(|error| error.to_string());
        for hash in [
            format!("$2b$13${bcrypt}"),
            format!("pbkdf2_sha256$1200000{pbkdf2}"),
            format!("$pbkdf2-sha512$i=300000{sha512}"),
            format!("$scrypt$ln=17,r=8,p=1{scrypt}"),
            format!("$scrypt$ln=14,r=8,p=8{scrypt}"),
            format!("$P$E{phpass}"),
            format!("$5$rounds=100000${sha_crypt}"),
            format!("$S$E{}", "a".repeat(51)),
        ] {
            assert_eq!(usable(hash.clone()), Ok(()), "{hash}");
        }
        for hash in [
            format!("$2b$14${bcrypt}"),
            format!("$2y$31${bcrypt}"),
            format!("pbkdf2_sha256$1200001{pbkdf2}"),
            format!("$pbkdf2-sha512$i=300001{sha512}"),
            format!("$scrypt$ln=18,r=8,p=1{scrypt}"),
            format!("$scrypt$ln=17,r=8,p=2{scrypt}"),
            format!("$scrypt$ln=63,r=4294967295,p=4294967295{scrypt}"),
            format!("$scrypt$ln=63,r=1,p=1{scrypt}"),
            format!("$P$F{phpass}"),
            format!("$5$rounds=100001${sha_crypt}"),
            format!("$S$F{}", "a".repeat(51)),
        ] {
            let refusal = usable(hash.clone()).unwrap_err();
            assert!(refusal.starts_with("asks for more"), "{hash}: {refusal}");
        }
        for hash in [
            format!("$2x$05${bcrypt}"),
            format!("$2b$5${bcrypt}"),
            format!("$2b$03${bcrypt}"),
            format!("$2b$05${}", &bcrypt[1..]),
            format!("$2b$05${bcrypt}$"),
            format!("$2b$05$é{}", &bcrypt[2..]),
            format!("pbkdf2_sha256$0{pbkdf2}"),
            format!("pbkdf2_sha256$-1{pbkdf2}"),
            format!("pbkdf2_sha1$10000{pbkdf2}"),
            format!("pbkdf2_sha512$10000{pbkdf2}"),
            "pbkdf2_sha256$10000$seasalt$".to_owned(),
            format!("$pbkdf2-sha256$l=32,i=1000{sha512}"),
            format!("$scrypt$ln=16,r=8{scrypt}"),
            format!("$scrypt$ln=0,r=8,p=1{scrypt}"),
            format!("$scrypt$ln=16,r=0,p=1{scrypt}"),
            "$scrypt$ln=16,r=8,p=1$c2FsdA$AAAA".to_owned(),
            format!("$P$4{phpass}"),
            format!("$P$9{}", &phpass[1..]),
            format!("$P$9{}!", &phpass[..29]),
            format!("$S$5{}", "a".repeat(51)).replace("$S$5", "$S$4"),
            format!("$S$E{}", "a".repeat(50)),
            format!("$5$rounds=999${sha_crypt}"),
            format!("$5${sha_crypt}$"),
            format!("$6${sha_crypt}"),
            "$5$saltstring$".to_owned(),
            "$1$salt$qJH7.N4xYta3aEG/dfqo/0".to_owned(),
            "5f4dcc3b5aa765d61d8327deb882cf99".to_owned(),
        ] {
            let refusal = usable(hash.clone()).unwrap_err();
            assert!(
                refusal.starts_with("is not a hash of a known form"),
                "{hash}: {refusal}"
            );
        }
    }

    #[test]
    fn iterations_of_many_releases_are_few_costs() {
        let salt_and_hash = &PUBLISHED[4].0[19..];
        let costs: std::collections::BTreeSet<String> = (1..=1200)
            .map(|thousands| format!("pbkdf2_sha256${thousands}000{salt_and_hash}"))
            .map(|hash| password_cost(&hash.into()))
            .collect();
        assert_eq!(costs.len(), 3, "{costs:?}");
    }
}
