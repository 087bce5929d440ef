//! The field names this program treats in a way of their own, recognised once while the head is parsed.

/// A field name that means something to the proxy; every other one is [`Name::Other`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Name {
    /// No name of this list.
    Other,
    /// `Accept`
    Accept,
    /// `Authorization`
    Authorization,
    /// `Connection`
    Connection,
    /// `Content-Encoding`
    ContentEncoding,
    /// `Content-Length`
    ContentLength,
    /// `Content-Type`
    ContentType,
    /// `Cookie`
    Cookie,
    /// `Countersign-Hop`: the processes of this program that a request has passed.
    CountersignHop,
    /// `Date`
    Date,
    /// `Expect`
    Expect,
    /// `Forwarded`
    Forwarded,
    /// `Host`
    Host,
    /// `HTTP2-Settings`
    Http2Settings,
    /// `Keep-Alive`
    KeepAlive,
    /// `Location`
    Location,
    /// `Origin`
    Origin,
    /// `Proxy-Authenticate`
    ProxyAuthenticate,
    /// `Proxy-Authorization`
    ProxyAuthorization,
    /// `Proxy-Connection`
    ProxyConnection,
    /// `Sec-Fetch-Site`
    SecFetchSite,
    /// `Set-Cookie`
    SetCookie,
    /// `TE`
    Te,
    /// `Trailer`
    Trailer,
    /// `Transfer-Encoding`
    TransferEncoding,
    /// `Upgrade`
    Upgrade,
    /// `X-Forwarded-For`
    XForwardedFor,
    /// `X-Forwarded-Host`
    XForwardedHost,
    /// `X-Forwarded-Prefix`
    XForwardedPrefix,
    /// `X-Forwarded-Proto`
    XForwardedProto,
}

/// Every known name in lower case, shorter ones first.
const KNOWN: [(&[u8], Name); 29] = [
    (b"te", Name::Te),
    (b"date", Name::Date),
    (b"host", Name::Host),
    (b"accept", Name::Accept),
    (b"cookie", Name::Cookie),
    (b"expect", Name::Expect),
    (b"origin", Name::Origin),
    (b"trailer", Name::Trailer),
    (b"upgrade", Name::Upgrade),
    (b"location", Name::Location),
    (b"forwarded", Name::Forwarded),
    (b"connection", Name::Connection),
    (b"keep-alive", Name::KeepAlive),
    (b"set-cookie", Name::SetCookie),
    (b"content-type", Name::ContentType),
    (b"authorization", Name::Authorization),
    (b"content-length", Name::ContentLength),
    (b"http2-settings", Name::Http2Settings),
    (b"sec-fetch-site", Name::SecFetchSite),
    (b"countersign-hop", Name::CountersignHop),
    (b"x-forwarded-for", Name::XForwardedFor),
    (b"content-encoding", Name::ContentEncoding),
    (b"proxy-connection", Name::ProxyConnection),
    (b"x-forwarded-host", Name::XForwardedHost),
    (b"transfer-encoding", Name::TransferEncoding),
    (b"x-forwarded-proto", Name::XForwardedProto),
    (b"proxy-authenticate", Name::ProxyAuthenticate),
    (b"x-forwarded-prefix", Name::XForwardedPrefix),
    (b"proxy-authorization", Name::ProxyAuthorization),
];

/// The longest of [`KNOWN`].
const LONGEST: usize = 19;

/// Where the names of each length begin in [`KNOWN`]; they end where those of the next length begin.
const OF_LENGTH: [u8; LONGEST + 2] = {
    let mut begin = [0; LONGEST + 2];
    let mut length = 0;
    let mut at = 0;
    while length < begin.len() {
        while at < KNOWN.len() && KNOWN[at].0.len() < length {
            at += 1;
        }
        #[expect(clippy::cast_possible_truncation, reason = "there are few names")]
        let here = at as u8;
        begin[length] = here;
        length += 1;
    }
    begin
};

/// The first and last eight bytes of a name, which tell any two of up to sixteen apart, in lower case.
#[derive(Clone, Copy)]
struct Key(u64, u64);

const KEYS: [Key; KNOWN.len()] = {
    let mut keys = [Key(0, 0); KNOWN.len()];
    let mut at = 0;
    while at < KNOWN.len() {
        keys[at] = Key::of(KNOWN[at].0);
        at += 1;
    }
    keys
};

impl Key {
    const fn of(name: &[u8]) -> Self {
        // Of the bytes that a name may have, each capital letter becomes its small one, and none becomes another letter,
        // a digit or the hyphen: whatever is equal to a known name now differs from it by case alone.
        const SMALL: u64 = u64::from_ne_bytes([0x20; 8]);
        if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
            return Self(
                u64::from_le_bytes(*first) | SMALL,
                u64::from_le_bytes(*last) | SMALL,
            );
        }
        if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
            let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
            return Self(first as u64 | SMALL, last as u64 | SMALL);
        }
        if let (Some(first), Some(last)) = (name.first(), name.last()) {
            return Self(*first as u64 | SMALL, *last as u64 | SMALL);
        }
        Self(0, 0)
    }
}

impl Name {
    /// Recognises a field name, without regard to case. The name is a token (RFC 9110 §5.1).
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        let length = name.len();
        let Some(&[begin, end]) = OF_LENGTH.get(length..).and_then(<[u8]>::first_chunk) else {
            return Self::Other;
        };
        let key = Key::of(name);
        for at in usize::from(begin)..usize::from(end) {
            if KEYS[at].0 == key.0 && KEYS[at].1 == key.1 {
                let (known, found) = KNOWN[at];
                let whole = length <= 16 || name.eq_ignore_ascii_case(known);
                return if whole { found } else { Self::Other };
            }
        }
        Self::Other
    }

    /// Whether the field is about one connection only and never forwarded (RFC 9110 §7.6.1), the fields that
    /// `Connection` names aside.
    #[must_use]
    pub const fn is_hop_by_hop(self) -> bool {
        matches!(
            self,
            Self::Connection
                | Self::KeepAlive
                | Self::ProxyConnection
                | Self::ProxyAuthenticate
                | Self::ProxyAuthorization
                | Self::Te
                | Self::Trailer
                | Self::TransferEncoding
                | Self::Upgrade
                | Self::Http2Settings
        )
    }
}

/// A set of field names that match whatever an API might take for the same name: case is folded, and every byte
/// but letters and digits reads as `-` (frameworks after CGI turn `-` and others into `_`). A name with `*` at its end
/// stands for every name that begins so.
#[derive(Debug, Clone, Default)]
pub struct FoldedNames {
    names: Vec<Folded>,
    /// For each name the bit of its beginning, so that most others are told apart by it alone.
    beginnings: u64,
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
        let mut set = Self::default();
        for name in names {
            let name = name.as_ref();
            let begin = name.strip_suffix(b"*");
            let text: Box<[u8]> = begin.unwrap_or(name).iter().copied().map(fold).collect();
            let open = begin.is_some();
            // What is shorter than a beginning and open begins in many ways.
            set.beginnings |= if open && text.len() < BEGINNING {
                u64::MAX
            } else {
                beginning(&text)
            };
            set.names.push(Folded { text, open });
        }
        set
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
        let reads_so = |known: &Folded| {
            let mut bytes = known.text.iter().zip(name);
            bytes.all(|(&known, &byte)| known == fold(byte))
        };
        self.beginnings & beginning(name) != 0
            && self
                .names
                .iter()
                .any(|known| may_be(known) && reads_so(known))
    }
}

/// So many bytes of a name choose its bit.
const BEGINNING: usize = 3;

/// One of 64 bits for the first bytes of a name.
fn beginning(name: &[u8]) -> u64 {
    let bytes = name.iter().take(BEGINNING);
    1 << (bytes.fold(0u32, |sum, &byte| sum * 31 + u32::from(fold(byte))) % 64)
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
    use crate::http1::token::is_token_byte;

    #[test]
    fn recognises_names_in_any_case() {
        for (known, name) in KNOWN {
            assert_eq!(Name::of(known), name);
            assert_eq!(Name::of(&known.to_ascii_uppercase()), name);
        }
        assert_eq!(Name::of(b"TRANSFER-encoding"), Name::TransferEncoding);
        assert_eq!(Name::of(b"Transfer_Encoding"), Name::Other);
        assert_eq!(Name::of(b""), Name::Other);
    }

    #[test]
    fn names_that_differ_in_any_byte_are_others() {
        for (known, _) in KNOWN {
            for at in 0..known.len() {
                for byte in (0..=u8::MAX).filter(|&byte| is_token_byte(byte)) {
                    let mut name = known.to_vec();
                    name[at] = byte;
                    let alike = KNOWN
                        .iter()
                        .find(|(known, _)| name.eq_ignore_ascii_case(known));
                    let expected = alike.map_or(Name::Other, |&(_, name)| name);
                    assert_eq!(Name::of(&name), expected, "{}", name.escape_ascii());
                }
            }
        }
    }

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
        for name in [
            "X-SSL-Client-Cert",
            "x_ssl_client_s_dn",
            "X.SSL.Client-",
            "iv",
            "IV-User",
            "ivy",
            "TE",
            "proxy",
        ] {
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
        assert!(!FoldedNames::default().contains(b""));
    }
}
