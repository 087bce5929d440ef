//! The head of the request that the API sees.

use super::{HostMode, Params};
use crate::{
    http1::{
        framing::{self, Framing},
        head::{Fate, Field, RequestHead},
        name::Name,
        token::{list, trim},
        write,
    },
    parse::origin::{ForwardedFamily, PublicUrl, Received},
    policy::{operations::Kind, permit::Permit},
};

/// What a forwarded request is made of.
#[derive(Debug)]
pub struct Outline<'r> {
    /// The head as it came.
    pub head: &'r RequestHead,
    /// The path to ask for, without the API's own in front.
    pub path: &'r [u8],
    /// The query to ask for.
    pub query: Option<&'r [u8]>,
    /// What was received.
    pub received: &'r Received<'r>,
    /// The public URL it was sent to.
    pub url: &'r PublicUrl,
    /// The address of the other end, for `X-Forwarded-For`.
    pub peer: Option<std::net::IpAddr>,
    /// How the body goes on.
    pub framing: Framing,
    /// A `Content-Length: 0` was sent and is sent on.
    pub explicit_empty: bool,
    /// The protocol to upgrade to, where the operation lets it pass.
    pub websocket: bool,
}

/// Writes the head.
pub fn write(out: &mut Vec<u8>, params: &Params, outline: &Outline<'_>, permit: &Permit) {
    request_line(out, params, outline);
    match &params.host {
        HostMode::Public => {
            out.extend_from_slice(b"Host: ");
            out.extend_from_slice(outline.received.authority.host);
            port(out, outline);
            out.extend_from_slice(b"\r\n");
        }
        HostMode::Fixed(host) => write::field(out, b"Host", host.as_bytes()),
    }
    callers_fields(out, params, outline, permit);
    match outline.framing {
        Framing::None if outline.explicit_empty => out.extend_from_slice(b"Content-Length: 0\r\n"),
        Framing::None | Framing::UntilClose => {}
        Framing::Length(length) => {
            out.extend_from_slice(b"Content-Length: ");
            write::decimal(out, length);
            out.extend_from_slice(b"\r\n");
        }
        Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
    }
    if outline.websocket {
        out.extend_from_slice(b"Connection: Upgrade\r\nUpgrade: websocket\r\n");
    }
    if params.forwarded {
        forwarded(out, outline);
    }
    write::field(out, b"Countersign-Hop", params.hop.as_bytes());
    identity(out, params, permit);
    out.extend_from_slice(b"\r\n");
}

/// Whether this process has forwarded the request before, so that `upstream.api_url` leads back to it. The names of other
/// processes stay in the request: any of them may be the one it comes back to.
pub fn is_back(head: &RequestHead, params: &Params) -> bool {
    head.fields
        .all(Name::CountersignHop)
        .flat_map(list)
        .any(|hop| hop == params.hop.as_bytes())
}

fn request_line(out: &mut Vec<u8>, params: &Params, outline: &Outline<'_>) {
    out.extend_from_slice(outline.head.method());
    out.push(b' ');
    out.extend_from_slice(params.api_path.as_bytes());
    out.extend_from_slice(outline.path);
    if let Some(query) = outline.query {
        out.push(b'?');
        out.extend_from_slice(query);
    }
    out.extend_from_slice(b" HTTP/1.1\r\n");
}

fn callers_fields(out: &mut Vec<u8>, params: &Params, outline: &Outline<'_>, permit: &Permit) {
    let fields = &outline.head.fields;
    let named = framing::names_fields(fields);
    fields.send_on(out, |field| {
        // Whoever could have these two taken out would change what the API reads in a body that is signed.
        let of_the_body = matches!(field.known, Name::ContentType | Name::ContentEncoding);
        let named = named && !of_the_body;
        if !passes(params, outline, permit, field)
            || named && framing::is_named_by_connection(fields, field.name)
        {
            return Fate::Goes;
        }
        if field.known != Name::Cookie {
            return Fate::Stays;
        }
        match without_ours(field.value, params) {
            None => Fate::Stays,
            Some(cookies) if cookies.is_empty() => Fate::Goes,
            Some(cookies) => Fate::Becomes(cookies),
        }
    });
}

fn passes(params: &Params, outline: &Outline<'_>, permit: &Permit, field: &Field<'_>) -> bool {
    // Names that are known here as well: what is to be dropped is the operator's word. But for the forwarded fields that
    // have rules of their own below, the beginning of a name is no such word.
    let dropped = match field.known {
        Name::XForwardedFor
        | Name::XForwardedHost
        | Name::XForwardedPrefix
        | Name::XForwardedProto => params.dropped.contains_itself(field.name),
        _ => params.dropped.contains(field.name),
    };
    if dropped {
        return false;
    }
    match field.known {
        Name::Host | Name::ContentLength | Name::Expect => false,
        name if name.is_hop_by_hop() => false,
        Name::Authorization => match permit.kind() {
            // Observed: as if this program were not there.
            None => true,
            Some(Kind::Consumer | Kind::Application) => params.forward_authorization,
            // The scheme is another one, or the call would have been a signed one.
            Some(Kind::Anonymous) => true,
            Some(Kind::User) => false,
        },
        Name::XForwardedFor | Name::XForwardedHost | Name::XForwardedProto => {
            outline.received.believes(ForwardedFamily::XForwarded) && !params.forwarded
        }
        Name::XForwardedPrefix => outline.received.believes(ForwardedFamily::XForwarded),
        Name::Forwarded => outline.received.believes(ForwardedFamily::Forwarded),
        Name::Other => !params.lookalikes.contains(field.name),
        _ => true,
    }
}

/// `X-Forwarded-*` as this program saw the request; what a trusted proxy wrote stays in front.
fn forwarded(out: &mut Vec<u8>, outline: &Outline<'_>) {
    if let Some(peer) = outline.peer {
        out.extend_from_slice(b"X-Forwarded-For: ");
        let received = outline.received;
        if received.believes(ForwardedFamily::XForwarded) {
            for hops in outline.head.fields.all(Name::XForwardedFor) {
                out.extend_from_slice(hops);
                out.extend_from_slice(b", ");
            }
        } else if let Some(caller) = received.address.filter(|&caller| caller != peer) {
            // As a trusted proxy named it in `Forwarded`.
            write::address(out, caller);
            out.extend_from_slice(b", ");
        }
        write::address(out, peer);
        out.extend_from_slice(b"\r\n");
    }
    let proto: &[u8] = if outline.received.secure {
        b"https"
    } else {
        b"http"
    };
    write::field(out, b"X-Forwarded-Proto", proto);
    out.extend_from_slice(b"X-Forwarded-Host: ");
    out.extend_from_slice(outline.received.authority.host);
    port(out, outline);
    out.extend_from_slice(b"\r\n");
}

fn port(out: &mut Vec<u8>, outline: &Outline<'_>) {
    if let Some(port) = outline.received.authority.port {
        out.push(b':');
        write::decimal(out, port.into());
    }
}

/// The identity headers, last, and only ours: callers' copies in any spelling have not passed.
fn identity(out: &mut Vec<u8>, params: &Params, permit: &Permit) {
    let Some(kind) = permit.kind() else { return };
    let names = &params.identity;
    if let Some(user) = permit.user() {
        write::field(out, names.user.as_bytes(), user.as_str().as_bytes());
    }
    if let Some(consumer) = permit.consumer() {
        write::field(out, names.consumer.as_bytes(), consumer.as_str().as_bytes());
    }
    if matches!(kind, Kind::Consumer | Kind::Application) {
        out.extend_from_slice(names.permissions.as_bytes());
        out.extend_from_slice(b": ");
        for (index, permission) in permit.permissions().enumerate() {
            if index > 0 {
                out.push(b' ');
            }
            out.extend_from_slice(permission.as_str().as_bytes());
        }
        out.extend_from_slice(b"\r\n");
    }
    write::field(out, names.kind.as_bytes(), kind.as_str().as_bytes());
}

/// The cookies of one line without our own; `None` if none of ours is among them.
pub(super) fn without_ours(value: &[u8], params: &Params) -> Option<Vec<u8>> {
    let is_ours = |cookie: &[u8]| {
        let name = cookie
            .split(|&byte| byte == b'=')
            .next()
            .unwrap_or_default();
        params.is_own_cookie(trim(name))
    };
    let cookies = || value.split(|&byte| byte == b';').map(trim);
    if !cookies().any(is_ours) {
        return None;
    }
    let kept: Vec<&[u8]> = cookies().filter(|cookie| !is_ours(cookie)).collect();
    Some(kept.join(&b"; "[..]))
}
