//! A MariaDB of a test.

use std::{path::Path, process::Command};

use crate::support::{program::Server, until};

/// Starts a MariaDB whose data and socket (`sql`) are in `directory`. Its temporary tables are there too: a MariaDB that starts
/// removes those of all others in its TMPDIR.
pub(crate) fn start(directory: &Path) -> Server {
    let at = |name: &str| directory.join(name);
    let account = Command::new("id").arg("-un").output().unwrap().stdout;
    let user = format!("--user={}", String::from_utf8(account).unwrap().trim());
    let data = format!("--datadir={}", at("data").display());
    let made = Command::new("mariadb-install-db")
        .env("TMPDIR", directory)
        .args([
            "--no-defaults",
            &data,
            &user,
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let socket = format!("--socket={}", at("sql").display());
    let log = std::fs::File::create(at("log")).unwrap();
    let mut server = Command::new("mariadbd");
    server
        .env("TMPDIR", directory)
        .args(["--no-defaults", &data, &user, &socket, "--skip-networking"])
        .stderr(log);
    let database = Server::start(&mut server);
    until("the MariaDB answers", || {
        query(directory, "SELECT 1").is_some()
    });
    database
}

/// The output of statements; `None` if the database does not answer or rejects them.
pub(crate) fn query(directory: &Path, statements: &str) -> Option<String> {
    let socket = format!("--socket={}", directory.join("sql").display());
    let options = [
        "--no-defaults",
        &socket,
        "--user=root",
        "--default-character-set=utf8mb4",
        "--batch",
        "--raw",
        "--skip-column-names",
    ];
    let output = Command::new("mariadb")
        .args(options)
        .args(["--execute", statements])
        .output()
        .unwrap();
    output
        .status
        .success()
        .then(|| String::from_utf8(output.stdout).unwrap())
}
