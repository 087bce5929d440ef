//! Compares the declarations with the keys that are read, and with `config.example.toml`.

use super::*;

/// The other keys of an item that have to be written.
pub(super) fn required(list: &str, name: &str) -> String {
    let keys: &[_] = match list {
        "bearer.issuer" => &["issuer = 'a'", "audience = 'b'"],
        "operation" => &["path = '/a'"],
        "sunset.brownout" => &[
            "from = 2020-01-01T00:00:00Z",
            "until = 2099-01-01T00:00:00Z",
        ],
        _ => &["name = 'a'"],
    };
    let others = keys.iter().filter(|key| !key.starts_with(name));
    others.map(|key| format!("{key}\n")).collect()
}

#[test]
fn reads_every_key_that_it_declares() {
    for (section, full, name, _) in keys() {
        // No key takes a fraction: a key that is declared and not read would cause no error.
        let text = if section.list {
            let required = required(section.name, name);
            format!("[[{}]]\n{required}{name} = 1.5", section.name)
        } else {
            format!("{full} = 1.5")
        };
        if full == "upstream.api_url" {
            continue;
        }
        let lines = errors(&text);
        assert!(lines[0].contains(name), "{full}: {lines:?}");
        assert!(!lines[0].contains("unknown"), "{full}: {lines:?}");
    }
}

#[test]
fn takes_every_default_and_example_as_a_value_of_its_key() {
    for (section, full, name, value) in keys() {
        let text = match full.as_str() {
            "upstream.api_url" => continue,
            _ if section.list => {
                let list = section.name;
                format!("[[{list}]]\n{}{name} = {value}\n", required(list, name))
            }
            _ => format!("{full} = {value}\n"),
        };
        let lines = errors(&text);
        // Rules across keys may object to a key that stands alone; its type and range may not.
        let objections: Vec<_> = lines
            .iter()
            .filter(|line| line.contains("expected"))
            .collect();
        assert!(objections.is_empty(), "{full}: {lines:?}");
    }
}

#[test]
fn declares_each_section_and_key_once() {
    // The parts of a section are one after the other.
    let names: Vec<_> = SECTIONS.iter().map(|section| section.name).collect();
    let sections = names.chunk_by(|one, other| one == other);
    assert_eq!(sections.count(), BTreeSet::from_iter(names.iter()).len());
    let count = keys().count();
    let distinct: BTreeSet<_> = keys().map(|(_, full, ..)| full).collect();
    assert_eq!(distinct.len(), count);
}

/// All are written from the declarations: `COUNTERSIGN_WRITE_EXAMPLE=1 cargo test example_file` writes them again.
#[test]
fn example_file_schema_and_page_say_what_the_declarations_say() {
    for (name, text) in [
        ("config.example.toml", example()),
        ("config.schema.json", json_schema()),
        ("docs/configuration.md", page()),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        if std::env::var_os("COUNTERSIGN_WRITE_EXAMPLE").is_some() {
            fs::write(&path, &text).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{name}");
    }
}

#[test]
fn example_file_is_the_defaults() {
    // All but the source of each value.
    let values = |text: &str| Config {
        settings: Vec::new(),
        ..read(text)
    };
    assert_eq!(values(&example()), values(MINIMAL));
}

/// The uncommented example is a configuration too, except for the keys that conflict with others.
#[test]
fn example_file_shows_each_key_once() {
    let text = example();
    for (_, full, name, value) in keys() {
        // A list may have several lines.
        let shown = ["", "#"].map(|mark| text.contains(&format!("\n{mark}{name} = {value}\n")));
        assert!(shown.contains(&true), "{full}");
    }
    let uncommented: String = text
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(value) if !value.starts_with([' ', ':']) => format!("{value}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let error = parse(&uncommented, "c", no_environment()).unwrap_err();
    let lines = error.0.iter();
    let keys: BTreeSet<_> = lines.filter_map(|line| line.split(": ").nth(1)).collect();
    assert_eq!(
        keys,
        [
            // It is written beside the other two ways to check a token.
            "bearer.issuer[1].jwks_url",
            "login.url",
            "nonce.url",
            "operation[1].framed_by",
            "store.lookup.ca",
            "store.lookup.certificate",
            "store.lookup.private_key",
            "upstream.tls.ca",
            "upstream.tls.certificate",
            "upstream.tls.key",
            "upstream.tls.server_name",
        ]
        .into(),
        "{error}"
    );
}
