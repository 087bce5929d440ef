//! Passwords at rest: argon2id, in PHC form, and the hashes of other systems until their users have logged in.

use std::{cell::RefCell, collections::BTreeSet};

use argon2::{
    Algorithm, Argon2, Block, Params, PasswordHash, PasswordHasher, Version,
    password_hash::{self, phc::Output},
};
use aws_lc_rs::rand;
use subtle::ConstantTimeEq;
use thiserror::Error;

use super::foreign::{ForeignCost, Parts};
use crate::{secret::Secret, store::record::password_cost};

/// The longest password, in bytes; the shortest has one. Checked before any hashing, so that length is no lever.
pub const MAX_BYTES: usize = 1024;

/// 19 MiB, two passes, one lane: the first choice of the OWASP password storage cheat sheet, and argon2's own default.
const MEMORY_KIB: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;
const OUTPUT_BYTES: usize = 32;

/// The most memory that a stored hash may ask for, and the most memory times passes: RFC 9106's second choice, and the
/// defaults of libsodium, PHP, Django and Spring fit in. Every login takes the time of every cost in the store, so what
/// an imported record asks for is asked of all.
const MAX_MEMORY_KIB: u32 = 131_072;
const MAX_MEMORY_KIB_PASSES: u32 = 262_144;
const MAX_LANES: u32 = 16;

/// The salt where an account has no hash of that cost. No secret: the outcome is never looked at.
const DUMMY_SALT: &[u8] = b"a salt no one has";

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

/// Why a hash verifies nothing.
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

/// Whether `password` is the one that `hash` was made from, by the same work for every `hash` and for none. Anything but a
/// [usable](check_usable) hash verifies nothing.
///
/// The time of argon2 grows with its memory and its passes, and not evenly: no amount of other work takes just as long.
/// So there is none: the password is hashed once at each cost that any account has (`costs`, as
/// [`Account`](crate::store::port::Account) has them) and once at ours, always in the same order; at the cost of `hash`
/// with its salt, at all others with a salt of no account. A store whose hashes were all made here costs one hash per
/// login. Imported ones of other costs cost one more for each, until their users have logged in and
/// [were given](has_our_cost) one of ours. The time reveals which costs the store has, never which account has
/// one.
#[must_use]
pub fn verify_evenly(hash: Option<&Secret>, costs: &[String], password: &Secret) -> bool {
    if !is_length_allowed(password) {
        return false;
    }
    let stored = hash.and_then(|hash| parse(hash).ok());
    let mut is_right = false;
    for cost in all_costs(stored.as_ref(), costs) {
        match stored.as_ref().filter(|stored| stored.cost == cost) {
            Some(stored) => is_right = stored.matches(password).unwrap_or(false),
            None => {
                std::hint::black_box(Stored::dummy(cost).matches(password));
            }
        }
    }
    is_right
}

/// Every cost at which a login hashes, in order: the same for all accounts of a store.
fn all_costs(stored: Option<&Stored>, costs: &[String]) -> BTreeSet<Cost> {
    costs
        .iter()
        .filter_map(|cost| Cost::parse(cost).ok())
        // The account's own is among them already, unless it is of a store that does not say so.
        .chain(stored.map(|stored| stored.cost))
        .chain([Cost::OURS])
        .collect()
}

/// Whether `hash` costs what [`hash()`] makes cost; else a login replaces it.
#[must_use]
pub fn has_our_cost(hash: &Secret) -> bool {
    parse(hash).is_ok_and(|hash| hash.cost == Cost::OURS)
}

/// Checks that [`verify_evenly`] takes a hash; for what is imported.
///
/// # Errors
///
/// [`UnusableHash`].
pub fn check_usable(hash: &Secret) -> Result<(), UnusableHash> {
    parse(hash).map(|_| ())
}

/// The time that a login takes for a cost, as [`password_cost`] writes it, in milliseconds of a processor of 2020; 0 for
/// one that verifies nothing, and for ours, which every login takes.
#[must_use]
pub fn milliseconds(cost: &str) -> u32 {
    match Cost::parse(cost) {
        Ok(Cost::OURS) | Err(_) => 0,
        Ok(Cost::Argon2id(cost)) => (cost.memory_kib * cost.passes / 2_000).max(1),
        Ok(Cost::Foreign(cost)) => cost.milliseconds().max(1),
    }
}

thread_local! {
    /// What this thread hashes in. Allocated anew for each password, it leaves holes that the next one, aligned
    /// otherwise, does not fit: two threads then hold 200 MiB and more after a flood of logins.
    static MEMORY: RefCell<Vec<Block>> = const { RefCell::new(Vec::new()) };
}

/// What determines the time of a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cost {
    /// In the order of memory first.
    Argon2id(Argon2id),
    Foreign(ForeignCost),
}

impl Cost {
    const OURS: Self = Self::Argon2id(Argon2id {
        memory_kib: MEMORY_KIB,
        passes: PASSES,
        lanes: LANES,
        version: Version::V0x13 as u32,
    });

    /// Reads what [`password_cost`] writes.
    fn parse(text: &str) -> Result<Self, UnusableHash> {
        match PasswordHash::new(text) {
            Ok(hash) if hash.algorithm.as_str() == "argon2id" => {
                Argon2id::of(&hash).map(Self::Argon2id)
            }
            _ => ForeignCost::parse(text).map(Self::Foreign),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Argon2id {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    version: u32,
}

impl Argon2id {
    fn of(hash: &PasswordHash) -> Result<Self, UnusableHash> {
        let params = Params::try_from(hash).map_err(|_| UnusableHash::Form)?;
        let version = hash.version.map(Version::try_from).transpose();
        let version = version.map_err(|_| UnusableHash::Form)?.unwrap_or_default();
        let cost = Self {
            memory_kib: params.m_cost(),
            passes: params.t_cost(),
            lanes: params.p_cost(),
            version: version.into(),
        };
        let is_affordable = cost.memory_kib <= MAX_MEMORY_KIB
            && cost.memory_kib.saturating_mul(cost.passes) <= MAX_MEMORY_KIB_PASSES
            && cost.lanes <= MAX_LANES;
        if is_affordable {
            Ok(cost)
        } else {
            Err(UnusableHash::Cost)
        }
    }

    fn compute(self, password: &Secret, salt: &[u8], output: &mut [u8]) -> Option<()> {
        let params = Params::new(self.memory_kib, self.passes, self.lanes, None).ok()?;
        let blocks = params.block_count();
        let version = Version::try_from(self.version).ok()?;
        let argon2 = Argon2::new(Algorithm::Argon2id, version, params);
        MEMORY.with_borrow_mut(|memory| {
            if memory.len() < blocks {
                *memory = vec![Block::new(); blocks];
            }
            let mut working = memory.get_mut(..blocks)?;
            let hashed = argon2.hash_password_into_with_memory(
                password.expose(),
                salt,
                output,
                &mut working,
            );
            // An imported hash may take more memory than ours do: that much is not kept.
            if blocks > MEMORY_KIB as usize {
                *memory = Vec::new();
            }
            hashed.ok()
        })
    }
}

/// A stored hash.
struct Stored {
    cost: Cost,
    parts: Parts,
}

impl Stored {
    /// One of no account.
    fn dummy(cost: Cost) -> Self {
        let (expected, iterations) = match cost {
            Cost::Foreign(cost @ ForeignCost::Pbkdf2(_, all)) => (cost.dummy_hash(), all),
            Cost::Foreign(cost) => (cost.dummy_hash(), 0),
            Cost::Argon2id(_) => (vec![0; OUTPUT_BYTES], 0),
        };
        let parts = Parts {
            salt: DUMMY_SALT.to_vec(),
            expected,
            iterations,
        };
        Self { cost, parts }
    }

    /// Whether `password` gives what is stored; `None` if it cannot be computed.
    fn matches(&self, password: &Secret) -> Option<bool> {
        if let Cost::Foreign(cost) = self.cost
            && let Some(matches) = cost.matches_text(password.expose(), &self.parts.expected)
        {
            return Some(matches);
        }
        let mut computed = [0; Output::MAX_LENGTH];
        let computed = computed.get_mut(..self.parts.expected.len())?;
        match self.cost {
            Cost::Argon2id(cost) => cost.compute(password, &self.parts.salt, computed)?,
            Cost::Foreign(cost) => cost.compute(password.expose(), &self.parts, computed)?,
        }
        Some(computed.ct_eq(&self.parts.expected).into())
    }
}

/// Whether a password has 1 to [`MAX_BYTES`] bytes.
#[must_use]
pub fn is_length_allowed(password: &Secret) -> bool {
    (1..=MAX_BYTES).contains(&password.expose().len())
}

fn parse(hash: &Secret) -> Result<Stored, UnusableHash> {
    let form = UnusableHash::Form;
    let text = str::from_utf8(hash.expose()).map_err(|_| form)?;
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(form);
    }
    let cost = Cost::parse(&password_cost(hash))?;
    let parts = match cost {
        Cost::Foreign(cost) => cost.parts(text).ok_or(form)?,
        Cost::Argon2id(_) => {
            let hash = PasswordHash::new(text).map_err(|_| form)?;
            Parts {
                salt: hash.salt.ok_or(form)?.to_vec(),
                expected: hash.hash.ok_or(form)?.as_ref().to_vec(),
                iterations: 0,
            }
        }
    };
    Ok(Stored { cost, parts })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let longest = Secret::from(vec![b'x'; MAX_BYTES]);
        let hashed = hash(&longest).unwrap();
        assert!(verify(&hashed, &longest));
        for length in [0, MAX_BYTES + 1] {
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
        let hashes = [IMPORTED.into(), cheap(), "unusable".into()];
        let ours = hash(&Secret::from("x")).unwrap();
        let of = |hash: Option<&Secret>| {
            all_costs(hash.and_then(|hash| parse(hash).ok()).as_ref(), &costs)
        };
        let unknown = of(None);
        assert_eq!(unknown.len(), 3);
        for hash in hashes.iter().chain([&ours]) {
            assert_eq!(of(Some(hash)), unknown, "{hash:?}");
        }
        // A store whose hashes are all ours costs one.
        let costs = [password_cost(&ours)];
        assert_eq!(all_costs(None, &costs), BTreeSet::from([Cost::OURS]));
        assert_eq!(all_costs(None, &[]), BTreeSet::from([Cost::OURS]));
        assert!(!has_our_cost(&hashes[0]) && !has_our_cost(&hashes[2]));
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
        for head in [
            "$argon2i$v=19$m=65536,t=2,p=1",
            "$argon2d$v=19$m=65536,t=2,p=1",
            "$argon2id$v=19$m=4194304,t=2,p=1",
            "$argon2id$v=19$m=131073,t=1,p=1",
            "$argon2id$v=19$m=65536,t=5,p=1",
            "$argon2id$v=19$m=8,t=4294967295,p=1",
            "$argon2id$v=18$m=65536,t=2,p=1",
            "$argon2id$v=19$m=65536,t=2,p=100",
            "$scrypt$ln=18,r=8,p=1",
        ] {
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
