//! Asks the listener for forward-auth about a call, like the proxies that describe it.

use std::net::SocketAddr;

use super::{
    call::Call,
    http::{Answer, Connection, find, latin1},
    program::listening_address,
    proxy::Proxy,
};

/// The ways of a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Nginx,
    Forwarded,
    Verify,
}

/// All of them.
pub const WAYS: [Way; 3] = [Way::Nginx, Way::Forwarded, Way::Verify];

impl Way {
    /// The fields that describe a request under `origin`, and the first line.
    pub fn description(self, origin: &str, method: &str, target: &str) -> String {
        let (scheme, host) = origin.split_once("://").unwrap();
        match self {
            Self::Nginx => format!(
                "GET /nginx HTTP/1.1\r\nHost: gate\r\nX-Original-Method: {method}\r\nX-Original-URL: {origin}{target}\r\n"
            ),
            Self::Forwarded => format!(
                "GET /forwarded HTTP/1.1\r\nHost: gate\r\nX-Forwarded-Method: {method}\r\nX-Forwarded-Proto: {scheme}\r\n\
                 X-Forwarded-Host: {host}\r\nX-Forwarded-Uri: {target}\r\n"
            ),
            Self::Verify => {
                format!(
                    "{method} /verify{target} HTTP/1.1\r\nHost: {host}\r\nX-Forwarded-Proto: {scheme}\r\n"
                )
            }
        }
    }

    /// The request that describes the one on `wire`, which goes to `origin`: without its body.
    pub fn describe(self, origin: &str, wire: &[u8]) -> Vec<u8> {
        let end = find(wire, b"\r\n\r\n").unwrap();
        self.describe_head(
            origin,
            &wire[..end],
            &["content-length", "transfer-encoding"],
        )
    }

    /// The same with its body, framed as there.
    pub fn describe_whole(self, origin: &str, wire: &[u8]) -> Vec<u8> {
        let end = find(wire, b"\r\n\r\n").unwrap();
        let mut described = self.describe_head(origin, &wire[..end], &[]);
        described.extend(&wire[end + 4..]);
        described
    }

    fn describe_head(self, origin: &str, head: &[u8], left_out: &[&str]) -> Vec<u8> {
        let head = latin1(head);
        let mut lines = head.split("\r\n");
        let mut line = lines.next().unwrap().split(' ');
        let (method, target) = (line.next().unwrap(), line.next().unwrap());
        let mut described = self.description(origin, method, target);
        for field in lines {
            let name = field.split(':').next().unwrap().to_ascii_lowercase();
            let is_of_a_way = name.starts_with("x-forwarded-") || name.starts_with("x-original-");
            if !is_of_a_way && name != "host" && !left_out.contains(&&*name) {
                described += field;
                described += "\r\n";
            }
        }
        described += "\r\n";
        described.chars().map(|it| it as u8).collect()
    }
}

impl Proxy {
    /// Address of the listener for forward-auth.
    #[track_caller]
    pub fn forward_auth(&self) -> SocketAddr {
        let address = |line: &str| listening_address(line, "forward-auth");
        self.log().wait_for("a listener for forward-auth", address)
    }

    /// Asks about a call.
    #[track_caller]
    pub fn asks(&self, way: Way, call: &Call) -> Answer {
        let wire = self.wire(call);
        self.asks_by(way, &self.origin(), &wire)
    }

    /// Asks about a call, and shows its body.
    #[track_caller]
    pub fn asks_with_body(&self, way: Way, call: &Call) -> Answer {
        let wire = self.wire(call);
        self.asks_as(&way.describe_whole(&self.origin(), &wire))
    }

    /// Asks about a request that is on the wire to `origin`.
    #[track_caller]
    pub fn asks_by(&self, way: Way, origin: &str, wire: &[u8]) -> Answer {
        self.asks_as(&way.describe(origin, wire))
    }

    /// Asks by these bytes.
    #[track_caller]
    pub fn asks_as(&self, described: &[u8]) -> Answer {
        let method = latin1(described).split(' ').next().unwrap().to_owned();
        let mut connection = Connection::to(self.forward_auth());
        connection.send(described);
        connection.answer(&method)
    }
}
