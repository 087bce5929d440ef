//! Passwords at rest: argon2id, in PHC form.

use std::cell::RefCell;

use argon2::{
    Algorithm, Argon2, Block, Params, PasswordHash, PasswordHasher, Version,
    password_hash::{self, phc::Output},
};
use aws_lc_rs::rand;
use subtle::ConstantTimeEq;
use thiserror::Error;

use crate::secret::Secret;

/// The longest password, in bytes; the shortest has one. Checked before any hashing, so that length is no lever.
pub const MAX_BYTES: usize = 1024;

/// 19 MiB, two passes, one lane: the first choice of the OWASP password storage cheat sheet, and argon2's own default.
const MEMORY_KIB: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// The most a stored hash may ask for: an imported record must not be able to exhaust the machine.
const MAX_MEMORY_KIB: u32 = 262_144;
const MAX_PASSES: u32 = 16;
const MAX_LANES: u32 = 16;

/// Verified in place of the hash that an unknown name does not have. It is no secret: its outcome is never looked at.
const DUMMY: &str = "$argon2id$v=19$m=19456,t=2,p=1$YSBzYWx0IG5vIG9uZSBoYQ\
    $MSqH+dy2uH5/fBkpaCXV5+euhMUQzkCwQfO+DtMBWjg";

/// Why a password cannot be hashed.
#[derive(Debug, Error)]
pub enum PasswordError {
    /// It has no byte, or more than [`MAX_BYTES`].
    #[error("a password has 1 to 1024 bytes")]
    Length,
    /// The system gave no salt, or argon2 no memory.
    #[error("the password cannot be hashed")]
    Fault,
}

/// Hashes a password for the store; takes some ten milliseconds and 19 MiB, so never on a worker that serves requests.
///
/// # Errors
///
/// [`PasswordError`].
pub fn hash(password: &Secret) -> Result<Secret, PasswordError> {
    if !is_length_allowed(password) {
        return Err(PasswordError::Length);
    }
    let mut salt = [0; 16];
    rand::fill(&mut salt).map_err(|_| PasswordError::Fault)?;
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).map_err(|_| PasswordError::Fault)?;
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_with_salt(password.expose(), &salt)
        .map(|hash| Secret::from(hash.to_string()))
        .map_err(|_: password_hash::Error| PasswordError::Fault)
}

/// Whether `password` is the one that `hash` was made from; takes as long as [`hash()`].
///
/// Anything but an argon2id hash in PHC form of bearable cost verifies nothing.
#[must_use]
pub fn verify(hash: &Secret, password: &Secret) -> bool {
    is_length_allowed(password)
        && parse(hash).is_some_and(|hash| matches(&hash, password).unwrap_or(false))
}

thread_local! {
    /// What this thread hashes in. Allocated anew for each password, it leaves holes that the next one, aligned
    /// otherwise, does not fit: two threads then hold 200 MiB and more after a flood of logins.
    static MEMORY: RefCell<Vec<Block>> = const { RefCell::new(Vec::new()) };
}

/// Whether `password` gives what is stored; `None` if it cannot be computed.
fn matches(stored: &PasswordHash, password: &Secret) -> Option<bool> {
    let params = Params::try_from(stored).ok()?;
    let version = stored.version.map(Version::try_from).transpose().ok()?;
    let (salt, expected) = (stored.salt.as_ref()?, stored.hash.as_ref()?);
    let blocks = params.block_count();
    let argon2 = Argon2::new(Algorithm::Argon2id, version.unwrap_or_default(), params);
    let mut computed = [0; Output::MAX_LENGTH];
    let computed = computed.get_mut(..expected.len())?;
    MEMORY.with_borrow_mut(|memory| {
        if memory.len() < blocks {
            *memory = vec![Block::new(); blocks];
        }
        let mut working = memory.get_mut(..blocks)?;
        let hashed =
            argon2.hash_password_into_with_memory(password.expose(), salt, computed, &mut working);
        // An imported hash may cost more than ours do: that much is not kept.
        if blocks > MEMORY_KIB as usize {
            *memory = Vec::new();
        }
        hashed.ok()
    })?;
    Some(computed.ct_eq(expected.as_ref()).into())
}

/// Whether `hash` is one that [`verify`] takes; for what is imported.
#[must_use]
pub fn is_usable_hash(hash: &Secret) -> bool {
    parse(hash).is_some()
}

/// A hash that costs what every hash made here costs, for names that have none.
#[must_use]
pub fn dummy_hash() -> Secret {
    Secret::from(DUMMY)
}

/// Whether a password has 1 to [`MAX_BYTES`] bytes.
#[must_use]
pub fn is_length_allowed(password: &Secret) -> bool {
    (1..=MAX_BYTES).contains(&password.expose().len())
}

fn parse(hash: &Secret) -> Option<PasswordHash> {
    let hash = PasswordHash::new(str::from_utf8(hash.expose()).ok()?).ok()?;
    let cost = Params::try_from(&hash).ok()?;
    let usable = hash.algorithm.as_str() == "argon2id"
        && hash.salt.is_some()
        && hash.hash.is_some()
        && cost.m_cost() <= MAX_MEMORY_KIB
        && cost.t_cost() <= MAX_PASSES
        && cost.p_cost() <= MAX_LANES;
    usable.then_some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verifies_the_password_and_no_other() {
        let password = Secret::from("correct horse battery staple");
        let hashed = hash(&password).unwrap();
        assert!(
            hashed
                .expose()
                .starts_with(b"$argon2id$v=19$m=19456,t=2,p=1$")
        );
        assert!(is_usable_hash(&hashed));
        assert!(verify(&hashed, &password));
        assert!(!verify(
            &hashed,
            &Secret::from("correct horse battery stapl")
        ));
        assert!(!verify(
            &hashed,
            &Secret::from("correct horse battery staple ")
        ));
        assert_ne!(
            hash(&password).unwrap(),
            hashed,
            "each hash has its own salt"
        );
    }

    #[test]
    fn verifies_a_published_hash() {
        // From the reference implementation: echo -n password | argon2 somesalt -id -t 2 -m 16 -p 1
        let hash = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        assert!(verify(&Secret::from(hash), &Secret::from("password")));
        assert!(!verify(&Secret::from(hash), &Secret::from("Password")));
    }

    #[test]
    fn bounds_the_password() {
        let longest = Secret::from(vec![b'x'; MAX_BYTES]);
        let hashed = hash(&longest).unwrap();
        assert!(verify(&hashed, &longest));
        for length in [0, MAX_BYTES + 1] {
            let password = Secret::from(vec![b'x'; length]);
            assert!(matches!(hash(&password), Err(PasswordError::Length)));
            assert!(!verify(&hashed, &password));
        }
    }

    #[test]
    fn dummy_costs_what_a_real_hash_costs() {
        let real = hash(&Secret::from("x")).unwrap();
        let (real, dummy) = (parse(&real).unwrap(), parse(&dummy_hash()).unwrap());
        assert_eq!(real.algorithm, dummy.algorithm);
        assert_eq!(real.version, dummy.version);
        assert_eq!(real.params, dummy.params);
        assert_eq!(real.salt.unwrap().len(), dummy.salt.unwrap().len());
        assert_eq!(real.hash.unwrap().len(), dummy.hash.unwrap().len());
    }

    #[test]
    fn takes_only_argon2id_of_bearable_cost() {
        let tail = "$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        for head in [
            "$argon2i$v=19$m=65536,t=2,p=1",
            "$argon2d$v=19$m=65536,t=2,p=1",
            "$argon2id$v=19$m=4194304,t=2,p=1",
            "$argon2id$v=19$m=65536,t=1000,p=1",
            "$argon2id$v=19$m=65536,t=2,p=100",
            "$scrypt$ln=16,r=8,p=1",
        ] {
            assert!(
                !is_usable_hash(&Secret::from(format!("{head}{tail}"))),
                "{head}"
            );
        }
        for hash in [
            "",
            "x",
            "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ",
            "password",
        ] {
            assert!(
                !verify(&Secret::from(hash), &Secret::from("password")),
                "{hash}"
            );
        }
        assert!(!verify(
            &Secret::from(vec![0xff; 40]),
            &Secret::from("password")
        ));
    }
}
