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

impl Name {
    /// Recognises a field name, without regard to case.
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        let candidates: &[(&[u8], Self)] = match name.len() {
            2 => &[(b"te", Self::Te)],
            4 => &[(b"host", Self::Host), (b"date", Self::Date)],
            6 => &[
                (b"accept", Self::Accept),
                (b"cookie", Self::Cookie),
                (b"expect", Self::Expect),
                (b"origin", Self::Origin),
            ],
            7 => &[(b"trailer", Self::Trailer), (b"upgrade", Self::Upgrade)],
            8 => &[(b"location", Self::Location)],
            9 => &[(b"forwarded", Self::Forwarded)],
            10 => &[
                (b"connection", Self::Connection),
                (b"keep-alive", Self::KeepAlive),
                (b"set-cookie", Self::SetCookie),
            ],
            12 => &[(b"content-type", Self::ContentType)],
            13 => &[(b"authorization", Self::Authorization)],
            14 => &[
                (b"content-length", Self::ContentLength),
                (b"sec-fetch-site", Self::SecFetchSite),
                (b"http2-settings", Self::Http2Settings),
            ],
            15 => &[(b"x-forwarded-for", Self::XForwardedFor)],
            16 => &[
                (b"x-forwarded-host", Self::XForwardedHost),
                (b"proxy-connection", Self::ProxyConnection),
                (b"content-encoding", Self::ContentEncoding),
            ],
            17 => &[
                (b"transfer-encoding", Self::TransferEncoding),
                (b"x-forwarded-proto", Self::XForwardedProto),
            ],
            18 => &[
                (b"x-forwarded-prefix", Self::XForwardedPrefix),
                (b"proxy-authenticate", Self::ProxyAuthenticate),
            ],
            19 => &[(b"proxy-authorization", Self::ProxyAuthorization)],
            _ => &[],
        };
        candidates
            .iter()
            .find(|(known, _)| name.eq_ignore_ascii_case(known))
            .map_or(Self::Other, |&(_, known)| known)
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
    fn recognises_names_in_any_case() {
        assert_eq!(Name::of(b"TRANSFER-encoding"), Name::TransferEncoding);
        assert_eq!(Name::of(b"Transfer_Encoding"), Name::Other);
        assert_eq!(Name::of(b""), Name::Other);
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
}
