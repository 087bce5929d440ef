//! Two base strings side by side: the pieces that differ are marked.

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
