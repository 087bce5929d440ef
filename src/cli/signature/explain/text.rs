//! An explanation for people.

use crate::{
    oauth::{
        ProtocolParameter, Selection, SignatureMethod,
        diagnosis::{Diagnosis, Mistake},
    },
    operator::explain::{Examined, Explanation, Mask, readable},
    telemetry::log::lines::visible,
};

pub(super) fn written(explanation: &Explanation) -> String {
    let (mask, examined) = (&explanation.mask, explanation.signature.as_ref());
    let parameters = explanation.parameters.iter().map(|parameter| {
        let value = if parameter.name == ProtocolParameter::Signature.as_str().as_bytes() {
            mask.sent(examined.map(|examined| examined.method), parameter.value)
        } else {
            mask.value(parameter.name, parameter.value)
        };
        let location = parameter.location.to_string();
        format!("{location:<22}{} = {value}", readable(parameter.name))
    });
    let realm = explanation.parameters.realm().map(|realm| {
        let (location, value) = ("not signed", mask.value(b"realm", realm));
        format!("{location:<22}realm = {value}")
    });
    let normalized = explanation.parameters.normalized(Selection::Rfc5849);
    let normalized = mask.normalized(&normalized);
    let base_string = mask.base_string(&explanation.base_string);
    let mut text = section("Parameters", parameters.chain(realm))
        + &section("Normalized parameters", [normalized])
        + &section("Signature base string", [base_string]);
    if let Some(examined) = examined {
        text += &signature(examined, mask, explanation.consumer_base_string());
    }
    if !explanation.problems.is_empty() {
        let title = "Rejected before the signature is checked";
        let problems = explanation.problems.iter();
        text += &section(title, problems.map(ToString::to_string));
    }
    match explanation.nonce_used {
        Some(Some(false)) => text += &section("Nonce", ["not used yet"]),
        Some(None) => text += &section("Nonce", ["whether it was used cannot be known here"]),
        Some(Some(true)) | None => {}
    }
    if !explanation.rejections.is_empty() {
        text += &section("The server rejects it", &explanation.rejections);
    }
    if let Some(launch) = &explanation.launch {
        text += &section("Launch", [launch]);
    }
    if !explanation.forwarded.is_empty() {
        text += &section("If it is accepted, the API gets", &explanation.forwarded);
    }
    text
}

/// A title and lines below it, without control characters, which a terminal would obey.
fn section(title: &str, lines: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let lines = lines.into_iter();
    let lines = lines.map(|line| format!("  {}\n", visible(line.as_ref())));
    format!("{title}\n{}", lines.collect::<String>())
}

fn signature(examined: &Examined, mask: &Mask, signed: Option<String>) -> String {
    let expected = examined.expected.as_ref();
    let expected = expected.map_or(
        "only the consumer's private key can make it".into(),
        |computed| mask.expected(examined.method, computed),
    );
    let mut text =
        section("Key", [key_shape(examined)]) + &section("Expected signature", [expected]);
    let Some(sent) = &examined.sent else {
        return text + &section("Verdict", ["there is no oauth_signature to compare"]);
    };
    text += &section("Signature sent", [mask.sent(Some(examined.method), sent)]);
    let verdict = match (examined.matches, examined.accepted) {
        (true, _) => "the signature matches",
        (_, true) => "the server takes this signature from this consumer as well",
        _ => "the signature does not match",
    };
    text += &section("Verdict", [verdict]);
    if let Some(until) = examined.previous_secret_until {
        let line = format!("signed with the previous one, which also verifies until {until}");
        text += &section("Consumer secret", [line]);
    }
    if let Some(needs) = examined.needs {
        let needed = format!("accept = {needs}: countersign consumer update KEY --accept {needs}");
        text += &section("The server would take it with", [needed]);
    }
    let is_told = |_: &&Diagnosis| !examined.accepted || examined.matches;
    let Some(diagnosis) = examined.diagnosis.as_ref().filter(is_told) else {
        let unknown = "no known mistake makes this signature: the secrets are others, or another request was signed";
        let is_wrong = !examined.accepted && !examined.matches;
        let unknown = is_wrong.then(|| section("Diagnosis", [unknown]));
        return text + &unknown.unwrap_or_default();
    };
    let mistakes = diagnosis.mistakes.iter();
    text += &section("Diagnosis", mistakes.map(ToString::to_string));
    if let Some(signed) = signed {
        text += &section("The consumer signed", [signed]);
    }
    let described =
        |mistake: &Mistake| matches!(mistake, Mistake::QueryUnsigned | Mistake::AmpersandMissing);
    if diagnosis.mistakes.iter().all(described) {
        text += "The token calls take this one as well, and the dialect legacy leaves the query unsigned\n";
    }
    text
}

/// The parts of the key, without their values.
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
