//! The colours of pages that an operator can set.
//!
//! The operator gives the hue, and these rules the lightness (OKLCH, CSS Color 5 §4), so that text can be read whatever is set: its
//! contrast is at least 7 (WCAG 2.2, 1.4.6, level AAA).

use std::fmt::{self, Write as _};

/// A colour of sRGB: red, green, blue. Prints as `#1f4fd8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour(pub [u8; 3]);

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

/// The colours of `templates/style.css` that are written elsewhere too: `--accent`, and `--page` for light and dark pages.
const ACCENT: Colour = Colour([0x17, 0x40, 0xb4]);
const PAGE: Colour = Colour([0xf3, 0xf4, 0xf7]);
const PAGE_DARK: Colour = Colour([0x12, 0x15, 0x1b]);

impl Colour {
    /// Reads `#1f4fd8`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#')?;
        let is_six = digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u32::from_str_radix(digits, 16).ok().filter(|_| is_six)?;
        let [_, red, green, blue] = number.to_be_bytes();
        Some(Self([red, green, blue]))
    }
}

/// For browsers that prefer light pages or dark ones: the accent and the further rules that it brings, then the same
/// for the area around the content. Each `{}` is the operator's colour.
///
/// The lightness and the greatest chroma are those at which every hue keeps a contrast of 7 to the colours of
/// `templates/style.css` and those here.
const SCHEMES: [(&str, [&str; 2], [&str; 2]); 2] = [
    (
        "light",
        [
            "oklch(from {} 0.38 min(c,0.16) h)",
            "--accent-strong:oklch(from {} 0.32 min(c,0.16) h);--on-accent:#ffffff;\
             --tint:oklch(from {} 0.97 min(c,0.015) h);",
        ],
        ["oklch(from {} 0.97 min(c,0.015) h)", ""],
    ),
    (
        "dark",
        [
            "oklch(from {} 0.84 min(c,0.14) h)",
            "--accent-strong:oklch(from {} 0.9 min(c,0.14) h);--on-accent:oklch(from {} 0.2 min(c,0.04) h);\
             --tint:oklch(from {} 0.28 min(c,0.04) h);",
        ],
        [
            "oklch(from {} 0.2 min(c,0.02) h)",
            "--card:oklch(from {} 0.24 min(c,0.02) h);--line:oklch(from {} 0.34 min(c,0.02) h);",
        ],
    ),
];

/// The colours that an operator can set, for browsers that prefer light pages and for those that prefer dark ones.
#[derive(Debug, Clone, Copy, Default)]
pub struct Palette {
    /// `pages.accent`: buttons and links.
    pub accent: Option<Colour>,
    /// `pages.accent_dark`; without it a lighter shade of `accent`.
    pub accent_dark: Option<Colour>,
    /// `pages.background`: the area around the content.
    pub background: Option<Colour>,
    /// `pages.background_dark`
    pub background_dark: Option<Colour>,
}

impl Palette {
    /// CSS that replaces colours of the style sheet, in browsers that know relative colours.
    pub(super) fn css(self) -> String {
        let accents = [self.accent, self.accent_dark.or(self.accent)];
        let pages = [self.background, self.background_dark];
        let rules_of = |name: &str, [shade, more]: [&str; 2], colour: Option<Colour>| {
            let rules = format!("--{name}:{shade};{more}");
            colour.map_or_else(String::new, |colour| with_colour(&rules, colour))
        };
        let mut css = String::new();
        for ((scheme, accent), page) in SCHEMES.into_iter().zip(accents).zip(pages) {
            let (name, of_accent, of_page) = scheme;
            let rules = rules_of("accent", of_accent, accent) + &rules_of("page", of_page, page);
            if !rules.is_empty() {
                // Writing to a String cannot fail.
                let _ = writeln!(
                    css,
                    "@supports (color: oklch(from red l c h)) {{@media (prefers-color-scheme: {name}) {{:root {{{rules}}}}}}}"
                );
            }
        }
        css
    }

    /// The accent of light pages.
    pub(super) fn sign(self) -> String {
        let [(_, [shade, _], _), _] = SCHEMES;
        shade_or_usual(shade, self.accent, ACCENT)
    }

    /// The colour of the area around the content, for each kind of browser.
    pub(super) fn pages(self) -> [(&'static str, String); 2] {
        let [(light, _, [page, _]), (dark, _, [page_dark, _])] = SCHEMES;
        [
            (light, shade_or_usual(page, self.background, PAGE)),
            (
                dark,
                shade_or_usual(page_dark, self.background_dark, PAGE_DARK),
            ),
        ]
    }
}

/// The CSS in which each `{}` is the operator's colour.
fn with_colour(css: &str, colour: Colour) -> String {
    css.replace("{}", &colour.to_string())
}

/// The shade of the operator's colour, else the one of the style sheet.
fn shade_or_usual(shade: &str, colour: Option<Colour>, usual: Colour) -> String {
    colour.map_or_else(|| usual.to_string(), |colour| with_colour(shade, colour))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn colour(text: &str) -> Colour {
        Colour::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn reads_and_prints_six_digits() {
        assert_eq!(colour("#1F4fd8").to_string(), "#1f4fd8");
        for wrong in [
            "",
            "#",
            "1f4fd8",
            "#1f4",
            "#1f4fd8ff",
            "#+f4fd8",
            "#1f4fdg",
            "blue",
            "#ää",
        ] {
            assert_eq!(Colour::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_colours_of_the_style_sheet_are_the_same() {
        let style = include_str!("../../../templates/style.css");
        for rule in [
            format!("--accent: {ACCENT};"),
            format!("--page: {PAGE};"),
            format!("--page: {PAGE_DARK};"),
        ] {
            assert!(style.contains(&rule), "{rule}");
        }
    }

    #[test]
    fn replaces_what_is_set_and_nothing_else() {
        assert_eq!(Palette::default().css(), "");
        let palette = Palette {
            accent: Some(colour("#ffcc00")),
            background_dark: Some(colour("#999999")),
            ..Palette::default()
        };
        let css = palette.css();
        let [light, dark] = css.lines().collect::<Vec<_>>()[..] else {
            panic!("{css}");
        };
        assert!(light.contains("light) {:root {--accent:oklch(from #ffcc00 0.38 "));
        assert!(dark.contains("dark) {:root {--accent:oklch(from #ffcc00 0.84 "));
        assert!(dark.contains("--page:oklch(from #999999 0.2 "), "{dark}");
        assert!(!light.contains("--page") && !css.contains("{}"), "{css}");
    }
}
