//! The parts that pages of the console consist of, and the one template that shows them.

use std::sync::LazyLock;

use askama::Template;
use percent_encoding::utf8_percent_encode;

use super::{PAGES, chart::Chart};
use crate::{
    base::clock::UnixTime,
    operator::manage::{self, Kind},
    provider::{
        issue::callback::ESCAPED,
        respond::{OwnResponse, frame::Frame, theme::Theme},
    },
};

/// The style sheet of the console, after that of the pages.
const STYLE: &str = include_str!("../../../../templates/console.css");

/// A part of a page.
pub(super) enum Section {
    Heading(String),
    Text(Line),
    /// A class of the style sheet (`good`, `bad` or `warn`), and a text that stands out.
    Note(&'static str, Line),
    List(Vec<Line>),
    Facts(Vec<(&'static str, Line)>),
    Table(Table),
    Chart(Box<Chart>),
    Form(Form),
    /// Links that look like buttons.
    Actions(Line),
    /// Texts beside each other, each with its title; the marked parts differ.
    Marked(Vec<(String, Vec<(String, bool)>)>),
}

impl Section {
    /// A form that shows the same page by other parameters.
    pub(super) fn search(action: &str, button: &str, fields: Vec<Field>) -> Self {
        Self::Form(Form {
            action: action.to_owned(),
            csrf: None,
            fields,
            button: button.to_owned(),
        })
    }
}

/// Texts and links in one line.
pub(super) type Line = Vec<Cell>;

/// A text, perhaps a link.
#[derive(Debug, Clone, Default)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) href: Option<String>,
    pub(super) class: &'static str,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

/// A line of one text.
pub(super) fn line(text: impl Into<String>) -> Line {
    vec![Cell::from(text)]
}

/// A link.
pub(super) fn link(text: impl Into<String>, href: impl Into<String>) -> Cell {
    Cell {
        text: text.into(),
        href: Some(href.into()),
        class: "",
    }
}

/// A text in a frame; the class `tag good` or `tag bad` colours it.
pub(super) fn tag(text: impl Into<String>, class: &'static str) -> Cell {
    Cell {
        text: text.into(),
        href: None,
        class,
    }
}

/// A path of the console with these parameters; empty ones are left out.
pub(super) fn path(path: &str, parameters: &[(&str, &str)]) -> String {
    let given = parameters.iter().filter(|(_, value)| !value.is_empty());
    let pairs =
        given.map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, ESCAPED)));
    let pairs = Vec::from_iter(pairs);
    match pairs.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", pairs.join("&")),
    }
}

/// A number with its noun.
pub(super) fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// A time, `2026-01-31 12:00:00 UTC`.
pub(super) fn time(time: UnixTime) -> String {
    time.to_string().replace('T', " ").replace('Z', " UTC")
}

/// A table. Without rows, `empty` is shown.
#[derive(Default)]
pub(super) struct Table {
    pub(super) caption: String,
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<Vec<Line>>,
    pub(super) empty: &'static str,
    /// The link to the next page.
    pub(super) next: Option<String>,
}

/// A form. With `csrf` it changes something and is sent by POST.
pub(super) struct Form {
    pub(super) action: String,
    pub(super) csrf: Option<String>,
    pub(super) fields: Vec<Field>,
    pub(super) button: String,
}

/// A field of a form.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// The expected input; shown below the label.
    pub(super) help: &'static str,
    pub(super) kind: FieldKind,
    pub(super) value: String,
    pub(super) rows: u8,
}

/// The kind of input of a field.
pub(super) enum FieldKind {
    Hidden,
    Line,
    Lines,
    Check,
    Password,
    /// Values and their labels.
    Choice(Vec<(&'static str, &'static str)>),
}

impl Field {
    pub(super) fn new(
        kind: FieldKind,
        name: &'static str,
        label: &'static str,
        value: impl Into<String>,
    ) -> Self {
        Self {
            name,
            label,
            help: "",
            kind,
            value: value.into(),
            rows: 4,
        }
    }

    /// A field of a consumer.
    pub(super) fn of(field: &'static manage::Field, value: String) -> Self {
        let kind = match &field.kind {
            Kind::Text => FieldKind::Line,
            Kind::File | Kind::List => FieldKind::Lines,
            Kind::Flag => FieldKind::Check,
            Kind::Choice(words) => {
                let words = words.iter().map(|word| (&**word, &**word));
                FieldKind::Choice([("", "the default")].into_iter().chain(words).collect())
            }
        };
        Self {
            help: &field.help,
            ..Self::new(kind, &field.name, &field.label, value)
        }
    }

    pub(super) fn line(name: &'static str, label: &'static str, value: impl Into<String>) -> Self {
        Self::new(FieldKind::Line, name, label, value)
    }

    pub(super) fn hidden(name: &'static str, value: impl Into<String>) -> Self {
        Self::new(FieldKind::Hidden, name, "", value)
    }
}

/// The person for whom a page is shown.
pub(super) struct Person {
    /// The kind of the admin token.
    pub(super) kind: &'static str,
    pub(super) logout_csrf: String,
}

impl Person {
    /// The pages of the menu that the token may use, and whether each is the one at `place`.
    fn pages(&self, place: &str) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
        let may_open = |(path, _): &(&str, &str)| self.kind == "write" || *path != "/signature";
        let pages = PAGES.into_iter().filter(may_open);
        pages.map(move |(path, name)| (path, name, path == place))
    }
}

#[derive(Template)]
#[template(path = "console.html")]
struct PageTemplate<'a> {
    theme: &'static Theme,
    service: &'a str,
    /// The page of the menu that it belongs to.
    place: &'a str,
    person: Option<&'a Person>,
    title: &'a str,
    sections: &'a [Section],
}

/// Shows a page.
pub(super) fn show(
    service: &str,
    place: &str,
    person: Option<&Person>,
    status: u16,
    title: &str,
    sections: &[Section],
) -> OwnResponse {
    static THEME: LazyLock<Theme> = LazyLock::new(|| Theme::plain_with(STYLE));
    let template = PageTemplate {
        theme: &THEME,
        service,
        place,
        person,
        title,
        sections,
    };
    OwnResponse::page(Frame::in_english(&THEME), status, &template, "")
}
