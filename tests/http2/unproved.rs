//! Callers without credentials that leave everything half done, over both versions of HTTP, from one address and from sixteen:
//! what they leave to others.

use std::{
    io::Write,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream},
};

use socket2::{Domain, Socket, Type};

use crate::{
    http2::client::{DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, SETTINGS, frame, head},
    support::{Call, Caller, PATIENCE, Proxy, Reply, Upstream, until},
};

const FORM: &str = "application/x-www-form-urlencoded";
/// More than the buffers of a connection that is not read.
const LARGE: usize = 6 << 20;
/// The bytes that the system keeps for a caller that does not read.
const RECEIVED: usize = 4096;

/// What a caller leaves half done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Head,
    Form,
    /// To an operation that is open to everybody.
    Upload,
    /// Of a request that is rejected before it.
    RejectedUpload,
    /// It does not read a response that is longer than the window.
    Window,
    /// It does not read a rejection.
    RejectionsWindow,
    /// It does not end the connection after the last response.
    End,
}

const ALL: [Half; 7] = [
    Half::Head,
    Half::Form,
    Half::Upload,
    Half::RejectedUpload,
    Half::Window,
    Half::RejectionsWindow,
    Half::End,
];

/// A part of the addresses of this machine.
fn addresses(count: u8) -> impl Iterator<Item = Ipv4Addr> {
    (0..count).map(|number| Ipv4Addr::new(127, 0, 0, 2 + number))
}

fn from(source: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(RECEIVED).unwrap();
    socket
        .bind(&SocketAddr::new(IpAddr::V4(source), 0).into())
        .unwrap();
    socket.connect(&to.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

struct Scene {
    _api: Upstream,
    proxy: Proxy,
    caller: Caller,
}

impl Scene {
    fn start() -> Self {
        let api = Upstream::replying(|seen| match seen.target.as_str() {
            "/large" => Reply::ok(vec![b'x'; LARGE]),
            _ => Reply::ok("seen"),
        });
        let proxy = Proxy::with(
            &api,
            "log.access = false\nlisten.workers = 2\nlimits = { connections = 64, concurrent_requests = 40 }\n\
             operation = [{ path = '/x' }, { path = '/open', access = ['anonymous'] }, { path = '/large', access = ['anonymous'] }]",
        );
        let caller = proxy.somebody();
        Self {
            _api: api,
            proxy,
            caller,
        }
    }

    /// What others get: signed calls at once, and anonymous ones.
    #[track_caller]
    fn others_are_served(&self, what: impl std::fmt::Debug) {
        let (proxy, caller) = (&self.proxy, &self.caller);
        for _ in 0..4 {
            let mut connection = proxy.connect();
            for call in [
                Call::get("/x").of(caller),
                Call::post("/x").of(caller).form("a=1"),
                Call::post("/x").of(caller).json("{}"),
            ] {
                let answer = proxy.send_on(&mut connection, call);
                let refused = proxy.metric("countersign_connections_refused_total");
                assert_eq!(
                    answer.status, 200,
                    "{what:?}, {refused} refused: {answer:?}"
                );
            }
        }
        for call in [Call::get("/open"), Call::post("/open").json("{}")] {
            // The places of those that are dropped come free a moment later.
            until("anonymous calls are served", || {
                proxy.status(call.clone()) == 200
            });
        }
    }

    fn open_connections(&self, least: f64) {
        until("they are open", || {
            self.proxy.metric("countersign_connections") >= least
        });
    }

    /// The bytes of a connection over HTTP/1.1.
    fn http1(&self, half: Half) -> String {
        let host = self.proxy.host();
        let post = |path: &str, kind: &str| {
            format!(
                "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\nContent-Length: 100\r\n\r\na="
            )
        };
        let get =
            |path: &str, more: &str| format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n");
        match half {
            Half::Head => "POST /x HTTP/1.1\r\nHos".to_owned(),
            Half::Form => post("/x", FORM),
            Half::Upload => post("/open", "text/plain"),
            Half::RejectedUpload => post("/x", "text/plain"),
            Half::Window => get("/large", ""),
            Half::RejectionsWindow => get("/x", "").repeat(40),
            Half::End => get("/x", "Connection: close\r\n"),
        }
    }

    /// The frames of a connection over HTTP/2 after its preface.
    fn http2(&self, half: Half) -> Vec<u8> {
        // SETTINGS_INITIAL_WINDOW_SIZE is 0 (RFC 9113 §6.5.2): no response can have a body.
        let no_window = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
        let ids = (0..4).map(|number| 2 * number + 1);
        let post = |path: &str, kind: &str| {
            let fields = [("content-type", kind), ("content-length", "100")];
            let block = head(&self.proxy, "POST", path, &fields);
            let half = |id| {
                let begun = frame(HEADERS, END_HEADERS, id, &block);
                [begun, frame(DATA, 0, id, b"a=")].concat()
            };
            ids.clone().flat_map(half).collect()
        };
        let get = |path: &str| {
            let block = head(&self.proxy, "GET", path, &[]);
            let whole = |id| frame(HEADERS, END_HEADERS | END_STREAM, id, &block);
            ids.clone().flat_map(whole).collect::<Vec<u8>>()
        };
        match half {
            Half::Head => frame(HEADERS, 0, 1, &head(&self.proxy, "GET", "/x", &[])[..9]),
            Half::Form => post("/x", FORM),
            Half::Upload => post("/open", "text/plain"),
            Half::RejectedUpload => post("/x", "text/plain"),
            Half::Window => [no_window, get("/large")].concat(),
            Half::RejectionsWindow => [no_window, get("/x")].concat(),
            Half::End => [get("/x"), frame(GOAWAY, 0, 0, &[0; 8])].concat(),
        }
    }

    /// Floods it with as many connections as there are, and one for each address more.
    fn flood(&self, sources: u8, open: impl Fn(Ipv4Addr) -> TcpStream) -> Vec<TcpStream> {
        let each = 64 / usize::from(sources) + 1;
        let sources = addresses(sources).flat_map(|source| [source].repeat(each));
        sources.map(open).collect()
    }
}

/// Floods a proxy in each way.
fn serves_others_in_floods(sources: u8, open: impl Fn(&Scene, Half, Ipv4Addr) -> TcpStream) {
    // One address has half of the connections and one.
    let least = if sources == 1 { 20.0 } else { 40.0 };
    for half in ALL {
        let scene = Scene::start();
        let held = scene.flood(sources, |source| open(&scene, half, source));
        if !matches!(half, Half::End | Half::RejectedUpload) {
            scene.open_connections(least);
        }
        scene.others_are_served(half);
        drop(held);
    }
}

fn over_http1(scene: &Scene, half: Half, source: Ipv4Addr) -> TcpStream {
    let mut stream = from(source, scene.proxy.address());
    // It may be refused or closed meanwhile.
    let _ = stream.write_all(scene.http1(half).as_bytes());
    stream
}

fn over_http2(scene: &Scene, half: Half, source: Ipv4Addr) -> TcpStream {
    let mut stream = from(source, scene.proxy.address());
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let bytes = [preface, &*frame(SETTINGS, 0, 0, &[]), &*scene.http2(half)].concat();
    let _ = stream.write_all(&bytes);
    stream
}

#[test]
fn one_address_takes_no_place_of_others_over_http1() {
    serves_others_in_floods(1, over_http1);
}

#[test]
fn sixteen_addresses_take_no_place_of_others_over_http1() {
    serves_others_in_floods(16, over_http1);
}

#[test]
fn one_address_takes_no_place_of_others_over_http2() {
    serves_others_in_floods(1, over_http2);
}

#[test]
fn sixteen_addresses_take_no_place_of_others_over_http2() {
    serves_others_in_floods(16, over_http2);
}
