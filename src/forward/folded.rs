//! Field names as an API might read them.

/// A set of field names that match whatever an API might take for the same name: case is folded, and every byte
/// but letters and digits reads as `-` (frameworks after CGI turn `-` and others into `_`).
#[derive(Debug, Clone, Default)]
pub struct FoldedNames {
    names: Vec<Box<[u8]>>,
    /// Bit `n` is set if a name of length `n` is in the set; bit 63 stands for that and everything longer.
    lengths: u64,
}

impl FoldedNames {
    /// Collects the names.
    pub fn new<N: AsRef<[u8]>>(names: impl IntoIterator<Item = N>) -> Self {
        let mut set = Self::default();
        for name in names {
            let folded: Box<[u8]> = name.as_ref().iter().map(|&byte| fold(byte)).collect();
            set.lengths |= length_bit(folded.len());
            set.names.push(folded);
        }
        set
    }

    /// Whether `name` reads as one of the set.
    #[must_use]
    pub fn contains(&self, name: &[u8]) -> bool {
        self.lengths & length_bit(name.len()) != 0
            && self.names.iter().any(|known| {
                known.len() == name.len()
                    && known
                        .iter()
                        .zip(name)
                        .all(|(&known, &byte)| known == fold(byte))
            })
    }
}

const fn length_bit(length: usize) -> u64 {
    1 << (if length < 63 { length } else { 63 })
}

const fn fold(byte: u8) -> u8 {
    if byte.is_ascii_alphanumeric() {
        byte.to_ascii_lowercase()
    } else {
        b'-'
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_every_spelling_an_api_may_read_as_ours() {
        let ours = FoldedNames::new(["X-Auth-User"]);
        for spelling in ["x-auth-user", "X_AUTH_USER", "X.Auth!User", "X-Auth_User"] {
            assert!(ours.contains(spelling.as_bytes()), "{spelling}");
        }
        for other in ["X-Auth-Users", "XAuthUser", "X-Auth-Use", "X--Auth-User"] {
            assert!(!ours.contains(other.as_bytes()), "{other}");
        }
    }
}
