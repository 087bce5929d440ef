//! Targets, Host and forwarded fields: only a trusted proxy is believed, and `url` reads the same host.

#![no_main]

use std::{net::IpAddr, sync::LazyLock};

use countersign::{
    base::network::peer::Peer,
    oauth::{Authority, Scheme},
    request::parse::{
        ParseRejection,
        origin::{ForwardedFamily, Origins, PrefixMode, PublicUrl, RequestOrigin},
        target::{INVALID_BYTE, INVALID_FORM, RequestTarget},
    },
    wire::url::origin::HttpUrl,
};
use http::{HeaderName, HeaderValue, Request, request::Parts};
use libfuzzer_sys::fuzz_target;

static X_FORWARDED: LazyLock<Origins> = LazyLock::new(|| origins(ForwardedFamily::XForwarded));
static FORWARDED: LazyLock<Origins> = LazyLock::new(|| origins(ForwardedFamily::Forwarded));

fn public_url(text: &str) -> PublicUrl {
    HttpUrl::parse(text).expect("a URL").into()
}

fn origins(family: ForwardedFamily) -> Origins {
    Origins {
        base: public_url("https://auth.test"),
        pages: Vec::new(),
        public: vec![
            public_url("https://a.test"),
            public_url("https://a.test/v1"),
            public_url("http://A.test:8080"),
            public_url("https://[::1]:443/p/"),
            public_url("http://127.0.0.1"),
        ],
        prefix_mode: PrefixMode::Strip,
        trusted_proxies: vec![
            "10.0.0.0/8".parse().expect("a network"),
            "fd00::/8".parse().expect("a network"),
        ],
        family,
    }
}

fuzz_target!(|input: &[u8]| {
    // A byte of flags, then the target, a line end, and field lines.
    let Some((&flags, rest)) = input.split_first() else {
        return;
    };
    let trusted: IpAddr = [10, 0, 0, 1].into();
    let untrusted: IpAddr = [192, 0, 2, 1].into();
    let peer = Peer {
        address: [Some(trusted), Some(untrusted), None][usize::from(flags % 3)],
        secure: flags & 0x80 != 0,
        is_relay: false,
    };
    let Some(head) = head_of(rest, |_| true) else {
        return;
    };
    let text = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
    // No target has a fragment; the program does not read one (RFC 3986 §4.3).
    let text = text.split(|&byte| byte == b'#').next().unwrap_or_default();
    let target = match RequestTarget::split(&head.uri) {
        Ok(target) => target,
        Err(error) if error == INVALID_FORM => {
            assert!(!text.starts_with(b"/"));
            return;
        }
        Err(error) => {
            assert_eq!(error, INVALID_BYTE);
            assert!(!text.iter().all(u8::is_ascii_graphic));
            return;
        }
    };
    whole(&target, text);
    let origins: &Origins = if flags & 0x40 == 0 {
        &X_FORWARDED
    } else {
        &FORWARDED
    };
    let received = origins.receive(&head, &target, peer);

    // The fields of the other family have no effect.
    let other: fn(&[u8]) -> bool = match origins.family {
        ForwardedFamily::XForwarded => |line| line.starts_with(b"forwarded:"),
        ForwardedFamily::Forwarded => |line| line.starts_with(b"x-forwarded-"),
    };
    let alone =
        head_of(rest, |line| !other(&line.to_ascii_lowercase())).expect("fewer lines are no worse");
    let same = RequestTarget::split(&alone.uri).expect("the same target");
    assert_eq!(
        plain(&received),
        plain(&origins.receive(&alone, &same, peer))
    );

    if peer.address != Some(trusted) {
        // Forwarded fields of an untrusted peer have no effect.
        let without = head_without_forwarded(rest);
        let same = RequestTarget::split(&without.uri).expect("the same target");
        let expected = origins.receive(&without, &same, peer);
        assert_eq!(plain(&received), plain(&expected));
        if let Ok(received) = &received {
            assert!(
                !received.trusted
                    && received.secure == peer.secure
                    && received.nearest_address == peer.address
            );
        }
    }
    let Ok(received) = received else {
        return;
    };
    assert_eq!(
        Authority::parse(received.authority.host.as_bytes()).map(|again| again.host),
        Ok(received.authority.host)
    );
    assert_ne!(received.authority.port, Some(0));
    if received.trusted {
        vouched_for(&head, &received, trusted);
    }
    match origins.choose(&received, target.path) {
        Some(url) => {
            assert!(target.path.starts_with(url.prefix.as_bytes()));
            assert!(
                url.origin
                    .host
                    .eq_ignore_ascii_case(received.authority.host)
            );
            if let (Some(absolute), false) = (target.absolute, received.trusted) {
                let text = std::str::from_utf8(text).expect("ASCII");
                let other = url::Url::parse(text).expect("a URL there as well");
                assert_eq!(other.host_str(), Some(&*url.origin.host));
                assert!(other.username().is_empty() && other.password().is_none());
                if absolute.scheme == url.origin.scheme {
                    assert_eq!(other.port_or_known_default(), Some(url.origin.port));
                }
            }
        }
        None => {}
    }
});

fn head_of(rest: &[u8], keep: impl Fn(&[u8]) -> bool) -> Option<Parts> {
    let mut lines = rest.split(|&byte| byte == b'\n');
    let mut request = Request::new(());
    *request.uri_mut() = lines.next()?.try_into().ok()?;
    for line in lines.filter(|line| !line.is_empty() && keep(line)) {
        let colon = line.iter().position(|&byte| byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
        request.headers_mut().append(name, value);
    }
    Some(request.into_parts().0)
}

fn head_without_forwarded(rest: &[u8]) -> Parts {
    let others = |line: &[u8]| {
        let line = line.to_ascii_lowercase();
        !line.starts_with(b"x-forwarded-") && !line.starts_with(b"forwarded:")
    };
    head_of(rest, others).expect("fewer lines are no worse")
}

fn plain<'a>(
    received: &Result<RequestOrigin<'a>, ParseRejection>,
) -> Result<(Authority<'a>, bool, Option<IpAddr>, bool), ParseRejection> {
    received.clone().map(|received| {
        (
            received.authority,
            received.secure,
            received.nearest_address,
            received.trusted,
        )
    })
}

/// The parts of a target make up the whole target.
fn whole(target: &RequestTarget<'_>, text: &[u8]) {
    let mut again = Vec::new();
    if let Some(absolute) = target.absolute {
        again.extend_from_slice(if absolute.scheme == Scheme::Https {
            b"https://"
        } else {
            b"http://"
        });
        again.extend_from_slice(absolute.authority);
        assert!(!absolute.authority.iter().any(|byte| b"/?".contains(byte)));
    }
    let path_begins = again.len();
    again.extend_from_slice(target.path);
    if let Some(query) = target.query {
        again.extend([b"?", query].concat());
    }
    assert!(target.path.starts_with(b"/") && !target.path.contains(&b'?'));
    let mut text = text.to_vec();
    text[..path_begins.min(8)].make_ascii_lowercase();
    let scheme = path_begins.min(8).min(again.len());
    again[..scheme].make_ascii_lowercase();
    // An absolute target without a path has the path `/`.
    if again != text {
        again.remove(path_begins);
    }
    assert_eq!(again, text);
}

/// The address is the peer's or one from a field, and every address to the right of it is trusted.
fn vouched_for(head: &Parts, received: &RequestOrigin<'_>, peer: IpAddr) {
    let is_trusted = |address: IpAddr| {
        let address = address.to_canonical();
        X_FORWARDED
            .trusted_proxies
            .iter()
            .any(|network| network.contains(&address))
    };
    let address = received.nearest_address.expect("the peer has one");
    // The rules of operations judge the same address, or none: never that of a proxy.
    assert!(
        received
            .own_address
            .is_none_or(|judged| judged == address && !is_trusted(judged))
    );
    if address == peer {
        return;
    }
    let lines = |name: &str| -> Vec<u8> {
        let named = head.headers.get_all(name).iter();
        named
            .flat_map(|value| [value.as_bytes(), b","].concat())
            .collect()
    };
    let text = lines(match received.family {
        ForwardedFamily::XForwarded => "x-forwarded-for",
        ForwardedFamily::Forwarded => "forwarded",
    });
    let text = String::from_utf8_lossy(&text).into_owned();
    let is_end =
        |character: char| !character.is_ascii_hexdigit() && character != ':' && character != '.';
    let mut untrusted_behind = false;
    let mut found = false;
    for word in text.split(is_end).rev() {
        let read = word
            .parse::<IpAddr>()
            .ok()
            .or_else(|| word.rsplit_once(':')?.0.parse().ok());
        let Some(read) = read.map(|read| read.to_canonical()) else {
            continue;
        };
        if read == address.to_canonical() {
            found = true;
            break;
        }
        untrusted_behind |= !is_trusted(read);
    }
    assert!(found, "{address} stands in {text:?}");
    // Only a plain list can be judged this simply; `Forwarded` has other parameters that may contain addresses.
    let plain_list = text
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit() || b":., ".contains(&byte));
    assert!(
        !(plain_list && untrusted_behind),
        "{address} is vouched for by untrusted proxies in {text:?}"
    );
}
