//! Tables in texts, and checks of a text's content.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "shared by path: not every crate of tests uses all of it"
)]

/// Checks that the text contains all parts.
#[track_caller]
pub fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}

/// Asserts that a text has these parts in this order.
#[track_caller]
pub fn in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let at = rest.find(part);
        let at = at.unwrap_or_else(|| panic!("{part} is missing or too early: {text}"));
        rest = &rest[at + part.len()..];
    }
}

/// The words of a text.
pub fn words(text: &str) -> Vec<&str> {
    text.split_ascii_whitespace().collect()
}

/// The rows of a table in a text: one row a line, with `|` between the cells. White space around a cell does not count.
/// A cell may have the escapes `\r`, `\n`, `\t`, `\0`, `\\`, `\|`, `\xNN` and `\u{N}`. A line that begins with `# ` is a
/// comment.
#[track_caller]
pub fn rows<const N: usize>(table: &str) -> Vec<[&'static str; N]> {
    let lines = table.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("# "));
    let row = |line: &str| {
        let line = line.replace("\\|", "\\x7c");
        let cell = |cell: &str| unescape(cell.trim()).leak() as &str;
        let cells: Vec<&str> = line.split('|').map(cell).collect();
        cells
            .try_into()
            .unwrap_or_else(|_| panic!("{N} cells: {line}"))
    };
    lines.map(row).collect()
}

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        let (code, length) = match escape.as_bytes()[0] {
            b'r' => (13, 1),
            b'n' => (10, 1),
            b't' => (9, 1),
            b'0' => (0, 1),
            b'\\' => (92, 1),
            b'x' => (u32::from_str_radix(&escape[1..3], 16).unwrap(), 3),
            _ => {
                let digits = escape.strip_prefix("u{").unwrap();
                let end = digits.find('}').unwrap();
                (u32::from_str_radix(&digits[..end], 16).unwrap(), end + 3)
            }
        };
        out = out + before + &char::from_u32(code).unwrap().to_string();
        rest = &escape[length..];
    }
    out + rest
}
