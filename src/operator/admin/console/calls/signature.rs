//! The signature doctor on a page: a pasted request, and how it has to be signed.

use askama::Template;

use crate::{
    oauth::compare::{ComparedPart, Parts, marked, side_by_side},
    operator::{
        admin::console::{
            ConsoleRequest, Rejected, Result,
            page::{ConsoleFrame, InputField, InputKind, show},
            parts::time,
        },
        explain::{Explained, pasted},
    },
    provider::{pages::developer::Unchecked, respond::OwnResponse},
};

#[derive(Template)]
#[template(path = "console/signature.html")]
struct SignaturePage<'a> {
    frame: ConsoleFrame<'a>,
    csrf: String,
    /// Why the request cannot be read.
    problem: Option<String>,
    found: Option<Findings>,
    fields: [InputField; 2],
}

/// The findings about a request.
struct Findings {
    class: &'static str,
    verdict: String,
    /// What else is to be known.
    lines: Vec<String>,
    /// Base strings, each with its title.
    texts: Vec<(&'static str, Parts)>,
    /// Their decoded parts, side by side.
    compared: Vec<ComparedPart>,
}

impl ConsoleRequest<'_> {
    pub(crate) async fn signature(&self) -> Result<OwnResponse> {
        let sent = |name| self.form.as_ref().and_then(|form| form.field(name));
        let field = |name, label, rows| {
            InputField::new(
                InputKind::Lines(rows),
                name,
                label,
                sent(name).unwrap_or_default(),
            )
        };
        let fields = [
            field(
                "request",
                "The request as it went over the wire, or as a curl command",
                10,
            ),
            field(
                "signed",
                "The base string that the consumer signed, if its log has it",
                3,
            ),
        ];
        let (problem, found) = match self.form {
            None => (None, None),
            Some(_) => {
                self.check_form("")?;
                match self
                    .explain(&fields[0].value, fields[1].value.trim())
                    .await?
                {
                    Ok(found) => (None, Some(found)),
                    Err(problem) => (Some(problem), None),
                }
            }
        };
        let page = SignaturePage {
            frame: self.shell.frame("Check a signature"),
            csrf: self.csrf(""),
            problem,
            found,
            fields,
        };
        Ok(show(200, &page))
    }

    /// The findings about a request, or the reason why it cannot be read.
    async fn explain(&self, text: &str, signed: &str) -> Result<Result<Findings, String>> {
        let message = match pasted::parse(text) {
            Ok(message) => message,
            Err(problem) => return Ok(Err(problem)),
        };
        let explained = match self.admin.explainer(self.backend).explain(message).await {
            Ok(explained) => explained,
            Err(Unchecked::Unreadable(problem)) => return Ok(Err(problem)),
            Err(Unchecked::Store(error)) => return Err(error.into()),
            Err(Unchecked::Pool(_)) => return Err(Rejected::Busy),
        };
        Ok(Ok(findings(explained, signed)))
    }
}

fn findings(explained: Explained, signed: &str) -> Findings {
    let Explained {
        view,
        signed: known,
        is_accepted,
        permission,
    } = explained;
    let given = (!signed.is_empty()).then(|| signed.to_owned());
    let (class, verdict) = match (is_accepted, view.diagnosis) {
        (true, Some(mistake)) if view.matches => (
            "good",
            format!("The signature is right, in spite of a mistake: {mistake}"),
        ),
        (true, _) => ("good", "The signature is right.".to_owned()),
        (false, Some(diagnosis)) => ("bad", diagnosis),
        (false, None) => {
            let text = "The signature does not match, and no known mistake makes it: the secrets are others, or another request \
                        was signed.";
            ("bad", text.to_owned())
        }
    };
    let mut lines = Vec::new();
    if is_accepted {
        let text = "Not checked here: the nonce, which a request that was sent has used up.";
        lines.push(text.to_owned());
    }
    lines.extend(permission);
    lines.extend(view.launch);
    if !view.forwarded.is_empty() {
        let parts = view.forwarded.join("; ");
        lines.push(format!("If it is accepted, the API gets: {parts}."));
    }
    if let Some(until) = view.previous_secret_until {
        lines.push(format!(
            "It is signed with the consumer’s previous secret, which also verifies until {}.",
            time(until)
        ));
    }
    if let Some(needs) = view.needs {
        lines.push(format!(
            "It would be accepted from a consumer that is allowed {needs}."
        ));
    }
    let texts = match given.or(known) {
        None => vec![("Signature base string", vec![(view.base_string, false)])],
        Some(signed) => {
            let (right, wrong) = marked(&view.base_string, &signed);
            vec![
                ("Right base string", right),
                ("What the consumer signed", wrong),
            ]
        }
    };
    Findings {
        class,
        verdict,
        lines,
        compared: side_by_side(&texts),
        texts,
    }
}
