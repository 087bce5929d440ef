//! `consumer`.

use serde_json::{Value, json};

use crate::commands::workspace::Workspace;
use crate::support::text::{has, rows};

const KEY: &str = include_str!("../../src/provider/issue/registration/public_key.pem");

fn without_times(mut record: Value) -> Value {
    let members = record.as_object_mut().unwrap();
    assert!(members.remove("created_at").unwrap().is_string());
    record
}

#[test]
fn a_missing_key_and_secret_are_generated() {
    let workspace = Workspace::new();
    let drawn = || {
        let added = workspace.json("consumer add --name Shop");
        let word = |name: &str| added[name].as_str().unwrap().to_owned();
        (word("key"), word("secret"))
    };
    let (first, second) = (drawn(), drawn());
    assert!(first.0 != second.0 && first.1 != second.1);
    assert!(first.0.len() >= 20 && first.1.len() >= 40, "{first:?}");
    let keys: Vec<Value> = workspace
        .json_lines("consumer list")
        .into_iter()
        .map(|mut consumer| consumer["key"].take())
        .collect();
    let mut expected = [first.0, second.0];
    expected.sort();
    assert_eq!(keys, expected);
}

#[test]
fn consumer_list_filters_by_text_state_and_use() {
    let workspace = Workspace::new();
    for (key, name) in [("a", "Shop 100%"), ("b", "Store"), ("shopping", "Other")] {
        workspace.json(&["consumer", "add", "--key", key, "--name", name]);
    }
    workspace.run("consumer disable b").done();
    for [options, expected] in rows(
        "
        --search SHOP                 | a shopping
        --search 0%                   | a
        --search _                    |
        --enabled true                | a shopping
        --enabled false               | b
        --search sho --enabled false  |
        --unused-for 0s --search st   | b
        --unused-for 90d              |
    ",
    ) {
        let list = workspace.json_lines(&format!("consumer list {options}"));
        let keys = list.iter().map(|one| one["key"].as_str().unwrap());
        assert_eq!(Vec::from_iter(keys).join(" "), expected, "{options}");
    }
}

#[test]
fn consumer_add_sets_each_option() {
    let workspace = Workspace::with("signature.default_dialect = 'legacy'");
    std::fs::write(workspace.path("key.pem"), KEY).unwrap();
    let added = workspace.json(&[
        "consumer",
        "add",
        "--name",
        "Ünïcode",
        "--key",
        "-k:1",
        "--secret",
        "-s",
        "--callback",
        "https://a.test/x?y=1",
        "--callback",
        "oob",
        "--callback",
        "oob",
        "--permission",
        "b",
        "--permission",
        "a",
        "--dialect",
        "rfc5849",
        "--rsa-public-key",
        "key.pem",
        "--rsa-only",
        "--enforce",
        "--description",
        "Prints <photos>",
        "--website",
        "https://a.test",
        "--contact",
        "ops@a.test",
        "--from",
        "203.0.113.0/24",
        "--from",
        "2001:db8::7",
    ]);
    let expected = json!({
        "key": "-k:1", "secret": "-s", "name": "Ünïcode",
        "description": "Prints <photos>", "website": "https://a.test",
        "contact": "ops@a.test", "from": ["203.0.113.0/24", "2001:db8::7/128"],
        "callbacks": ["https://a.test/x?y=1", "oob"], "permissions": ["b", "a"],
        "dialect": "rfc5849", "has_rsa_public_key": true, "rsa_only": true, "enforce": true, "enabled": true,
        "accept": [], "pinned": [], "body_hash": null, "rate": null, "previous_secret_until": null,
        "owner": null, "registration": null, "decision": null, "asked_callbacks": [],
    });
    assert_eq!(without_times(added), expected);
    let bare = workspace.json("consumer add --name x --key bare --secret s");
    let expected = json!({
        "key": "bare", "secret": "s", "name": "x", "description": null, "website": null, "contact": null, "from": [], "callbacks": [], "permissions": [],
        "dialect": "legacy", "has_rsa_public_key": false, "rsa_only": false, "enforce": false, "enabled": true,
        "accept": [], "pinned": [], "body_hash": null, "rate": null, "previous_secret_until": null,
        "owner": null, "registration": null, "decision": null, "asked_callbacks": [],
    });
    assert_eq!(without_times(bare), expected);
}

#[test]
fn consumer_secrets_come_from_files_and_from_standard_input() {
    let workspace = Workspace::new();
    let at_file = workspace.at_file("secret", "from a file\n");
    let add = ["consumer", "add", "--name", "x", "--json", "--secret"];
    let secret = |argument: &str, input: &[u8]| {
        let ended = workspace
            .run_with(&[&add[..], &[argument]].concat(), input)
            .done();
        let added: Value = serde_json::from_str(&ended.stdout).unwrap();
        added["secret"].as_str().map(str::to_owned)
    };
    assert_eq!(secret(&at_file, b"").as_deref(), Some("from a file"));
    assert_eq!(
        secret("-", b"from outside\n").as_deref(),
        Some("from outside")
    );
    // A value that is not text is not printed as if it were.
    assert_eq!(secret("-", b"\xff"), None);
    let line = workspace.run(&[&add[..], &["@nowhere"]].concat()).failed(1);
    has(&line, &["nowhere", "No such file"]);
    let line = workspace
        .run_with(&[&add[..], &["-"]].concat(), "\n")
        .failed(2);
    assert!(line.contains("--secret"), "{line}");
    assert_eq!(workspace.json_lines("consumer list").len(), 3);
}

#[test]
fn a_consumer_key_is_taken_only_once() {
    let workspace = Workspace::new();
    workspace.consumer("shop");
    // There are no warnings about a consumer that is not registered.
    let line = workspace
        .run("consumer add --name x --key shop --callback http://a.test/")
        .failed(1);
    has(&line, &["\"shop\"", "give another key"]);
}

#[test]
fn public_rsa_keys_alone_are_registered_and_nothing_else_kept() {
    let workspace = Workspace::new();
    let private = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    std::fs::write(workspace.path("both.pem"), format!("{KEY}{private}")).unwrap();
    std::fs::write(workspace.path("private.pem"), private).unwrap();
    std::fs::write(workspace.path("bytes.pem"), [0xff; 9]).unwrap();
    let add = |file: &str| format!("consumer add --name x --key k --rsa-public-key {file}");
    for (file, expected) in [
        ("private.pem", "private key"),
        ("nowhere.pem", "No such file"),
        ("bytes.pem", "UTF-8"),
        ("config.toml", "no PEM block"),
    ] {
        let line = workspace.run(&add(file)).failed(1);
        assert!(line.contains(file) && line.contains(expected), "{line}");
    }
    workspace.run(&add("both.pem")).done();
    let exported = workspace.run("export -").done().stdout;
    assert!(
        exported.contains("BEGIN PUBLIC KEY") && !exported.contains("PRIVATE"),
        "{exported}"
    );
}

#[test]
fn consumer_update_changes_only_what_is_given() {
    let workspace = Workspace::new();
    std::fs::write(workspace.path("key.pem"), KEY).unwrap();
    workspace.consumer("shop");
    let mut expected = json!({
        "key": "shop", "name": "Shop", "description": null, "website": null, "contact": null, "from": [], "callbacks": [], "permissions": ["read", "write"],
        "dialect": "rfc5849", "has_rsa_public_key": false, "rsa_only": false, "enforce": false, "enabled": true,
        "accept": [], "pinned": [], "body_hash": null, "rate": null, "previous_secret_until": null,
        "owner": null, "registration": null, "decision": null, "asked_callbacks": [],
    });
    for [options, member, value] in rows(
        r#"
        --name New                                  | name               | "New"
        --callback https://a.test/ --callback oob   | callbacks          | ["https://a.test/", "oob"]
        --callback https://b.test/                  | callbacks          | ["https://b.test/"]
        --permission admin                          | permissions        | ["admin"]
        --dialect legacy                            | dialect            | "legacy"
        --rsa-public-key key.pem                    | has_rsa_public_key | true
        --description a                             | description        | "a"
        --website http://a.test                     | website            | "http://a.test"
        --no-description                            | description        | null
        --no-website                                | website            | null
        --contact https://a.test/help               | contact            | "https://a.test/help"
        --contact müller@ä.test                     | contact            | "müller@ä.test"
        --no-contact                                | contact            | null
        --from 10.0.0.0/8 --from ::1                | from               | ["10.0.0.0/8", "::1/128"]
        --no-from                                   | from               | []
        --rsa-only                                  | rsa_only           | true
        --no-rsa-only                               | rsa_only           | false
        --accept repeats_once --accept empty_secret | accept             | ["repeats_once", "empty_secret"]
        --no-accept                                 | accept             | []
        --enforce                                   | enforce            | true
        --pinned guid=a%20b --pinned guid=c         | pinned             | ["guid=a%20b", "guid=c"]
        --no-pinned                                 | pinned             | []
        --body-hash required                        | body_hash          | "required"
        --no-body-hash                              | body_hash          | null
        --no-callbacks                              | callbacks          | []
        --no-permissions                            | permissions        | []
        --no-dialect                                | dialect            | "rfc5849"
        --no-rsa-public-key                         | has_rsa_public_key | false
        --no-enforce                                | enforce            | false
    "#,
    ) {
        expected[member] = serde_json::from_str(value).unwrap();
        let updated = workspace.json(&format!("consumer update shop {options}"));
        assert_eq!(without_times(updated), expected, "{options}");
    }
    let update = ["consumer", "update", "shop"];
    expected["rate"] = json!("10 per 15m");
    let updated = workspace.json(&[&update[..], &["--rate", "10 per 15m"]].concat());
    assert_eq!(without_times(updated), expected);
    let wrong = workspace
        .run(&[&update[..], &["--rate", "10/15m"]].concat())
        .failed(2);
    has(
        &wrong,
        &["--rate <RATE>': write COUNT per PERIOD, such as 10 per 15m"],
    );
    expected["rate"] = json!(null);
    let updated = workspace.json(&[&update[..], &["--no-rate"]].concat());
    assert_eq!(without_times(updated), expected);
    let line = workspace.run("consumer update shop").failed(2);
    has(&line, &["nothing to change"]);
    for [options, problem] in rows(
        r#"
        --from 10.0.0.1/8          | host bits are set; did you mean 10.0.0.0/8?
        --from office              | a name is not looked up here
        --from ::ffff:10.0.0.0/104 | an IPv4 network is written as one
        --contact somewhere        | neither a mail address nor the address of a web page
        --contact a@b@c            | neither a mail address
        --contact a@b..test        | neither a mail address
        --contact <a>@b.test       | neither a mail address
        --contact javascript://a   | it is neither https:// nor http://
        --contact https://u@a.test | it has a user name in it
    "#,
    ) {
        let line = workspace.run(&format!("consumer update shop {options}"));
        has(&line.failed(2), &[problem]);
    }
}

#[test]
fn consumers_are_listed_by_their_contact() {
    let workspace = Workspace::new();
    let add = |key: &str, options: &str| {
        let add = format!("consumer add --name {key} --key {key} --secret s {options}");
        workspace.run(add.trim()).done();
    };
    add("a", "--contact ops@a.test");
    add("b", "--contact https://b.test/help");
    add("c", "");
    for (options, expected) in [
        ("", "a b c"),
        ("--contact", "a b"),
        ("--contact OPS@", "a"),
        ("--contact help --enabled true", "b"),
        ("--contact %", ""),
        ("--search b.test", "b"),
    ] {
        let list = workspace.json_lines(format!("consumer list {options}").trim());
        let keys = list.iter().map(|one| one["key"].as_str().unwrap());
        assert_eq!(Vec::from_iter(keys).join(" "), expected, "{options}");
    }
    let table = workspace.run("consumer list --contact").done().stdout;
    has(&table, &["CONTACT", "ops@a.test", "https://b.test/help"]);
}

#[test]
fn a_consumer_restricted_to_its_rsa_key_has_one() {
    let workspace = Workspace::new();
    std::fs::write(workspace.path("key.pem"), KEY).unwrap();
    let add = "consumer add --name x --key k --rsa-only";
    assert_eq!(workspace.run(add).code, Some(2));
    workspace.run(&format!("{add} --rsa-public-key key.pem"));
    workspace.consumer("shop");
    for update in ["k --no-rsa-public-key", "shop --rsa-only"] {
        let show = format!("consumer show {}", update.split(' ').next().unwrap());
        let before = workspace.json(&show);
        let line = workspace
            .run(&format!("consumer update {update}"))
            .failed(2);
        has(&line, &["needs an RSA key"]);
        assert_eq!(workspace.json(&show), before);
    }
    for (update, restricted) in [
        ("k --no-rsa-public-key --no-rsa-only --enforce", false),
        ("shop --rsa-public-key key.pem --rsa-only", true),
    ] {
        let updated = workspace.json(&format!("consumer update {update}"));
        assert_eq!(updated["rsa_only"], restricted);
    }
}

#[test]
fn commands_that_disable_and_enable_show_the_state() {
    let workspace = Workspace::new();
    workspace.consumer("shop");
    for (verb, enabled) in [("disable", false), ("show", false), ("enable", true)] {
        let shown = workspace.json(&format!("consumer {verb} shop"));
        assert_eq!(shown["enabled"], enabled, "{verb}");
    }
}

#[test]
fn unwise_options_of_a_consumer_are_warned_of_at_the_end() {
    let workspace = Workspace::with("[[permission]]\nname = 'read'");
    let ended = workspace.run("consumer add --name x --key k --permission read --permission reed --callback http://a.test/ --callback http://127.0.0.1/");
    assert_eq!(ended.code, Some(0));
    let warnings: Vec<&str> = ended.warnings().collect();
    assert_eq!(warnings.len(), 2, "{ended:?}");
    assert!(warnings[0].contains("warning") && warnings[0].contains("--callback http://a.test/"));
    assert!(warnings[1].contains("--permission reed") && warnings[1].contains("[[permission]]"));
}

#[test]
fn a_command_ends_the_grace_of_a_secret() {
    let workspace = Workspace::new();
    workspace.consumer("c");
    let rotated = workspace.json("consumer rotate-secret c --grace 1h");
    assert!(rotated["previous_secret_until"].is_string(), "{rotated}");
    let end = ["consumer", "rotate-secret", "c", "--end-grace"];
    // Without a grace period there is nothing to end.
    for _ in 0..2 {
        let ended = workspace.json(&end);
        assert_eq!(
            (&ended["previous_secret_until"], &ended["secret"]),
            (&Value::Null, &Value::Null)
        );
    }
    workspace
        .run(&[&end[..], &["--grace", "1h"]].concat())
        .failed(2);
}

#[test]
fn a_command_makes_the_link_of_a_developer_and_ends_it() {
    let workspace = Workspace::with("service.base_url = 'https://service.example'");
    workspace.consumer("c");
    let made = workspace.json("consumer link c");
    let url = made["url"].as_str().unwrap();
    let begin = "https://service.example/service.oauth?mode=developer&link=";
    assert!(
        url.starts_with(begin) && made["expires_at"].is_string(),
        "{made}"
    );
    let value = &url[begin.len()..];
    assert_eq!(value.len(), 43, "{url}");
    let other = workspace.json("consumer link c");
    assert_ne!(other["url"], made["url"]);
    workspace.run("consumer link c --revoke").done();
    let line = workspace.run("consumer link c --revoke").failed(1);
    assert!(line.contains("has no link for its developer"), "{line}");
    workspace.run("consumer disable c").done();
    let line = workspace.run("consumer link c").failed(1);
    assert!(line.contains("is disabled; enable it first"), "{line}");
}

#[test]
fn lists_have_aligned_columns() {
    let workspace = Workspace::new();
    workspace.consumer("a");
    workspace.consumer("longer");
    let text = workspace.run("consumer list").done().stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    let column = lines[0].find("NAME").unwrap();
    let is_aligned = |line: &&str| line[column..].starts_with("Shop  ");
    assert!(lines[1..].iter().all(is_aligned), "{text}");
    let text = workspace.run("consumer show a").done().stdout;
    let permissions = ["permissions", "read", "write"];
    let shows = |line: &str| line.split_whitespace().eq(permissions);
    assert!(text.lines().any(shows), "{text}");
}

#[test]
fn the_key_of_a_removed_consumer_is_never_used_again() {
    let workspace = Workspace::new();
    workspace.consumer("shop");
    workspace.run("export before").done();
    workspace.run("consumer remove shop").done();
    let line = workspace
        .run("consumer add --name Shop --key shop")
        .failed(1);
    assert!(
        line.contains("belonged to a removed consumer") && line.contains("give another key"),
        "{line}"
    );
    let imported = workspace.json("import before");
    assert_eq!(
        (&imported["added"], &imported["not_restored"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(workspace.run("consumer show shop").code, Some(1));
}

#[test]
fn each_change_is_told_in_a_sentence() {
    let workspace = Workspace::new();
    workspace.consumer("shop");
    workspace.user("ada");
    for (command, expected) in [
        (
            "consumer update shop --name Store --rate 5:per:1m",
            "Changed Store (shop): name, rate.",
        ),
        (
            "consumer disable shop",
            "Disabled Store (shop): its calls get 401; its tokens work again once it is enabled.",
        ),
        (
            "consumer enable shop",
            "Enabled Store (shop): its calls are accepted again.",
        ),
        (
            "consumer rotate-secret shop --end-grace",
            "The previous secret of Store (shop) is no longer accepted.",
        ),
        (
            "user update ada --display-name Ada",
            "Changed the user ada: display_name.",
        ),
        (
            "user end-sessions ada",
            "Ended 0 sessions of ada. Access tokens stay valid.",
        ),
        ("user unlock ada", "ada can try to log in again."),
        (
            "user passwd ada --password-stdin",
            "ada has the new password; ended 0 sessions. The user has to choose another one after the next login.",
        ),
        (
            "user disable ada",
            "ada cannot log in; sessions and access tokens are ended for good.",
        ),
        (
            "user enable ada",
            "ada can log in again; sessions and tokens that were ended stay ended.",
        ),
        (
            "user remove ada",
            "Removed the user ada with sessions and access tokens.",
        ),
        (
            "consumer remove shop",
            "Removed Store (shop) with all its tokens.",
        ),
    ] {
        let words: Vec<String> = command
            .split(' ')
            .map(|word| word.replace(':', " "))
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ended = workspace.run_with(&words, "another horse").done();
        assert_eq!(ended.stdout, format!("{expected}\n"), "{command}");
    }
    // What is shown once has its lines, and no others.
    let told = workspace
        .run("consumer add --name Bank --key bank")
        .done()
        .stdout;
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], "Registered Bank. Its secret is shown this once.");
    assert_eq!((lines[1], lines.len()), ("key     bank", 3), "{told}");
    assert!(lines[2].starts_with("secret  "), "{told}");
}

#[test]
fn a_consumer_is_named_by_a_name_that_no_other_one_has() {
    let workspace = Workspace::new();
    for (key, name) in [
        ("k1", "Wall app"),
        ("k2", "Wall backup"),
        ("k3", "Twice"),
        ("k4", "twice"),
        // The key of this one is the name of another.
        ("Ledger", "Sync"),
        ("k5", "Ledger"),
    ] {
        workspace
            .run(&["consumer", "add", "--key", key, "--name", name])
            .done();
    }
    for (name, key) in [
        ("Wall app", "k1"),
        ("wall BACKUP", "k2"),
        ("Ledger", "Ledger"),
    ] {
        let shown = workspace.json(&["consumer", "show", name]);
        assert_eq!(shown["key"], key, "{name}");
    }
    for (name, expected) in [
        (
            "Wall",
            "no consumer has the key or name \"Wall\"; it is a part of Wall app (k1), Wall backup (k2)",
        ),
        (
            "Twice",
            "several consumers have the name \"Twice\"; give the key: Twice (k3), twice (k4)",
        ),
        (
            "No such name",
            "no consumer has the name \"No such name\"; list the consumers to find it",
        ),
    ] {
        let line = workspace.run(&["consumer", "disable", name]).failed(1);
        assert_eq!(line, format!("countersign: {expected}"));
    }
    workspace.user("alice");
    let token = [
        "token",
        "issue",
        "--consumer",
        "Wall app",
        "--user",
        "alice",
    ];
    assert_eq!(workspace.json(&token)["consumer"], "k1");
    let listed = workspace.json_lines(&["token", "list", "--consumer", "Wall app"]);
    assert_eq!(listed.len(), 1);
    let line = workspace.run("user show ali").failed(1);
    let expected = "no user has the name or id \"ali\"; it is a part of alice (id-alice)";
    assert_eq!(line, format!("countersign: {expected}"));
    let keys = |sort: &str| {
        let listed = workspace.json_lines(&["consumer", "list", "--sort", sort]);
        let keys = listed
            .iter()
            .map(|one| one["key"].as_str().unwrap().to_owned());
        keys.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(keys("key"), "Ledger k1 k2 k3 k4 k5");
    assert_eq!(keys("name"), "k5 Ledger k3 k4 k1 k2");
}
