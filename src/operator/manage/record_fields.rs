//! The fields of consumers and users that operators write, one row each. The options of the command line, the columns of
//! CSV, the forms and facts of the console and the schemas of the admin API follow from the rows.

use std::str::FromStr;

use serde_json::{Map, Value};

use super::InvalidInput;
use crate::{
    base::{
        network::Network,
        rate::Rate,
        text::{longest, names::Permission},
    },
    oauth::{Deviation, Pinned},
    provider::issue::{callback, registration},
    wire::url::web_page::web_page,
};

/// A field of a record.
#[derive(Debug)]
pub struct RecordField {
    /// The name of the member and of the column.
    pub name: &'static str,
    /// The name as people read it.
    pub label: &'static str,
    /// The description, a sentence without its full stop.
    pub help: &'static str,
    /// The kind of its value.
    pub kind: FieldKind,
    /// Every record has it.
    pub is_needed: bool,
    /// The form has it at its top; the other fields are about signing, but for the permissions.
    pub is_asked_first: bool,
    /// The table of a list on the command line has a column of it also when it is empty; the other fields are shown record
    /// by record.
    pub is_column: bool,
    /// The schema of a text, or of an item of a list, in the OpenAPI document.
    pub schema: &'static str,
    /// The longest text, or item of a list. In the document it counts characters, of which some have several bytes.
    pub longest: usize,
    /// Checks a text, or an item of a list, and returns it as it is stored; the error is what is wrong with it.
    pub check: fn(&str) -> Result<String, String>,
}

/// The kind of the value of a field.
#[derive(Debug)]
pub enum FieldKind {
    /// One line, or nothing.
    Text,
    /// The text of a file, or nothing.
    File,
    /// Words, each once; with the name of one.
    List(&'static str),
    /// Yes or no.
    Flag,
    /// One of these words, or nothing.
    Choice(&'static [&'static str]),
}

/// A text that pages show.
const TEXT: RecordField = RecordField {
    name: "",
    label: "",
    help: "",
    kind: FieldKind::Text,
    is_needed: false,
    is_asked_first: false,
    is_column: false,
    schema: "ShownText",
    longest: longest::SHOWN_CHARACTERS,
    check: |text| reason(registration::shown_name(text)),
};

/// The fields of a consumer, in the order of its members. `key`, `enabled` and the secrets are changed in other ways.
pub const CONSUMER_FIELDS: &[RecordField] = &[
    RecordField {
        name: "name",
        label: "Name",
        help: "Its name, which the consent page shows to users",
        is_needed: true,
        is_asked_first: true,
        is_column: true,
        ..TEXT
    },
    RecordField {
        name: "callbacks",
        label: "Callbacks",
        help: "Where users may be sent after they have decided: absolute URIs, or oob for none",
        kind: FieldKind::List("callback"),
        schema: "Callback",
        longest: longest::CALLBACK,
        check: |text| reason(callback::check_registration(text).map(|_| text)),
        is_asked_first: true,
        is_column: true,
        ..TEXT
    },
    RecordField {
        name: "permissions",
        label: "Permissions",
        help: "The permissions that its tokens can have",
        kind: FieldKind::List("permission"),
        schema: "Permission",
        longest: longest::NAME,
        check: parsed::<Permission>,
        is_column: true,
        ..TEXT
    },
    RecordField {
        name: "dialect",
        label: "Dialect",
        help: "The base string with which it signs protected calls; without one it follows signature.default_dialect",
        kind: FieldKind::Choice(&["rfc5849", "legacy"]),
        schema: "Dialect",
        is_column: true,
        ..TEXT
    },
    RecordField {
        name: "description",
        label: "Description",
        help: "Its description on the consent page",
        is_asked_first: true,
        ..TEXT
    },
    RecordField {
        name: "website",
        label: "Website",
        help: "Its web page, to which the consent page links",
        schema: "WebPage",
        longest: longest::WEB_PAGE,
        check: |text| reason(web_page(text)),
        is_asked_first: true,
        ..TEXT
    },
    RecordField {
        name: "contact",
        label: "Contact",
        help: "The mail address or the web page of its developer, which operators see and users do not",
        schema: "Contact",
        longest: longest::CONTACT,
        check: |text| reason(registration::contact(text)),
        is_asked_first: true,
        ..TEXT
    },
    RecordField {
        name: "rsa_public_key",
        label: "RSA public key",
        help: "Its public key for the RSA methods, as PEM",
        kind: FieldKind::File,
        schema: "RsaPublicKey",
        longest: longest::PUBLIC_KEY,
        check: |text| reason(registration::rsa_public_key(text)),
        ..TEXT
    },
    RecordField {
        name: "rsa_only",
        label: "RSA only",
        help: "Its calls are accepted with the RSA methods only, never with its secret",
        kind: FieldKind::Flag,
        ..TEXT
    },
    RecordField {
        name: "accept",
        label: "Accept",
        help: "Deviations from RFC 5849 that are accepted from it: callback_absent, repeats_once, key_without_ampersand, \
               empty_secret or values_unencoded. The documentation says what each of them risks",
        kind: FieldKind::List("accept"),
        schema: "Deviation",
        check: parsed::<Deviation>,
        ..TEXT
    },
    RecordField {
        name: "pinned",
        label: "Pinned",
        help: "Signed parameters that each of its calls to the API must have, as NAME=VALUE with escapes as in a query; \
               of several values for one name, one must be there",
        kind: FieldKind::List("pinned"),
        schema: "Pinned",
        longest: longest::PINNED,
        check: parsed::<Pinned>,
        ..TEXT
    },
    RecordField {
        name: "body_hash",
        label: "Body hash",
        help: "Required: its calls to the API with a body that is not a form need an oauth_body_hash, whatever the \
               operation says",
        kind: FieldKind::Choice(&["optional", "required"]),
        schema: "BodyHash",
        ..TEXT
    },
    RecordField {
        name: "from",
        label: "Networks",
        help: "Addresses and networks such as 203.0.113.0/24 from which its calls are accepted; without one, from anywhere",
        kind: FieldKind::List("from"),
        schema: "Network",
        longest: longest::NETWORK,
        check: parsed::<Network>,
        ..TEXT
    },
    RecordField {
        name: "rate",
        label: "Rate",
        help: "Its own limit on requests, such as 100 per 1s, instead of limits.requests_per_consumer",
        schema: "Rate",
        longest: longest::RATE,
        check: parsed::<Rate>,
        ..TEXT
    },
    RecordField {
        name: "enforce",
        label: "Enforce",
        help: "Its calls are rejected where they are wrong, even if the configuration only observes",
        kind: FieldKind::Flag,
        ..TEXT
    },
];

/// The members of a consumer with the request of its owner and the decision on it.
pub const ASKED_MEMBERS: [&str; 4] = ["owner", "registration", "decision", "asked_callbacks"];

/// The fields of a user, in the order of its members; whoever sets a password says the last one with it. `id`, `enabled` and
/// the password are changed in other ways.
pub const USER_FIELDS: &[RecordField] = &[
    RecordField {
        name: "name",
        label: "Login name",
        help: "The name to log in with, unique without regard to ASCII case",
        is_needed: true,
        longest: longest::LOGIN_NAME,
        check: |text| reason(registration::login_name(text)),
        ..TEXT
    },
    RecordField {
        name: "display_name",
        label: "Shown as",
        help: "The name of the user on pages; without one the name to log in with",
        ..TEXT
    },
    RecordField {
        name: "must_change_password",
        label: "Has to choose another password",
        help: "The user has to choose another password after the next login",
        kind: FieldKind::Flag,
        ..TEXT
    },
];

fn reason<T: Into<String>, E: ToString>(checked: Result<T, E>) -> Result<String, String> {
    checked.map(Into::into).map_err(|error| error.to_string())
}

fn parsed<T: FromStr<Err: ToString>>(text: &str) -> Result<String, String> {
    reason(text.parse::<T>().map(|_| text))
}

impl RecordField {
    /// The name of its option on the command line; a list has the name of one item.
    pub fn option(&self) -> String {
        match self.kind {
            FieldKind::List(item) => item.to_owned(),
            _ => self.name.replace('_', "-"),
        }
    }

    /// The name of its member, with the form of its value if that is not any text.
    pub fn member(&self) -> String {
        match self.kind {
            FieldKind::Choice(words) => {
                let words = words.iter().map(|word| format!("{word:?}"));
                let words = words.collect::<Vec<_>>().join(" or ");
                format!("{} ({words})", self.name)
            }
            FieldKind::File => format!("{} (PEM)", self.name),
            _ => self.name.to_owned(),
        }
    }

    /// A value of this field as the lines of a text; empty if there is none.
    pub fn text(&self, members: &Map<String, Value>) -> String {
        match members.get(self.name) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(items)) => {
                let lines = items.iter().filter_map(Value::as_str);
                lines.collect::<Vec<_>>().join("\n")
            }
            Some(Value::Bool(true)) => "yes".to_owned(),
            _ => String::new(),
        }
    }

    /// The value that the lines of a text hold.
    pub fn value(&self, text: &str) -> Value {
        match self.kind {
            FieldKind::List(_) => text.split_ascii_whitespace().collect(),
            FieldKind::Flag => (!text.is_empty()).into(),
            _ if text.is_empty() && !self.is_needed => Value::Null,
            _ => text.into(),
        }
    }
}

/// Checks the members of a record beyond their types, and writes each as it is stored.
///
/// # Errors
/// [`InvalidInput`]
pub fn check_members(
    fields: &[RecordField],
    members: &mut Map<String, Value>,
) -> Result<(), InvalidInput> {
    for field in fields {
        let name = field.name;
        match (members.get_mut(name), &field.kind) {
            (Some(Value::String(text)), FieldKind::Text | FieldKind::File) => {
                let checked = (field.check)(text)
                    .map_err(|problem| InvalidInput::member(name, format!("{name}: {problem}")));
                *text = checked?;
            }
            (Some(Value::Array(items)), FieldKind::List(item)) => {
                check_items(name, items.len())?;
                let texts = items.iter().enumerate();
                for (index, text) in texts.filter_map(|(index, text)| Some((index, text.as_str()?)))
                {
                    (field.check)(text).map_err(|problem| {
                        let detail = format!("{item} {text:?}: {problem}");
                        InvalidInput::member(&format!("{name}/{index}"), detail)
                    })?;
                }
            }
            (Some(value), FieldKind::List(_)) if !value.is_null() => {
                let detail = format!("{name}: expected a list of texts, such as [\"a\", \"b\"]");
                return Err(InvalidInput::member(name, detail));
            }
            // Reading the members into their type rejects a value of another type.
            _ => {}
        }
    }
    Ok(())
}

/// Checks the length of a list of a record.
///
/// # Errors
/// [`InvalidInput`]: it has more than [`longest::ITEMS`] items.
pub fn check_items(name: &str, count: usize) -> Result<(), InvalidInput> {
    if count > longest::ITEMS {
        let detail = format!(
            "{name}: {count} are given, and at most {} fit",
            longest::ITEMS
        );
        return Err(InvalidInput::member(name, detail));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        base::clock::UnixTime,
        operator::manage::{new_user, view},
        records::values::record::{Consumer, User},
    };

    fn names(fields: &[RecordField]) -> Vec<&str> {
        fields.iter().map(|field| field.name).collect()
    }

    /// The members of a record but for these.
    fn members_without(record: &impl serde::Serialize, others: &[&str]) -> Vec<String> {
        let members = view::members(record).into_iter().map(|(name, _)| name);
        members.filter(|name| !others.contains(&&**name)).collect()
    }

    /// The longest text that the field takes; each character more makes it too long. Words that are chosen have no length.
    fn longest_text(field: &RecordField) -> Option<(String, &'static str)> {
        const KEY: &str = include_str!("../../provider/issue/registration/public_key.pem");
        let filled = |begin: &str, more: &str, end: &str| {
            let count = field.longest - begin.chars().count() - end.len();
            format!("{begin}{}{end}", more.repeat(count))
        };
        Some(match field.schema {
            "ShownText" if field.longest == longest::LOGIN_NAME && field.is_needed => {
                (filled("", "a", ""), "a")
            }
            "ShownText" => (filled("", "é", ""), "é"),
            "Permission" => (filled("", "p", ""), "p"),
            "Callback" | "WebPage" => (filled("https://a.test/", "a", ""), "a"),
            "Contact" => (filled("https://a.test/", "a", ""), "a"),
            "Pinned" => (filled("a=", "b", ""), "b"),
            "Rate" => (filled("", "0", "1 per 1s"), "0"),
            "RsaPublicKey" => {
                let (head, rest) = KEY.trim_end().split_once('\n').unwrap();
                let room = field.longest - head.len() - rest.len();
                (format!("{head}{}{rest}", "\n".repeat(room)), "\n")
            }
            // The longest network is shorter.
            "Deviation" | "Dialect" | "BodyHash" | "Network" => return None,
            other => panic!("the longest text of {other}"),
        })
    }

    #[test]
    fn every_text_and_every_list_has_a_limit() {
        let checked = |fields: &[RecordField], name: &str, value: Value| {
            check_members(fields, &mut Map::from_iter([(name.to_owned(), value)]))
        };
        for field in CONSUMER_FIELDS.iter().chain(USER_FIELDS) {
            let fields = std::slice::from_ref(field);
            let Some((text, more)) = longest_text(field) else {
                continue;
            };
            if matches!(field.kind, FieldKind::Flag) {
                continue;
            }
            let place = match field.kind {
                FieldKind::File => text.find('\n').unwrap(),
                FieldKind::Text if field.schema == "Rate" => 0,
                _ => text.len(),
            };
            let mut longer = text.clone();
            longer.insert_str(place, more);
            let is_list = matches!(field.kind, FieldKind::List(_));
            let value = |text: &str| match is_list {
                true => json!([text]),
                false => json!(text),
            };
            assert_eq!(
                checked(fields, field.name, value(&text)),
                Ok(()),
                "{field:?}"
            );
            let error = checked(fields, field.name, value(&longer)).unwrap_err();
            let says = ["longer than", "at most", "too long"];
            let detail = &error.detail;
            assert!(says.iter().any(|it| detail.contains(it)), "{detail}");
            if is_list {
                let short = match field.schema {
                    "Callback" => "oob",
                    "Pinned" => "a=b",
                    _ => "a",
                };
                let list = |count| json!(vec![short; count]);
                assert_eq!(checked(fields, field.name, list(longest::ITEMS)), Ok(()));
                let error = checked(fields, field.name, list(longest::ITEMS + 1)).unwrap_err();
                assert_eq!(error.pointer, format!("/{}", field.name));
                assert!(error.detail.contains("1001 are given"), "{error}");
            }
        }
    }

    #[test]
    fn rows_are_the_members_of_records_with_values_of_their_kind() {
        let consumer = Consumer::for_tests("c");
        let others = [
            "key",
            "enabled",
            "owner",
            "registration",
            "decision",
            "asked_callbacks",
            "created_at",
            "previous_secret_until",
        ];
        let members = members_without(&consumer, &others);
        assert_eq!(names(CONSUMER_FIELDS), members);
        let name = Map::from_iter([("name".to_owned(), json!("alice"))]);
        let user = new_user(name, UnixTime(1)).unwrap();
        let members = members_without(&user, &["id", "enabled", "created_at"]);
        assert_eq!(names(USER_FIELDS), members);
        for (fields, record) in [
            (CONSUMER_FIELDS, json!(consumer)),
            (USER_FIELDS, json!(user)),
        ] {
            let is_read = |field: &RecordField, value: Value| {
                let mut changed = record.clone();
                changed[field.name] = value;
                match record.get("key") {
                    Some(_) => serde_json::from_value::<Consumer>(changed).is_ok(),
                    None => serde_json::from_value::<User>(changed).is_ok(),
                }
            };
            for field in fields {
                let is_read = |value| is_read(field, value);
                let has_null = matches!(
                    field.kind,
                    FieldKind::Text | FieldKind::File | FieldKind::Choice(_)
                );
                assert_eq!(
                    is_read(Value::Null),
                    has_null && !field.is_needed,
                    "{field:?}"
                );
                let (values, wrong) = match field.kind {
                    FieldKind::Text if field.schema == "Rate" => {
                        (vec![json!("1 per 1s")], json!("a"))
                    }
                    FieldKind::Text | FieldKind::File => (vec![json!("a")], json!(["a"])),
                    FieldKind::List(_) => (vec![json!([])], json!("a")),
                    FieldKind::Flag => (vec![json!(true)], json!("true")),
                    FieldKind::Choice(words) => {
                        (words.iter().map(|word| json!(word)).collect(), json!("a"))
                    }
                };
                assert!(!is_read(wrong), "{field:?}");
                assert!(values.into_iter().all(is_read), "{field:?}");
            }
        }
    }
}
