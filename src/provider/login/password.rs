//! Stored passwords: hashing, and verification that takes the same time for every account.

use std::collections::BTreeSet;

use argon2::{Algorithm, Argon2, Params, PasswordHasher, Version, password_hash};
use aws_lc_rs::rand;
use thiserror::Error;

pub use super::stored::UnusableHash;
use super::stored::{self, Stored};
use crate::{
    base::{secret::Secret, text::longest},
    records::values::password_cost::password_cost,
};

/// The cost of our hashes, as [`password_cost`] writes it: 19 MiB, two passes, one lane, the first choice of the OWASP
/// password storage cheat sheet and argon2's own default.
const OURS: &str = "$argon2id$v=19$m=19456,t=2,p=1";

/// Why a password cannot be hashed.
#[derive(Debug, Error)]
pub enum PasswordError {
    /// It has no byte, or more than [`longest::PASSWORD`].
    #[error("a password has 1 to {} bytes", longest::PASSWORD)]
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
    Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::DEFAULT)
        .hash_password_with_salt(password.expose(), &salt)
        .map(|hash| Secret::from(hash.to_string()))
        .map_err(|_: password_hash::Error| PasswordError::Fault)
}

/// Whether `hash` was made from `password`; the work is the same for every `hash` and without one. Only a
/// [usable](check_usable) hash verifies.
///
/// The time of argon2 grows with its memory and its passes, and not evenly: no amount of other work takes exactly as long.
/// So the password is hashed once at each cost that any account has (`costs`, as
/// [`Account`](crate::records::values::use_cases::Account) has them) and once at ours, always in the same order: at the cost of
/// `hash` with its salt, at all others with a salt of no account. A store whose hashes were all made here costs one hash
/// per login. Imported ones of other costs cost one more for each, until their users have logged in and [were
/// given](has_our_cost) one of ours. The time reveals which costs the store has, never which account has one.
#[must_use]
pub fn verify_evenly(hash: Option<&Secret>, costs: &[String], password: &Secret) -> bool {
    if !is_length_allowed(password) {
        return false;
    }
    let stored = hash.and_then(|hash| Some((password_cost(hash), parse(hash).ok()?)));
    let mut is_right = false;
    for cost in all_costs(stored.as_ref().map(|(cost, _)| cost), costs) {
        match &stored {
            Some((stored_cost, hash)) if *stored_cost == cost => {
                is_right = hash.matches(password.expose()).unwrap_or(false);
            }
            _ => {
                let dummy = Stored::dummy(&cost).ok();
                std::hint::black_box(dummy.and_then(|dummy| dummy.matches(password.expose())));
            }
        }
    }
    is_right
}

/// Every cost at which a login hashes, in order: the same for all accounts of a store.
fn all_costs(stored: Option<&String>, costs: &[String]) -> BTreeSet<String> {
    // The account's own cost is among them already, unless its store does not report costs.
    let costs = costs.iter().chain(stored).cloned();
    costs.chain([OURS.to_owned()]).collect()
}

/// Whether `hash` has the cost of [`hash()`]; otherwise a login replaces it.
#[must_use]
pub fn has_our_cost(hash: &Secret) -> bool {
    password_cost(hash) == OURS && check_usable(hash).is_ok()
}

/// A hash of another system in a form that [`check_usable`] accepts, if it has one; `None` for what Django and Unix write where
/// no password is accepted.
#[must_use]
pub fn known_form(hash: String) -> Option<String> {
    let is_locked = hash.starts_with('!') || hash == "*";
    (!is_locked).then(|| stored::from_werkzeug(&hash).unwrap_or(hash))
}

/// Checks that [`verify_evenly`] can verify a hash; for imports.
///
/// # Errors
///
/// [`UnusableHash`].
pub fn check_usable(hash: &Secret) -> Result<(), UnusableHash> {
    match hash.expose().len() <= longest::PASSWORD_HASH {
        true => parse(hash).map(drop),
        false => Err(UnusableHash::TooLong),
    }
}

/// The time that a login takes for a cost, as [`password_cost`] writes it, in milliseconds of a processor of 2020; 0
/// for a cost that cannot be verified, and for ours, which every login takes.
pub fn milliseconds(cost: &str) -> u32 {
    match Stored::dummy(cost) {
        Ok(dummy) if cost != OURS => dummy.milliseconds().max(1),
        _ => 0,
    }
}

/// Whether a password has 1 to [`longest::PASSWORD`] bytes.
#[must_use]
pub fn is_length_allowed(password: &Secret) -> bool {
    (1..=longest::PASSWORD).contains(&password.expose().len())
}

fn parse(hash: &Secret) -> Result<Stored, UnusableHash> {
    let text = str::from_utf8(hash.expose()).map_err(|_| UnusableHash::Form)?;
    Stored::parse(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::words;

    fn verify(hash: &Secret, password: &Secret) -> bool {
        verify_evenly(Some(hash), &[], password)
    }

    #[test]
    fn verifies_the_password_and_no_other() {
        let password = Secret::from("correct horse battery staple");
        let hashed = hash(&password).unwrap();
        assert!(
            hashed
                .expose()
                .starts_with(b"$argon2id$v=19$m=19456,t=2,p=1$")
        );
        assert_eq!(check_usable(&hashed), Ok(()));
        assert!(has_our_cost(&hashed));
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
        let longest = Secret::from(vec![b'x'; longest::PASSWORD]);
        let hashed = hash(&longest).unwrap();
        assert!(verify(&hashed, &longest));
        for length in [0, longest::PASSWORD + 1] {
            let password = Secret::from(vec![b'x'; length]);
            assert!(matches!(hash(&password), Err(PasswordError::Length)));
            assert!(!verify(&hashed, &password));
        }
    }

    const IMPORTED: &str =
        "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";

    /// A hash of `password` at another cost than ours.
    fn cheap() -> Secret {
        let params = Params::new(256, 2, 1, None).unwrap();
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let hash = argon2.hash_password_with_salt(b"password", b"somesalt");
        Secret::from(hash.unwrap().to_string())
    }

    #[test]
    fn every_account_of_a_store_takes_the_same_work() {
        let costs = [&IMPORTED.into(), &cheap()].map(password_cost);
        let hashes = [IMPORTED.into(), cheap()];
        let ours = hash(&Secret::from("x")).unwrap();
        let of = |hash: Option<&Secret>| all_costs(hash.map(password_cost).as_ref(), &costs);
        let unknown = of(None);
        assert_eq!(unknown.len(), 3);
        for hash in hashes.iter().chain([&ours]) {
            assert_eq!(of(Some(hash)), unknown, "{hash:?}");
        }
        // A store whose hashes are all ours costs one.
        let costs = [password_cost(&ours)];
        assert_eq!(all_costs(None, &costs), BTreeSet::from([OURS.to_owned()]));
        assert_eq!(all_costs(None, &[]), BTreeSet::from([OURS.to_owned()]));
        assert!(!has_our_cost(&hashes[0]) && !has_our_cost(&"unusable".into()));
    }

    #[test]
    fn verifies_evenly_what_verifies() {
        let costs = [&IMPORTED.into(), &cheap()].map(password_cost);
        let (right, wrong) = (Secret::from("password"), Secret::from("Password"));
        for hash in [IMPORTED.into(), cheap()] {
            for costs in [&costs[..], &[], &["nonsense".to_owned()]] {
                assert!(verify_evenly(Some(&hash), costs, &right), "{hash:?}");
                assert!(!verify_evenly(Some(&hash), costs, &wrong), "{hash:?}");
            }
        }
        assert!(!verify_evenly(None, &costs, &right));
        assert!(!verify_evenly(Some(&Secret::from("")), &costs, &right));
        assert!(!verify_evenly(None, &costs, &Secret::from("")));
    }

    #[test]
    fn of_argon2_takes_only_argon2id_of_affordable_cost() {
        let tail = "$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        for head in words(
            "$argon2i$v=19$m=65536,t=2,p=1 $argon2d$v=19$m=65536,t=2,p=1
             $argon2id$v=19$m=4194304,t=2,p=1 $argon2id$v=19$m=131073,t=1,p=1
             $argon2id$v=19$m=65536,t=5,p=1 $argon2id$v=19$m=8,t=4294967295,p=1
             $argon2id$v=18$m=65536,t=2,p=1 $argon2id$v=19$m=65536,t=2,p=100
             $scrypt$ln=18,r=8,p=1",
        ) {
            let hash = Secret::from(format!("{head}{tail}"));
            assert!(check_usable(&hash).is_err(), "{head}");
            assert!(!verify_evenly(Some(&hash), &[], &Secret::from("password")));
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
