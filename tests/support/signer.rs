//! RFC 5849 section 3.4, the slow and obvious way, and by the text of the RFC alone. The oracle for signatures.

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

/// Decodes percent-encoding; what is no valid escape stays as it is.
pub fn decode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let escaped = (text[at] == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten();
        let byte = escaped.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = byte.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(text[at]);
                at += 1;
            }
        }
    }
    out
}

/// The pairs of a query or a form body (section 3.4.1.3.1).
pub fn form_pairs(text: &[u8]) -> Vec<Pair> {
    let plus_to_space = |part: &[u8]| {
        decode(
            &part
                .iter()
                .map(|&b| if b == b'+' { b' ' } else { b })
                .collect::<Vec<_>>(),
        )
    };
    text.split(|&byte| byte == b'&')
        .filter(|piece| !piece.is_empty())
        .map(|piece| {
            let mut halves = piece.splitn(2, |&byte| byte == b'=');
            let name = halves.next().unwrap_or_default();
            (
                plus_to_space(name),
                plus_to_space(halves.next().unwrap_or_default()),
            )
        })
        .collect()
}

/// The pairs of an Authorization header after its scheme, read as leniently as can be, so that even a malformed header
/// gets the signature its sender would have meant.
pub fn header_pairs(header: &str) -> Vec<Pair> {
    let parameters = header
        .trim_start()
        .split_once(' ')
        .map_or("", |(_scheme, rest)| rest);
    parameters
        .split([',', ';'])
        .filter_map(|piece| piece.trim().split_once('='))
        .map(|(name, value)| {
            (
                decode(name.trim().as_bytes()),
                decode(value.trim().trim_matches('"').as_bytes()),
            )
        })
        .filter(|(name, _)| name != b"realm")
        .collect()
}

/// The normalized parameters of section 3.4.1.3.2, `oauth_signature` left out.
pub fn normalized(parameters: &[Pair]) -> String {
    let mut encoded: Vec<(String, String)> = parameters
        .iter()
        .filter(|(name, _)| name != b"oauth_signature")
        .map(|(name, value)| (encode(name), encode(value)))
        .collect();
    encoded.sort();
    let joined: Vec<String> = encoded
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    joined.join("&")
}

/// The base string of section 3.4.1.1; `uri` is the base string URI of section 3.4.1.2.
pub fn base_string(method: &str, uri: &str, parameters: &[Pair]) -> String {
    format!(
        "{}&{}&{}",
        encode(method),
        encode(uri),
        encode(normalized(parameters))
    )
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
    let digest = match fold(method).as_str() {
        "rsasha1" => "-sha1",
        "rsasha256" => "-sha256",
        "rsasha512" => "-sha512",
        _ => panic!("{method} is no RSA method"),
    };
    let mut openssl = Command::new("openssl")
        .args(["dgst", digest, "-sign"])
        .arg(private_key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("openssl is installed (tests/run does it)");
    openssl
        .stdin
        .take()
        .unwrap()
        .write_all(base.as_bytes())
        .unwrap();
    let output = openssl.wait_with_output().unwrap();
    assert!(output.status.success(), "openssl signs");
    STANDARD.encode(output.stdout)
}

/// Makes an RSA key pair in `directory` and returns the paths of the private and the public key.
pub fn rsa_key_pair(directory: &Path) -> (std::path::PathBuf, std::path::PathBuf) {
    let (private, public) = (directory.join("rsa.pem"), directory.join("rsa.pub.pem"));
    let openssl = |arguments: &[&std::ffi::OsStr]| {
        let output = Command::new("openssl")
            .args(arguments)
            .output()
            .expect("openssl is installed (tests/run does it)");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    openssl(&[
        "genrsa".as_ref(),
        "-out".as_ref(),
        private.as_ref(),
        "2048".as_ref(),
    ]);
    openssl(&[
        "rsa".as_ref(),
        "-in".as_ref(),
        private.as_ref(),
        "-pubout".as_ref(),
        "-out".as_ref(),
        public.as_ref(),
    ]);
    (private, public)
}

/// The name of a method without case, hyphens and underscores.
pub fn fold(method: &str) -> String {
    method
        .chars()
        .filter(|c| !"-_".contains(*c))
        .collect::<String>()
        .to_ascii_lowercase()
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
