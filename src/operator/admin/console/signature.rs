//! The signature doctor on a page: a pasted request, and how it has to be signed.

use super::{
    ConsoleRequest, Rejected, Reply, Result,
    page::{InputField, InputKind, Section},
    parts::{Line, Table, line},
};
use crate::operator::{
    admin::explain::Unexplained,
    explain::{ExplanationView, pasted},
};

impl ConsoleRequest<'_> {
    pub(super) async fn signature(&self) -> Result<Reply> {
        self.check_write()?;
        let mut field = InputField::new(
            InputKind::Lines,
            "request",
            "The request as it went over the wire, or as a curl command",
            self.form
                .as_ref()
                .and_then(|form| form.field("request"))
                .unwrap_or_default(),
        );
        field.rows = 10;
        let mut signed = InputField::new(
            InputKind::Lines,
            "signed",
            "The base string that the consumer signed, if its log has it",
            self.form
                .as_ref()
                .and_then(|form| form.field("signed"))
                .unwrap_or_default(),
        );
        signed.rows = 3;
        let text = "The secrets of consumer and token are taken from the store. No secret and no expected signature is shown. The \
                    request is neither forwarded nor counted.";
        let (problem, found) = match self.form {
            None => (None, Vec::new()),
            Some(_) => {
                self.check_form("")?;
                match self.explain(&field.value, signed.value.trim()).await? {
                    Ok(sections) => (None, sections),
                    Err(problem) => (Some(problem), Vec::new()),
                }
            }
        };
        let title = "Check a signature".to_owned();
        let (title, mut sections) =
            self.ask(title, line(text), problem, vec![field, signed], "Check");
        sections.extend(found);
        Ok(Reply::Page((title, sections)))
    }

    /// The findings about a request, or the reason why it cannot be read.
    async fn explain(&self, text: &str, signed: &str) -> Result<Result<Vec<Section>, String>> {
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
        let given = (!signed.is_empty()).then(|| signed.to_owned());
        let signed = given.or(explained.signed);
        Ok(Ok(sections(explained.view, signed, explained.is_accepted)))
    }
}

fn sections(view: ExplanationView, signed: Option<String>, is_accepted: bool) -> Vec<Section> {
    let verdict = match (is_accepted, &view.diagnosis) {
        (true, Some(mistake)) if view.matches => {
            let text = format!("The signature is accepted, in spite of a mistake: {mistake}");
            Section::Note("good", line(text))
        }
        (true, _) => Section::Note("good", line("The signature is accepted.")),
        (false, Some(diagnosis)) => Section::Note("bad", line(diagnosis.clone())),
        (false, None) => {
            let text = "The signature does not match, and no known mistake makes it: the secrets are others, or another request \
                        was signed.";
            Section::Note("bad", line(text))
        }
    };
    let launch = view.launch.map(|launch| Section::Text(line(launch)));
    let texts = match signed {
        None => vec![(
            "Signature base string".to_owned(),
            vec![(view.base_string, false)],
        )],
        Some(signed) => {
            let (right, wrong) = marked(&view.base_string, &signed);
            vec![
                ("Right base string".to_owned(), right),
                ("What the consumer signed".to_owned(), wrong),
            ]
        }
    };
    let row = |[name, value]: [String; 2]| -> Vec<Line> { vec![line(name), line(value)] };
    let result = [Section::Heading("Result".to_owned()), verdict];
    let details = [
        Section::Marked(texts),
        Section::Table(Table {
            caption: "Signed parameters, decoded".to_owned(),
            head: vec!["name", "value"],
            rows: view.parameters.into_iter().map(row).collect(),
            empty: "There is no signed parameter.",
            next: None,
        }),
    ];
    result.into_iter().chain(launch).chain(details).collect()
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
