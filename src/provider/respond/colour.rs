//! The colours of pages that an operator can set.
//!
//! The operator gives the hue, and these rules limit the lightness and the chroma (OKLCH, CSS Color 4 §9.4 and 5 §4), so that
//! text can be read whatever is set: its contrast is at least 7 (WCAG 2.2, 1.4.6, level AAA), or 4.5 (1.4.3, level AA).

use std::fmt::{self, Write as _};

use serde::Deserialize;

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

/// The least contrast of text in an operator's colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Contrast {
    /// 4.5 to 1: a colour that has it is shown as it is.
    #[serde(rename = "AA")]
    Double,
    /// 7 to 1: each colour becomes a dark one on light pages, and a light one on dark pages.
    #[default]
    #[serde(rename = "AAA")]
    Triple,
}

impl Contrast {
    /// The word in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Double => "AA",
            Self::Triple => "AAA",
        }
    }
}

/// The lightness of a shade, from 0 to 1.
#[derive(Debug, Clone, Copy)]
enum Lightness {
    Exactly(f64),
    AtMost(f64),
    AtLeast(f64),
}

/// The shade of an operator's colour: its hue, and limits of the rest.
#[derive(Debug, Clone, Copy)]
struct Shade {
    lightness: Lightness,
    most_chroma: f64,
}

impl Shade {
    /// CSS in which `{}` is the colour.
    fn css(self) -> String {
        let lightness = match self.lightness {
            Lightness::Exactly(value) => value.to_string(),
            Lightness::AtMost(value) => format!("min(l,{value})"),
            Lightness::AtLeast(value) => format!("max(l,{value})"),
        };
        format!("oklch(from {{}} {lightness} min(c,{}) h)", self.most_chroma)
    }

    /// The colour that a browser shows.
    fn of(self, colour: Colour) -> Colour {
        let Oklch { l, c, h } = Oklch::of(colour);
        let l = match self.lightness {
            Lightness::Exactly(value) => value,
            Lightness::AtMost(value) => l.min(value),
            Lightness::AtLeast(value) => l.max(value),
        };
        let c = c.min(self.most_chroma);
        Oklch { l, c, h }.colour()
    }
}

/// The accent of light pages and of dark ones.
///
/// The lightness and the greatest chroma are those at which every hue keeps the contrast to the colours of
/// `templates/style.css` and those of [`SCHEMES`]; a test tries all hues.
const fn accents(contrast: Contrast) -> [Shade; 2] {
    match contrast {
        Contrast::Double => [
            Shade {
                lightness: Lightness::AtMost(0.49),
                most_chroma: 0.2,
            },
            Shade {
                lightness: Lightness::AtLeast(0.7),
                most_chroma: 0.14,
            },
        ],
        Contrast::Triple => [
            Shade {
                lightness: Lightness::Exactly(0.38),
                most_chroma: 0.16,
            },
            Shade {
                lightness: Lightness::Exactly(0.84),
                most_chroma: 0.14,
            },
        ],
    }
}

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
    /// `pages.contrast`
    pub contrast: Contrast,
}

impl Palette {
    /// CSS that replaces colours of the style sheet, in browsers that know relative colours.
    pub(super) fn css(self) -> String {
        let pages = [self.background, self.background_dark];
        let rules_of = |name: &str, shade: &str, more: &str, colour: Option<Colour>| {
            let rules = format!("--{name}:{shade};{more}");
            colour.map_or_else(String::new, |colour| with_colour(&rules, colour))
        };
        let mut css = String::new();
        let of_accents = SCHEMES.into_iter().zip(self.accents());
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

    /// The accent of light pages and of dark ones, each with its shade.
    fn accents(self) -> [(Option<Colour>, Shade); 2] {
        let [light, dark] = accents(self.contrast);
        [
            (self.accent, light),
            (self.accent_dark.or(self.accent), dark),
        ]
    }

    /// The accents of the operator that pages show in another shade: the scheme, the colour and the shade.
    pub fn changed_accents(self) -> impl Iterator<Item = (&'static str, Colour, Colour)> {
        let accents = SCHEMES.map(|(scheme, ..)| scheme).into_iter();
        accents
            .zip(self.accents())
            .filter_map(|(scheme, (colour, shade))| {
                let colour = colour?;
                let shown = shade.of(colour);
                // Digits that are rounded are no other shade.
                let differs = shown.0.iter().zip(colour.0).any(|(a, b)| a.abs_diff(b) > 1);
                differs.then_some((scheme, colour, shown))
            })
    }

    /// The accent of light pages.
    pub(super) fn sign(self) -> String {
        let [(accent, shade), _] = self.accents();
        shade_or_usual(&shade.css(), accent, ACCENT)
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

/// A colour by lightness, chroma and hue, as CSS Color 4 §9.4 defines it.
#[derive(Debug, Clone, Copy)]
struct Oklch {
    l: f64,
    c: f64,
    h: f64,
}

impl Oklch {
    fn of(colour: Colour) -> Self {
        let [red, green, blue] = colour.0.map(linear);
        let long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue).cbrt();
        let medium = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue).cbrt();
        let short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue).cbrt();
        let a = 1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short;
        let b = 0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short;
        Self {
            l: 0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
            c: a.hypot(b),
            h: b.atan2(a),
        }
    }

    fn colour(self) -> Colour {
        let (a, b) = (self.c * self.h.cos(), self.c * self.h.sin());
        let long = (self.l + 0.3963377774 * a + 0.2158037573 * b).powi(3);
        let medium = (self.l - 0.1055613458 * a - 0.0638541728 * b).powi(3);
        let short = (self.l - 0.0894841775 * a - 1.2914855480 * b).powi(3);
        Colour(
            [
                4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
                -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
                -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
            ]
            .map(encoded),
        )
    }
}

/// The intensity of a component of sRGB.
fn linear(component: u8) -> f64 {
    let value = f64::from(component) / 255.0;
    match value <= 0.04045 {
        true => value / 12.92,
        false => ((value + 0.055) / 1.055).powf(2.4),
    }
}

/// The component of sRGB for an intensity, the nearest one if it has none.
fn encoded(intensity: f64) -> u8 {
    let value = match intensity <= 0.0031308 {
        true => 12.92 * intensity,
        false => 1.055 * intensity.powf(1.0 / 2.4) - 0.055,
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the value is from 0 to 255"
    )]
    let component = (value.clamp(0.0, 1.0) * 255.0).round() as u8;
    component
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
    fn contrast(one: Colour, other: Colour) -> f64 {
        let [one, other] = [one, other].map(|colour| {
            let [red, green, blue] = colour.0.map(linear);
            0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05
        });
        one.max(other) / one.min(other)
    }

    #[test]
    fn text_in_an_accent_of_any_hue_has_the_contrast_that_was_chosen() {
        let shade = |lightness, most_chroma| Shade {
            lightness: Lightness::Exactly(lightness),
            most_chroma,
        };
        // The tints of `SCHEMES`, which are nearer to the text than the other grounds.
        let grounds = [shade(0.97, 0.015), shade(0.28, 0.04)];
        let steps = || (0..=255).step_by(17);
        for (level, least) in [(Contrast::Double, 4.5), (Contrast::Triple, 7.0)] {
            for (shade, ground) in accents(level).into_iter().zip(grounds) {
                for (red, green, blue) in steps().flat_map(|red| {
                    steps().flat_map(move |green| steps().map(move |blue| (red, green, blue)))
                }) {
                    let colour = Colour([red, green, blue]);
                    let (text, ground) = (shade.of(colour), ground.of(colour));
                    let found = contrast(text, ground);
                    assert!(found >= least, "{colour} as {text} on {ground}: {found:.2}");
                }
            }
        }
    }

    #[test]
    fn an_accent_with_enough_contrast_stays_as_it_is_and_others_are_told() {
        let palette = |contrast, accent| Palette {
            accent: Some(colour(accent)),
            accent_dark: Some(colour("#9ab8ff")),
            contrast,
            ..Palette::default()
        };
        let changed = |palette: Palette| {
            let changed = palette.changed_accents();
            Vec::from_iter(
                changed.map(|(scheme, colour, shown)| format!("{scheme} {colour} {shown}")),
            )
        };
        let green = changed(palette(Contrast::Triple, "#0b7a53"));
        assert_eq!(green[0], "light #0b7a53 #00532f", "{green:?}");
        assert!(changed(palette(Contrast::Double, "#0b6a43")).is_empty());
        let yellow = changed(palette(Contrast::Double, "#ffcc00"));
        assert_eq!(yellow.len(), 1, "{yellow:?}");
        let css = palette(Contrast::Double, "#0b6a43").css();
        assert!(css.contains("oklch(from #0b6a43 min(l,0.49) "), "{css}");
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
