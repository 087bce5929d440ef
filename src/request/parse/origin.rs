//! Finds the public URL of a request: the origin of its base string (RFC 5849 §3.4.1.2).
//!
//! The received host only selects one of the configured URLs; it is never part of a base string itself.

mod forwarded;
mod public_url;

use std::{net::IpAddr, sync::Once};

use http::{HeaderMap, HeaderName, HeaderValue, Version, header, request::Parts};
use ipnet::IpNet;

use self::public_url::is_at;
pub use self::public_url::{PrefixMode, PublicUrl};
use super::{ParseRejection, target::RequestTarget};
use crate::{
    base::network::{
        http_fields::{all, list},
        peer::Peer,
    },
    oauth::{Authority, Scheme, split_port},
    wire::url::origin::Origin,
};

/// The fields in which a trusted proxy reports what it received; no standard has them.
pub static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// See [`X_FORWARDED_FOR`].
pub static X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
/// See [`X_FORWARDED_FOR`].
pub static X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The fields in which trusted proxies report the caller. Fields of the other family are not believed: a proxy that
/// does not know them forwards those of any caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForwardedFamily {
    /// `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`.
    XForwarded,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// RFC 9112 §3.2: "A server MUST respond with a 400".
pub const INVALID_HOST: ParseRejection =
    ParseRejection::Malformed("Host is missing, repeated or malformed");

const DISAGREE: ParseRejection = ParseRejection::Malformed("the request target and Host disagree");

const INVALID_FORWARDED: ParseRejection =
    ParseRejection::Malformed("a forwarded field of a trusted proxy is malformed");

/// The origin of a request and the host that it is for, as the connection or a trusted proxy reports them.
#[derive(Debug, Clone, Copy)]
pub struct RequestOrigin<'a> {
    /// The host that selects one of the public URLs.
    pub authority: Authority<'a>,
    /// The Host field, which a trusted proxy's report may have replaced as `authority`.
    pub host: Option<&'a HeaderValue>,
    /// The caller's connection is under TLS, here or at the trusted proxy.
    pub secure: bool,
    /// The nearest address to the caller that is known, for limits and logs: the right-most one that does not belong to a
    /// trusted proxy, or that of the proxy which reports no caller.
    pub nearest_address: Option<IpAddr>,
    /// The address of the caller itself, for rules; `None` if there is none, as over a Unix socket, or if it is not known: it is
    /// never that of a proxy that reports no caller.
    pub own_address: Option<IpAddr>,
    /// The peer is a trusted proxy.
    pub trusted: bool,
    /// The fields that a trusted proxy writes.
    pub family: ForwardedFamily,
}

impl RequestOrigin<'_> {
    /// Whether a trusted proxy wrote the fields of that family.
    #[must_use]
    pub fn believes(&self, family: ForwardedFamily) -> bool {
        self.trusted && self.family == family
    }
}

/// The public URLs and the trusted proxies.
#[derive(Debug, Clone)]
pub struct Origins {
    /// The URL of token endpoints and pages.
    pub base: PublicUrl,
    /// Further origins that have the pages, and no token calls.
    pub pages: Vec<Origin>,
    /// The URLs of protected calls, at least one.
    pub public: Vec<PublicUrl>,
    /// The treatment of their prefixes.
    pub prefix_mode: PrefixMode,
    /// The networks whose forwarded fields count.
    pub trusted_proxies: Vec<IpNet>,
    /// The forwarded fields that count.
    pub family: ForwardedFamily,
}

impl Origins {
    /// Collects the origin that a request reports; the report of a trusted proxy replaces the data of the connection.
    ///
    /// # Errors
    /// [`ParseRejection::Malformed`]: Host, the authority of the target, or a forwarded field that counts.
    pub fn receive<'a>(
        &'a self,
        parts: &'a Parts,
        target: &RequestTarget<'a>,
        peer: Peer,
    ) -> Result<RequestOrigin<'a>, ParseRejection> {
        let mut hosts = parts.headers.get_all(header::HOST).iter();
        let sent = hosts.next();
        if hosts.next().is_some() {
            return Err(INVALID_HOST);
        }
        let parse = |text| Authority::parse(text).map_err(|_| INVALID_HOST);
        // Nearly always it is that of a public URL.
        let read = |sent: &'a HeaderValue| {
            let mut urls = self.public.iter().chain([&self.base]);
            let known = urls.find_map(|url| url.if_written(sent.as_bytes()));
            known.map_or_else(|| parse(sent.as_bytes()), Ok)
        };
        let host = sent.map(read).transpose()?;
        // RFC 9112 §3.2.2: the target's authority replaces Host; a Host that differs is a second reading.
        let authority = match (target.absolute, host) {
            (None, Some(host)) => host,
            (None, None) => return Err(INVALID_HOST),
            // Over HTTP/2 the authority has a field of its own (RFC 9113 §8.3.1).
            (Some(_), None) if parts.version == Version::HTTP_11 => return Err(INVALID_HOST),
            (Some(absolute), host) => {
                let named = parse(absolute.authority)?;
                if host.is_some_and(|host| !same_authority(host, named, absolute.scheme)) {
                    return Err(DISAGREE);
                }
                named
            }
        };
        let mut received = RequestOrigin {
            authority,
            host: sent,
            secure: peer.secure,
            nearest_address: peer.address,
            own_address: peer.address.filter(|_| !peer.is_relay),
            trusted: false,
            family: self.family,
        };
        if self.trusts(peer) {
            received.trusted = true;
            received.own_address = None;
            self.warn_of_other_family(&parts.headers);
            match self.family {
                ForwardedFamily::XForwarded => self.believe_x_forwarded(parts, &mut received)?,
                ForwardedFamily::Forwarded => {
                    self.believe_forwarded(&parts.headers, &mut received)?
                }
            }
        }
        Ok(received)
    }

    /// Warns, once in the life of the process, of a trusted proxy that sends the fields that do not count.
    fn warn_of_other_family(&self, headers: &HeaderMap) {
        static WARNING: Once = Once::new();
        let (other, setting): (&[&HeaderName], _) = match self.family {
            ForwardedFamily::XForwarded => (&[&header::FORWARDED], "forwarded"),
            ForwardedFamily::Forwarded => (
                &[&X_FORWARDED_FOR, &X_FORWARDED_HOST, &X_FORWARDED_PROTO],
                "x-forwarded",
            ),
        };
        if let Some(field) = other.iter().find(|name| headers.contains_key(**name)) {
            WARNING.call_once(|| {
                tracing::warn!(
                    %field,
                    "a trusted proxy sends a field that is ignored; if it is the proxy's own, set listen.forwarded to {setting:?}"
                );
            });
        }
    }

    #[inline(never)]
    fn believe_x_forwarded<'a>(
        &self,
        parts: &'a Parts,
        received: &mut RequestOrigin<'a>,
    ) -> Result<(), ParseRejection> {
        let headers = &parts.headers;
        let (hops, nearest) = self.believe_x_forwarded_for(headers, received);
        // Proxies that append write one value each to every list, so lists of one length have the values of one proxy at one
        // place. A list of another length may have values of the caller, all but the last.
        let reported = |name| {
            let values = || all(headers, name).flat_map(list);
            match hops > 1 && values().count() == hops {
                true => values().nth(nearest),
                false => values().last(),
            }
        };
        set_host(received, reported(&X_FORWARDED_HOST))?;
        set_proto(received, reported(&X_FORWARDED_PROTO))
    }

    /// From the right: each trusted proxy reports the address to its left. Returns the number of addresses, and the place of the
    /// last one that counts, which is that of the caller, or of the first trusted proxy where no caller is reported.
    fn believe_x_forwarded_for(
        &self,
        headers: &HeaderMap,
        received: &mut RequestOrigin<'_>,
    ) -> (usize, usize) {
        let hops: Vec<&[u8]> = all(headers, &X_FORWARDED_FOR).flat_map(list).collect();
        let mut from_right = hops.iter().enumerate().rev();
        let nearest = from_right.find(|(_, hop)| !self.goes_on_from(hop, received));
        (hops.len(), nearest.map_or(0, |(place, _)| place))
    }

    /// The origin of a request that the proxy at `peer` describes, for this authority and scheme. A trusted proxy, or one at
    /// the other end of a Unix socket, also reports the caller's address.
    ///
    /// # Errors
    /// [`ParseRejection::Malformed`]: a forwarded field that counts.
    pub fn describe<'a>(
        &self,
        headers: &'a HeaderMap,
        peer: Peer,
        authority: Authority<'a>,
        secure: bool,
    ) -> Result<RequestOrigin<'a>, ParseRejection> {
        let mut received = RequestOrigin {
            authority,
            host: None,
            secure,
            nearest_address: peer.address,
            own_address: None,
            trusted: self.may_describe_caller(peer),
            family: self.family,
        };
        match self.family {
            _ if !received.trusted => {}
            ForwardedFamily::XForwarded => {
                self.believe_x_forwarded_for(headers, &mut received);
            }
            ForwardedFamily::Forwarded => {
                self.believe_forwarded(headers, &mut received)?;
                (received.authority, received.secure) = (authority, secure);
            }
        }
        Ok(received)
    }

    /// Whether the other end of a connection is a trusted proxy, and not a relay.
    #[must_use]
    pub fn trusts(&self, peer: Peer) -> bool {
        !peer.is_relay && peer.address.is_some_and(|address| self.is_trusted(address))
    }

    /// Whether the caller's address in a description is believed: from a trusted proxy, and over a Unix socket.
    #[must_use]
    pub fn may_describe_caller(&self, peer: Peer) -> bool {
        peer.address.is_none_or(|address| self.is_trusted(address))
    }

    /// The scheme of the public URLs at this authority, or else that of the base URL; `None` if there are two.
    pub fn only_scheme(&self, authority: &Authority<'_>) -> Option<Scheme> {
        let mut urls = self.public.iter().filter(|url| url.is_at(authority));
        let first = urls.next().unwrap_or(&self.base).origin.scheme;
        urls.all(|url| url.origin.scheme == first).then_some(first)
    }

    /// Reads `Forwarded` from the right. The peer wrote the last element; a trusted proxy wrote an element if all elements
    /// to its right name trusted proxies. Elements further to the left are never read.
    fn believe_forwarded<'a>(
        &self,
        headers: &'a HeaderMap,
        received: &mut RequestOrigin<'a>,
    ) -> Result<(), ParseRejection> {
        let (mut host, mut proto) = (None, None);
        let lines: Vec<&[u8]> = all(headers, &header::FORWARDED).collect();
        'lines: for line in lines.into_iter().rev() {
            let elements = forwarded::elements(line).ok_or(INVALID_FORWARDED)?;
            for element in elements.into_iter().rev() {
                host = host.or(element.host);
                proto = proto.or(element.proto);
                // An element that names no address is a hop too.
                if !self.goes_on_from(element.node.unwrap_or_default(), received) {
                    break 'lines;
                }
            }
        }
        set_host(received, host)?;
        set_proto(received, proto)
    }

    /// Takes the address that a trusted proxy reports; returns whether it belongs to a trusted proxy too, so that the next
    /// one to the left counts. A trusted proxy is no caller: where none to its left is reported, the caller is unknown.
    fn goes_on_from(&self, hop: &[u8], received: &mut RequestOrigin<'_>) -> bool {
        received.own_address = None;
        let Some(address) = parse_address(hop) else {
            return false;
        };
        received.nearest_address = Some(address);
        let is_trusted = self.is_trusted(address);
        received.own_address = (!is_trusted).then_some(address);
        is_trusted
    }

    /// Whether the address is a trusted proxy's.
    #[must_use]
    pub fn is_trusted(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.trusted_proxies
            .iter()
            .any(|network| network.contains(&address))
    }

    /// Whether a request is for the origin of the token endpoints.
    #[must_use]
    pub fn is_base(&self, received: &RequestOrigin<'_>) -> bool {
        let has_scheme = |url: &PublicUrl| url.origin.is_https() == received.secure;
        let is_at = |url: &PublicUrl| url.is_at(&received.authority);
        let is_other = |url| has_scheme(url) && is_at(url);
        is_at(&self.base) && (has_scheme(&self.base) || !self.public.iter().any(is_other))
    }

    /// The origin whose pages a request is for: that of the token endpoints or one of the further ones. A flow stays there.
    #[must_use]
    pub fn page_origin(&self, received: &RequestOrigin<'_>) -> Option<&Origin> {
        if self.is_base(received) {
            return Some(&self.base.origin);
        }
        self.further_page_origin(received)
    }

    /// Whether a request is for one of the further origins with pages.
    #[must_use]
    pub fn is_page_host(&self, received: &RequestOrigin<'_>) -> bool {
        self.further_page_origin(received).is_some()
    }

    fn further_page_origin(&self, received: &RequestOrigin<'_>) -> Option<&Origin> {
        let mut pages = self.pages.iter();
        pages.find(|origin| is_at(origin, &received.authority))
    }

    /// The prefix of a public URL, if the API does not see it.
    pub fn removed_prefix<'u>(&self, url: &'u PublicUrl) -> Option<&'u HeaderValue> {
        url.prefix_field
            .as_ref()
            .filter(|_| self.prefix_mode != PrefixMode::Keep)
    }

    /// The public URL for which a protected call was signed: of those at the host, the one of the connection's scheme
    /// first, and then the one with the longest prefix; `None` if none matches.
    pub fn choose(&self, received: &RequestOrigin<'_>, path: &[u8]) -> Option<&PublicUrl> {
        self.public
            .iter()
            .filter(|url| url.is_at(&received.authority))
            .filter(|url| self.prefix_mode == PrefixMode::Restore || url.covers(path))
            .max_by_key(|url| (url.origin.is_https() == received.secure, url.prefix.len()))
    }

    /// The public URLs at the received host, whatever their prefixes, separated by commas; `None` if there are none.
    pub fn urls_at(&self, received: &RequestOrigin<'_>) -> Option<String> {
        let urls = self.public.iter();
        let at_host = urls.filter(|url| url.is_at(&received.authority));
        let texts: Vec<String> = at_host
            .map(|PublicUrl { origin, prefix, .. }| format!("{origin}{prefix}"))
            .collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    }

    /// The public URLs of the API, separated by commas.
    pub fn api_urls(&self) -> String {
        let urls = self.public.iter();
        let texts = urls.map(|PublicUrl { origin, prefix, .. }| format!("{origin}{prefix}"));
        texts.collect::<Vec<_>>().join(", ")
    }

    /// The URLs that a request to another host may have been meant for, separated by commas.
    pub fn all_urls(&self) -> String {
        let mut urls: Vec<String> = Vec::new();
        for PublicUrl { origin, prefix, .. } in self.public.iter().chain([&self.base]) {
            let url = format!("{origin}{prefix}");
            if !urls.contains(&url) {
                urls.push(url);
            }
        }
        urls.join(", ")
    }
}

fn same_authority(one: Authority<'_>, other: Authority<'_>, scheme: Scheme) -> bool {
    let port = |authority: Authority<'_>| authority.port.unwrap_or(scheme.default_port());
    one.host.eq_ignore_ascii_case(other.host) && port(one) == port(other)
}

fn set_host<'a>(
    received: &mut RequestOrigin<'a>,
    host: Option<&'a [u8]>,
) -> Result<(), ParseRejection> {
    if let Some(host) = host {
        received.authority = Authority::parse(host).map_err(|_| INVALID_FORWARDED)?;
    }
    Ok(())
}

fn set_proto(received: &mut RequestOrigin<'_>, proto: Option<&[u8]>) -> Result<(), ParseRejection> {
    if let Some(proto) = proto {
        let scheme = Scheme::from_forwarded(proto).ok_or(INVALID_FORWARDED)?;
        received.secure = scheme == Scheme::Https;
    }
    Ok(())
}

/// Parses an address as proxies write it: alone, an IPv4 one with a port, or an IPv6 one in brackets, with or without a
/// port (RFC 7239 §6). A text with anything else in it is not an address.
fn parse_address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    let (host, port) = split_port(text);
    let brackets = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let address = match brackets {
        Some(address) => IpAddr::V6(address.parse().ok()?),
        None => IpAddr::V4(host.parse().ok()?),
    };
    port.is_none_or(is_node_port)
        .then_some(address.to_canonical())
}

/// Whether this is a port, or an obfuscated port, which begins with `_` (RFC 7239 §6.3).
fn is_node_port(text: &str) -> bool {
    let digits = (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_word_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    digits || text.len() > 1 && text.starts_with('_') && text.bytes().all(is_word_byte)
}

#[cfg(test)]
mod tests;
