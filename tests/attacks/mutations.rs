//! Signed requests, broken at random: whatever the proxy does with them, the API sees only signed requests, each once.
//!
//! The oracle is the other signer: from the method, the target, the Host and the form that the API saw it makes the
//! signature again, with the credentials as they were sent before anything was broken. `ATTACK_SEED` and
//! `ATTACK_ROUNDS` in the environment choose other ones and more of them; a failure prints its bytes.
//!
//! Promise (Signatures): A change to a signed part is rejected, unless RFC 5849 treats both as equal; `legacy` may leave the
//! query unsigned. Also in `tests/acceptance/request/mixed_up_credentials.rs`.
//! Promise (HTTP): HTTP that two recipients could read differently is rejected; no part of a body is read as a request. Also in
//! `tests/attacks/framing.rs`, `tests/attacks/chunks.rs`, `tests/attacks/fields.rs`, `tests/attacks/request_line.rs`,
//! `tests/attacks/early.rs`, `tests/attacks/pipelining.rs`, `tests/attacks/trailers.rs`.

use std::{env, str::FromStr};

use crate::{
    attacks::case::{Kind, Stage},
    support::{
        Call,
        http::{find, latin1},
        signer::{self, Pair},
        until,
        upstream::Seen,
    },
};

const ROUNDS: usize = 4_000;
/// The number played between two checks of the requests that the API saw.
const BATCH: usize = 50;

/// Repeatable, and good enough to choose by (Vigna's splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap()
    }

    fn of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }
}

const BYTES: &[u8] = b"\r\n\0 \t,;:\"'%+-=&/\\?#@.019afAZxX_~\x01\x0b\x0c\x7f\x80\x85\xa0\xff";

const LINES: &[&str] = &[
    "Content-Length: 0",
    "Content-Length: 7",
    "Content-Length: +3",
    "Content_Length: 0",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding:\x0bchunked",
    "Transfer-Encoding: identity",
    "Transfer_Encoding: chunked",
    "Host: evil.test",
    "Host:",
    "Connection: close, X-Auth-User, Host, Content-Length, Content-Type",
    "Connection: Authorization",
    "X-Auth-User: root",
    "x_auth_kind: user",
    "X-Auth-Consumer: root",
    "X-Forwarded-Host: evil.test",
    "X_Forwarded_For: 10.0.0.1",
    "Content-Type: application/x-www-form-urlencoded",
    "Content-Type: text/plain",
    "Content-Type: text/plain, APPLICATION/X-WWW-FORM-URLENCODED",
    "Content-Encoding: gzip",
    "Authorization: Basic YTpi",
    "Authorization: OAuth oauth_token=\"x\"",
    "Proxy-Authorization: Basic YTpi",
    "Expect: 100-continue",
    "Upgrade: h2c",
    "Trailer: X-Auth-User",
    "TE: trailers",
    " folded: x",
    "",
    "GET /smuggled HTTP/1.1",
    "0",
    "3",
];

/// Breaks the bytes in one way.
fn break_once(wire: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(wire.len());
    // Heads matter more than bodies, and their first line most.
    let at = match random.below(4) {
        0 => at.min(random.below(find(wire, b"\r\n").unwrap_or(1))),
        _ => at,
    };
    let lines: Vec<usize> = (0..wire.len().saturating_sub(1))
        .filter(|&n| wire[n..].starts_with(b"\r\n"))
        .map(|n| n + 2)
        .collect();
    let line = |random: &mut Random| match lines.len() {
        0 | 1 => (0, wire.len()),
        count => {
            let n = random.below(count - 1);
            (lines[n], lines[n + 1])
        }
    };
    match random.below(12) {
        0..=2 => wire.insert(at, BYTES[random.below(BYTES.len())]),
        3 => wire[at] = BYTES[random.below(BYTES.len())],
        4 => drop(wire.remove(at)),
        5 => wire[at] ^= 0x20,
        6 => {
            let escape = format!("%{:02X}", wire[at]);
            wire.splice(at..=at, escape.into_bytes());
        }
        7 => {
            let (from, to) = line(random);
            let doubled = wire[from..to].to_vec();
            wire.splice(from..from, doubled);
        }
        8 => {
            let (from, to) = line(random);
            wire.drain(from..to);
        }
        9 | 10 => {
            let (from, _) = line(random);
            let end = random.of(&["\r\n", "\r\n", "\r\n", "\n", "\r", ""]);
            let new = format!("{}{end}", random.of(LINES));
            wire.splice(
                from..from,
                crate::attacks::script::expand(&new).into_bytes(),
            );
        }
        _ => {
            let end = (at + random.below(40)).min(wire.len());
            let doubled = wire[at..end].to_vec();
            wire.splice(at..at, doubled);
        }
    }
}

/// Credentials as they were sent, and whether the API saw them.
struct Signed {
    pairs: Vec<Pair>,
    used: bool,
}

impl Signed {
    fn of(wire: &[u8]) -> Self {
        let text = latin1(wire);
        let line = text
            .split("\r\n")
            .find_map(|line| line.strip_prefix("Authorization: "))
            .expect("the credentials");
        Self {
            pairs: signer::header_pairs(line),
            used: false,
        }
    }

    /// Whether their signature holds for this.
    fn covers(&self, seen: &Seen, stage: &Stage) -> bool {
        let (path, query) = seen.target.split_once('?').unwrap_or((&seen.target, ""));
        let url = format!("http://{}{path}", seen.header("host").unwrap_or_default());
        let mut pairs = self.pairs.clone();
        pairs.extend(signer::form_pairs(query.as_bytes()));
        let form = |kind: &&str| {
            let letters = kind.chars().filter(char::is_ascii_alphabetic);
            let letters: String = letters.collect();
            letters.to_ascii_lowercase().contains("urlencoded")
        };
        if seen.fields.all("content-type").iter().any(form) {
            pairs.extend(signer::form_pairs(&seen.body));
        }
        let (consumer, token) = (&stage.caller.consumer, &stage.caller.token);
        let key = [&consumer.secret, &token.secret]
            .map(signer::encode)
            .join("&");
        // RFC 5849 §3.4.1.1 signs the method in upper case.
        let method = seen.method.to_ascii_uppercase();
        let base = signer::base_string(&method, &signer::base_uri(&url), &pairs);
        let signature = signer::signature("HMAC-SHA1", &key, &base);
        self.pairs
            .iter()
            .any(|(name, value)| name == b"oauth_signature" && *value == signature.as_bytes())
    }
}

fn whole_requests(stage: &Stage) -> Vec<Call> {
    let call = |method: &str, target: &str| Call::new(method, target).of(&stage.caller);
    vec![
        call("GET", "/a/b?x=1&y=%20+z&y"),
        call("POST", "/form?x=1").form("a=1&b=%2B+2"),
        call("POST", "/form")
            .form("a=1&b=2")
            .chunked(&[b"a=1&", b"b=2"]),
        call("PUT", "/json").json("{\"a\": \"GET / HTTP/1.1\r\n\r\n\"}"),
        call("POST", "/json")
            .json("")
            .chunked(&[b"{\"a\"", b": 1}"]),
        call("DELETE", "/a%2Fb")
            .header("X-A", "b")
            .header("Connection", "X-B"),
    ]
}

fn number<T: FromStr>(name: &str) -> Option<T> {
    let text = env::var(name).ok()?;
    Some(text.parse().ok().expect("a number"))
}

/// The bytes that one connection sent, and their signed requests.
struct Sent {
    wire: Vec<u8>,
    signed: [Signed; 2],
    /// The number of requests that the API had seen after it.
    seen: usize,
}

impl Sent {
    /// This call, broken this many times, and a whole one after it.
    fn new(call: &Call, times: usize, random: &mut Random, stage: &Stage) -> Self {
        let mut wire = stage.proxy.wire(call);
        let second = stage.get("/second").header("Connection", "close");
        let second = stage.proxy.wire(&second);
        let signed = [Signed::of(&wire), Signed::of(&second)];
        for _ in 0..times {
            break_once(&mut wire, random);
        }
        wire.extend(second);
        Self {
            wire,
            signed,
            seen: 0,
        }
    }

    /// Sends it all, and reads until the proxy closes; returns how many answers are the API's.
    fn play(&self, stage: &Stage) -> usize {
        let mut connection = stage.proxy.connect();
        // The proxy may close before it has read everything.
        drop(connection.try_send(&self.wire));
        latin1(&connection.wire().rest())
            .matches("X-Target: ")
            .count()
    }
}

#[test]
fn the_api_sees_only_signed_parts_of_mutated_requests() {
    // A broken request may leave the proxy waiting for more.
    let stage = Stage::new(
        "[limits]\nhead_timeout = '100ms'\nform_timeout = '100ms'\nbody_timeout = '100ms'\nidle_timeout = '100ms'",
    );
    let calls = whole_requests(&stage);
    let mut random = Random(number("ATTACK_SEED").unwrap_or(1));
    let batches = number("ATTACK_ROUNDS").unwrap_or(ROUNDS).div_ceil(BATCH);
    for call in &calls {
        // Whole, unless a busy machine is too slow for such short deadlines.
        until("both pass", || {
            Sent::new(call, 0, &mut random, &stage).play(&stage) == 2
        });
    }
    let (mut judged, mut passed) = (stage.api.count(), 0);
    let mut sent: Vec<Sent> = Vec::new();
    for _ in 0..batches {
        // A request whose connection the proxy gave up may still arrive when the next batch is judged.
        sent.drain(..sent.len().saturating_sub(BATCH));
        for _ in 0..BATCH {
            let (call, times) = (random.below(calls.len()), random.below(2) + 1);
            sent.push(Sent::new(&calls[call], times, &mut random, &stage));
            if let Some(sent) = sent.last_mut() {
                passed += sent.play(&stage);
                sent.seen = stage.api.count();
            }
        }
        for seen in stage.api.requests_since(judged) {
            judged += 1;
            judge(&seen, judged, &mut sent, &stage);
        }
    }
    assert!(
        passed > batches * BATCH / 4,
        "only {passed} requests passed"
    );
}

/// `number`: the number of requests that the API had seen, this one included.
#[track_caller]
fn judge(seen: &Seen, number: usize, sent: &mut [Sent], stage: &Stage) {
    let mut all = sent.iter_mut().flat_map(|sent| &mut sent.signed);
    let Some(signed) = all.find(|one| !one.used && one.covers(seen, stage)) else {
        let culprit = sent.iter().find(|sent| sent.seen >= number);
        let culprit = culprit.map(|sent| latin1(&sent.wire));
        panic!("this was not signed, or it came twice: {seen:?}; sent: {culprit:?}");
    };
    signed.used = true;
    // A fault after the beginning of a body cuts it off visibly for the API. A form is forwarded only when it is whole.
    let is_form = |kind: &str| kind.contains("urlencoded");
    assert!(
        seen.whole || !seen.header("content-type").is_some_and(is_form),
        "a form that is not whole: {seen:?}"
    );
    if let Err(why) = stage.check_identity(Kind::Consumer, seen) {
        panic!("{why}");
    }
}
