//! The colours of pages that an operator can set.
//!
//! The operator gives the hue, and these rules limit the lightness and the chroma (OKLCH, CSS Color 4 §9.4 and 5 §4), so that
//! text can be read whatever is set: its contrast is at least 4.5 to 1 (WCAG 2.2, 1.4.3, level AA).

use std::fmt::Write as _;

use color::{Oklch, OpaqueColor};

use super::settings::{Colour, PagesSettings};

/// The colours of `templates/style.css` that are written elsewhere too: `--accent`, and `--page` for light and dark pages.
const ACCENT: Colour = Colour([0x17, 0x40, 0xb4]);
const PAGE: Colour = Colour([0xf3, 0xf4, 0xf7]);
const PAGE_DARK: Colour = Colour([0x12, 0x15, 0x1b]);

/// The shade of an operator's colour: its hue, and limits of the rest.
#[derive(Debug, Clone, Copy)]
struct Shade {
    /// The least and the greatest lightness, from 0 to 1.
    lightness: [f32; 2],
    most_chroma: f32,
}

impl Shade {
    /// CSS in which `{}` is the colour.
    fn css(self) -> String {
        let [least, most] = self.lightness;
        let limit = match least > 0.0 {
            true => format!("max(l,{least})"),
            false => format!("min(l,{most})"),
        };
        format!("oklch(from {{}} {limit} min(c,{}) h)", self.most_chroma)
    }

    /// The colour that a browser shows.
    fn shown(self, Colour([red, green, blue]): Colour) -> Colour {
        let [least, most] = self.lightness;
        let limit = |l: f32, c: f32, h| [l.clamp(least, most), c.min(self.most_chroma), h];
        let shown = OpaqueColor::from_rgb8(red, green, blue).map_in::<Oklch>(limit);
        let [red, green, blue, _] = shown.to_rgba8().to_u8_array();
        Colour([red, green, blue])
    }
}

/// The accent of light pages and of dark ones.
///
/// The lightness and the greatest chroma are those at which every hue keeps the contrast to the colours of
/// `templates/style.css` and those of [`SCHEMES`]; a test tries all hues.
const ACCENTS: [Shade; 2] = [
    Shade {
        lightness: [0.0, 0.49],
        most_chroma: 0.2,
    },
    Shade {
        lightness: [0.7, 1.0],
        most_chroma: 0.14,
    },
];

/// For browsers that prefer light pages or dark ones: the further rules that the accent brings, then the area around the content
/// and its further rules. Each `{}` is the operator's colour.
const SCHEMES: [(&str, &str, [&str; 2]); 2] = [
    (
        "light",
        "--accent-strong:oklch(from {} 0.32 min(c,0.16) h);--on-accent:#ffffff;\
         --tint:oklch(from {} 0.97 min(c,0.015) h);",
        ["oklch(from {} 0.97 min(c,0.015) h)", ""],
    ),
    (
        "dark",
        "--accent-strong:oklch(from {} 0.9 min(c,0.14) h);--on-accent:oklch(from {} 0.2 min(c,0.04) h);\
         --tint:oklch(from {} 0.28 min(c,0.04) h);",
        [
            "oklch(from {} 0.2 min(c,0.02) h)",
            "--card:oklch(from {} 0.24 min(c,0.02) h);--line:oklch(from {} 0.34 min(c,0.02) h);",
        ],
    ),
];

impl PagesSettings {
    /// CSS that replaces colours of the style sheet, in browsers that know relative colours.
    pub(super) fn colour_rules(&self) -> String {
        let pages = [self.background, self.background_dark];
        let rules_of = |name: &str, shade: &str, more: &str, colour: Option<Colour>| {
            let rules = format!("--{name}:{shade};{more}");
            colour.map_or_else(String::new, |colour| with_colour(&rules, colour))
        };
        let mut css = String::new();
        let accents = [self.accent, self.accent_dark.or(self.accent)];
        let of_accents = SCHEMES.into_iter().zip(accents.into_iter().zip(ACCENTS));
        for ((scheme, (accent, shade)), page) in of_accents.zip(pages) {
            let (name, of_accent, [of_page, more]) = scheme;
            let rules = rules_of("accent", &shade.css(), of_accent, accent)
                + &rules_of("page", of_page, more, page);
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

    /// The accents that pages show in another shade, because their contrast is too small: the key, the scheme, the colour and
    /// the shade.
    pub fn changed_accents(
        &self,
    ) -> impl Iterator<Item = (&'static str, &'static str, Colour, Colour)> {
        let keys = [
            ("pages.accent", self.accent),
            ("pages.accent_dark", self.accent_dark),
        ];
        let schemes = SCHEMES.into_iter().zip(ACCENTS);
        let found = keys.into_iter().zip(schemes);
        found.filter_map(|((key, colour), ((scheme, ..), shade))| {
            let colour = colour?;
            let shown = shade.shown(colour);
            // Digits that are rounded are no other shade.
            let differs = shown.0.iter().zip(colour.0).any(|(a, b)| a.abs_diff(b) > 1);
            differs.then_some((key, scheme, colour, shown))
        })
    }

    /// The accent of light pages.
    pub(super) fn sign_colour(&self) -> String {
        let [shade, _] = ACCENTS;
        shade_or_usual(&shade.css(), self.accent, ACCENT)
    }

    /// The colour of the area around the content, for each kind of browser.
    pub(super) fn page_colours(&self) -> [(&'static str, String); 2] {
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

    /// WCAG 2.2, contrast ratio.
    fn contrast(one: Colour, other: Colour) -> f32 {
        let [one, other] = [one, other].map(|Colour([red, green, blue])| {
            OpaqueColor::from_rgb8(red, green, blue).relative_luminance() + 0.05
        });
        one.max(other) / one.min(other)
    }

    #[test]
    fn text_in_an_accent_of_any_hue_can_be_read() {
        let shade = |lightness, most_chroma| Shade {
            lightness: [lightness; 2],
            most_chroma,
        };
        // The tints of `SCHEMES`, which are nearer to the text than the other grounds.
        let grounds = [shade(0.97, 0.015), shade(0.28, 0.04)];
        let steps = || (0..=255).step_by(17);
        for (shade, ground) in ACCENTS.into_iter().zip(grounds) {
            for (red, green, blue) in steps().flat_map(|red| {
                steps().flat_map(move |green| steps().map(move |blue| (red, green, blue)))
            }) {
                let colour = Colour([red, green, blue]);
                let (text, ground) = (shade.shown(colour), ground.shown(colour));
                let found = contrast(text, ground);
                assert!(found >= 4.5, "{colour} as {text} on {ground}: {found:.2}");
            }
        }
    }

    #[test]
    fn accent_with_enough_contrast_stays_and_others_are_reported() {
        let palette = |accent| PagesSettings {
            accent: Some(colour(accent)),
            accent_dark: Some(colour("#9ab8ff")),
            ..PagesSettings::default()
        };
        let changed = |palette: PagesSettings| {
            let changed = palette.changed_accents();
            Vec::from_iter(
                changed
                    .map(|(key, scheme, colour, shown)| format!("{key} {scheme} {colour} {shown}")),
            )
        };
        assert!(changed(palette("#0b6a43")).is_empty());
        // Dark pages show a lighter shade of it, as documented.
        let dark = PagesSettings {
            accent_dark: None,
            ..palette("#0b6a43")
        };
        assert!(changed(dark).is_empty());
        let yellow = changed(palette("#ffcc00"));
        assert_eq!(yellow, ["pages.accent light #ffcc00 #865600"]);
        let swapped = PagesSettings {
            accent_dark: Some(colour("#1740b4")),
            ..palette("#0b6a43")
        };
        let [dark] = &changed(swapped)[..] else {
            panic!("not one");
        };
        assert!(
            dark.starts_with("pages.accent_dark dark #1740b4 #"),
            "{dark}"
        );
        let css = palette("#0b6a43").colour_rules();
        assert!(css.contains("oklch(from #0b6a43 min(l,0.49) "), "{css}");
    }

    #[test]
    fn replaces_what_is_set_and_nothing_else() {
        assert_eq!(PagesSettings::default().colour_rules(), "");
        let palette = PagesSettings {
            accent: Some(colour("#ffcc00")),
            background_dark: Some(colour("#999999")),
            ..PagesSettings::default()
        };
        let css = palette.colour_rules();
        let [light, dark] = css.lines().collect::<Vec<_>>()[..] else {
            panic!("{css}");
        };
        assert!(light.contains("light) {:root {--accent:oklch(from #ffcc00 min(l,0.49) "));
        assert!(dark.contains("dark) {:root {--accent:oklch(from #ffcc00 max(l,0.7) "));
        assert!(dark.contains("--page:oklch(from #999999 0.2 "), "{dark}");
        assert!(!light.contains("--page") && !css.contains("{}"), "{css}");
    }
}
