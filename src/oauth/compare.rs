//! Two base strings side by side: the pieces that differ are marked.

use super::percent::decode;

/// A text in parts; the marked ones differ from another text.
pub type Parts = Vec<(String, bool)>;

/// Two texts in parts. They are compared piece by piece, cut at the separators of base strings.
pub fn marked(one: &str, other: &str) -> (Parts, Parts) {
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

/// A part of two base strings, decoded: the method, the URI, or a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedPart {
    /// Its name.
    pub name: String,
    /// Its value in each base string; `None`: it is not there.
    pub values: Vec<Option<String>>,
    /// The base strings differ here.
    pub is_marked: bool,
}

/// The parts of a base string, and of another one if there is one, each with its decoded values.
pub fn side_by_side(texts: &[(&str, Parts)]) -> Vec<ComparedPart> {
    let mut texts = texts.iter().map(|(_, parts)| decoded(parts));
    let (one, mut others) = (texts.next(), texts.next());
    let mut rows = Vec::new();
    for (name, value, is_marked) in one.into_iter().flatten() {
        let mut row = ComparedPart {
            name,
            values: vec![Some(value)],
            is_marked,
        };
        if let Some(others) = &mut others {
            let found = others.iter().position(|(name, ..)| *name == row.name);
            let found = found.map(|at| others.remove(at));
            row.is_marked |= found.as_ref().is_none_or(|(_, _, is_marked)| *is_marked);
            row.values.push(found.map(|(_, value, _)| value));
        }
        rows.push(row);
    }
    let missing = others
        .into_iter()
        .flatten()
        .map(|(name, value, _)| ComparedPart {
            name,
            values: vec![None, Some(value)],
            is_marked: true,
        });
    rows.extend(missing);
    rows
}

/// The names and the decoded values of a base string, and whether a marked piece is in each.
fn decoded(parts: &Parts) -> Vec<(String, String, bool)> {
    let text: String = parts.iter().map(|(text, _)| text.as_str()).collect();
    let mut end = 0;
    let places = parts.iter().map(|(text, is_marked)| {
        let begin = end;
        end += text.len();
        (begin..begin + text.len(), *is_marked)
    });
    let marks = Vec::from_iter(
        places
            .filter(|(_, is_marked)| *is_marked)
            .map(|(place, _)| place),
    );
    let plain = |text: &str| match decode(text.as_bytes()) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => text.to_owned(),
    };
    let mut rows = Vec::new();
    let mut at = 0;
    for (index, piece) in text.splitn(3, '&').enumerate() {
        let separator = if index < 2 { "&" } else { "%26" };
        for piece in piece.split(separator) {
            let place = at..at + piece.len();
            at = place.end + separator.len();
            let (name, value) = match index {
                0 => ("method".to_owned(), piece.to_owned()),
                1 => ("URI".to_owned(), plain(piece)),
                _ => {
                    let (name, value) = piece.split_once("%3D").unwrap_or((piece, ""));
                    (plain(&plain(name)), plain(&plain(value)))
                }
            };
            let is_marked = marks
                .iter()
                .any(|mark| mark.start < place.end && place.start < mark.end);
            if index < 2 || !piece.is_empty() {
                rows.push((name, value, is_marked));
            }
        }
    }
    rows
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
    fn parts_are_decoded_and_those_of_one_text_alone_are_marked() {
        let parts = |text: &str| ("", vec![(text.to_owned(), false)]);
        let row = |name: &str, values: &[Option<&str>], is_marked| ComparedPart {
            name: name.to_owned(),
            values: values.iter().map(|it| it.map(str::to_owned)).collect(),
            is_marked,
        };
        let text = "GET&http%3A%2F%2Fa%2F&n%252Fm%3Da%2520%2526%26o%3D%26p";
        let expected = [
            ("method", "GET"),
            ("URI", "http://a/"),
            ("n/m", "a &"),
            ("o", ""),
            ("p", ""),
        ];
        let expected = expected.map(|(name, value)| row(name, &[Some(value)], false));
        assert_eq!(side_by_side(&[parts(text)]), expected);
        let both = side_by_side(&[parts("GET&u&a%3D1"), parts("GET&u&a%3D1%26a%3D2")]);
        assert_eq!(
            both[2..],
            [
                row("a", &[Some("1"), Some("1")], false),
                row("a", &[None, Some("2")], true)
            ]
        );
        // A broken escape, and a text that is no base string, stay as they are.
        assert_eq!(
            side_by_side(&[parts("%zz")]),
            [row("method", &[Some("%zz")], false)]
        );
        assert_eq!(side_by_side(&[]), []);
    }

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
        let rows = side_by_side(&[("", one.clone()), ("", other.clone())]);
        let rows = rows.iter().map(|row| {
            let [right, signed] = [0, 1].map(|at| row.values[at].as_deref().unwrap_or("-"));
            let mark = if row.is_marked { " *" } else { "" };
            format!("{} {right} {signed}{mark}", row.name)
        });
        let expected = [
            "method GET POST *",
            "URI http://a/ http://a/",
            "a 1 1",
            "b 2 - *",
            "c 3 4 *",
        ];
        assert_eq!(Vec::from_iter(rows), expected);
        assert_eq!(pieces(""), Vec::<&str>::new());
        assert_eq!(pieces(&"&a".repeat(600)).len(), 1);
    }
}
