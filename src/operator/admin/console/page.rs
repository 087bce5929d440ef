//! The parts that pages of the console consist of, and the one template that shows them.

use std::sync::LazyLock;

use askama::Template;

use super::{
    PAGES,
    chart::Chart,
    parts::{Line, Table},
};
use crate::{
    operator::manage::{FieldKind, RecordField},
    provider::respond::{OwnResponse, frame::Frame, theme::Theme},
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
    Form(PageForm),
    /// Links that look like buttons.
    Actions(Line),
    /// Texts beside each other, each with its title; the marked parts differ.
    Marked(Vec<(String, Vec<(String, bool)>)>),
}

impl Section {
    /// A form that shows the same page by other parameters.
    pub(super) fn search(action: &str, button: &str, fields: Vec<InputField>) -> Self {
        Self::Form(PageForm {
            action: action.to_owned(),
            csrf: None,
            fields,
            button: button.to_owned(),
        })
    }
}

/// A form. With `csrf` it changes something and is sent by POST.
pub(super) struct PageForm {
    pub(super) action: String,
    pub(super) csrf: Option<String>,
    pub(super) fields: Vec<InputField>,
    pub(super) button: String,
}

/// A field of a form.
pub(super) struct InputField {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// The expected input; shown below the label.
    pub(super) help: &'static str,
    pub(super) kind: InputKind,
    pub(super) value: String,
    pub(super) rows: u8,
}

/// The kind of input of a field.
pub(super) enum InputKind {
    Hidden,
    Line,
    Lines,
    Check,
    Password,
    /// Values and their labels.
    Choice(Vec<(&'static str, &'static str)>),
}

impl InputField {
    pub(super) fn new(
        kind: InputKind,
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

    /// The input for a field of a record.
    pub(super) fn for_record(field: &'static RecordField, value: String) -> Self {
        let kind = match field.kind {
            FieldKind::Text => InputKind::Line,
            FieldKind::File | FieldKind::List(_) => InputKind::Lines,
            FieldKind::Flag => InputKind::Check,
            FieldKind::Choice(words) => {
                let words = words.iter().map(|word| (*word, *word));
                InputKind::Choice([("", "the default")].into_iter().chain(words).collect())
            }
        };
        Self {
            help: field.help,
            ..Self::new(kind, field.name, field.label, value)
        }
    }

    pub(super) fn line(name: &'static str, label: &'static str, value: impl Into<String>) -> Self {
        Self::new(InputKind::Line, name, label, value)
    }

    pub(super) fn hidden(name: &'static str, value: impl Into<String>) -> Self {
        Self::new(InputKind::Hidden, name, "", value)
    }
}

/// The person for whom a page is shown.
pub(super) struct Person {
    /// The kind of the admin token.
    pub(super) kind: &'static str,
    pub(super) logout_csrf: String,
}

impl Person {
    /// The pages of the menu that the token may use, and whether each is the one at `menu_page`.
    fn pages(&self, menu_page: &str) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
        let may_open = |(path, _): &(&str, &str)| self.kind == "write" || *path != "/signature";
        let pages = PAGES.into_iter().filter(may_open);
        pages.map(move |(path, name)| (path, name, path == menu_page))
    }
}

#[derive(Template)]
#[template(path = "console.html")]
struct PageTemplate<'a> {
    theme: &'static Theme,
    service: &'a str,
    /// The page of the menu that it belongs to.
    menu_page: &'a str,
    person: Option<&'a Person>,
    title: &'a str,
    sections: &'a [Section],
}

/// Shows a page.
pub(super) fn show(
    service: &str,
    menu_page: &str,
    person: Option<&Person>,
    status: u16,
    title: &str,
    sections: &[Section],
) -> OwnResponse {
    static THEME: LazyLock<Theme> = LazyLock::new(|| Theme::plain_with(STYLE));
    let template = PageTemplate {
        theme: &THEME,
        service,
        menu_page,
        person,
        title,
        sections,
    };
    OwnResponse::page(Frame::in_english(&THEME), status, &template, "")
}
