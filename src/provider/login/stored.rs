//! Stored password hashes: argon2id, and the hashes of other systems: bcrypt, PBKDF2, scrypt, SHA-crypt, and phpass
//! with its variant of Drupal. Those are imported and verified until their users have logged in, and never made here.

use std::{cell::RefCell, num::NonZeroU32};

use argon2::{Algorithm, Argon2, Block, Params, PasswordHash, Version};
use aws_lc_rs::pbkdf2;
use base64::{
    Engine as _,
    alphabet::BCRYPT,
    engine::{
        DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD_NO_PAD,
    },
};
use md5::{Digest, Md5};
use scrypt::scrypt;
use sha_crypt::{PasswordVerifier as _, ShaCrypt};
use sha2::Sha512;
use subtle::ConstantTimeEq;
use thiserror::Error;
use zeroize::Zeroizing;

use crate::records::values::password_cost::{PBKDF2_STEPS, pbkdf2_iterations};

/// The most memory that argon2id may take, in KiB, and the most memory times passes: RFC 9106's second choice, and the
/// defaults of libsodium, PHP, Django and Spring are below it. Every login takes the time of every cost in the store.
const MAX_MEMORY_KIB: u32 = 131_072;
const MAX_MEMORY_KIB_PASSES: u32 = 262_144;
const MAX_LANES: u32 = 16;
/// The memory of our own hashes, in KiB, which a thread keeps.
const KEPT_MEMORY_KIB: usize = 19_456;
/// The limits of the other forms: a login takes about half a second at each, as with argon2id.
const MAX_BCRYPT_COST: u32 = 13;
/// SHA-512 takes twice the time of SHA-256.
const MAX_SHA512_ITERATIONS: u32 = PBKDF2_STEPS[1];
/// The memory times lanes: scrypt takes both in turn.
const MAX_SCRYPT_BYTES: u128 = 128 << 20;
/// The logarithm. Each round hashes the whole password, of any length.
const MAX_PHPASS_LOG: u8 = 16;
/// Each round hashes the password up to three times.
const MAX_SHA_CRYPT_ROUNDS: u32 = 100_000;

/// Why a hash cannot be verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum UnusableHash {
    /// It is something else.
    #[error(
        "is not a hash of a known form: argon2id, bcrypt, PBKDF2 with SHA-256 or SHA-512, scrypt, SHA-crypt ($5$, $6$) or \
         phpass ($P$, $H$, $S$)"
    )]
    Form,
    /// It asks for too much.
    #[error(
        "asks for more than every login can take: argon2id 128 MiB, 256 MiB times passes and 16 lanes; bcrypt 13; \
         PBKDF2 1200000, with SHA-512 300000; scrypt 128 MiB times lanes; SHA-crypt 100000; phpass 2^16"
    )]
    Cost,
    /// It is longer than any hash of a known form needs to be.
    #[error("is longer than 1024 bytes")]
    TooLong,
}

/// The hash of Werkzeug, `scrypt:32768:8:1$salt$hex` or `pbkdf2:sha256:600000$salt$hex`, in a form that is kept; `None`: it
/// is something else.
pub(super) fn from_werkzeug(text: &str) -> Option<String> {
    let [method, salt, digits] = text.split('$').collect::<Vec<_>>()[..] else {
        return None;
    };
    let pairs = digits.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok());
    let hash = STANDARD_NO_PAD.encode(bytes.collect::<Option<Vec<_>>>()?);
    match method.split(':').collect::<Vec<_>>()[..] {
        ["scrypt", n, r, p] => {
            let n: u64 = n.parse().ok().filter(|n: &u64| n.is_power_of_two())?;
            let salt = STANDARD_NO_PAD.encode(salt);
            Some(format!(
                "$scrypt$ln={},r={r},p={p}${salt}${hash}",
                n.ilog2()
            ))
        }
        ["pbkdf2", sha @ ("sha256" | "sha512"), iterations] => {
            Some(format!("pbkdf2_{sha}${iterations}${salt}${hash}"))
        }
        _ => None,
    }
}

/// A stored hash.
pub(super) struct Stored {
    scheme: Scheme,
    salt: Vec<u8>,
    expected: Vec<u8>,
}

/// The algorithm of a hash, with everything that determines its time.
enum Scheme {
    Argon2id(Params, Version),
    Bcrypt(u32),
    /// The iterations, and these rounded up to one of [`PBKDF2_STEPS`].
    Pbkdf2(Sha, NonZeroU32, u32),
    /// The parameters log2 N, r and p.
    Scrypt(u8, u32, u32),
    /// The logarithm of the rounds.
    Phpass(u8),
    /// The variant of phpass with SHA-512; the logarithm of the rounds.
    Drupal(u8),
    /// The rounds; the expected value is the whole text of `crypt(3)`.
    ShaCrypt(u32),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sha {
    Sha256,
    Sha512,
}

impl Stored {
    /// Reads a hash.
    ///
    /// # Errors
    /// [`UnusableHash`]
    pub(super) fn parse(text: &str) -> Result<Self, UnusableHash> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(UnusableHash::Form);
        }
        let stored = Self::read(text).ok_or(UnusableHash::Form)?;
        match stored.scheme.is_affordable() {
            true => Ok(stored),
            false => Err(UnusableHash::Cost),
        }
    }

    /// A hash of no account at a cost, as [`password_cost`](crate::records::values::password_cost::password_cost) writes it.
    ///
    /// # Errors
    /// [`UnusableHash`]
    pub(super) fn dummy(cost: &str) -> Result<Self, UnusableHash> {
        let form = cost.split('$').nth(1).unwrap_or_default();
        let (salt, length) = match form {
            "2b" => ("$", 53),
            "P" => ("", 30),
            "S" => ("", 51),
            "5" => ("$saltsaltsaltsalt$", 43),
            "6" => ("$saltsaltsaltsalt$", 86),
            "pbkdf2-sha512" => ("$c2FsdCBvZiBub2JvZHk$", 86),
            _ => ("$c2FsdCBvZiBub2JvZHk$", 43),
        };
        Self::parse(&format!("{cost}{salt}{}", "A".repeat(length)))
    }

    fn read(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.split('$').collect();
        let (scheme, salt, expected, length) = match fields[..] {
            ["", "argon2id", ..] => {
                let hash = PasswordHash::new(text).ok()?;
                let params = Params::try_from(&hash).ok()?;
                let version = hash.version.map(Version::try_from).transpose().ok()?;
                let scheme = Scheme::Argon2id(params, version.unwrap_or_default());
                let expected = hash.hash?.as_ref().to_vec();
                let length = expected.len();
                (scheme, hash.salt?.to_vec(), expected, length)
            }
            ["", "2a" | "2b" | "2y", cost, text] if cost.len() == 2 && text.len() == 53 => {
                let cost = cost.parse().ok().filter(|cost| *cost >= 4)?;
                let (salt, expected) = text.split_at(22);
                let (salt, expected) = (from_bcrypt(salt)?, from_bcrypt(expected)?);
                // The last of the 24 bytes is not kept.
                (Scheme::Bcrypt(cost), salt, expected, 23)
            }
            ["", "scrypt", params, salt, expected] => {
                let (salt, expected) = (from_base64(salt)?, from_base64(expected)?);
                let length = expected.len().clamp(16, 64);
                (Scheme::scrypt(params)?, salt, expected, length)
            }
            ["", name, rounds, salt, expected] if name.starts_with("pbkdf2-") => {
                let (scheme, length) = Scheme::pbkdf2(name, rounds)?;
                (scheme, from_base64(salt)?, from_base64(expected)?, length)
            }
            // The form of Django.
            [name, rounds, salt, expected] if name.starts_with("pbkdf2_") => {
                let (scheme, length) = Scheme::pbkdf2(name, rounds)?;
                let salt = salt.as_bytes().to_vec();
                (scheme, salt, from_base64(expected)?, length)
            }
            ["", id @ ("5" | "6"), ref middle @ .., expected] if middle.len() <= 2 => {
                let rounds = match middle {
                    [rounds, _] => rounds.strip_prefix("rounds=")?.parse().ok()?,
                    _ => 5_000,
                };
                sha_crypt::Params::new(rounds).ok()?;
                let length = if id == "5" { 43 } else { 86 };
                from_phpass(expected).filter(|_| !middle.is_empty() && expected.len() == length)?;
                let text = text.as_bytes().to_vec();
                let length = text.len();
                (Scheme::ShaCrypt(rounds), Vec::new(), text, length)
            }
            ["", "P" | "H", text] if text.len() == 31 => {
                let (log, salt, expected) = phpass_parts(text)?;
                (Scheme::Phpass(log), salt, expected, 16)
            }
            ["", "S", text] if text.len() == 52 => {
                let (log, salt, expected) = phpass_parts(text)?;
                (Scheme::Drupal(log), salt, expected, 32)
            }
            _ => return None,
        };
        (expected.len() == length).then_some(Self {
            scheme,
            salt,
            expected,
        })
    }

    /// Whether `password` gives the stored hash; `None` if it cannot be computed.
    pub(super) fn matches(&self, password: &[u8]) -> Option<bool> {
        let salt = self.salt.as_slice();
        let mut computed = vec![0; self.expected.len()];
        match &self.scheme {
            Scheme::Argon2id(params, version) => {
                let hasher = Argon2::new(Algorithm::Argon2id, *version, params.clone());
                argon2(&hasher, password, salt, &mut computed)?;
            }
            Scheme::Bcrypt(cost) => {
                // The key ends with a zero byte, and bytes after the first 72 do not count.
                let mut key = Zeroizing::new(Vec::with_capacity(password.len() + 1));
                key.extend_from_slice(password);
                key.push(0);
                key.truncate(72);
                let digest = bcrypt::bcrypt(*cost, salt.get(..16)?.try_into().ok()?, &key);
                computed = digest.get(..computed.len())?.to_vec();
            }
            Scheme::Pbkdf2(sha, iterations, all) => {
                let algorithm = match sha {
                    Sha::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
                    Sha::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
                };
                if let Some(rest) = NonZeroU32::new(all.saturating_sub(iterations.get())) {
                    pbkdf2::derive(algorithm, rest, salt, password, &mut computed);
                    std::hint::black_box(&mut computed);
                }
                pbkdf2::derive(algorithm, *iterations, salt, password, &mut computed);
            }
            Scheme::Scrypt(log_n, r, p) => {
                let params = scrypt::Params::new(*log_n, *r, *p).ok()?;
                scrypt(password, salt, &params, &mut computed).ok()?;
            }
            Scheme::Phpass(log) => phpass::<Md5>(*log, password, salt, &mut computed)?,
            Scheme::Drupal(log) => phpass::<Sha512>(*log, password, salt, &mut computed)?,
            Scheme::ShaCrypt(_) => {
                let hash = str::from_utf8(&self.expected).ok()?;
                return Some(ShaCrypt::default().verify_password(password, hash).is_ok());
            }
        }
        Some(computed.ct_eq(&self.expected).into())
    }

    /// The time that it takes, in milliseconds of a processor of 2020.
    pub(super) fn milliseconds(&self) -> u32 {
        match self.scheme {
            Scheme::Argon2id(ref params, _) => params.m_cost() * params.t_cost() / 2_000,
            Scheme::Bcrypt(cost) => (1 << cost) / 17,
            Scheme::Pbkdf2(Sha::Sha256, _, all) => all / 3_000,
            Scheme::Pbkdf2(Sha::Sha512, _, all) => all / 1_000,
            Scheme::Scrypt(log_n, r, p) => {
                let kibibytes = ((u128::from(r) * u128::from(p)) << log_n) / 8;
                u32::try_from(kibibytes / 280).unwrap_or(u32::MAX)
            }
            Scheme::Phpass(log) => (1 << log) / 700,
            Scheme::Drupal(log) => (1 << log) / 500,
            Scheme::ShaCrypt(rounds) => rounds / 200,
        }
    }
}

impl Scheme {
    fn pbkdf2(name: &str, rounds: &str) -> Option<(Self, usize)> {
        let (sha, length) = match name.get("pbkdf2-".len()..)? {
            "sha256" => (Sha::Sha256, 32),
            "sha512" => (Sha::Sha512, 64),
            _ => return None,
        };
        let iterations = NonZeroU32::new(pbkdf2_iterations(rounds)?)?;
        let mut steps = PBKDF2_STEPS.into_iter();
        let step = steps.find(|step| iterations.get() <= *step);
        let all = step.unwrap_or(iterations.get());
        Some((Self::Pbkdf2(sha, iterations, all), length))
    }

    /// `ln=16,r=8,p=1`
    fn scrypt(params: &str) -> Option<Self> {
        let mut params = params.split(',');
        let mut value = |name: &str| {
            let digits = params.next()?.strip_prefix(name)?.strip_prefix('=')?;
            digits.parse::<u32>().ok().filter(|value| *value > 0)
        };
        let (log_n, r, p) = (u8::try_from(value("ln")?).ok()?, value("r")?, value("p")?);
        params.next().is_none().then_some(Self::Scrypt(log_n, r, p))
    }

    /// Whether every login can take the time and the memory.
    fn is_affordable(&self) -> bool {
        match self {
            Self::Argon2id(params, _) => {
                let memory = params.m_cost();
                memory <= MAX_MEMORY_KIB
                    && memory.saturating_mul(params.t_cost()) <= MAX_MEMORY_KIB_PASSES
                    && params.p_cost() <= MAX_LANES
            }
            Self::Bcrypt(cost) => *cost <= MAX_BCRYPT_COST,
            Self::Pbkdf2(Sha::Sha256, _, all) => PBKDF2_STEPS.contains(all),
            Self::Pbkdf2(Sha::Sha512, _, all) => *all <= MAX_SHA512_ITERATIONS,
            // No bit is lost: the product has 71 at most.
            Self::Scrypt(log_n, r, p) => {
                let bytes = u128::from(*r) * u128::from(*p) * 128;
                bytes << (*log_n).min(40) <= MAX_SCRYPT_BYTES
            }
            Self::Phpass(log) | Self::Drupal(log) => *log <= MAX_PHPASS_LOG,
            Self::ShaCrypt(rounds) => *rounds <= MAX_SHA_CRYPT_ROUNDS,
        }
    }
}

thread_local! {
    /// The memory in which this thread hashes. If it were allocated for each password, it would leave holes into which the
    /// next one, with another alignment, does not fit: two threads would hold over 200 MiB after a flood of logins.
    static MEMORY: RefCell<Vec<Block>> = const { RefCell::new(Vec::new()) };
}

fn argon2(hasher: &Argon2<'_>, password: &[u8], salt: &[u8], output: &mut [u8]) -> Option<()> {
    let blocks = hasher.params().block_count();
    MEMORY.with_borrow_mut(|memory| {
        if memory.len() < blocks {
            *memory = vec![Block::new(); blocks];
        }
        let mut working = memory.get_mut(..blocks)?;
        let hashed = hasher.hash_password_into_with_memory(password, salt, output, &mut working);
        // An imported hash may take more memory than ours do: that much is not kept.
        if blocks > KEPT_MEMORY_KIB {
            *memory = Vec::new();
        }
        hashed.ok()
    })
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

/// The logarithm of the rounds, the salt and the hash.
fn phpass_parts(text: &str) -> Option<(u8, Vec<u8>, Vec<u8>)> {
    let log = phpass_value(text.bytes().next()?).filter(|log| (7..=30).contains(log))?;
    let (salt, expected) = text[1..].split_at(8);
    Some((log, salt.as_bytes().to_vec(), from_phpass(expected)?))
}

/// Base64 with or without padding, and as passlib writes it, with `.` for `+`.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=').replace('.', "+");
    STANDARD_NO_PAD.decode(text).ok()
}

fn from_bcrypt(text: &str) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        // Only some bits of the last character count, and not every system leaves the others 0.
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
        base::secret::Secret,
        provider::login::password::{check_usable, verify_evenly},
        records::values::password_cost::password_cost,
    };

    #[test]
    fn hashes_of_werkzeug_verify_in_a_form_that_is_kept() {
        // Python's hashlib, in the form of Werkzeug.
        for hash in [
            "scrypt:32768:8:1$abcdefghijklmnop$d3cceeab34835ad3e2221bd2c3401369d5e66ce8702f44110c4b102fe5fa5b7ae4d18f2072e865b55f776f95dd7d1436e0ed29789c8be8dc1f6288e21cd7f851",
            "pbkdf2:sha256:75000$abcdefghijklmnop$87fd710056fa970091cc4164f0eb512a3d0fd421dfc3c3c670b4b46f3f655759",
            "pbkdf2:sha512:75000$abcdefghijklmnop$1d600bede8947931ff0d702ae188cde9b0a93b80633930a7b2fdcf49b88d396b429d368c06889c50e260b2a82afeefb100d8fe1d859c6618b2e87d87a131df90",
        ] {
            let known = crate::provider::login::password::known_form(hash.to_owned());
            let known = Secret::from(known.unwrap());
            assert_eq!(check_usable(&known), Ok(()), "{hash}");
            assert!(
                verify_evenly(Some(&known), &[], &"password".into()),
                "{hash}"
            );
            assert!(
                !verify_evenly(Some(&known), &[], &"Password".into()),
                "{hash}"
            );
        }
    }

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
