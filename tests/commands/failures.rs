//! Failures of commands: one line that names the problem and the fix, an exit code, nothing half-done.

use std::{fs::OpenOptions, process::Stdio};

use crate::commands::workspace::{Workspace, finish};
use crate::support::text::{has, words};

#[test]
fn wrong_usage_ends_with_2_and_one_line() {
    let workspace = Workspace::new();
    for (arguments, expected) in [
        ("consumer add", "--name <NAME>"),
        ("consumer add --name x --key ..", "'..'"),
        (
            "consumer add --name x --key a,b",
            "--key: a key or an id has only",
        ),
        ("consumer add --name x --rsa-only", "needs an RSA key"),
        (
            "user add bob --password-stdin --id a;b",
            "--id: a key or an id has only",
        ),
        (
            "import - --token-user a,b",
            "--token-user: a key or an id has only",
        ),
        ("consumer add --name a\nb", "control character"),
        ("consumer add --name x --callback javascript:x", "forbidden"),
        (
            "consumer add --name x --callback OOB",
            "neither an absolute URI nor oob",
        ),
        ("consumer add --name x --permission a\tb", "--permission"),
        ("consumer add --name x --dialect rfc", "rfc5849, legacy"),
        ("consumer add --name x --secret ", "--secret"),
        ("consumer rotate-secret x --grace 1", "--grace"),
        ("consumer show", "KEY"),
        ("user add bob --display-name ", "empty"),
        ("token issue --user x", "--consumer <KEY>"),
        ("export", "FILE"),
        ("export x --forse", "--force"),
        ("serve --nonsense", "countersign serve --help"),
        ("nonsense", "nonsense"),
    ] {
        let line = workspace.run(arguments).failed(2);
        assert!(
            line.starts_with("countersign: ") && line.contains(expected),
            "{line}"
        );
    }
    let name = ["user", "add", " bob", "--password-stdin"];
    let line = workspace.run(&name).failed(2);
    assert!(line.contains("white space"), "{line}");
    assert_eq!(workspace.files(), ["config.toml"], "nothing was begun");
}

#[test]
fn help_and_version_succeed() {
    let workspace = Workspace::new();
    let help = workspace.run("--help").done().stdout;
    // Each group is headed by what its commands are for.
    for group in ["Start", "Operate", "Records", "Store", "Develop", "Shell"] {
        has(&help, &[&format!("\n{group}:\n")]);
    }
    for command in [
        "demo", "serve", "check", "status", "health", "why", "consumer", "user", "token", "export",
        "import", "rekey", "sign", "explain",
    ] {
        has(&help, &[&format!("\n  {command} ")]);
        assert!(
            !workspace
                .run(&format!("{command} --help"))
                .done()
                .stdout
                .is_empty()
        );
    }
    assert!(
        help.matches("\n  countersign ").count() >= 2,
        "examples: {help}"
    );
    let version = workspace.run("--version").done().stdout;
    assert_eq!(
        version,
        concat!("countersign ", env!("CARGO_PKG_VERSION"), "\n")
    );
    for arguments in [&[][..], &["consumer"]] {
        let ended = workspace.run(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
        assert!(ended.stderr.contains("Usage: countersign"), "{ended:?}");
    }
}

#[test]
fn invalid_configuration_ends_with_2_and_a_line_per_problem() {
    let workspace = Workspace::with("listen.adress = 'x'\nsignature.timestamp_window = 'soon'");
    let ended = workspace.run("consumer add --name x");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    assert_eq!(ended.stderr.lines().count(), 2, "{ended:?}");
    assert_eq!(workspace.files(), ["config.toml"]);
}

#[test]
fn option_variable_and_directory_name_the_configuration() {
    let workspace = Workspace::new();
    workspace.consumer("here");
    let elsewhere = Workspace::new();
    elsewhere.consumer("there");
    let named = elsewhere.path("config.toml");
    let store = elsewhere.path("countersign.db");
    elsewhere.configure(&format!("store.url = {:?}", store.to_str().unwrap()));
    let keys = |environment: Option<&str>, option: Option<&str>| {
        let mut command = workspace.command("consumer list --json");
        if let Some(path) = environment {
            command.env("COUNTERSIGN_CONFIG", path);
        }
        if let Some(path) = option {
            command.args(["--config", path]);
        }
        let text = finish(command, b"").done().stdout;
        (text.contains("\"here\""), text.contains("\"there\""))
    };
    let named = named.to_str();
    assert_eq!(keys(None, None), (true, false));
    assert_eq!(keys(Some(""), None), (true, false));
    assert_eq!(keys(named, None), (false, true));
    assert_eq!(keys(Some("/nowhere"), named), (false, true));
    let mut missing = workspace.command("consumer list");
    missing.env("COUNTERSIGN_CONFIG", "/nowhere/config.toml");
    let line = finish(missing, b"").failed(2);
    assert!(line.contains("/nowhere/config.toml"), "{line}");
}

#[test]
fn only_commands_that_register_something_make_a_store() {
    for arguments in [
        "consumer list",
        "consumer show x",
        "consumer update x --name y",
        "consumer link x",
        "consumer remove x",
        "user list",
        "user passwd x --password-stdin",
        "token issue --consumer x --user x",
        "token revoke x",
        "export -",
    ] {
        let workspace = Workspace::new();
        let line = workspace.run(arguments).failed(1);
        for part in ["config.toml", "store.url", "countersign.db", "no such file"] {
            assert!(line.contains(part), "{arguments:?}: {line}");
        }
        assert_eq!(workspace.files(), ["config.toml"], "{arguments:?}");
    }
}

#[test]
fn command_that_fails_before_registering_makes_no_store() {
    let workspace = Workspace::new();
    for (arguments, input) in [
        ("consumer add --name x --rsa-public-key config.toml", ""),
        ("consumer add --name x --secret @nowhere", ""),
        ("user add bob --password-stdin", ""),
        ("import nowhere", ""),
        ("import -", "nonsense"),
    ] {
        let line = workspace.run_with(arguments, input).failed(1);
        assert_eq!(workspace.files(), ["config.toml"], "{line}");
    }
}

#[test]
fn a_file_that_is_not_a_store_is_named_and_unchanged() {
    let workspace = Workspace::new();
    std::fs::write(
        workspace.path("countersign.db"),
        "no database, but more than a header is long".repeat(9),
    )
    .unwrap();
    let line = workspace.run("consumer list").failed(1);
    let parts = ["config.toml", "store.url", "countersign.db"];
    has(
        &line,
        &[&parts[..], &["is not an SQLite database"]].concat(),
    );
    assert_eq!(workspace.files(), ["config.toml", "countersign.db"]);
}

#[test]
fn an_unknown_name_ends_with_1_and_says_where_to_look() {
    let workspace = Workspace::new();
    workspace.consumer("c");
    workspace.user("u");
    let consumer = "no consumer has the key \"x\"; list the consumers to find it";
    let user = "there is no user \"x\"; list the users to find the name";
    let token = "there is no such access token; list the tokens to find it";
    for (arguments, expected) in [
        ("consumer show x", consumer),
        ("consumer update x --enforce", consumer),
        ("consumer rotate-secret x", consumer),
        ("consumer disable x", consumer),
        ("consumer enable x", consumer),
        ("consumer link x", consumer),
        ("consumer remove x", consumer),
        ("user passwd x --password-stdin", user),
        ("user disable x", user),
        ("user enable x", user),
        ("user remove x", user),
        ("token issue --consumer x --user u", consumer),
        ("token issue --consumer c --user x", user),
        ("token list --consumer x", consumer),
        ("token list --user x", user),
        ("token revoke x", token),
    ] {
        let line = workspace.run_with(arguments, "password").failed(1);
        assert_eq!(line, format!("countersign: {expected}"), "{arguments}");
    }
}

#[test]
fn a_closed_output_is_not_a_failure() {
    let workspace = Workspace::new();
    workspace.consumer("c");
    let mut child = workspace
        .command("consumer list")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

/// The errors of a command that fails because its output is full.
fn errors_at_a_full_output(workspace: &Workspace, arguments: &str) -> String {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = workspace.command(arguments);
    let output = command.stdin(Stdio::null()).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_full_output_is_a_failure() {
    let workspace = Workspace::new();
    workspace.consumer("c");
    let told = errors_at_a_full_output(&workspace, "consumer list");
    assert!(
        told.starts_with("countersign: cannot write to standard output: "),
        "{told}"
    );
}

#[test]
fn an_export_that_cannot_be_written_to_its_end_is_recorded() {
    let workspace = Workspace::with("log.format = 'json'");
    workspace.consumer("c");
    let told = errors_at_a_full_output(&workspace, "export - --log");
    has(&told, &["store_exported", "No space left on device"]);
}

#[test]
fn audit_records_are_written_when_asked_for_and_hold_no_secret() {
    let workspace = Workspace::new();
    workspace.consumer("c");
    workspace.user("u");
    let ended = workspace.run("token issue --consumer c --user u --json --log");
    let issued: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let (token, secret) = (
        issued["token"].as_str().unwrap(),
        issued["token_secret"].as_str().unwrap(),
    );
    let record = &ended.stderr;
    assert_eq!(record.lines().count(), 1, "{record}");
    for part in [
        "audit",
        "access_token_issued",
        "consumer=c",
        "user=id-u",
        &token[..8],
    ] {
        assert!(record.contains(part), "{part}: {record}");
    }
    assert!(
        !record.contains(&token[..9]) && !record.contains(secret),
        "{record}"
    );

    workspace.configure("log.format = 'json'");
    let ended = workspace.run("consumer rotate-secret c --log");
    let record: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!(
        (
            record["target"].as_str(),
            record["event"].as_str(),
            record["consumer"].as_str()
        ),
        (Some("audit"), Some("consumer_secret_rotated"), Some("c"))
    );
    let changes = [
        ("consumer add --name x", "consumer_registered"),
        ("consumer update c --name x", "consumer_changed"),
        ("consumer disable c", "consumer_disabled"),
        ("consumer enable c", "consumer_enabled"),
        ("consumer link c", "developer_link_made"),
        ("consumer link c --revoke", "developer_link_revoked"),
        (&format!("token revoke {token}"), "token_revoked"),
        ("user disable u", "user_disabled"),
        ("user enable u", "user_enabled"),
        ("user end-sessions u", "sessions_ended"),
        ("user unlock u", "login_pauses_ended"),
        ("user update u --display-name U", "user_changed"),
        ("user passwd u --password-stdin", "password_changed"),
        ("export all.jsonl", "store_exported"),
        ("import all.jsonl", "records_imported"),
        ("user remove u", "user_removed"),
        ("consumer link c", "developer_link_made"),
        ("consumer remove c", "consumer_removed"),
        ("user add v --password-stdin", "user_added"),
    ];
    for (arguments, event) in &changes {
        let ended = workspace.run_with(&format!("{arguments} --log"), "correct horse battery");
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let record: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
        assert_eq!(record["event"].as_str(), Some(*event), "{record}");
    }
    // All commands but those that read: a change that has no record did not go through the use cases.
    let others = [
        "token issue ",
        "consumer rotate-secret ",
        // Tried where a user asks for a consumer.
        "consumer approve ",
        "consumer decline ",
        "rekey ",
    ];
    let is_audited = |command: &str| {
        let mut audited = others.into_iter().chain(changes.iter().map(|(it, _)| *it));
        audited.any(|arguments| arguments.starts_with(command))
    };
    let reading = words(
        "check completions demo explain health help list lti-key-sign man serve sessions show sign status consumer token user why",
    );
    for kind in ["", "consumer ", "user ", "token "] {
        let help = workspace.run(&format!("{kind}--help")).done().stdout;
        // The commands of the program are in groups.
        let commands = match kind {
            "" => help.split("\nOptions:").next(),
            _ => help.split("Commands:").nth(1).unwrap().split("\n\n").next(),
        };
        let lines = commands
            .unwrap()
            .lines()
            .filter_map(|line| line.strip_prefix("  "));
        let lines = lines.filter(|line| !line.starts_with(char::is_whitespace));
        let names = lines.filter_map(|line| line.split_whitespace().next());
        for name in names.filter(|name| !reading.contains(name)) {
            let command = format!("{kind}{name} ");
            assert!(is_audited(&command), "{command}");
        }
    }

    let sealed = Workspace::with("log.format = 'json'\nstore.encryption_key_file = 'store.key'");
    sealed.at_file("store.key", [7; 32]);
    sealed.consumer("c");
    let ended = sealed.run("rekey --log");
    let record: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    let counts = (&record["event"], &record["rekeyed"], &record["unopened"]);
    assert_eq!(
        counts,
        (&"store_rekeyed".into(), &0.into(), &0.into()),
        "{record}"
    );
}
