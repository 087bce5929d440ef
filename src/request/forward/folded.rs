//! Field names as an API might read them.

/// A set of field names. A name matches all names that an API might take for the same one: case is folded, and every
/// byte but letters and digits reads as `-` (frameworks after CGI turn `-` and others into `_`). A name with `*` at its
/// end matches every name that begins like it.
#[derive(Debug, Clone)]
pub struct FoldedNames {
    names: Vec<Folded>,
    /// The bit of the beginning of each name: most other names have another bit, and need no comparison.
    beginnings: [u64; BEGINNINGS / 64],
}

#[derive(Debug, Clone)]
struct Folded {
    text: Box<[u8]>,
    /// Anything may follow.
    open: bool,
}

impl FoldedNames {
    /// Collects the names.
    pub fn new<N: AsRef<[u8]>>(names: impl IntoIterator<Item = N>) -> Self {
        let mut beginnings = [0; BEGINNINGS / 64];
        let folded = |name: N| {
            let begin = name.as_ref().strip_suffix(b"*");
            let text = begin.unwrap_or(name.as_ref()).iter().copied().map(fold);
            let text: Box<[u8]> = text.collect();
            let open = begin.is_some();
            if open && text.len() < BEGINNING {
                beginnings.fill(u64::MAX);
            }
            let at = beginning(&text);
            beginnings[at / 64] |= 1 << (at % 64);
            Folded { text, open }
        };
        let names = names.into_iter().map(folded).collect();
        Self { names, beginnings }
    }

    /// Whether `name` reads as one of the set.
    #[must_use]
    pub fn contains(&self, name: &[u8]) -> bool {
        self.any(name, |known| {
            known.text.len() == name.len() || known.open && known.text.len() < name.len()
        })
    }

    /// Whether `name` reads as one that is in the set by itself, not by its beginning.
    #[must_use]
    pub fn contains_itself(&self, name: &[u8]) -> bool {
        self.any(name, |known| !known.open && known.text.len() == name.len())
    }

    fn any(&self, name: &[u8], may_be: impl Fn(&Folded) -> bool) -> bool {
        let at = beginning(name);
        if self.beginnings[at / 64] >> (at % 64) & 1 == 0 {
            return false;
        }
        let reads_so = |known: &Folded| {
            let mut bytes = known.text.iter().zip(name);
            bytes.all(|(&known, &byte)| known == fold(byte))
        };
        let mut names = self.names.iter();
        names.any(|known| may_be(known) && reads_so(known))
    }
}

/// The number of bytes of a name that choose its bit.
const BEGINNING: usize = 3;

/// The number of bits.
const BEGINNINGS: usize = 4096;

/// The bit of a name's first bytes.
fn beginning(name: &[u8]) -> usize {
    let bytes = name.iter().take(BEGINNING);
    bytes.fold(0usize, |sum, &byte| sum * 37 + usize::from(fold(byte))) % BEGINNINGS
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
    use crate::text::words;

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

    #[test]
    fn a_star_at_the_end_matches_any_rest() {
        let names = FoldedNames::new(["X-SSL-Client-*", "iv*", "Te", "Proxy"]);
        for name in
            words("X-SSL-Client-Cert x_ssl_client_s_dn X.SSL.Client- iv IV-User ivy TE proxy")
        {
            assert!(names.contains(name.as_bytes()), "{name}");
        }
        for name in [
            "X-SSL-Client",
            "X-SSL-Clients",
            "X-SSL",
            "Y-SSL-Client-Cert",
            "i",
            "",
            "Ted",
            "T",
            "Proxy-Authorization",
            "Prox",
        ] {
            assert!(!names.contains(name.as_bytes()), "{name}");
        }
        assert!(names.contains_itself(b"PROXY") && names.contains_itself(b"te"));
        assert!(!names.contains_itself(b"iv") && !names.contains_itself(b"X-SSL-Client-Cert"));
        assert!(FoldedNames::new(["*"]).contains(b"anything"));
        assert!(!FoldedNames::new([""; 0]).contains(b""));
    }
}
