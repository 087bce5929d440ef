//! TLS of old APIs: `openssl` makes their certificates and serves them.
//!
//! Promise (TLS): A trusted certificate of a server itself is accepted under any name; `check` names other faults of an old
//! API.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::support::{
    Call, Proxy, Upstream,
    authority::{Authority, Good},
    has,
    program::Server,
    proxy::Builder,
};

/// Runs openssl in a directory, without the limits of the system's configuration.
fn openssl(directory: &Path, words: &str) -> Command {
    let mut command = Command::new("openssl");
    command
        .current_dir(directory)
        .env("OPENSSL_CONF", "/dev/null");
    command.args(words.split(' ').map(|word| word.replace('~', " ")));
    command
}

#[track_caller]
fn done(directory: &Path, words: &str) {
    let done = openssl(directory, words)
        .output()
        .expect("openssl is installed");
    assert!(done.status.success(), "{words}: {done:?}");
}

/// An API that openssl serves, ended when this is dropped.
struct Api {
    _server: Server,
    port: String,
    directory: TempDir,
}

const NEW_KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:P-256";

impl Api {
    /// Serves a certificate that `openssl req -x509` makes with these options, with these options of `openssl s_server`.
    fn self_signed(certificate: &str, server: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let key = if certificate.contains("-newkey") {
            ""
        } else {
            NEW_KEY
        };
        let words = format!(
            "req -x509 -nodes -days 9 -keyout key.pem -out api.pem -subj /CN=localhost {key} {certificate}"
        );
        done(directory.path(), words.replace("  ", " ").trim_end());
        Self::serve(directory, server)
    }

    /// Serves a certificate that an authority, `ca.pem`, has signed with these extensions; none: a certificate of version 1.
    fn signed(extensions: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let at = directory.path();
        fs::write(at.join("extensions"), extensions).unwrap();
        done(
            at,
            &format!("req -x509 -nodes -days 9 -keyout ca.key -out ca.pem -subj /CN=CA {NEW_KEY}"),
        );
        done(
            at,
            &format!("req -new -nodes -keyout key.pem -out api.csr -subj /CN=localhost {NEW_KEY}"),
        );
        let sign =
            "x509 -req -days 9 -in api.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out api.pem";
        match extensions {
            "" => done(at, sign),
            _ => done(at, &format!("{sign} -extfile extensions")),
        }
        Self::serve(directory, "")
    }

    fn serve(directory: TempDir, options: &str) -> Self {
        let words =
            format!("s_server -accept 127.0.0.1:0 -www -cert api.pem -key key.pem {options}");
        let mut server = openssl(directory.path(), words.trim_end());
        let mut server = Server::telling(server.stderr(Stdio::null()));
        let mut lines = BufReader::new(server.0.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            let line = line.unwrap();
            let address = line.strip_prefix("ACCEPT ")?;
            Some(address.rsplit_once(':').unwrap().1.to_owned())
        });
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            _server: server,
            port: port.expect("s_server listens"),
            directory,
        }
    }

    /// A proxy in front of it that trusts this file of its directory.
    fn behind(&self, ca: &str) -> Builder {
        let ca = self.directory.path().join(ca);
        Proxy::in_front_of_url(&format!("https://localhost:{}", self.port)).config(&format!(
            "upstream.tls.ca = '{}'\noperation = [{{ path = '/{{*rest}}', access = ['anonymous'] }}]",
            ca.display()
        ))
    }
}

const NAMED: &str = "-addext subjectAltName=DNS:localhost";

#[test]
fn a_certificate_that_is_itself_trusted_is_accepted() {
    for (certificate, server) in [
        // What openssl makes by default: an authority's.
        (NAMED, ""),
        (NAMED, "-tls1_2"),
        ("", ""),
        ("-addext basicConstraints=critical,CA:FALSE", ""),
        ("-addext subjectAltName=DNS:elsewhere.test", "-tls1_2"),
        ("-addext extendedKeyUsage=clientAuth", ""),
        ("-newkey rsa:2048", "-tls1_2"),
        ("-newkey rsa:2048", "-tls1_3"),
        ("-newkey rsa:2048 -sha1", "-tls1_2"),
    ] {
        let api = Api::self_signed(certificate, server);
        let builder = api.behind("api.pem");
        let checked = builder.check();
        assert_eq!(
            checked.code(),
            Some(0),
            "{certificate} {server}: {checked:?}"
        );
        builder.start().send(Call::get("/open")).has_status(200);
    }
    let old = Api::signed("");
    old.behind("api.pem")
        .start()
        .send(Call::get("/open"))
        .has_status(200);
}

#[test]
fn its_dates_count() {
    let authority = Authority::new("CA");
    let key = rcgen::KeyPair::generate().unwrap();
    let expired = authority.sign(&["localhost"], Good::ENDED, key);
    let api = Upstream::over_tls_with(super::upstream::server(&expired, None));
    let builder = Proxy::in_front_of(&api);
    let path = builder.directory().join("api.pem");
    fs::write(&path, &expired.certificate).unwrap();
    let builder = builder.config(&format!("upstream.tls.ca = '{}'", path.display()));
    let checked = builder.check();
    assert_eq!(checked.code(), Some(1), "{checked:?}");
    has(&checked.stderr, &["xpired", "renew its certificate"]);
}

#[test]
fn each_cause_is_named_with_its_fix() {
    const ITSELF: &str = "upstream.tls.ca can name the file of this certificate itself";
    let signed = |extensions: &str| (Api::signed(extensions), "ca.pem");
    let trusted =
        |certificate: &str, server: &str| (Api::self_signed(certificate, server), "api.pem");
    for ((api, ca), words) in [
        (
            signed("subjectAltName=DNS:localhost\nbasicConstraints=CA:TRUE"),
            [
                "is an authority's: make one with basicConstraints=CA:FALSE",
                ITSELF,
            ],
        ),
        (signed(""), ["has version 1: make one of version 3", ITSELF]),
        (
            signed("basicConstraints=CA:FALSE"),
            ["has no subjectAltName", ITSELF],
        ),
        (
            signed("subjectAltName=DNS:elsewhere.test"),
            ["not valid for name", "upstream.tls.server_name"],
        ),
        (
            trusted(NAMED, "-tls1_1 -cipher ALL:@SECLEVEL=0"),
            ["speaks TLS 1.1 or older", "put a TLS proxy"],
        ),
        (
            trusted(NAMED, "-tls1 -cipher ALL:@SECLEVEL=0"),
            ["speaks TLS 1.1 or older", "put a TLS proxy"],
        ),
        (
            trusted("-newkey rsa:2048", "-tls1_2 -cipher AES128-SHA"),
            ["none of our ciphers", "ECDHE with AES-GCM"],
        ),
        (
            trusted(
                "-newkey rsa:2048",
                "-tls1_2 -cipher DHE-RSA-AES128-GCM-SHA256",
            ),
            ["none of our ciphers", "ECDHE with AES-GCM"],
        ),
        (
            trusted("-newkey rsa:2048", "-tls1_2 -cipher ECDHE-RSA-AES128-SHA"),
            ["none of our ciphers", "ECDHE with AES-GCM"],
        ),
        (
            trusted("-newkey rsa:1024", "-tls1_2 -cipher ALL:@SECLEVEL=0"),
            ["fewer than 2,048 bits", "make a new key"],
        ),
        (
            trusted(NAMED, "-Verify 1"),
            [
                "demands a client certificate",
                "upstream.tls.certificate and upstream.tls.key",
            ],
        ),
        (
            trusted(NAMED, "-Verify 1 -tls1_2"),
            [
                "asks for a client certificate",
                "upstream.tls.certificate and upstream.tls.key",
            ],
        ),
    ] {
        let checked = api.behind(ca).check();
        assert_eq!(checked.code(), Some(1), "{words:?}: {checked:?}");
        has(&checked.stderr, &["upstream.api_url"]);
        has(&checked.stderr, &words);
        assert!(!checked.stderr.contains("start the API"), "{checked:?}");
    }
    let checked = Api::self_signed(NAMED, "-verify 1")
        .behind("api.pem")
        .check();
    has(&checked.stderr, &["! ", "asks for a client certificate"]);
}
