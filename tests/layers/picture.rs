//! The picture of the wings in `ARCHITECTURE.md`, drawn from the table of `src/lib.rs`.

use std::{env, fmt::Write as _, fs, path::Path};

const WIDTH: usize = 800;
const ROW: usize = 44;
const STYLE: &str = "\
text{font:15px system-ui,sans-serif;fill:#1f2328}\
.name{font:600 15px ui-monospace,monospace}\
.is{fill:#59636e}\
rect{fill:#f6f8fa;stroke:#d1d9e0}\
path{stroke:#59636e;fill:none}\
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.is{fill:#9198a1}rect{fill:#151b23;stroke:#3d444d}path{stroke:#9198a1}}";

/// A wing: its name, the modules or things that it holds, and what it is.
struct Wing<'a> {
    name: &'a str,
    holds: String,
    is: &'a str,
}

#[test]
fn the_picture_of_the_wings_is_drawn_from_their_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lib = fs::read_to_string(root.join("src/lib.rs")).unwrap();
    let drawn = drawn(&wings(&lib));
    let file = root.join("docs/pictures/wings.svg");
    if env::var_os("COUNTERSIGN_WRITE_EXAMPLE").is_some() {
        fs::write(&file, &drawn).unwrap();
    }
    assert!(
        fs::read_to_string(&file).unwrap() == drawn,
        "docs/pictures/wings.svg is not the table of src/lib.rs: COUNTERSIGN_WRITE_EXAMPLE=1 cargo test --test layers draws it again"
    );
}

fn wings(lib: &str) -> Vec<Wing<'_>> {
    let rows = lib.lines().filter_map(|line| line.strip_prefix("//! | `"));
    let wings = Vec::from_iter(rows.map(|row| {
        let mut cells = row.split('|').map(str::trim);
        Wing {
            name: cells.next().unwrap().trim_end_matches('`'),
            holds: cells.next().unwrap().replace('`', ""),
            is: cells.next().unwrap(),
        }
    }));
    assert!(!wings.is_empty(), "the table has its form");
    wings
}

/// The first wing of the table is at the bottom, as the ground.
fn drawn(wings: &[Wing<'_>]) -> String {
    let height = wings.len() * ROW + 8;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"The wings of the sources: each uses only those below it\">\n<style>{STYLE}</style>\n"
    );
    for (index, wing) in wings.iter().rev().enumerate() {
        let top = index * ROW + 4;
        let (box_height, line) = (ROW - 8, top + 23);
        let Wing { name, holds, is } = wing;
        writeln!(
            svg,
            "<rect x=\"1\" y=\"{top}\" width=\"{}\" height=\"{box_height}\" rx=\"6\"/>\
             <text class=\"name\" x=\"14\" y=\"{line}\">{name}</text>\
             <text x=\"112\" y=\"{line}\">{holds}</text>\
             <text class=\"is\" x=\"{}\" y=\"{line}\" text-anchor=\"end\">{is}</text>",
            WIDTH - 40,
            WIDTH - 52,
        )
        .unwrap();
    }
    let (x, end) = (WIDTH - 18, height - 8);
    writeln!(svg, "<path d=\"M{x} 8V{end}m-5-8 5 8 5-8\"/>").unwrap();
    svg.push_str("</svg>\n");
    svg
}
