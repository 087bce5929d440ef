//! The environment over the file.

use super::*;

#[test]
fn takes_the_environment_over_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    // Of an editor of Windows.
    let realm = file("realm", "\"from a file\"\r\n");
    let url = file("url", "two.db\n\n");
    let text = format!("{MINIMAL}[listen]\naddress = \"127.0.0.1:1\"\nworkers = 3\n");
    let config = parse(
        &text,
        "/c",
        environment(&[
            ("COUNTERSIGN__LISTEN__ADDRESS", "127.0.0.1:2"),
            (
                "COUNTERSIGN__LISTEN__TRUSTED_PROXIES",
                "[\"10.0.0.0/8\", \"::1\"]",
            ),
            ("COUNTERSIGN__LISTEN__TLS__CERTIFICATE", "cert.pem"),
            ("COUNTERSIGN__LISTEN__TLS__KEY", "\"key.pem\""),
            ("COUNTERSIGN__SERVICE__REALM_FILE", &realm),
            ("COUNTERSIGN__STORE__ENCRYPTION_KEY_FILE", "store.key"),
            ("COUNTERSIGN__NONCE__MAX_ENTRIES", "50_000"),
            (
                "COUNTERSIGN__OPERATION",
                "[{ path = \"/a\", access = [\"user\"] }]",
            ),
            ("COUNTERSIGN_CONFIG", "not ours"),
            ("PATH", "/bin"),
        ]),
    )
    .unwrap();
    assert_eq!(config.listen.address, ["127.0.0.1:2".parse().unwrap()]);
    assert_eq!(config.listen.workers.map(u16::from), Some(3));
    assert_eq!(config.proxies.trusted_proxies.len(), 2);
    assert_eq!(config.listen_tls.certificate, [Path::new("/cert.pem")]);
    assert_eq!(config.listen_tls.key, [Path::new("/key.pem")]);
    assert_eq!(config.responses.realm, "from a file");
    assert_eq!(config.store.encryption_key_file, [Path::new("/store.key")]);
    assert_eq!(config.nonce.max_entries.get(), 50_000);
    assert_eq!(
        config.operation[0].access,
        [crate::request::policy::access::CallerKind::User]
    );

    // One final newline is dropped, not two.
    let error = errors_with("", &[("COUNTERSIGN__STORE__URL_FILE", &url)]);
    assert_eq!(
        error,
        ["COUNTERSIGN__STORE__URL_FILE: store.url: it has a control character in it"]
    );
}

#[test]
fn the_data_directory_is_for_the_files_that_the_process_writes() {
    let read = |text: &str, data: &str| {
        let text = format!("{MINIMAL}{text}");
        parse(
            &text,
            "/etc/cs/config.toml",
            environment(&[("COUNTERSIGN_DATA", data)]),
        )
        .unwrap()
    };
    let config = read("store.encryption_key_file = \"key\"\n", "/data");
    assert_eq!(
        config.store.file().unwrap(),
        Path::new("/data/countersign.db")
    );
    assert_eq!(
        config.nonce_path().unwrap(),
        Path::new("/data/countersign.db.nonces")
    );
    assert_eq!(config.store.encryption_key_file, [Path::new("/etc/cs/key")]);
    let written = "store.url = \"a.db\"\nnonce.path = \"/b/a.nonces\"\n";
    let config = read(written, "data");
    assert_eq!(config.store.file().unwrap(), Path::new("/etc/cs/data/a.db"));
    assert_eq!(config.nonce_path().unwrap(), Path::new("/b/a.nonces"));
}

#[test]
fn rejects_variables_that_set_nothing() {
    for [variables, line] in crate::text::rows(
        r#"
        COUNTERSIGN__LISTEN__ADDRES=x | COUNTERSIGN__LISTEN__ADDRES: unknown variable, did you mean COUNTERSIGN__LISTEN__ADDRESS?
        COUNTERSIGN__LISTEN__CERTIFICATE=x | COUNTERSIGN__LISTEN__CERTIFICATE: unknown variable, did you mean COUNTERSIGN__LISTEN__TLS__CERTIFICATE?
        COUNTERSIGN__listen__address=x | COUNTERSIGN__listen__address: unknown variable, did you mean COUNTERSIGN__LISTEN__ADDRESS?
        COUNTERSIGN__OPERATION__PATH=/a | COUNTERSIGN__OPERATION__PATH: unknown variable, did you mean COUNTERSIGN__SERVICE__PATH?
        COUNTERSIGN__OPERATION=[{ path = "/a", permision = "b" }] | COUNTERSIGN__OPERATION: operation[1].permision: unknown key, did you mean operation.permission?
        COUNTERSIGN__=x | COUNTERSIGN__: unknown variable; its name is COUNTERSIGN__SECTION__KEY, with the keys of config.example.toml
        COUNTERSIGN__LOG__LEVEL=info\nCOUNTERSIGN__LOG__LEVEL_FILE=x | COUNTERSIGN__LOG__LEVEL_FILE: COUNTERSIGN__LOG__LEVEL is set too; unset one of the two
        COUNTERSIGN__LOG__LEVEL_FILE=/nowhere/x | COUNTERSIGN__LOG__LEVEL_FILE: the file /nowhere/x cannot be read: No such file or directory (os error 2); name a readable one
        COUNTERSIGN__LISTEN__WORKERS=many | COUNTERSIGN__LISTEN__WORKERS: listen.workers: expected a whole number above 0
    "#,
    ) {
        let variables = variables.lines().filter_map(|line| line.split_once('='));
        assert_eq!(errors_with("", &Vec::from_iter(variables)), [line]);
    }
}

#[cfg(unix)]
#[test]
fn rejects_variables_that_are_no_text() {
    use std::os::unix::ffi::OsStringExt as _;

    let value = OsString::from_vec(vec![0xff]);
    let variables = [("COUNTERSIGN__LOG__LEVEL".into(), value)];
    let error = parse(MINIMAL, "c", variables).unwrap_err().to_string();
    assert_eq!(
        error,
        "COUNTERSIGN__LOG__LEVEL: its value is not valid UTF-8"
    );
}
