//! `export` and `import`.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::json;

use crate::commands::workspace::Workspace;
use crate::support::proxy::started_by;
use crate::support::text::has;
use crate::support::text::rows;

/// A store with a record of every kind.
fn full() -> Workspace {
    let workspace = Workspace::new();
    fs::write(workspace.path("odd"), b"\xff\0secret").unwrap();
    workspace
        .run("consumer add --name Odd --key odd --secret @odd")
        .done();
    workspace
        .run("consumer rotate-secret odd --grace 1h")
        .done();
    for key in ["shop", "gone"] {
        workspace.consumer(key);
    }
    for name in ["alice", "gone"] {
        workspace.user(name);
    }
    workspace.token("shop", "alice");
    workspace.token("shop", "gone");
    workspace.token("gone", "alice");
    let revoked = workspace.token("shop", "alice");
    workspace.run(&format!("token revoke {revoked}")).done();
    workspace.run("user remove gone").done();
    workspace.run("consumer remove gone").done();
    workspace
}

fn export(workspace: &Workspace) -> String {
    workspace.run("export -").done().stdout
}

/// All lines but the first, which names the store.
fn records(export: &str) -> Vec<&str> {
    export.lines().skip(1).collect()
}

#[test]
fn an_export_is_complete_and_only_its_owner_can_read_it() {
    let workspace = full();
    workspace.run("export file").done();
    let path = workspace.path("file");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let first = fs::read(&path).unwrap();
    workspace.run("user disable alice").done();
    let line = workspace.run("export file").failed(1);
    has(&line, &["file: ", "--force"]);
    assert_eq!(fs::read(&path).unwrap(), first);
    let told = workspace.run("export file --force").done().stdout;
    has(&told, &["Exported ", " records to file in "]);
    assert_ne!(fs::read(&path).unwrap(), first);
    for (path, expected) in [
        ("none/file", "none/file: cannot be written"),
        ("/dev/null", "is not a file"),
        (".", "is not a file"),
    ] {
        let line = workspace.run(&format!("export {path} --force")).failed(1);
        assert!(line.contains(expected), "{line}");
    }
    // The store's own companions may or may not be there at any moment.
    let stays = |name: &String| name.starts_with(".countersign-export");
    let files = workspace.files();
    assert!(
        !files.iter().any(stays),
        "no temporary file stays: {files:?}"
    );
}

#[test]
fn an_export_of_an_encrypted_store_can_be_read_without_its_key() {
    let workspace = full();
    workspace.run("export file").done();
    let sealed = Workspace::new();
    sealed.at_file("store.key", [7; 32]);
    sealed.configure("store.encryption_key_file = 'store.key'");
    let file = workspace.path("file");
    sealed
        .run(&format!("import {}", file.to_str().unwrap()))
        .done();
    assert_eq!(records(&export(&sealed)), records(&export(&workspace)));
    sealed.configure("");
    let line = sealed.run("export -").failed(1);
    assert!(line.contains("is encrypted"), "{line}");
}

#[test]
fn csv_is_imported_by_the_same_rules_as_json_lines() {
    let workspace = Workspace::new();
    let import = |file: &str, text: &str, options: &[&str]| {
        fs::write(workspace.path(file), text).unwrap();
        workspace.run(&[&["import", file, "--json"], options].concat())
    };
    // A byte order mark, CRLF, a quoted line break, a comma in a cell, and a column that is not used.
    let apps = "\u{feff}consumer_key,title,consumer_secret,back,active,since,notes\r\n\
                shop,\"Shop, the\",s1,https://a.test/ oob,1,2020-01-31 12:00:00,\"two\r\nlines\"\r\n\
                old,Old,s2,,f,1580472000,\r\n";
    let map = "key=consumer_key,name=title,secret=consumer_secret,callbacks=back,enabled=active,created_at=since";
    let done = import("apps.csv", apps, &["--csv", "consumer", "--map", map])
        .done()
        .stdout;
    assert!(done.contains("\"added\":2"), "{done}");
    for (key, name, callbacks, enabled) in [
        ("shop", "Shop, the", json!(["https://a.test/", "oob"]), true),
        ("old", "Old", json!([]), false),
    ] {
        let consumer = workspace.json(&format!("consumer show {key}"));
        assert_eq!(consumer["name"], name);
        assert_eq!(consumer["callbacks"], callbacks);
        assert_eq!(consumer["enabled"], enabled);
        assert_eq!(consumer["created_at"], "2020-01-31T12:00:00Z");
    }
    assert!(export(&workspace).contains(r#""secret":"s1""#));
    let again = import("apps.csv", apps, &["--csv", "consumer", "--map", map])
        .done()
        .stdout;
    assert!(again.contains("\"added\":0,\"unchanged\":2"), "{again}");

    let users = "id,name,display_name,password_hash\n\
                 7,alice,,$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW\n8,bob,Bob,\n";
    import("users.csv", users, &["--csv", "user"]).done();
    let tokens = "token,token_secret,consumer,user,permissions\nt1,ts,shop,7,read write\n";
    import("tokens.csv", tokens, &["--csv", "token"]).done();
    let listed = workspace.json_lines("token list");
    assert_eq!(listed[0]["permissions"], json!(["read", "write"]));
    // The header may look like another kind.
    let odd = "token,handle\nx1,carol\n";
    import(
        "odd.csv",
        odd,
        &["--csv", "user", "--map", "id=token,name=handle"],
    )
    .done();
    assert_eq!(workspace.json_lines("user list").len(), 3);
    let ended = workspace.run_with("import - --csv user", "id,name\n9,dave\n");
    assert!(ended.done().stdout.contains("added"));
    // As MySQL and PostgreSQL write tables, and tokens that no user has.
    let tabs = "token\tts\tconsumer\tuser\tpermissions\nt2\tts\tshop\t\\N\t\\N\n";
    let map = "token,token_secret=ts,consumer,user,permissions";
    let options = [
        "--csv",
        "token",
        "--map",
        map,
        "--delimiter",
        "\\t",
        "--null",
        "\\N",
    ];
    let told = import("tabs.csv", tabs, &options).failed(1);
    has(&told, &["tabs.csv: row 2: token \"t2\": names no user"]);
    let options = [&options[..], &["--token-user", "9"]].concat();
    import("tabs.csv", tabs, &options).done();
    let listed = workspace.json_lines("token list --user dave");
    assert_eq!(listed[0]["permissions"], json!([]));
}

#[test]
fn expired_token_stays_expired_whatever_the_unit_of_its_time() {
    let workspace = Workspace::new();
    fs::write(workspace.path("users.csv"), "id,name\n7,alice\n").unwrap();
    workspace.run("import users.csv --csv user").done();
    workspace.consumer("shop");
    let import = |time: &str| {
        let row = format!("token,token_secret,consumer,user,expires_at\nt,ts,shop,7,{time}\n");
        fs::write(workspace.path("tokens.csv"), row).unwrap();
        workspace.run("import tokens.csv --csv token")
    };
    let told = import("1600000000000").failed(1);
    let expected = "tokens.csv: row 2: token \"t\": expires_at: 1600000000000 looks like milliseconds since 1970; write seconds, 1600000000; nothing was imported";
    has(&told, &[expected]);
    import("20200913122640").done();
    let exported = export(&workspace);
    assert!(
        exported.contains(r#""expires_at":"2020-09-13T12:26:40Z""#),
        "{exported}"
    );
}

#[test]
fn wrong_csv_is_named_with_its_row_and_nothing_is_imported() {
    let workspace = Workspace::new();
    workspace.consumer("there");
    let before = export(&workspace);
    let good = "good,Good,s";
    for (rows, options, expected) in [
        (
            good,
            &["--map", "key=k"][..],
            "1: there is no column \"k\" in the header, which has 3",
        ),
        (good, &["--map", "key,key=name"], "1: key is mapped twice"),
        (
            "good,Good,s\n\"a\nb\",x",
            &[],
            "3: has 2 cells and the header 3",
        ),
        (
            "good,Good,s\nx,X,",
            &[],
            "3: consumer \"x\": secret is missing",
        ),
        ("good,Good,\"s\n2\"\n\nä,X,s", &[], "3: consumer \"ä\": "),
        (
            "good,Good,s\ngood,Good,s",
            &[],
            "3: consumer \"good\": is on row 2 already",
        ),
        (
            "good,Good,s\nthere,Other,s",
            &[],
            "3: consumer \"there\" is in the store with other content",
        ),
        (
            good,
            &["--map", "key,name,secrte=secret"],
            "1: a consumer has no member secrte, did you mean secret?",
        ),
        (
            good,
            &["--map", "client_id=key,name,secret"],
            "1: a consumer has no member client_id; the fields are ",
        ),
        (
            good,
            &["--map", "key,name,secret,enabled=name"],
            "2: consumer \"good\": enabled: \"Good\" is neither true nor false",
        ),
        (
            good,
            &["--map", "key,name,secret,created_at=name"],
            "2: consumer \"good\": created_at: \"Good\" is not a time",
        ),
    ] {
        fs::write(
            workspace.path("f.csv"),
            format!("key,name,secret\n{rows}\n"),
        )
        .unwrap();
        let line = workspace
            .run(&[&["import", "f.csv", "--csv", "consumer"], options].concat())
            .failed(1);
        has(&line, &[&format!("f.csv: row {expected}")]);
        assert!(line.contains("nothing was imported"), "{line}");
        assert_eq!(export(&workspace), before);
    }
    fs::write(workspace.path("f.csv"), b"key,name,secret\na,\xff,s\n").unwrap();
    let import = || workspace.run("import f.csv --csv consumer").failed(1);
    let line = import();
    assert!(line.contains("f.csv: row 2: is not UTF-8"), "{line}");
    fs::write(workspace.path("f.csv"), "key,key,name,secret\na,b,c,d\n").unwrap();
    let line = import();
    assert!(
        line.contains("f.csv: row 1: there are two columns \"key\""),
        "{line}"
    );
    for (header, option) in [("key;name;secret", ";"), ("key\tname\tsecret", "\\t")] {
        fs::write(workspace.path("f.csv"), format!("{header}\na\n")).unwrap();
        let line = import();
        let hint = format!("did you mean --delimiter '{option}'?");
        assert!(
            line.contains("f.csv: row 1: ") && line.contains(&hint),
            "{line}"
        );
    }
    // Without a header its first record is taken for one, and its secret is not shown.
    for row in ["k1,hunter2,Name", "k1;hunter2;Name"] {
        for options in [&[][..], &["--map", "key=k,secret"]] {
            fs::write(workspace.path("f.csv"), format!("{row}\n{row}\n")).unwrap();
            let told = workspace
                .run(&[&["import", "f.csv", "--csv", "consumer"], options].concat())
                .failed(1);
            assert!(!told.contains("hunter2"), "{told}");
        }
    }
    // A header alone is a file that was cut, or of an empty table.
    fs::write(workspace.path("f.csv"), "key,name,secret\n").unwrap();
    let empty = workspace.run("import f.csv --csv consumer");
    assert!(
        empty.stderr.contains("f.csv has no record in it"),
        "{}",
        empty.stderr
    );
    // One problem, not one for each of its lines.
    let pretty =
        "{\"kind\":\"export\",\"version\":1}\n{\n  \"kind\": \"user\",\n  \"id\": \"u\"\n}\n";
    fs::write(workspace.path("f.jsonl"), pretty).unwrap();
    let line = workspace.run("import f.jsonl").failed(1);
    let one = "f.jsonl:2: the record continues on other lines; write each record on one line";
    assert!(line.contains(one) && !line.contains("problems"), "{line}");
    for usage in [
        &["import"][..],
        &["import", "f", "--csv", "f.csv"],
        &["import", "f", "--delimiter", ";"],
        &["import", "f", "--csv", "user", "--delimiter", ";;"],
        &["import", "f", "--map", "key=k"],
        &["import", "f", "--csv", "user", "--map", "key="],
        &["import", "f", "--csv", "session"],
    ] {
        assert_eq!(workspace.run(usage).code, Some(2), "{usage:?}");
    }
}

#[test]
fn an_import_takes_all_or_nothing() {
    const HEAD: &str = r#"{"kind":"export","version":1}"#;
    const GOOD: &str = r#"{"kind":"user","id":"u","name":"good"}"#;
    let workspace = Workspace::new();
    workspace.consumer("shop");
    workspace.user("alice");
    workspace.run("user disable alice").done();
    let before = export(&workspace);
    for [line, expected] in rows(
        r#"
        nonsense                                                                            | bad:3: is not a JSON object
        {"kind":"user","id":"a b","name":"x"}                                               | bad:3: user "a b": id: a key or an id has only
        {"kind":"consumer","key":"shop","secret":"other","name":"Shop"} | bad:3: consumer "shop" is in the store with other content (secret, permissions); make the two alike, remove the line, or change the record with --replace
        {"kind":"user","id":"v","name":"Alice"} | bad:3: user "v" has the name of another user; rename one of the two
        {"kind":"token","token":"t","token_secret":"s","consumer":"none","user":"u"} | bad:3: token "t" names consumer "none", which is neither in the file nor in the store; import it before, or add a line with it
        {"kind":"token","token":"t","token_secret":"s","consumer":"shop","user":"none"} | bad:3: token "t" names user "none", who is neither in the file nor in the store; import the user before, or add a line
        {"kind":"token","token":"t","token_secret":"s","consumer":"shop","user":"id-alice"} | bad:3: token "t" is active although its user is disabled
    "#,
    ) {
        fs::write(workspace.path("bad"), format!("{HEAD}\n{GOOD}\n{line}\n")).unwrap();
        let told = workspace.run("import bad").failed(1);
        assert!(
            told.starts_with(&format!("countersign: {expected}")),
            "{told}"
        );
        assert!(told.ends_with("; nothing was imported"), "{told}");
        assert_eq!(export(&workspace), before, "{line}");
    }
    let told = workspace.run("import nowhere").failed(1);
    has(&told, &["nowhere: cannot be read: No such file"]);
    let cut = before.lines().take(2).collect::<Vec<_>>().join("\n");
    let told = workspace.run_with("import -", cut).failed(1);
    has(&told, &["standard input:2: ", "cut off"]);
}

#[test]
fn all_problems_of_an_import_are_reported_each_with_its_line() {
    let workspace = Workspace::new();
    let file = r#"{"kind":"export","version":1}
        {"kind":"consumer","key":"broken","secret":"","name":"Shop"}
        {"kind":"token","token":"t","token_secret":"s","consumer":"broken","user":"u"}
        {"kind":"token","token":"t","token_secret":"s","consumer":"broken","user":"u"}
        nonsense
        {"kind":"user","id":"u","name":"alice"}
        {"kind":"user","id":"v","name":"Alice"}"#;
    let ended = workspace.run_with("import -", file);
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""));
    let lines: Vec<&str> = ended.stderr.lines().collect();
    for (line, expected) in lines.iter().zip([
        "standard input:2: consumer \"broken\": secret is missing",
        "standard input:4: token \"t\": is on line 3 already",
        "standard input:5: is not a JSON object",
        "standard input:7: user \"v\" has the name of another user",
        "4 problems; nothing was imported",
    ]) {
        assert!(
            line.starts_with(&format!("countersign: {expected}")),
            "{line}"
        );
    }
    assert_eq!(lines.len(), 5, "{lines:#?}");
    let many = "\nx".repeat(150);
    let ended = workspace.run_with("import -", format!("{}{many}", &file[..30]));
    let lines: Vec<&str> = ended.stderr.lines().collect();
    for (line, expected) in lines.iter().zip([
        "standard input:3: is not a JSON object",
        "standard input:4: is not a JSON object",
        "standard input:5: is not a JSON object",
        "standard input: 147 more: is not a JSON object",
        "150 problems; nothing was imported",
    ]) {
        assert_eq!(*line, format!("countersign: {expected}"));
    }
    assert_eq!(lines.len(), 5, "{lines:#?}");
    assert!(
        !workspace.path("countersign.db").exists(),
        "no store was made"
    );
}

#[test]
fn a_backslash_in_csv_has_a_meaning_that_is_named() {
    let workspace = Workspace::new();
    let import = |text: &str, options: &[&str]| {
        let common = [
            "import",
            "-",
            "--csv",
            "consumer",
            "--delimiter",
            "\\t",
            "--replace",
            "--json",
        ];
        workspace.run_with(&[&common[..], options].concat(), text)
    };
    let exported = || {
        let text = export(&workspace);
        let shop = text.lines().find(|line| line.contains("\"shop\"")).unwrap();
        serde_json::from_str::<serde_json::Value>(shop).unwrap()
    };
    // What mysql --batch makes of a secret and a description with a backslash, quotes, and NULL.
    let rows = "key\tsecret\tname\tdescription\twebsite\nshop\tab\\\\cd\t\"Bob\" \\Smith\tC:\\\\dir\t\\N\n";
    let told = import(rows, &[]).failed(1);
    has(
        &told,
        &[
            "row 2",
            "has text after a quoted cell",
            "--backslashes escape",
        ],
    );
    let told = import(&rows.replace("\"Bob\" ", ""), &[]).failed(1);
    has(
        &told,
        &[
            "row 2",
            "secret has a backslash",
            "--backslashes escape",
            "--backslashes literal",
        ],
    );
    import(rows, &["--backslashes", "escape"]).done();
    let shop = exported();
    assert_eq!(shop["secret"], "ab\\cd");
    assert_eq!(shop["name"], "\"Bob\" Smith");
    assert_eq!(shop["description"], "C:\\dir");
    assert_eq!(shop["website"], serde_json::Value::Null);
    import(
        "key\tsecret\tname\nshop\tab\\\\cd\tShop\n",
        &["--backslashes", "literal"],
    )
    .done();
    assert_eq!(exported()["secret"], "ab\\\\cd");
}

#[test]
fn a_quoted_cell_of_csv_ends_with_its_quote() {
    let workspace = Workspace::new();
    let import = |text: &str| workspace.run_with("import - --csv user --dry-run", text);
    for (row, is_right) in [
        ("7,\"Bob\"", true),
        ("7,\"\"\"Bob\"\" Smith\"", true),
        ("7,\"Bob, \"\"the\nbuilder\"\"\"", true),
        ("7,Bob \"the builder\"", true),
        ("7,\"\"", true),
        ("7,\"Bob\" Smith", false),
        ("7,\"Bob Smith", false),
        ("\"7\"x,Bob", false),
    ] {
        let text = format!("id,name\n6,alice\n{row}\n");
        if is_right {
            let ended = import(&text);
            assert!(
                ended.code == Some(0) || ended.stderr.contains("name"),
                "{row}: {ended:?}"
            );
            assert!(!ended.stderr.contains("quote"), "{row}: {ended:?}");
        } else {
            has(&import(&text).failed(1), &["row 3", "RFC 4180"]);
        }
    }
}

#[test]
fn json_lines_may_begin_with_a_byte_order_mark() {
    let workspace = Workspace::new();
    let text = "\u{feff}{\"kind\":\"export\",\"version\":1}\r\n{\"kind\":\"user\",\"id\":\"7\",\"name\":\"alice\"}\r\n";
    workspace.run_with("import -", text).done();
    assert_eq!(workspace.json_lines("user list").len(), 1);
}

#[test]
fn hashes_of_werkzeug_are_imported_and_others_name_the_way() {
    let workspace = Workspace::new();
    let import = |hash: &str| {
        workspace.run_with(
            "import - --csv user --replace",
            format!("id,name,password_hash\n7,alice,{hash}\n"),
        )
    };
    let salt = "abcdefghijklmnop";
    import(&format!("scrypt:32768:8:1${salt}${}", "d3".repeat(64))).done();
    import(&format!("pbkdf2:sha256:600000${salt}${}", "87".repeat(32))).done();
    for unusable in [
        "pbkdf2:sha1:1000$a$bb",
        "pbkdf2:sha256$a$bb",
        "scrypt:3:8:1$a$bb",
        "md5$a$bb",
    ] {
        has(
            &import(unusable).failed(1),
            &["password_hash", "login.backend = \"http\""],
        );
    }
}

#[test]
fn a_dry_run_of_an_import_changes_nothing() {
    let workspace = Workspace::new();
    let user = "id,name\n7,alice\n";
    let import = ["import", "-", "--csv", "user", "--json", "--dry-run"];
    let counts = json!({"added": 1, "unchanged": 0, "changed": 0, "removed": 0, "revoked": 0, "not_restored": 0, "dry_run": true});
    let dry_run = || {
        let ended = workspace.run_with(&import, user).done();
        serde_json::from_str::<serde_json::Value>(&ended.stdout).unwrap()
    };
    assert_eq!(dry_run(), counts);
    assert!(
        !workspace.path("countersign.db").exists(),
        "no store was made"
    );
    workspace.consumer("shop");
    assert_eq!(dry_run(), counts);
    assert_eq!(workspace.json_lines("user list").len(), 0);
    workspace.run_with(&import[..5], user).done();
    let told = workspace.run_with(&import, "id,name\n8,Alice\n").failed(1);
    has(&told, &["2: user \"8\" has the name of another user"]);
}

#[test]
fn keys_of_an_existing_system_are_imported_with_all_their_facts() {
    let workspace = Workspace::with("[[permission]]\nname = 'read'");
    let file = r#"
        {"kind":"export","version":1}
        {"kind":"token","token":"a/b+c==","token_secret":"ts","consumer":"shop","user":"4711","permissions":["reed"]}
        {"kind":"consumer","key":"shop","secret":"s","name":"Shop","callbacks":["http://a.test/"]}
        {"kind":"user","id":"4711","name":"alice"}
    "#;
    let ended = workspace.run_with("import -", file);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let warnings: Vec<&str> = ended.warnings().collect();
    assert_eq!(warnings.len(), 2, "{ended:?}");
    assert!(
        warnings[0].contains("permission reed") && warnings[1].contains("http on another host")
    );
    assert_eq!(workspace.json("consumer show shop")["enabled"], true);
    assert_eq!(workspace.json_lines("user list")[0]["id"], "4711");
    let tokens = workspace.json_lines("token list");
    assert_eq!(
        (tokens.len(), tokens[0]["token"].as_str()),
        (1, Some("a/b+c=="))
    );
    // The password comes later.
    workspace
        .run_with("user passwd alice --password-stdin", "another horse")
        .done();
    // The same file comes again: it says nothing about the password.
    let again = workspace.run_with("import -", file);
    has(
        &again.stdout,
        &["Imported standard input in 0.", " s: 0 added, 3 unchanged."],
    );
    let renamed = file.replace("\"alice\"", "\"Alice\"");
    let line = workspace.run_with("import -", &renamed).failed(1);
    has(
        &line,
        &[r#"standard input:5: user "4711" is in the store with other content (name)"#],
    );
}

#[test]
fn an_import_skips_what_it_cannot_take_and_says_which() {
    let workspace = Workspace::new();
    let file = r#"{"kind":"export","version":1}
        {"kind":"token","token":"t1","token_secret":"s","consumer":"My School 2026","user":"4711"}
        {"kind":"consumer","key":"My School 2026","secret":"s","name":"School"}
        {"kind":"consumer","key":"shop","secret":"s","name":"Shop"}
        {"kind":"user","id":"DOMAIN\\bob","name":"bob"}
        {"kind":"user","id":"4711","name":"alice"}
        {"kind":"token","token":"t2","token_secret":"s","consumer":"shop","user":"DOMAIN\\bob"}
        {"kind":"token","token":"t3","token_secret":"s","consumer":"shop","user":"4711"}
        {"kind":"token","token":"t4","token_secret":"s","consumer":"bare","user":"4711"}
        {"kind":"consumer","key":"bare","name":"Bare"}
    "#;
    assert_eq!(workspace.run_with("import -", file).code, Some(1));
    for run in [
        "import - --skip-invalid --dry-run",
        "import - --skip-invalid",
    ] {
        let ended = workspace.run_with(run, file);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        has(&ended.stdout, &["3 added, 0 unchanged, 6 skipped"]);
        let skipped = ended
            .stderr
            .lines()
            .filter(|line| line.contains("skipped: standard input:"));
        let skipped: Vec<&str> = skipped.collect();
        assert_eq!(skipped.len(), 6, "{ended:?}");
        has(
            &skipped.concat(),
            &[
                "standard input:9: token \"t4\": names consumer \"bare\", which is skipped",
                "identity.encoding",
            ],
        );
    }
    let tokens = workspace.json_lines("token list");
    assert_eq!((tokens.len(), &tokens[0]["token"]), (1, &"t3".into()));
    // A line that is no record is never skipped.
    let other = workspace.run_with(
        "import - --skip-invalid",
        "{\"kind\":\"export\",\"version\":1}\nkey,secret\n",
    );
    assert_eq!(other.code, Some(1), "{other:?}");
}

#[test]
fn rows_of_csv_count_records_and_not_lines() {
    let workspace = Workspace::new();
    for (file, rows) in [
        ("key,name,secret\r\na,A,\r\nb,B,s\r\nc,C\r\n", [2, 4]),
        ("key,name,secret\na,A,\nb,B,s\nc,C\n", [2, 4]),
        ("key,name,secret\r\n\r\n\r\na,A,\r\n\r\nc,C", [2, 3]),
        ("key,name,secret\r\nx,\"X\r\nY\",s\r\na,A,\r\nc,C", [3, 4]),
    ] {
        fs::write(workspace.path("f.csv"), file).unwrap();
        let ended = workspace.run("import f.csv --csv consumer");
        for expected in [
            format!("f.csv: row {}: consumer \"a\": secret is missing", rows[0]),
            format!("f.csv: row {}: has 2 cells and the header 3", rows[1]),
        ] {
            assert!(ended.stderr.contains(&expected), "{file:?}: {ended:?}");
        }
    }
}

#[test]
fn replace_shows_what_it_changes_before_it_does() {
    let workspace = Workspace::new();
    workspace.consumer("shop");
    let secret = |export: &str| {
        let line = export.lines().find(|line| line.contains("shop")).unwrap();
        serde_json::from_str::<serde_json::Value>(line).unwrap()["secret"].clone()
    };
    let before = secret(&export(&workspace));
    let csv = "key,name,secret,permissions\nshop,Other,s2,read\nnew,New,s,\n";
    fs::write(workspace.path("f.csv"), csv).unwrap();
    let changes = "~ consumer \"shop\": another secret, name \"Shop\" -> \"Other\", permissions [\"read\",\"write\"] -> [\"read\"]\n\
                   + consumer \"new\"\n";
    let dry_run = workspace.run("import f.csv --csv consumer --replace --dry-run");
    let dry_run = dry_run.done().stdout;
    assert!(dry_run.starts_with(changes), "{dry_run}");
    assert_eq!(secret(&export(&workspace)), before, "nothing is changed");
    let done = workspace
        .run("import f.csv --csv consumer --replace")
        .done();
    assert!(done.stdout.starts_with(changes), "{done:?}");
    has(&done.stdout, &["1 changed"]);
    assert_eq!(secret(&export(&workspace)), "s2");
    let json = workspace.run("import f.csv --csv consumer --replace --json --dry-run");
    has(&json.done().stdout, &[r#""unchanged":2,"changed":0"#]);
    fs::write(workspace.path("f.csv"), csv.replace("s2", "s3")).unwrap();
    let json = workspace
        .run("import f.csv --csv consumer --replace --json")
        .done();
    let line =
        r#"{"change":"changed","kind":"consumer","name":"shop","members":[{"name":"secret"}]}"#;
    assert_eq!(json.stdout.lines().next(), Some(line));
    assert!(!json.stdout.contains("s3"), "no secret is shown: {json:?}");
}

#[test]
fn a_file_can_be_the_source_for_consumers() {
    let workspace = Workspace::new();
    for key in ["shop", "old"] {
        workspace.consumer(key);
    }
    workspace.user("alice");
    let token = workspace.token("shop", "alice");
    workspace.token("old", "alice");
    // No secret is in the file, and the shop keeps its own.
    let file = r#"{"kind":"export","version":1}
        {"kind":"consumer","key":"shop","name":"The Shop","permissions":["read"]}"#;
    fs::write(workspace.path("consumers"), file).unwrap();
    let secret = export(&workspace);
    let secret = secret
        .lines()
        .find(|line| line.contains("\"shop\""))
        .unwrap();
    let secret: serde_json::Value = serde_json::from_str(secret).unwrap();
    let import = "import consumers --update --prune";
    let expected = "- consumer \"old\" with 1 access tokens\n\
        ~ consumer \"shop\": name \"Shop\" -> \"The Shop\", permissions [\"read\",\"write\"] -> [\"read\"]\n";
    let dry_run = workspace.run(&format!("{import} --dry-run")).done().stdout;
    assert!(dry_run.starts_with(expected), "{dry_run}");
    assert_eq!(workspace.json_lines("consumer list").len(), 2);
    let done = workspace.run(import).done().stdout;
    assert!(done.starts_with(expected), "{done}");
    has(&done, &["1 changed, 1 removed"]);
    let exported = export(&workspace);
    has(
        &exported,
        &["The Shop", secret["secret"].as_str().unwrap(), &token],
    );
    assert_eq!(workspace.json_lines("consumer list").len(), 1);
    let again = workspace.run(import).done().stdout;
    has(&again, &["0 added, 1 unchanged."]);
    // A new consumer needs a secret, and a file without consumers removes none.
    let new = file.replace("shop", "new");
    let told = workspace.run_with("import - --update", &new).failed(1);
    has(
        &told,
        &["2: consumer \"new\" is not in the store, and a new consumer needs secret"],
    );
    let none = file.lines().next().unwrap();
    let told = workspace
        .run_with("import - --update --prune", none)
        .failed(1);
    has(&told, &["has no consumer, and --prune would remove all"]);
    assert_eq!(export(&workspace), exported);
    for usage in ["import f --prune", "import f --update --replace"] {
        assert_eq!(workspace.run(usage).code, Some(2), "{usage}");
    }
}

/// Runs a command that succeeds, and returns the most memory in KiB that was resident.
fn peak(workspace: &Workspace, arguments: &str) -> u64 {
    let script = "import resource, subprocess, sys\n\
                  subprocess.run(sys.argv[1:], check=True, stdout=sys.stderr)\n\
                  print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)";
    let command = workspace.command(arguments);
    let output = started_by(&["python3", "-c", script], &command).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    let peak = String::from_utf8(output.stdout).unwrap();
    peak.trim().parse().unwrap()
}

#[test]
fn import_and_export_memory_hardly_grows_with_the_records() {
    let measured = |tokens: usize| {
        let workspace = Workspace::new();
        let mut file = "{\"kind\":\"export\",\"version\":1}\n".to_owned();
        for number in 0..tokens {
            file += &format!(
                "{{\"kind\":\"token\",\"token\":\"{:024}\",\"token_secret\":\"{number:032}\",\"consumer\":\"shop\",\"user\":\"7\"}}\n",
                number.wrapping_mul(2_654_435_761) % 1_000_000_007
            );
        }
        file += "{\"kind\":\"consumer\",\"key\":\"shop\",\"secret\":\"s\",\"name\":\"Shop\"}\n{\"kind\":\"user\",\"id\":\"7\",\"name\":\"alice\"}\n";
        fs::write(workspace.path("file"), file).unwrap();
        let import = peak(&workspace, "import file --json");
        (import, peak(&workspace, "export out"))
    };
    let (few, many) = (measured(10_000), measured(50_000));
    // At most 100 bytes for each of 40,000 records more, of which the index of keys takes 21.
    let limit = 40_000 * 100 / 1024;
    // The cache of the connection that writes, which is full then.
    let cache = 32 << 10;
    assert!(
        many.0 < few.0 + limit + cache,
        "import: {few:?} {many:?} KiB"
    );
    assert!(many.1 < few.1 + limit, "export: {few:?} {many:?} KiB");
}

#[test]
fn a_password_that_has_to_change_is_not_settled_by_an_import() {
    let workspace = Workspace::new();
    workspace.user("alice");
    let file = export(&workspace);
    let line = file.lines().find(|line| line.contains("id-alice"));
    let line: serde_json::Value = serde_json::from_str(line.unwrap()).unwrap();
    assert_eq!(line["must_change_password"], true);
    let after = |given: serde_json::Value, options: &str| {
        let mut line = line.clone();
        let members = line.as_object_mut().unwrap();
        members.remove("must_change_password");
        members.extend(given.as_object().unwrap().clone());
        let file = format!("{{\"kind\":\"export\",\"version\":1}}\n{line}\n");
        workspace
            .run_with(format!("import - {options}").trim_end(), &file)
            .done();
        workspace.json("user show alice")["must_change_password"].clone()
    };
    // The same password: it has to change as before, whatever else differs.
    assert_eq!(after(json!({}), ""), true);
    assert_eq!(
        after(json!({"must_change_password": null}), "--replace"),
        true
    );
    assert_eq!(after(json!({"display_name": "Alice"}), "--replace"), true);
    // The file says otherwise, and says so again.
    assert_eq!(
        after(json!({"must_change_password": false}), "--replace"),
        false
    );
    assert_eq!(after(json!({"display_name": "A"}), "--replace"), false);
    assert_eq!(
        after(json!({"must_change_password": true}), "--replace"),
        true
    );
    // Another password, which the user chose elsewhere.
    let other = "$2y$05$bvIG6Nmid91Mu9RcmmWZfO5HJIMCT8riNW0hEp8f6/FuA2/mHZFpe";
    assert_eq!(after(json!({"password_hash": other}), "--replace"), false);
}
