//! The languages of the pages: Fluent messages, built in or written by the operator, and the choice among them.
//!
//! English has every message; the tests hold the other languages to the same ones. A message that an operator's
//! language lacks is shown in English.

use std::{borrow::Cow, collections::BTreeSet, fs, io, path::Path, sync::OnceLock};

use fluent_bundle::{
    FluentArgs, FluentError, FluentResource,
    concurrent::FluentBundle,
    resolver::{ResolverError, errors::ReferenceKind},
};
use fluent_langneg::{NegotiationStrategy, negotiate::filter_matches};
use fluent_syntax::ast::{Entry, Pattern};
use thiserror::Error;
use unic_langid::{CharacterDirection, LanguageIdentifier};

use crate::base::text::names::{ConsumerKey, Permission};

/// The messages that are built in, by language; the first language is the one that has them all.
const BUILT_IN: [(&str, &str); 11] = [
    ("en", include_str!("../../locales/en.ftl")),
    ("ar", include_str!("../../locales/ar.ftl")),
    ("de", include_str!("../../locales/de.ftl")),
    ("es", include_str!("../../locales/es.ftl")),
    ("fr", include_str!("../../locales/fr.ftl")),
    ("ja", include_str!("../../locales/ja.ftl")),
    ("ko", include_str!("../../locales/ko.ftl")),
    ("pt-BR", include_str!("../../locales/pt-BR.ftl")),
    ("pt-PT", include_str!("../../locales/pt-PT.ftl")),
    ("zh-Hans", include_str!("../../locales/zh-Hans.ftl")),
    ("zh-Hant", include_str!("../../locales/zh-Hant.ftl")),
];

/// The most languages read from one request; browsers do not send more.
const MAX_WANTED: usize = 16;

// First strong isolate and pop directional isolate: Unicode's marks around a value, so that one that is written from
// right to left does not change the order of the text around it. Fluent's own marks would also go around numbers and
// whole sentences.
const ISOLATE: char = '\u{2068}';
const ISOLATE_END: char = '\u{2069}';

/// A file of the pages that cannot be used. Prints as one line: key, file, line, cause and fix.
#[derive(Debug, Error)]
#[error("{key}: {file}: {problem}")]
pub struct PageFileError {
    /// The key of the configuration.
    pub key: &'static str,
    /// The file, and the line if it is known.
    pub file: String,
    /// The cause and the fix.
    pub problem: String,
}

impl PageFileError {
    fn unreadable(path: &Path, error: &io::Error) -> Self {
        Self {
            key: "pages.messages",
            file: path.display().to_string(),
            problem: format!(
                "cannot be read: {error}; name a directory of .ftl files that countersign can read"
            ),
        }
    }
}

/// One language. Its messages are parsed when a page needs them: together they take two megabytes.
struct Language {
    id: LanguageIdentifier,
    tag: String,
    /// The messages that are built in, to be parsed; none for a language that an operator has added.
    source: &'static str,
    messages: OnceLock<FluentBundle<FluentResource>>,
}

impl AsRef<LanguageIdentifier> for Language {
    fn as_ref(&self) -> &LanguageIdentifier {
        &self.id
    }
}

impl Language {
    fn new(id: LanguageIdentifier, source: &'static str) -> Self {
        Self {
            tag: id.to_string(),
            id,
            source,
            messages: OnceLock::new(),
        }
    }

    fn messages(&self) -> &FluentBundle<FluentResource> {
        self.messages.get_or_init(|| {
            let mut messages = FluentBundle::new_concurrent(vec![self.id.clone()]);
            messages.set_use_isolating(false);
            // The tests parse each of them.
            let resource = FluentResource::try_new(self.source.to_owned());
            messages.add_resource_overriding(resource.unwrap_or_else(|(whole, _)| whole));
            messages
        })
    }

    /// Adds messages, which replace those with the same names.
    fn add(&mut self, resource: FluentResource) {
        self.messages();
        if let Some(messages) = self.messages.get_mut() {
            messages.add_resource_overriding(resource);
        }
    }
}

/// The languages that pages can be shown in.
pub struct Languages {
    /// English is the first.
    all: Vec<Language>,
}

impl Languages {
    /// The languages that are built in.
    pub fn built_in() -> Self {
        let languages = BUILT_IN
            .into_iter()
            .map(|(tag, source)| Language::new(tag.parse().unwrap_or_default(), source));
        Self {
            all: languages.collect(),
        }
    }

    /// Replaces messages by those in the directory's files `LANGUAGE.ftl`, and adds languages, and texts of these
    /// permissions and of consumers.
    ///
    /// # Errors
    /// A file that cannot be read or parsed, is named after no language, or has a message or a variable that no page has.
    pub fn read(
        &mut self,
        directory: &Path,
        permissions: &[Permission],
    ) -> Result<(), PageFileError> {
        let unreadable = |error| PageFileError::unreadable(directory, &error);
        let mut paths = Vec::new();
        for entry in fs::read_dir(directory).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_some_and(|extension| extension == "ftl") {
                paths.push(path);
            }
        }
        paths.sort();
        let texts = permissions.iter().map(permission_id).collect();
        paths
            .iter()
            .try_for_each(|path| self.read_file(path, &texts))
    }

    /// Reads a file, which may also have the messages `texts` of permissions.
    fn read_file(&mut self, path: &Path, texts: &BTreeSet<String>) -> Result<(), PageFileError> {
        let source =
            fs::read_to_string(path).map_err(|error| PageFileError::unreadable(path, &error))?;
        let wrong = |position: Option<usize>, problem: String| {
            let lines = position.and_then(|end| source.get(..end));
            let line = lines.map(|lines| format!(" line {}", lines.matches('\n').count() + 1));
            PageFileError {
                key: "pages.messages",
                file: format!("{}{}", path.display(), line.unwrap_or_default()),
                problem,
            }
        };
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let id = stem.and_then(|stem| stem.parse::<LanguageIdentifier>().ok());
        let id = id.ok_or_else(|| {
            let fix = "the name is not a language; name the file like nl.ftl or pt-BR.ftl";
            wrong(None, fix.to_owned())
        })?;
        let resource = FluentResource::try_new(source.clone()).map_err(|(_, errors)| {
            let error = errors.first();
            let what = error.map(ToString::to_string).unwrap_or_default();
            let start = error.map(|error| error.pos.start);
            wrong(start, format!("not a Fluent message: {what}; correct it"))
        })?;
        for entry in resource.entries() {
            let Entry::Message(message) = entry else {
                continue;
            };
            let name = message.id.name;
            let position = match source.starts_with(name) {
                true => Some(0),
                false => source.find(&format!("\n{name}")).map(|end| end + 1),
            };
            let known = self.english().language.messages().get_message(name);
            let known = known.and_then(|known| known.value()).map(variables);
            let is_text = texts.contains(name) || name.starts_with(CONSUMER);
            let known = known.or_else(|| is_text.then(BTreeSet::new));
            let (Some(known), Some(value)) = (known, &message.value) else {
                let fix = format!(
                    "no page shows `{name}`; name a message of locales/en.ftl, permission-NAME of a [[permission]] or \
                     consumer-KEY, and its text"
                );
                return Err(wrong(position, fix));
            };
            if let Some(unknown) = variables(value).difference(&known).next() {
                let fix = format!("`{name}` has no variable ${unknown}; take it out");
                return Err(wrong(position, fix));
            }
        }
        let known = self.all.iter_mut().find(|language| language.id == id);
        let language = match known {
            Some(language) => language,
            None => self.all.push_mut(Language::new(id, "")),
        };
        language.add(resource);
        Ok(())
    }

    /// The first of these languages that is available: `ui_locales` of OpenID Connect, tags separated by spaces.
    pub fn by_ui_locales(&self, tags: &str) -> Option<Texts<'_>> {
        let tags = tags.split(' ').filter_map(|tag| tag.parse().ok());
        self.first(&tags.take(MAX_WANTED).collect::<Vec<_>>())
    }

    /// The language that an Accept-Language prefers (RFC 9110 §12.5.4), else English.
    pub fn accepted(&self, field: Option<&[u8]>) -> Texts<'_> {
        let field = field.and_then(|field| std::str::from_utf8(field).ok());
        let mut wanted: Vec<(f32, LanguageIdentifier)> = field
            .unwrap_or_default()
            .split(',')
            .filter_map(|element| {
                let (tag, parameters) = element.split_once(';').unwrap_or((element, ""));
                let weight = match parameters.trim().strip_prefix("q=") {
                    Some(weight) => weight.parse().ok()?,
                    None => 1.0,
                };
                Some((weight, tag.trim().parse().ok()?)).filter(|_| weight > 0.0)
            })
            .take(MAX_WANTED)
            .collect();
        wanted.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let wanted: Vec<_> = wanted.into_iter().map(|(_, id)| id).collect();
        self.first(&wanted).unwrap_or_else(|| self.english())
    }

    /// The messages of every language.
    pub fn all(&self) -> impl Iterator<Item = Texts<'_>> {
        self.all.iter().map(|language| self.in_language(language))
    }

    /// English.
    pub fn english(&self) -> Texts<'_> {
        self.in_language(&self.all[0])
    }

    fn first(&self, wanted: &[LanguageIdentifier]) -> Option<Texts<'_>> {
        let wanted = wanted.iter().map(|id| {
            let mut id = id.clone();
            // The script of zh-TW is not written: without it any Chinese language would match.
            if !self.all.iter().any(|language| language.id == id) {
                id.maximize();
            }
            id
        });
        let wanted = Vec::from_iter(wanted);
        let found = filter_matches(&wanted, &self.all, NegotiationStrategy::Lookup);
        Some(self.in_language(found.first()?))
    }

    fn in_language<'a>(&'a self, language: &'a Language) -> Texts<'a> {
        Texts {
            language,
            english: &self.all[0],
        }
    }
}

/// The messages in the language of a response.
#[derive(Clone, Copy)]
pub struct Texts<'a> {
    language: &'a Language,
    english: &'a Language,
}

/// A part of a message: its own text, or a value in it.
#[derive(Debug, PartialEq, Eq)]
pub struct MessagePart {
    /// The text; not escaped.
    pub text: String,
    /// Whether it is a value.
    pub is_value: bool,
}

impl<'a> Texts<'a> {
    /// The value of `lang` in HTML.
    pub fn tag(self) -> &'a str {
        &self.language.tag
    }

    /// The value of `dir` in HTML.
    pub fn direction(self) -> &'static str {
        match self.language.id.character_direction() {
            CharacterDirection::RTL => "rtl",
            _ => "ltr",
        }
    }

    /// The space between two sentences; Chinese and Japanese have none.
    pub fn space(self) -> &'static str {
        match self.language.id.language.as_str() {
            "ja" | "zh" => "",
            _ => " ",
        }
    }

    /// A message without variables.
    pub fn text(self, id: &str) -> Cow<'a, str> {
        self.format(id, None)
    }

    /// A message with a number, which decides about its plural.
    pub fn counted(self, id: &str, count: u64) -> String {
        self.numbered(id, &[("count", count)])
    }

    /// A message with numbers.
    pub fn numbered(self, id: &str, numbers: &[(&str, u64)]) -> String {
        let args = numbers.iter().copied().collect();
        self.format(id, Some(&args)).into_owned()
    }

    /// A message with values, which are set apart from the text around them.
    pub fn filled(self, id: &str, values: &[(&str, impl AsRef<str>)]) -> String {
        let isolated = |value: &str| {
            let value = value.replace([ISOLATE, ISOLATE_END], "");
            format!("{ISOLATE}{value}{ISOLATE_END}")
        };
        let values = values.iter();
        let args = values.map(|(name, value)| (*name, isolated(value.as_ref())));
        let args = args.collect();
        self.format(id, Some(&args)).into_owned()
    }

    /// A message with values, for the title of a page, which has plain text: no marks set the values apart.
    pub fn title(self, id: &str, values: &[(&str, impl AsRef<str>)]) -> String {
        self.filled(id, values).replace([ISOLATE, ISOLATE_END], "")
    }

    /// A message without variables, or an attribute of it, in this language alone.
    pub fn in_this_language(self, id: &str, attribute: Option<&str>) -> Option<Cow<'a, str>> {
        let messages = self.language.messages();
        let message = messages.get_message(id)?;
        let pattern = match attribute {
            Some(name) => message.get_attribute(name)?.value(),
            None => message.value()?,
        };
        let mut errors = Vec::new();
        let text = messages.format_pattern(pattern, None, &mut errors);
        errors.is_empty().then_some(text)
    }

    /// A message with values, in parts, for a template that puts an element around each value.
    pub fn parts(self, id: &str, values: &[(&str, impl AsRef<str>)]) -> Vec<MessagePart> {
        let text = self.filled(id, values);
        let parts = text.split(ISOLATE).flat_map(|piece| {
            let (value, words) = piece.split_once(ISOLATE_END).unwrap_or(("", piece));
            [(value, true), (words, false)]
        });
        let parts = parts.filter(|(text, _)| !text.is_empty());
        let parts = parts.map(|(text, is_value)| MessagePart {
            text: text.to_owned(),
            is_value,
        });
        parts.collect()
    }

    /// A message in this language, or in English if it is missing or cannot be formed.
    fn format(self, id: &str, args: Option<&FluentArgs<'_>>) -> Cow<'a, str> {
        for language in [self.language, self.english] {
            let messages = language.messages();
            let message = messages.get_message(id);
            if let Some(pattern) = message.and_then(|message| message.value()) {
                let mut errors = Vec::new();
                let text = messages.format_pattern(pattern, args, &mut errors);
                if errors.is_empty() {
                    return text;
                }
            }
        }
        tracing::error!(id, "a message of the pages cannot be formed");
        Cow::Owned(id.to_owned())
    }
}

/// The prefix of the messages that describe consumers.
const CONSUMER: &str = "consumer-";

/// The message that is the title of a permission, and whose attribute `description` describes it.
pub fn permission_id(permission: &Permission) -> String {
    format!("permission-{}", identifier(permission.as_str()))
}

/// The message that describes a consumer.
pub fn consumer_id(key: &ConsumerKey) -> String {
    format!("{CONSUMER}{}", identifier(key.as_str()))
}

/// A name as the ids of messages write it.
fn identifier(name: &str) -> String {
    name.replace(
        |letter: char| !letter.is_ascii_alphanumeric() && letter != '_',
        "-",
    )
}

/// The variables of a message: those that Fluent reports as missing without values.
fn variables(pattern: &Pattern<&str>) -> BTreeSet<String> {
    let mut errors = Vec::new();
    let none = FluentBundle::<FluentResource>::new_concurrent(Vec::new());
    none.format_pattern(pattern, None, &mut errors);
    let variable = |error| match error {
        FluentError::ResolverError(ResolverError::Reference(ReferenceKind::Variable { id })) => {
            Some(id)
        }
        _ => None,
    };
    errors.into_iter().filter_map(variable).collect()
}

#[cfg(test)]
mod tests;
