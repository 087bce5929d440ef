//! `sign` and `explain` with the secrets of the store.

use crate::commands::workspace::Workspace;
use crate::support::text::has;

const URL: &str = "https://api.test/members/1?a=b";

fn sign<'a>(token: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["sign", "GET", URL, "--consumer-key", "c", "--token", token];
    arguments.extend(rest);
    arguments
}

#[test]
fn explain_accepts_what_sign_signed_with_the_same_store() {
    let workspace = Workspace::new();
    workspace.consumer("c");
    workspace.user("alice");
    let token = workspace.token("c", "alice");
    let header = workspace.run(&sign(&token, &[])).done().stdout;
    let explain = ["explain", "GET", URL, "--header", header.trim_end()];
    assert_eq!(workspace.json(&explain)["matches"], true);
    workspace.run("consumer rotate-secret c").done();
    let ended = workspace.run(&explain);
    assert_eq!(ended.code, Some(1));
    has(&ended.stdout, &["the signature does not match"]);
    let header = workspace.run(&sign(&token, &[])).done().stdout;
    let explain = ["explain", "GET", URL, "--header", header.trim_end()];
    assert_eq!(workspace.json(&explain)["matches"], true);
}

/// As `serve` does, by the same configuration and store.
#[test]
fn explain_ends_with_1_for_what_the_server_rejects() {
    let workspace = Workspace::new();
    workspace.consumer("c");
    workspace.user("alice");
    let token = workspace.token("c", "alice");
    let header = workspace.run(&sign(&token, &[])).done().stdout;
    let header = header.trim_end();
    let explain = |reason: &str| {
        let ended = workspace.run(&["explain", "GET", URL, "--header", header]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stdout.contains("the signature matches"), "{ended:?}");
        assert!(ended.stdout.contains(reason), "{ended:?}");
    };
    workspace.configure("signature.methods = ['HMAC-SHA256']");
    explain("signature_method_rejected: signature.methods has no HMAC-SHA1");
    workspace.configure("");
    workspace.run("consumer disable c").done();
    explain("consumer_key_refused: the consumer is disabled");
    workspace.run("consumer enable c").done();
    workspace.run(&format!("token revoke {token}")).done();
    explain("token_revoked: the token was revoked");
}

#[test]
fn explain_reads_a_pasted_request() {
    let workspace = Workspace::new();
    workspace.consumer("c");
    workspace.user("alice");
    let token = workspace.token("c", "alice");
    let command = workspace.run(&sign(&token, &["--curl"])).done().stdout;
    let explain = workspace.run_with("explain --request -", &command);
    assert!(explain.done().stdout.contains("the signature matches"));
    let header = workspace.run(&sign(&token, &[])).done().stdout;
    let http = format!("GET /members/1?a=b HTTP/1.1\r\nHost: api.test\r\n{header}\r\n\r\n");
    let http = http.replace("GET /members", "GET https://api.test/members");
    let explain = workspace.run_with("explain --request -", &http).done();
    has(&explain.stdout, &["the signature matches"]);
    let wrong = workspace.run_with("explain --request -", "x");
    has(&wrong.failed(2), &["begins neither with curl"]);
    assert_eq!(
        workspace.run("explain GET http://h/ --request -").code,
        Some(2)
    );
}

#[test]
fn sign_adds_the_hash_of_a_body_that_is_not_a_form() {
    let workspace = Workspace::new();
    workspace.consumer("c");
    let with = |command: &[&str], rest: &[&str]| {
        let request = ["POST", "https://api.test/outcomes", "--data", "{\"a\":1}"];
        workspace.run(&[command, &request, rest].concat())
    };
    let json = ["--header", "Content-Type: application/json"];
    let sign = ["sign", "--consumer-key", "c", "--body-hash"];
    for (method, hash) in [
        ("HMAC-SHA1", "n4nHQM60bXQYySSnisV5QdXpZSA%3D"),
        (
            "HMAC-SHA256",
            "AVq9f1zFei3ZS3WQ8ErYCEJzkF7jPsXOvq5iJ2qX%2BGI%3D",
        ),
    ] {
        let header = with(&sign, &[&json[..], &["--method", method]].concat());
        let header = header.done().stdout;
        let hash = format!("oauth_body_hash=\"{hash}\"");
        has(&header, &[&hash]);
        let header = ["--header", header.trim_end()];
        let explained = with(&["explain"], &[json, header].concat());
        has(&explained.done().stdout, &["the signature matches"]);
    }
    for (rest, reason) in [
        (&[][..], "a form is signed without a hash"),
        (&["--method", "PLAINTEXT"], "PLAINTEXT covers no body"),
    ] {
        let rest = match rest {
            [] => Vec::new(),
            method => [&json[..], method].concat(),
        };
        let ended = with(&sign, &rest);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        has(&ended.stderr, &[reason]);
    }
}

/// The keys are those of `openssl`, and `explain` verifies with the public one alone.
#[test]
fn sign_uses_a_private_rsa_key() {
    let workspace = Workspace::new();
    let openssl = |arguments: &[&str]| {
        let mut command = std::process::Command::new("openssl");
        let output = command
            .current_dir(workspace.path(""))
            .args(arguments)
            .output();
        assert!(output.unwrap().status.success(), "{arguments:?}");
    };
    openssl(&["genrsa", "-out", "key.pem", "2048"]);
    openssl(&["rsa", "-in", "key.pem", "-pubout", "-out", "public.pem"]);
    openssl(&["rsa", "-in", "key.pem", "-traditional", "-out", "pkcs1.pem"]);
    for (method, key) in [
        ("RSA-SHA256", "key.pem"),
        ("RSA-SHA512", "pkcs1.pem"),
        ("RSA-PSS", "key.pem"),
    ] {
        let rsa = ["--method", method, "--rsa-private-key", key];
        let header = workspace.run(&sign("t", &rsa)).done().stdout;
        let header = header.trim_end();
        let public = ["--rsa-public-key", "public.pem"];
        let explain = [&["explain", "GET", URL, "--header", header][..], &public].concat();
        assert_eq!(workspace.json(&explain)["matches"], true, "{method}");
        has(&workspace.run(&explain).stdout, &["RSA key of 2048 bits"]);
        let other = [&["explain", "POST"], &explain[2..], &["--json"]].concat();
        has(&workspace.run(&other).stdout, &["other_method: "]);
        let none = [&explain[..6], &["config.toml"]].concat();
        let line = workspace.run(&none).failed(1);
        has(&line, &["no PEM block (-----BEGIN PUBLIC KEY-----) found"]);
    }
    let line = workspace
        .run(&sign("t", &["--method", "RSA-SHA1"]))
        .failed(2);
    assert!(line.contains("give --rsa-private-key FILE"), "{line}");
    let sha1 = ["--method", "RSA-SHA1", "--rsa-private-key", "key.pem"];
    let line = workspace.run(&sign("t", &sha1)).failed(2);
    assert!(
        line.contains("use RSA-SHA256, RSA-SHA512 or RSA-PSS"),
        "{line}"
    );
    let public = ["--method", "RSA-SHA256", "--rsa-private-key", "public.pem"];
    let line = workspace.run(&sign("t", &public)).failed(1);
    has(&line, &["--rsa-private-key public.pem: no PEM block"]);
}

#[test]
fn missing_secrets_are_named_with_the_option_that_gives_them() {
    let workspace = Workspace::new();
    let line = workspace.run(&sign("t", &[])).failed(1);
    has(&line, &["countersign.db", "--consumer-secret"]);
    workspace.consumer("other");
    let line = workspace.run(&sign("t", &[])).failed(1);
    assert!(line.contains("no such consumer"), "{line}");
    workspace.consumer("c");
    let line = workspace.run(&sign("t", &[])).failed(1);
    assert!(line.contains("no such token"), "{line}");
    workspace.configure("listen.adress = 'x'");
    let line = workspace.run(&sign("t", &[])).failed(2);
    assert!(line.contains("listen.adress"), "{line}");
    // With secrets given as options it reads neither configuration nor store.
    workspace
        .run(&sign(
            "t",
            &["--consumer-secret", "s", "--token-secret", "s"],
        ))
        .done();
}
