//! The bytes of a case, written as text with some placeholders for values that are only known at run time.
//!
//! | placeholder | value |
//! |---|---|
//! | `$H` | the proxy's own Host |
//! | `$O` | the proxy's own origin |
//! | `$A[METHOD target form]` | an `Authorization` line (without its CRLF) that signs this; the form may be left out |
//! | `$V[…]` | its value alone |
//! | `$P[…]` | its value without the scheme |
//! | `$Q[METHOD target]` | the same as pairs of a query |
//! | `$B[METHOD target form]` | the same as a signed form body |
//! | `$L` | the number of bytes after the first empty line that follows |
//! | `$R[n:text]` | the text n times |
//!
//! A character is one byte (Latin-1), so that every byte can be written.

use crate::support::{
    Call, Caller, Placement, Proxy,
    http::{find, latin1},
};

/// The bytes of `text`, with the placeholders replaced.
pub(crate) fn bytes(text: &str, proxy: &Proxy, caller: &Caller) -> Vec<u8> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let word = &rest[at + 1..];
        let (made, behind) = match word.as_bytes().first() {
            Some(b'H') => (proxy.host(), &word[1..]),
            Some(b'O') => (proxy.origin(), &word[1..]),
            Some(b'L') => ("$L".to_owned(), &word[1..]),
            Some(kind @ (b'A' | b'V' | b'P' | b'Q' | b'B' | b'R'))
                if word[1..].starts_with('[') =>
            {
                let end = word.find(']').expect("a closing bracket");
                let inside = &word[2..end];
                let made = match kind {
                    b'R' => repeated(inside),
                    _ => signed(*kind, inside, proxy, caller),
                };
                (made, &word[end + 1..])
            }
            _ => ("$".to_owned(), word),
        };
        out.push_str(&made);
        rest = behind;
    }
    out.push_str(rest);
    while let Some(at) = out.find("$L") {
        let head = out[at..].find("\r\n\r\n").expect("an empty line behind $L");
        let length = out[at + head + 4..].chars().count();
        out.replace_range(at..at + 2, &length.to_string());
    }
    out.chars()
        .map(|character| u8::try_from(character).expect("a character that is one byte"))
        .collect()
}

/// The text with its repetitions, for a script without other placeholders.
pub(crate) fn expand(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, word)) = rest.split_once("$R[") {
        let (inside, behind) = word.split_once(']').expect("a closing bracket");
        out = out + before + &repeated(inside);
        rest = behind;
    }
    out + rest
}

fn repeated(inside: &str) -> String {
    let (count, text) = inside.split_once(':').expect("a count and a text");
    text.repeat(count.parse().expect("a count"))
}

fn signed(kind: u8, inside: &str, proxy: &Proxy, caller: &Caller) -> String {
    let mut words = inside.splitn(3, ' ');
    let method = words.next().unwrap_or_default();
    let target = words.next().expect("a target to sign");
    let form = words.next();
    let call = Call::new(method, target).of(caller);
    let call = match (kind, form) {
        (b'B', form) => call.form(form.unwrap_or_default()).placed(Placement::Body),
        (_, Some(form)) => call.signs_body(form),
        (_, None) => call,
    };
    let call = match kind {
        b'Q' => call.placed(Placement::Query),
        _ => call,
    };
    let wire = proxy.wire(&call);
    let text = latin1(&wire);
    match kind {
        b'Q' => {
            let sent = text.split(' ').nth(1).unwrap_or_default();
            let at = sent.find("oauth_consumer_key").expect("the credentials");
            sent[at..].to_owned()
        }
        b'B' => text[find(&wire, b"\r\n\r\n").unwrap() + 4..].to_owned(),
        kind => {
            let line = text
                .split("\r\n")
                .find(|line| line.starts_with("Authorization: "))
                .expect("the credentials");
            match kind {
                b'V' => line["Authorization: ".len()..].to_owned(),
                b'P' => line["Authorization: OAuth ".len()..].to_owned(),
                _ => line.to_owned(),
            }
        }
    }
}

/// A signed `POST /x` with these further field lines (without the last CRLF) and this body.
pub(crate) fn post(fields: &str, body: &str) -> String {
    format!("POST /x HTTP/1.1\r\nHost: $H\r\n$A[POST /x]\r\n{fields}\r\n\r\n{body}")
}

/// A signed `GET /x` with these further field lines (without the last CRLF).
pub(crate) fn get(fields: &str) -> String {
    format!("GET /x HTTP/1.1\r\nHost: $H\r\n$A[GET /x]\r\n{fields}\r\n\r\n")
}

/// A signed POST of a form.
pub(crate) fn form(fields: &str, body: &str) -> String {
    format!(
        "POST /x HTTP/1.1\r\nHost: $H\r\n$A[POST /x {body}]\r\nContent-Length: {}\r\n{fields}\r\n\r\n{body}",
        body.len()
    )
}

/// A signed request that must not be taken for one in its place.
pub(crate) const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: $H\r\n$A[GET /smuggled]\r\n\r\n";
