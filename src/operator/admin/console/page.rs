//! The frame of every page of the console, and the fields of its forms.

use std::sync::{Arc, LazyLock};

use askama::Template;

use super::{
    parts::{Moment, time},
    routes,
};
use crate::{
    base::clock::UnixTime,
    operator::{
        admin::tokens::TokenKind,
        manage::{FieldKind, RecordField},
    },
    provider::{
        respond::OwnResponse,
        theme::{Theme, frame::Frame},
    },
};

/// The style of the console: that of the pages, and its own rules.
static THEME: LazyLock<Theme> =
    LazyLock::new(|| Theme::plain_with(include_str!("../../../../templates/console/console.css")));

/// The parts that all responses to one request have in common.
pub(super) struct Shell<'a> {
    pub(super) service: String,
    /// The path of the request.
    pub(super) path: &'a str,
    /// The person for whom a page is shown; `None` before the login.
    pub(super) person: Option<Person>,
    /// The time of the page.
    pub(super) now: UnixTime,
}

impl<'a> Shell<'a> {
    pub(super) fn as_of(&self) -> String {
        time(self.now)
    }

    pub(super) fn frame(&'a self, title: impl Into<String>) -> ConsoleFrame<'a> {
        let title = title.into();
        ConsoleFrame { shell: self, title }
    }
}

/// The frame around the content of a page.
pub(super) struct ConsoleFrame<'a> {
    pub(super) shell: &'a Shell<'a>,
    pub(super) title: String,
}

impl ConsoleFrame<'_> {
    /// A time as the page shows it.
    pub(super) const fn moment(&self, time: &UnixTime) -> Moment {
        Moment {
            time: *time,
            now: self.shell.now,
        }
    }

    #[expect(clippy::unused_self, reason = "templates reach it by their frame")]
    pub(super) fn theme(&self) -> &'static Theme {
        &THEME
    }
}

/// The person for whom a page is shown.
pub(super) struct Person {
    /// The name of the admin token.
    pub(super) name: Option<Arc<str>>,
    /// The kind of the admin token.
    pub(super) kind: TokenKind,
    pub(super) logout_csrf: String,
}

impl Person {
    /// The pages of the menu that the token may use, and whether the one at `path` belongs to each: the page of one consumer
    /// belongs to that of all.
    pub(super) fn pages(
        &self,
        path: &str,
    ) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
        let section = path.split('/').nth(1).unwrap_or_default().to_owned();
        routes::menu(self.kind == TokenKind::Write).map(move |(path, name)| {
            let is_current = path[1..] == *section || path[1..].strip_suffix('s') == Some(&section);
            (path, name, is_current)
        })
    }
}

/// A page as a response.
pub(super) fn show(status: u16, page: &impl Template) -> OwnResponse {
    OwnResponse::page(Frame::in_english(&THEME), status, page, "")
}

/// A field of a form.
pub(super) struct InputField {
    pub(super) name: String,
    pub(super) label: String,
    /// The expected input; shown below the label.
    pub(super) help: String,
    pub(super) kind: InputKind,
    pub(super) value: String,
}

/// The kind of input of a field.
pub(super) enum InputKind {
    Line,
    /// It is never shown again.
    Password,
    /// So many lines are visible.
    Lines(u8),
    Check,
    /// Values and their labels.
    Choice(Vec<(String, String)>),
}

impl InputField {
    pub(super) fn new(
        kind: InputKind,
        name: impl Into<String>,
        label: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            label: label.into(),
            help: String::new(),
            kind,
            value: value.into(),
        }
    }

    /// The input for a field of a record.
    pub(super) fn for_record(field: &RecordField, value: String) -> Self {
        let kind = match field.kind {
            FieldKind::Text => InputKind::Line,
            FieldKind::File | FieldKind::List(_) => InputKind::Lines(4),
            FieldKind::Flag => InputKind::Check,
            FieldKind::Choice(words) => {
                let words = words.iter().map(|word| (*word, *word));
                choices([("", "the default")].into_iter().chain(words))
            }
        };
        let lines = match field.kind {
            FieldKind::List(_) => "; one a line",
            _ => "",
        };
        Self {
            help: field.help.to_owned() + lines,
            ..Self::new(kind, field.name, field.label, value)
        }
    }

    pub(super) fn line(name: &str, label: &str, value: &str) -> Self {
        Self::new(InputKind::Line, name, label, value)
    }

    pub(super) fn choice(name: &str, label: &str, values: &[(&str, &str)], value: &str) -> Self {
        Self::new(choices(values.iter().copied()), name, label, value)
    }
}

/// A choice of these values, each with its label.
pub(super) fn choices<'a>(values: impl Iterator<Item = (&'a str, &'a str)>) -> InputKind {
    let owned = values.map(|(value, label)| (value.to_owned(), label.to_owned()));
    InputKind::Choice(owned.collect())
}
