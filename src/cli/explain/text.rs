//! An explanation for people.

use std::io::{self, Write};

use super::{Examined, Explanation, mask::Mask};
use crate::oauth::{ProtocolParameter, Selection, SignatureMethod, diagnosis::Mistake};

pub(super) fn write(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    let mask = &explanation.mask;
    let method = explanation
        .signature
        .as_ref()
        .map(|examined| examined.method);
    writeln!(out, "Parameters")?;
    for parameter in explanation.parameters.iter() {
        let name = printable(&mask.text(&parameter.name));
        let value = if *parameter.name == *ProtocolParameter::Signature.as_str().as_bytes() {
            mask.sent(method, &parameter.value)
        } else {
            mask.text(&parameter.value)
        };
        let value = printable(&value);
        writeln!(out, "  {:<22}{name} = {value}", parameter.place.to_string())?;
    }
    if let Some(realm) = explanation.parameters.realm() {
        writeln!(
            out,
            "  {:<22}realm = {}",
            "not signed",
            printable(&mask.text(realm))
        )?;
    }
    let normalized = explanation.parameters.normalized(Selection::Rfc5849);
    writeln!(
        out,
        "Normalized parameters\n  {}",
        printable(&mask.text(&normalized))
    )?;
    writeln!(
        out,
        "Signature base string\n  {}",
        printable(&mask.text(&explanation.base_string))
    )?;
    if let Some(examined) = &explanation.signature {
        write_signature(examined, mask, &explanation.base_string, out)?;
    }
    if let Some(problem) = &explanation.problem {
        writeln!(
            out,
            "Refused before the signature is looked at\n  {problem}"
        )?;
    }
    Ok(())
}

fn write_signature(
    examined: &Examined,
    mask: &Mask,
    base_string: &[u8],
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "Key\n  {}", key_shape(examined))?;
    match &examined.expected {
        Some(expected) => writeln!(
            out,
            "Expected signature\n  {}",
            printable(&mask.expected(examined.method, expected))
        )?,
        None => writeln!(
            out,
            "Expected signature\n  only the consumer's private key can make it"
        )?,
    }
    let Some(sent) = &examined.sent else {
        return writeln!(out, "Verdict\n  there is no oauth_signature to compare");
    };
    let sent = printable(&mask.sent(Some(examined.method), sent));
    writeln!(out, "Signature sent\n  {sent}")?;
    if examined.matches {
        return writeln!(out, "Verdict\n  the signature matches");
    }
    writeln!(out, "Verdict\n  the signature does not match")?;
    let Some(diagnosis) = &examined.diagnosis else {
        return writeln!(
            out,
            "Diagnosis\n  no known mistake makes this signature: the secrets are others, or another request was signed"
        );
    };
    writeln!(out, "Diagnosis")?;
    for mistake in &diagnosis.mistakes {
        writeln!(out, "  {mistake}")?;
    }
    if diagnosis.base_string != base_string {
        writeln!(
            out,
            "The consumer signed\n  {}",
            printable(&mask.text(&diagnosis.base_string))
        )?;
    }
    let described =
        |mistake: &Mistake| matches!(mistake, Mistake::QueryUnsigned | Mistake::AmpersandMissing);
    if diagnosis.mistakes.iter().all(described) {
        writeln!(
            out,
            "The token calls take this one as well, and the dialect legacy leaves the query unsigned"
        )?;
    }
    Ok(())
}

/// What the key is made of, without showing it.
fn key_shape(examined: &Examined) -> String {
    let secrets = &examined.secrets;
    if examined.method.is_rsa() {
        return match &secrets.rsa_public_key {
            Some(key) => format!("the consumer's RSA key of {} bits", key.bits()),
            None => "the consumer's RSA key, which is not known".to_owned(),
        };
    }
    let shape = |name: &str, secret: &[u8]| match secret.len() {
        0 => format!("<{name}: empty>"),
        1 => format!("<{name}: 1 byte, percent-encoded>"),
        bytes => format!("<{name}: {bytes} bytes, percent-encoded>"),
    };
    let joined = format!(
        "{}&{}",
        shape("consumer secret", secrets.consumer_secret.expose()),
        shape("token secret", secrets.token_secret.expose())
    );
    match examined.method {
        SignatureMethod::Plaintext => format!("{joined} (which is the signature itself)"),
        _ => joined,
    }
}

/// Text without control characters, which a terminal would obey.
fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|character| {
            let escaped = character.is_control().then(|| character.escape_default());
            let plain = (!character.is_control()).then_some(character);
            escaped.into_iter().flatten().chain(plain)
        })
        .collect()
}
