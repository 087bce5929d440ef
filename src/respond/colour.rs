//! The colours of pages that an operator can set, and whether text in them can be read (WCAG 2.2).

use std::fmt::{self, Write as _};

/// A colour of sRGB: red, green, blue. Prints as `#1f4fd8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour(pub [u8; 3]);

/// The contrast that text needs (WCAG 2.2, 1.4.3, level AA).
pub const TEXT_CONTRAST: f64 = 4.5;

const WHITE: Colour = Colour([255; 3]);
const BLACK: Colour = Colour([0; 3]);

impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

impl Colour {
    /// Reads `#1f4fd8`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#')?;
        let is_six = digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u32::from_str_radix(digits, 16).ok().filter(|_| is_six)?;
        let [_, red, green, blue] = number.to_be_bytes();
        Some(Self([red, green, blue]))
    }

    /// The relative luminance of WCAG 2.2, 0 to 1.
    fn luminance(self) -> f64 {
        let [red, green, blue] = self.0.map(|channel| {
            let channel = f64::from(channel) / 255.0;
            if channel <= 0.04045 {
                channel / 12.92
            } else {
                ((channel + 0.055) / 1.055).powf(2.4)
            }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    /// The contrast ratio of WCAG 2.2, 1 to 21.
    #[must_use]
    pub fn contrast(self, other: Self) -> f64 {
        let (one, other) = (self.luminance(), other.luminance());
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// This colour with so many tenths of another one in it.
    fn mixed(self, other: Self, tenths: u16) -> Self {
        let mut channels = self.0;
        for (channel, other) in channels.iter_mut().zip(other.0) {
            let mixed = u16::from(*channel) * (10 - tenths) + u16::from(other) * tenths;
            *channel = u8::try_from(mixed / 10).unwrap_or(u8::MAX);
        }
        Self(channels)
    }
}

/// Colours of the style sheet, `templates/style.css`, that are not the operator's.
struct ColourScheme {
    card: Colour,
    soft: Colour,
    page: Colour,
}

const LIGHT: ColourScheme = ColourScheme {
    card: WHITE,
    soft: Colour([0x56, 0x5e, 0x6c]),
    page: Colour([0xf3, 0xf4, 0xf7]),
};
const DARK: ColourScheme = ColourScheme {
    card: Colour([0x1b, 0x20, 0x29]),
    soft: Colour([0xa5, 0xad, 0xba]),
    page: Colour([0x12, 0x15, 0x1b]),
};

impl ColourScheme {
    /// The surface behind a name: a little of the accent.
    fn tint(&self, accent: Colour) -> Colour {
        self.card.mixed(accent, 1)
    }

    /// A lighter or darker shade of a colour that can be read on this scheme's surfaces.
    fn readable(&self, accent: Colour, page: Colour, towards: Colour) -> Colour {
        let shades = (0..=10).map(|tenths| accent.mixed(towards, tenths));
        let mut shades = shades.filter(|shade| {
            let surfaces = [self.card, self.tint(*shade), page];
            surfaces
                .into_iter()
                .all(|surface| surface.contrast(*shade) >= TEXT_CONTRAST)
        });
        shades.next().unwrap_or(towards)
    }

    fn write(&self, css: &mut String, accent: Option<Colour>, page: Option<Colour>) {
        if let Some(accent) = accent {
            let (on, other) = match accent.contrast(WHITE) >= TEXT_CONTRAST {
                true => (WHITE, BLACK),
                false => (BLACK, WHITE),
            };
            let (strong, tint) = (accent.mixed(other, 2), self.tint(accent));
            // Writing to a String cannot fail.
            let _ = write!(
                css,
                "--accent:{accent};--accent-strong:{strong};--on-accent:{on};--tint:{tint};"
            );
        }
        if let Some(page) = page {
            let _ = write!(css, "--page:{page};");
        }
    }
}

/// The colours that an operator can set, for browsers that prefer light pages and for those that prefer dark ones.
#[derive(Debug, Clone, Copy, Default)]
pub struct Palette {
    /// `pages.accent`: buttons and links.
    pub accent: Option<Colour>,
    /// `pages.accent_dark`; without it a shade of `accent` that can be read.
    pub accent_dark: Option<Colour>,
    /// `pages.background`: what is around the content.
    pub background: Option<Colour>,
    /// `pages.background_dark`
    pub background_dark: Option<Colour>,
}

/// A colour that is too much like another one beside which it stands.
#[derive(Debug)]
pub struct TooFaint {
    /// The key of the configuration.
    pub key: &'static str,
    /// Its colour.
    pub colour: Colour,
    /// The other colour.
    pub beside: Colour,
    /// The contrast between the two.
    pub contrast: f64,
}

impl Palette {
    /// What replaces colours of the style sheet.
    pub(super) fn css(self) -> String {
        let derived = || {
            let page = self.background_dark.unwrap_or(DARK.page);
            self.accent.map(|accent| DARK.readable(accent, page, WHITE))
        };
        let (mut light, mut dark) = (String::new(), String::new());
        LIGHT.write(&mut light, self.accent, self.background);
        DARK.write(
            &mut dark,
            self.accent_dark.or_else(derived),
            self.background_dark,
        );
        let mut css = String::new();
        for (scheme, colours) in [("light", light), ("dark", dark)] {
            if !colours.is_empty() {
                let _ = writeln!(
                    css,
                    "@media (prefers-color-scheme: {scheme}) {{:root {{{colours}}}}}"
                );
            }
        }
        css
    }

    /// The colours in or on which text is hard to read, each with the worst of its neighbours.
    #[must_use]
    pub fn too_faint(self) -> Vec<TooFaint> {
        let schemes = [
            (
                LIGHT,
                "pages.accent",
                self.accent,
                "pages.background",
                self.background,
            ),
            (
                DARK,
                "pages.accent_dark",
                self.accent_dark,
                "pages.background_dark",
                self.background_dark,
            ),
        ];
        let mut found = Vec::new();
        for (scheme, accent_key, accent, page_key, page) in schemes {
            let beside_accent = accent.map(|accent| {
                let page = page.unwrap_or(scheme.page);
                let surfaces = vec![scheme.card, scheme.tint(accent), page];
                (accent_key, accent, surfaces)
            });
            let beside_page = page.map(|page| (page_key, page, vec![scheme.soft]));
            for (key, colour, others) in beside_accent.into_iter().chain(beside_page) {
                let neighbours = others.into_iter().map(|beside| TooFaint {
                    key,
                    colour,
                    beside,
                    contrast: colour.contrast(beside),
                });
                let worst = neighbours.min_by(|one, other| one.contrast.total_cmp(&other.contrast));
                found.extend(worst.filter(|worst| worst.contrast < TEXT_CONTRAST));
            }
        }
        found
    }
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
    fn contrast_is_that_of_wcag() {
        // Ratios that WebAIM's checker gives.
        for (one, other, ratio) in [
            ("#000000", "#ffffff", 21.0),
            ("#ffffff", "#ffffff", 1.0),
            ("#767676", "#ffffff", 4.54),
            ("#777777", "#ffffff", 4.48),
            ("#ff0000", "#ffffff", 4.0),
            ("#0000ff", "#ffffff", 8.59),
        ] {
            let found = colour(one).contrast(colour(other));
            assert!((found - ratio).abs() < 0.005, "{one} {other} {found}");
        }
    }

    #[test]
    fn the_colours_here_are_those_of_the_style_sheet() {
        let style = include_str!("../../templates/style.css");
        let (light, dark) = style
            .split_once("@media (prefers-color-scheme: dark)")
            .unwrap();
        for (scheme, css) in [(LIGHT, light), (DARK, dark)] {
            for (name, colour) in [
                ("card", scheme.card),
                ("soft", scheme.soft),
                ("page", scheme.page),
            ] {
                assert!(
                    css.contains(&format!("--{name}: {colour};")),
                    "{name} {colour}"
                );
            }
        }
    }

    #[test]
    fn names_the_colours_that_are_hard_to_read() {
        let palette = |accent, accent_dark, background, background_dark| Palette {
            accent: Colour::parse(accent),
            accent_dark: Colour::parse(accent_dark),
            background: Colour::parse(background),
            background_dark: Colour::parse(background_dark),
        };
        assert!(
            palette("#1f4fd8", "#8fb0ff", "#f3f4f7", "#12151b")
                .too_faint()
                .is_empty()
        );
        assert!(Palette::default().too_faint().is_empty());
        let found = palette("#ffcc00", "#001133", "#565e6c", "#a5adba").too_faint();
        let keys: Vec<_> = found.iter().map(|found| found.key).collect();
        assert_eq!(
            keys,
            [
                "pages.accent",
                "pages.background",
                "pages.accent_dark",
                "pages.background_dark"
            ]
        );
        assert!(found.iter().all(|found| found.contrast < 1.6), "{found:?}");
    }

    #[test]
    fn the_dark_shade_of_an_accent_can_be_read_and_so_can_its_buttons() {
        for accent in [
            "#000000", "#1f4fd8", "#ffcc00", "#ff0000", "#00ff00", "#7f007f", "#777777", "#ffffff",
        ] {
            let shade = DARK.readable(colour(accent), DARK.page, WHITE);
            assert!(DARK.card.contrast(shade) >= TEXT_CONTRAST, "{accent}");
            let css = Palette {
                accent: Some(colour(accent)),
                ..Palette::default()
            }
            .css();
            for block in css.lines() {
                let value = |name: &str| {
                    let value = block.split(name).nth(1).unwrap();
                    colour(&value[..7])
                };
                let on = value("--on-accent:");
                for background in ["--accent:", "--accent-strong:"] {
                    assert!(on.contrast(value(background)) >= TEXT_CONTRAST, "{block}");
                }
            }
            assert_eq!(css.lines().count(), 2);
        }
    }
}
