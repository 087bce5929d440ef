//! Values as pages of the console show them.

use serde::Deserialize as _;
use std::{collections::HashMap, fmt};

use askama::filters::HtmlSafe;
use serde_json::{Map, Value};

use super::{ConsoleRequest, Result};
use crate::{
    base::{clock::UnixTime, text::percent_encoded},
    operator::manage::{FieldKind, RecordField},
    records::values::{record::Consumer, use_cases::ListedConsumer},
};

/// A time as a page shows it at `now`: how long ago, and as a date if that is more than a day. Its title is the whole time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) time: UnixTime,
    pub(super) now: UnixTime,
}

impl Moment {
    /// The whole time, for those who have no pointer that shows its title.
    pub(super) fn whole(&self) -> String {
        time(self.time)
    }

    /// The part of the whole time that the moment does not show itself.
    pub(super) fn rest(&self) -> String {
        let whole = self.whole();
        match whole.split_once(' ') {
            Some((_, of_day)) if self.is_date() => of_day.to_owned(),
            _ => whole,
        }
    }

    /// Whether it is shown as a date: it is more than a day away.
    pub(super) fn is_date(&self) -> bool {
        self.now.0.abs_diff(self.time.0) >= 86_400
    }
}

/// It consists of digits and fixed words.
impl HtmlSafe for Moment {}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, text) = (self.time.to_string(), time(self.time));
        write!(f, "<time datetime=\"{whole}\" title=\"{text}\">")?;
        let (past, future) = (
            self.now.0.saturating_sub(self.time.0),
            self.time.0.saturating_sub(self.now.0),
        );
        let (before, seconds, after) = match future {
            0 => ("", past, " ago"),
            _ => ("in ", future, ""),
        };
        match seconds {
            _ if self.is_date() => f.write_str(text.split(' ').next().unwrap_or_default()),
            0..60 if past == seconds => f.write_str("just now"),
            0..60 => write!(f, "in {seconds} s"),
            60..3_600 => write!(f, "{before}{} min{after}", seconds / 60),
            _ => write!(f, "{before}{} h{after}", seconds / 3_600),
        }?;
        f.write_str("</time>")
    }
}

/// A number with a comma after each thousand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number(pub(super) u64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// A text in a frame; the class `good`, `warn` or `bad` colours it.
#[derive(Debug, Clone)]
pub(super) struct Tag {
    pub(super) text: String,
    pub(super) class: &'static str,
}

impl Tag {
    pub(super) fn new(text: impl Into<String>, class: &'static str) -> Self {
        let text = text.into();
        Self { text, class }
    }

    /// Whether something is enabled.
    pub(super) fn enabled(is_enabled: bool) -> Self {
        match is_enabled {
            true => Self::new("enabled", "good"),
            false => Self::new("disabled", "bad"),
        }
    }
}

/// A link to a consumer or a user: by name, with the key or the id.
#[derive(Debug, Clone)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) id: String,
    /// Its page; empty: it has none.
    pub(super) href: String,
    /// It is a consumer whose calls are rejected because it is disabled.
    pub(super) is_disabled: bool,
    /// The contact of its developer.
    pub(super) contact: Option<String>,
}

impl Named {
    pub(super) fn consumer(key: &str, name: &str) -> Self {
        Self {
            href: path("/consumer", &[("key", key)]),
            ..Self::unregistered(name, key)
        }
    }

    /// As [`Self::consumer`], with the contact of its developer.
    pub(super) fn with_contact(consumer: &Consumer) -> Self {
        Self {
            contact: consumer.contact.clone(),
            ..Self::consumer(consumer.key.as_str(), &consumer.name)
        }
    }

    /// One that has no page: it was removed, or a caller has made it up.
    pub(super) fn unregistered(name: &str, key: &str) -> Self {
        Self {
            name: name.to_owned(),
            id: key.to_owned(),
            href: String::new(),
            is_disabled: false,
            contact: None,
        }
    }

    pub(super) fn user(id: &str, name: &str) -> Self {
        Self {
            href: path("/user", &[("id", id)]),
            ..Self::unregistered(name, id)
        }
    }
}

/// A previous secret in its grace.
pub(super) struct Grace {
    pub(super) consumer: Named,
    pub(super) until: Moment,
    /// The number of calls with it, and the last one.
    pub(super) used: Option<(String, Moment)>,
}

/// The names of some consumers and users, and the states of the consumers. One that is not registered has its key or id as
/// its name.
#[derive(Debug, Default)]
pub(super) struct Names {
    consumers: HashMap<String, ListedConsumer>,
    users: HashMap<String, String>,
}

impl Names {
    pub(super) fn consumer(&self, key: &str) -> Named {
        match self.consumers.get(key) {
            Some(known) => Named {
                is_disabled: !known.enabled,
                contact: known.contact.clone(),
                ..Named::consumer(key, &known.name)
            },
            None => Named::unregistered(key, key),
        }
    }

    /// Whether a consumer is enabled; `None`: it is not registered.
    pub(super) fn is_enabled(&self, key: &str) -> Option<bool> {
        self.consumers.get(key).map(|known| known.enabled)
    }

    pub(super) fn user(&self, id: &str) -> Named {
        match self.users.get(id) {
            Some(name) => Named::user(id, name),
            None => Named::unregistered(id, id),
        }
    }
}

impl ConsoleRequest<'_> {
    pub(super) async fn names<'k>(
        &self,
        consumers: impl Iterator<Item = &'k str>,
        users: impl Iterator<Item = &'k str>,
    ) -> Result<Names> {
        let distinct = |keys: &mut dyn Iterator<Item = &'k str>| {
            let mut keys = Vec::from_iter(keys);
            keys.sort_unstable();
            keys.dedup();
            keys
        };
        let (mut consumers, mut users) = (consumers, users);
        let store = &self.backend.manage.store;
        Ok(Names {
            consumers: store.listed_consumers(&distinct(&mut consumers)).await?,
            users: store.user_names(&distinct(&mut users)).await?,
        })
    }

    /// The links below the records of a page; `link` has the parameters of a page that begins after a cursor.
    pub(super) fn other_pages<T>(
        &self,
        found: &[T],
        cursor: impl Fn(&T) -> String,
        link: impl Fn(&str) -> String,
    ) -> Option<OtherPages> {
        let is_full = found.len() >= super::LISTED as usize;
        let last = found.last().filter(|_| is_full);
        let first = (!self.field("cursor").is_empty()).then(|| link(""));
        let next = last.map(|last| link(&cursor(last)));
        (first.is_some() || next.is_some()).then_some(OtherPages { first, next })
    }

    /// The previous secret of a consumer, while it also verifies.
    pub(super) fn grace(&self, consumer: &Consumer) -> Option<Grace> {
        let (_, until) = consumer.graced_secret(self.now)?;
        let secrets = &self.admin.shared.previous_secrets;
        let used = secrets.uses_by(consumer.key.as_str());
        Some(Grace {
            consumer: Named::with_contact(consumer),
            until: self.moment(*until),
            used: used.map(|(count, last)| (counted(count, "call"), self.moment(last))),
        })
    }

    pub(super) const fn moment(&self, time: UnixTime) -> Moment {
        Moment {
            time,
            now: self.now,
        }
    }
}

/// A path of the console with these parameters; empty ones are left out.
pub(super) fn path(path: &str, parameters: &[(&str, &str)]) -> String {
    let given = parameters.iter().filter(|(_, value)| !value.is_empty());
    let pairs = given.map(|(name, value)| format!("{name}={}", percent_encoded(value)));
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
        _ if noun.ends_with('s') => format!("{} {noun}es", Number(count)),
        _ => format!("{} {noun}s", Number(count)),
    }
}

/// A time in a sentence, `2026-01-31 12:00:00 UTC`.
pub(super) fn time(time: UnixTime) -> String {
    time.to_string().replace('T', " ").replace('Z', " UTC")
}

/// Names with commas between them.
pub(super) fn listed(names: &[impl ToString]) -> String {
    match names {
        [] => "none".to_owned(),
        names => Vec::from_iter(names.iter().map(ToString::to_string)).join(", "),
    }
}

/// The value of a field of a record, as a page shows it.
pub(super) fn field_text(field: &RecordField, members: &Map<String, Value>) -> String {
    let text = field.text(members);
    match field.kind {
        FieldKind::Flag if text.is_empty() => "no".to_owned(),
        FieldKind::Choice(_) if text.is_empty() => "the default".to_owned(),
        _ if text.is_empty() => "none".to_owned(),
        FieldKind::List(_) => text.replace('\n', ", "),
        _ => text,
    }
}

/// The links below a page of a list that has several.
pub(super) struct OtherPages {
    /// `None`: this is the first.
    pub(super) first: Option<String>,
    /// `None`: this is the last.
    pub(super) next: Option<String>,
}

/// The time of the last verified call in the view of a consumer.
pub(super) fn last_use(view: &Map<String, Value>) -> Option<UnixTime> {
    UnixTime::deserialize(view.get("last_used_at")?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_by_its_distance_and_after_a_day_by_its_date() {
        let now = UnixTime(1_790_164_800);
        for (ago, text) in [
            (0, "just now"),
            (59, "just now"),
            (60, "1 min ago"),
            (3_599, "59 min ago"),
            (7_200, "2 h ago"),
            (86_400, "2026-09-22"),
            (-30, "in 30 s"),
            (-90, "in 1 min"),
            (-7_200, "in 2 h"),
            (-86_400, "2026-09-24"),
        ] {
            let time = UnixTime(now.0.saturating_add_signed(-ago));
            let shown = Moment { time, now }.to_string();
            assert!(shown.ends_with(&format!(" UTC\">{text}</time>")), "{shown}");
        }
    }

    #[test]
    fn numbers_have_a_comma_after_each_thousand() {
        let shown = [0, 999, 1_000, 50_000_000].map(|number| Number(number).to_string());
        assert_eq!(shown, ["0", "999", "1,000", "50,000,000"]);
    }
}
