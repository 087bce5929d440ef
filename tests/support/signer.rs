//! RFC 5849 section 3.4, slow and obvious, from the text of the RFC alone. The oracle for signatures.

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};

/// A decoded name and value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// Percent-encodes all but the unreserved characters (section 3.6).
pub fn encode(text: impl AsRef<[u8]>) -> String {
    let mut out = String::new();
    for &byte in text.as_ref() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Decodes percent-encoding; an invalid escape is left unchanged.
pub fn decode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        let digits = behind
            .get(..2)
            .filter(|it| it.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if *first == b'%' => {
                out.push(byte);
                rest = &behind[2..];
            }
            _ => {
                out.push(*first);
                rest = behind;
            }
        }
    }
    out
}

/// The pairs of a query or a form body (section 3.4.1.3.1).
pub fn form_pairs(text: &[u8]) -> Vec<Pair> {
    let text: Vec<u8> = text
        .iter()
        .map(|&b| if b == b'+' { b' ' } else { b })
        .collect();
    let pieces = text
        .split(|&byte| byte == b'&')
        .filter(|piece| !piece.is_empty());
    let pair = |piece: &[u8]| {
        let mut halves = piece.splitn(2, |&byte| byte == b'=').map(decode);
        (
            halves.next().unwrap_or_default(),
            halves.next().unwrap_or_default(),
        )
    };
    pieces.map(pair).collect()
}

/// The pairs of an Authorization header after its scheme, read as leniently as can be, so that even a malformed header
/// gets the signature its sender would have meant.
pub fn header_pairs(header: &str) -> Vec<Pair> {
    let (_scheme, parameters) = header.trim_start().split_once(' ').unwrap_or_default();
    let pair = |piece: &str| {
        let (name, value) = piece.trim().split_once('=')?;
        let value = value.trim().trim_matches('"');
        Some((decode(name.trim().as_bytes()), decode(value.as_bytes())))
    };
    let pairs = parameters.split([',', ';']).filter_map(pair);
    pairs.filter(|(name, _)| name != b"realm").collect()
}

/// The normalized parameters of section 3.4.1.3.2, `oauth_signature` left out.
pub fn normalized(parameters: &[Pair]) -> String {
    let signed = parameters
        .iter()
        .filter(|(name, _)| name != b"oauth_signature");
    let mut encoded: Vec<_> = signed.map(|(n, v)| (encode(n), encode(v))).collect();
    encoded.sort();
    let joined: Vec<String> = encoded.iter().map(|(n, v)| format!("{n}={v}")).collect();
    joined.join("&")
}

/// The base string of section 3.4.1.1; `uri` is the base string URI of section 3.4.1.2.
pub fn base_string(method: &str, uri: &str, parameters: &[Pair]) -> String {
    [method, uri, &normalized(parameters)].map(encode).join("&")
}

/// The base string URI of an absolute URL: scheme and host in lower case, no default port, no query.
pub fn base_uri(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").expect("an absolute URL");
    let scheme = scheme.to_ascii_lowercase();
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest
        .find('/')
        .map_or((rest, "/"), |slash| rest.split_at(slash));
    let authority = authority.to_ascii_lowercase();
    let default = if scheme == "https" { ":443" } else { ":80" };
    let authority = authority.strip_suffix(default).unwrap_or(&authority);
    format!("{scheme}://{authority}{path}")
}

/// The HMAC of `base` under `method` (folded as the service folds spellings), in base64; for PLAINTEXT the key.
pub fn signature(method: &str, key: &str, base: &str) -> String {
    match fold(method).as_str() {
        "hmacsha1" => hmac::<sha1::Sha1>(key, base),
        "hmacmd5" => hmac::<md5::Md5>(key, base),
        "hmacsha256" => hmac::<sha2::Sha256>(key, base),
        "hmacsha512" => hmac::<sha2::Sha512>(key, base),
        "plaintext" => key.to_owned(),
        _ => panic!("no key makes a signature by {method}"),
    }
}

/// The RSA signature of `base` by `openssl`, in base64.
pub fn rsa_signature(method: &str, private_key: &Path, base: &str) -> String {
    let folded = fold(method);
    let options = match folded.strip_prefix("rsa").expect("an RSA method") {
        "pss" => "sha256 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:32",
        digest => digest,
    };
    let words = format!("dgst -{options} -sign {}", private_key.display());
    STANDARD.encode(openssl(&words, base))
}

/// The output of `openssl` for this standard input.
fn openssl(words: &str, input: &str) -> Vec<u8> {
    let mut command = Command::new("openssl");
    let command = command.args(words.split(' ')).stdin(Stdio::piped());
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("tests/run installs openssl");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// Makes an RSA key pair in `directory` and returns the paths of the private and the public key.
pub fn rsa_key_pair(directory: &Path) -> (std::path::PathBuf, std::path::PathBuf) {
    let (private, public) = (directory.join("rsa.pem"), directory.join("rsa.pub.pem"));
    let (from, to) = (private.display(), public.display());
    openssl(&format!("genrsa -out {from} 2048"), "");
    openssl(&format!("rsa -in {from} -pubout -out {to}"), "");
    (private, public)
}

/// The name of a method without case, hyphens and underscores.
pub fn fold(method: &str) -> String {
    method.replace(['-', '_'], "").to_ascii_lowercase()
}

fn hmac<D: hmac::EagerHash>(key: &str, base: &str) -> String
where
    Hmac<D>: Mac + KeyInit,
{
    let mut mac = <Hmac<D> as KeyInit>::new_from_slice(key.as_bytes()).unwrap();
    mac.update(base.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

/// The SHA-1 or SHA-256 digest of a body, in base64, for `oauth_body_hash`.
pub fn body_hash<D: sha1::Digest>(body: &[u8]) -> String {
    STANDARD.encode(D::digest(body))
}
