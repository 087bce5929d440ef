//! The signature doctor on a page: a pasted request, and how it has to be signed.

use askama::Template;

use super::{
    ConsoleRequest, Rejected, Result,
    page::{ConsoleFrame, InputField, InputKind, show},
    parts::time,
};
use crate::{
    operator::{
        admin::explain::{Explained, Unexplained},
        explain::pasted,
    },
    provider::respond::OwnResponse,
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
    parameters: Vec<[String; 2]>,
}

impl ConsoleRequest<'_> {
    pub(super) async fn signature(&self) -> Result<OwnResponse> {
        self.check_write()?;
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
        let explained = match self.admin.explain(self.backend, message).await {
            Ok(explained) => explained,
            Err(Unexplained::Request(problem)) => return Ok(Err(problem)),
            Err(Unexplained::Store(error)) => return Err(error.into()),
            Err(Unexplained::Pool(_)) => return Err(Rejected::Busy),
        };
        Ok(Ok(findings(explained, signed)))
    }
}

fn findings(explained: Explained, signed: &str) -> Findings {
    let Explained {
        view,
        signed: known,
        is_accepted,
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
        let text = "Not checked here: the nonce, which a request that was sent has used up, and the permission.";
        lines.push(text.to_owned());
    }
    lines.extend(view.launch);
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
        texts,
        parameters: view.parameters,
    }
}

/// A text in parts; the marked ones differ from another text.
type Parts = Vec<(String, bool)>;

/// Two texts in parts. They are compared piece by piece, cut at the separators of base strings.
fn marked(one: &str, other: &str) -> (Parts, Parts) {
    let [one, other] = [pieces(one), pieces(other)];
    // The longest common subsequence, from the end.
    let (rows, columns) = (one.len(), other.len());
    let mut lengths = vec![vec![0_u32; columns + 1]; rows + 1];
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            lengths[row][column] = match one[row] == other[column] {
                true => lengths[row + 1][column + 1] + 1,
                false => lengths[row + 1][column].max(lengths[row][column + 1]),
            };
        }
    }
    let (mut parts, mut other_parts) = (Parts::new(), Parts::new());
    let (mut row, mut column) = (0, 0);
    while row < rows || column < columns {
        if row < rows && column < columns && one[row] == other[column] {
            parts.push((one[row].to_owned(), false));
            other_parts.push((other[column].to_owned(), false));
            (row, column) = (row + 1, column + 1);
        } else if column == columns
            || row < rows && lengths[row + 1][column] >= lengths[row][column + 1]
        {
            parts.push((one[row].to_owned(), true));
            row += 1;
        } else {
            other_parts.push((other[column].to_owned(), true));
            column += 1;
        }
    }
    (parts, other_parts)
}

/// The most pieces that are compared one by one.
const MAX_PIECES: usize = 500;

/// A base string, cut before `&`, `%26` and `%3D`. One of very many pieces is left whole.
fn pieces(text: &str) -> Vec<&str> {
    let cuts = text.char_indices().filter(|(at, _)| {
        let rest = &text[*at..];
        *at > 0 && ["&", "%26", "%3D"].iter().any(|cut| rest.starts_with(cut))
    });
    let mut ends = Vec::from_iter(cuts.map(|(at, _)| at));
    if ends.len() >= MAX_PIECES {
        return vec![text];
    }
    ends.push(text.len());
    let mut begin = 0;
    let cut = ends
        .into_iter()
        .map(|end| &text[std::mem::replace(&mut begin, end)..end]);
    cut.filter(|piece| !piece.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_the_pieces_that_differ() {
        let right = "GET&http%3A%2F%2Fa%2F&a%3D1%26b%3D2%26c%3D3";
        let wrong = "POST&http%3A%2F%2Fa%2F&a%3D1%26c%3D4";
        let (one, other) = marked(right, wrong);
        let text = |parts: &Parts| {
            parts
                .iter()
                .map(|(text, _)| text.as_str())
                .collect::<String>()
        };
        assert_eq!(
            (text(&one), text(&other)),
            (right.to_owned(), wrong.to_owned())
        );
        let differs = |parts: &Parts| {
            let parts = parts.iter().filter(|(_, is_marked)| *is_marked);
            Vec::from_iter(parts.map(|(text, _)| text.clone()))
        };
        assert_eq!(differs(&one), ["GET", "%26b", "%3D2", "%3D3"]);
        assert_eq!(differs(&other), ["POST", "%3D4"]);
        assert_eq!(pieces(""), Vec::<&str>::new());
        assert_eq!(pieces(&"&a".repeat(600)).len(), 1);
    }
}
