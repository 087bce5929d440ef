//! The built-in languages are complete and fit the pages; a request gets the language that it prefers.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use tempfile::TempDir;

use super::*;

/// The messages of a file, each with its variables.
fn messages(source: &str) -> BTreeMap<String, BTreeSet<String>> {
    let resource = FluentResource::try_new(source.to_owned());
    let resource = resource.unwrap_or_else(|(_, errors)| panic!("{errors:?}"));
    let entries = resource.entries().filter_map(|entry| match entry {
        Entry::Message(message) => Some((message.id.name, message.value.as_ref().unwrap())),
        _ => None,
    });
    let entries: Vec<_> = entries
        .map(|(name, value)| (name.to_owned(), variables(value)))
        .collect();
    let messages: BTreeMap<_, _> = entries.iter().cloned().collect();
    assert_eq!(
        messages.len(),
        entries.len(),
        "no message stands there twice"
    );
    messages
}

fn english() -> BTreeMap<String, BTreeSet<String>> {
    messages(BUILT_IN[0].1)
}

/// The templates, and the sources that name messages.
fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = [
        "templates",
        "src/provider/pages",
        "src/provider/respond",
        "src/provider/theme",
    ]
    .into_iter()
    .flat_map(|directory| fs::read_dir(root.join(directory)).unwrap())
    .map(|entry| entry.unwrap().path())
    .filter(|path| path.is_file() && !path.ends_with("tests.rs"));
    let read = |path: PathBuf| (path.clone(), fs::read_to_string(path).unwrap());
    files.map(read).collect()
}

#[test]
fn every_language_has_the_english_messages_and_variables() {
    let english = english();
    for (tag, source) in BUILT_IN {
        let other = messages(source);
        let missing: Vec<_> = english
            .keys()
            .filter(|id| !other.contains_key(*id))
            .collect();
        let surplus: Vec<_> = other
            .keys()
            .filter(|id| !english.contains_key(*id))
            .collect();
        assert!(
            missing.is_empty() && surplus.is_empty(),
            "{tag}: {missing:?} {surplus:?}"
        );
        for (id, variables) in &other {
            assert_eq!(variables, &english[id], "{tag}: {id}");
        }
        assert!(!source.contains([ISOLATE, ISOLATE_END]), "{tag}");
        assert_eq!(tag.parse::<LanguageIdentifier>().unwrap().to_string(), tag);
    }
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("locales")).unwrap();
    let is_messages = |name: &str| name.ends_with(".ftl");
    let files =
        files.filter(|file| is_messages(file.as_ref().unwrap().file_name().to_str().unwrap()));
    assert_eq!(files.count(), BUILT_IN.len(), "every file is built in");
}

#[test]
fn glossary_has_each_term_as_the_messages_write_it() {
    let glossary = include_str!("../../../locales/GLOSSARY.md");
    let terms: Vec<&str> = glossary.split("\n## ").skip(1).collect();
    assert!(terms.len() > 10);
    for term in terms {
        let (name, lines) = term.split_once('\n').unwrap();
        for (tag, source) in BUILT_IN {
            let line = lines
                .lines()
                .find_map(|line| line.strip_prefix(&format!("- {tag}: ")));
            let words = line.unwrap_or_else(|| panic!("{name}: {tag}"));
            // A message has at least one of the forms.
            let source = source.to_lowercase();
            let is_used = words
                .split(", ")
                .any(|word| source.contains(&word.to_lowercase()));
            assert!(is_used, "{name}: {tag}: {words}");
        }
    }
}

#[test]
fn every_message_is_used_and_no_page_names_one_that_is_missing() {
    let english = english();
    let pages: BTreeSet<&str> = english
        .keys()
        .map(|id| id.split('-').next().unwrap())
        .collect();
    let mut used = BTreeSet::new();
    for (path, source) in sources() {
        for literal in source.split('"') {
            let is_id = literal
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'-');
            if is_id
                && literal
                    .split_once('-')
                    .is_some_and(|(page, _)| pages.contains(page))
            {
                assert!(
                    english.contains_key(literal),
                    "{}: {literal}",
                    path.display()
                );
                used.insert(literal.to_owned());
                used.insert(format!("{literal}-text"));
            }
        }
    }
    let unused: Vec<_> = english.keys().filter(|id| !used.contains(*id)).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

#[test]
fn every_page_gives_a_message_the_variables_that_it_has() {
    let english = english();
    let mut calls = 0;
    for (path, source) in sources() {
        let source: String = source.split_whitespace().collect();
        for (method, end) in [
            ("text(", ")"),
            ("counted(", ")"),
            ("filled(", "]"),
            ("title(", "]"),
            ("parts(", "]"),
        ] {
            for call in source.split(method).skip(1) {
                let Some((id, rest)) = call.strip_prefix('"').and_then(|call| call.split_once('"'))
                else {
                    continue;
                };
                let place = format!("{}: {id}", path.display());
                let given = rest.split(end).next().unwrap().split("(\"").skip(1);
                let mut given: BTreeSet<_> = given
                    .map(|name| name.split('"').next().unwrap().to_owned())
                    .collect();
                if method == "counted(" {
                    given.insert("count".to_owned());
                }
                let known = english
                    .get(id)
                    .unwrap_or_else(|| panic!("{place}: no such message"));
                assert_eq!(&given, known, "{place}");
                calls += 1;
            }
        }
    }
    assert!(calls > 40, "the reading of the sources works: {calls}");
    // These are named by a value, all but the one with a time.
    let errors = english
        .iter()
        .filter(|(id, _)| id.starts_with("error-") && *id != "error-wait");
    assert!(
        errors.clone().count() > 40
            && errors
                .into_iter()
                .all(|(_, variables)| variables.is_empty())
    );
}

#[test]
fn a_request_gets_the_language_that_it_prefers() {
    let languages = Languages::built_in();
    for (field, tag) in [
        (None, "en"),
        (Some(""), "en"),
        (Some("*"), "en"),
        (Some("ko"), "ko"),
        (Some("KO-kr"), "ko"),
        (Some("pt-BR,pt;q=0.9,en;q=0.8"), "pt-BR"),
        (Some("pt"), "pt-BR"),
        (Some("pt-PT"), "pt-PT"),
        (Some("zh"), "zh-Hans"),
        (Some("zh-CN"), "zh-Hans"),
        (Some("zh-SG,zh;q=0.9"), "zh-Hans"),
        (Some("zh-TW"), "zh-Hant"),
        (Some("zh-HK,zh;q=0.5"), "zh-Hant"),
        (Some("zh-Hant-HK"), "zh-Hant"),
        (Some("de-AT"), "de"),
        (Some("en-GB,en;q=0.9,fr;q=0.8"), "en"),
        (Some("fr;q=0.3, es;q=0.7 , ja; q=0.5"), "es"),
        (Some("sw, tlh, ar-EG"), "ar"),
        (Some("sw;q=1.0,en;q=0.1"), "en"),
        (Some("de;q=0"), "en"),
        (Some("de;q=0, fr;q=0.001"), "fr"),
        (Some("de;q=nan, fr"), "fr"),
        (Some("de;q=x, fr"), "fr"),
        (Some("\"de\", /, é, fr"), "fr"),
    ] {
        let chosen = languages.accepted(field.map(str::as_bytes));
        assert_eq!(chosen.tag(), tag, "{field:?}");
    }
    assert_eq!(languages.accepted(Some(b"\xff, de")).tag(), "en");
    let many = format!("{}de", "sw,".repeat(10_000));
    assert_eq!(languages.accepted(Some(many.as_bytes())).tag(), "en");
    for (tags, tag) in [
        ("ja", Some("ja")),
        ("tlh fr-CA en", Some("fr")),
        ("  ar", Some("ar")),
        ("", None),
        ("tlh", None),
        ("\"><script>", None),
    ] {
        let chosen = languages.by_ui_locales(tags);
        assert_eq!(chosen.map(Texts::tag), tag, "{tags:?}");
    }
    assert_eq!(languages.by_ui_locales("ar").unwrap().direction(), "rtl");
    assert_eq!(languages.by_ui_locales("ko").unwrap().direction(), "ltr");
    let spaces = ["ja", "zh-Hant", "ko"].map(|tag| languages.by_ui_locales(tag).unwrap().space());
    assert_eq!(spaces, ["", "", " "]);
}

#[test]
fn values_are_set_apart_and_cannot_leave_their_place() {
    let languages = Languages::built_in();
    let texts = languages.english();
    let evil = "a\u{2069}\u{2068}b";
    assert_eq!(
        texts.filled("consent-user", &[("user", evil)]),
        "Logged in as \u{2068}ab\u{2069}"
    );
    let part = |text: &str, is_value| MessagePart {
        text: text.to_owned(),
        is_value,
    };
    assert_eq!(
        texts.parts("denied-title", &[("consumer", evil)]),
        [part("You have denied ", false), part("ab", true)]
    );
    assert_eq!(
        texts.title("denied-title", &[("consumer", evil)]),
        "You have denied ab"
    );
    assert_eq!(texts.counted("duration-minutes", 1), "1 minute");
    assert_eq!(texts.counted("duration-minutes", 10), "10 minutes");
    let arabic = languages.by_ui_locales("ar").unwrap();
    assert_eq!(arabic.counted("duration-minutes", 2), "دقيقتين");
}

/// A directory with these files.
fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new().unwrap();
    for (name, text) in files {
        fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

#[test]
fn an_operator_replaces_messages_and_adds_languages() {
    let files = directory(&[
        ("en.ftl", "login-submit = Sign in\n"),
        (
            "nl.ftl",
            "-service = Winkel\nlogin-title = Inloggen bij { -service }\n",
        ),
        ("fa.ftl", "consent-user = { $user } { login-nothing }\n"),
        ("readme.txt", "not a message"),
    ]);
    let mut languages = Languages::built_in();
    languages.read(files.path(), &[]).unwrap();
    let dutch = languages.accepted(Some(b"nl"));
    assert_eq!((dutch.tag(), dutch.direction()), ("nl", "ltr"));
    assert_eq!(dutch.text("login-title"), "Inloggen bij Winkel");
    assert_eq!(
        dutch.text("login-submit"),
        "Sign in",
        "what it lacks is in English"
    );
    assert_eq!(languages.english().text("login-name"), "User name");
    let persian = languages.accepted(Some(b"fa"));
    assert_eq!(persian.direction(), "rtl");
    assert_eq!(
        persian.filled("consent-user", &[("user", "ada")]),
        languages
            .english()
            .filled("consent-user", &[("user", "ada")]),
        "a message that cannot be formed is shown in English"
    );
}

#[test]
fn operator_translates_permissions_and_descriptions() {
    let permission: Permission = "members.read:all".parse().unwrap();
    let key: ConsumerKey = "shop@1".parse().unwrap();
    let files = directory(&[(
        "ko.ftl",
        "permission-members-read-all = 회원 보기\n    .description = 이름만\nconsumer-shop-1 = 사진을 인쇄합니다\n",
    )]);
    let mut languages = Languages::built_in();
    let known = std::slice::from_ref(&permission);
    languages.read(files.path(), known).unwrap();
    let id = permission_id(&permission);
    let own = |tag, id: &str, attribute| {
        let texts = languages.by_ui_locales(tag).unwrap();
        texts.in_this_language(id, attribute).map(Cow::into_owned)
    };
    assert_eq!(own("ko", &id, None).unwrap(), "회원 보기");
    assert_eq!(own("ko", &id, Some("description")).unwrap(), "이름만");
    assert_eq!(
        own("ko", &consumer_id(&key), None).unwrap(),
        "사진을 인쇄합니다"
    );
    assert_eq!(own("de", &id, None), None, "no other language has it");
    for (message, problem) in [
        (
            "permission-other = x",
            "permission-NAME of a [[permission]]",
        ),
        ("permission-members-read-all = { $x }", "no variable $x"),
        ("consumer-shop = { $x }", "no variable $x"),
    ] {
        let files = directory(&[("de.ftl", message)]);
        let read = Languages::built_in().read(files.path(), known);
        let error = read.unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}
