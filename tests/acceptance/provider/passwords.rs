//! Passwords that log in, and what the time of a login reveals.
//!
//! Promise (Signatures): Password hashes of other systems verify within a cost limit; the first login replaces them. Also in
//! `tests/store_contract/transfer.rs`, `src/provider/login/stored.rs`.

use std::{os::unix::fs::FileExt, sync::mpsc::channel, thread, time::Duration};

use crate::support::{
    PATIENCE,
    call::{Call, form},
    http::Answer,
    legs::LOGIN,
    legs::PASSWORD,
    proxy::{Proxy, User},
    upstream::{Reply, Upstream},
    visitor::Visitor,
};

/// A login form that was opened once and is sent again and again, as a program sends it.
struct LoginForm<'a> {
    proxy: &'a Proxy,
    csrf: String,
    cookie: String,
}

impl<'a> LoginForm<'a> {
    fn open(proxy: &'a Proxy) -> Self {
        let mut visitor = Visitor::to(proxy);
        let csrf = visitor.open(LOGIN).form_with("password").fields;
        let csrf = csrf.into_iter().find(|(name, _)| name == "csrf").unwrap().1;
        let (name, value) = visitor.cookies.into_iter().next().unwrap();
        Self {
            proxy,
            csrf,
            cookie: format!("{name}={value}"),
        }
    }

    fn send(&self, name: &str, password: &str) -> Answer {
        self.send_from("203.0.113.1", name, password)
    }

    /// As a trusted proxy passes it on for this address.
    fn send_from(&self, address: &str, name: &str, password: &str) -> Answer {
        let fields = [
            ("csrf", self.csrf.as_str()),
            ("username", name),
            ("password", password),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let call = Call::post(LOGIN)
            .header("Origin", &self.proxy.origin())
            .header("Cookie", &self.cookie)
            .header("X-Forwarded-For", address);
        self.proxy.send(call.form(&form(&fields)))
    }
}

/// The session cookie of a login that succeeded.
fn session(answer: &Answer) -> Option<String> {
    let cookies = answer.fields.all("set-cookie");
    let cookie = cookies
        .iter()
        .find(|cookie| cookie.starts_with("countersign="))?;
    Some(cookie.split(';').next().unwrap().to_owned())
}

fn with_account(api: &Upstream) -> Proxy {
    Proxy::with(
        api,
        "operation = [{ path = '/account', access = ['user'] }]\nlogin.max_failures = '100000 per 15m'",
    )
}

/// A hash of `password`, by the reference implementation.
const IMPORTED: &str =
    "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
/// A hash of `lètmein`, by Django.
const DJANGO: &str = "pbkdf2_sha256$10000$seasalt$CWWFdHOWwPnki7HvkcqN9iA2T3KLW1cf2uZ5kvArtVY=";
/// A hash of an unknown password.
const TAIL: &str = "$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";

fn import(proxy: &Proxy, users: &[(&str, Option<&str>, bool)]) {
    let mut lines = "{\"kind\":\"export\",\"version\":1}\n".to_owned();
    for (name, hash, enabled) in users {
        let line = serde_json::json!({
            "kind": "user", "id": name, "name": name, "password_hash": hash, "enabled": enabled,
        });
        lines.push_str(&format!("{line}\n"));
    }
    proxy.command_with(&["import", "-"], &lines).done();
}

fn hash_of(proxy: &Proxy, name: &str) -> String {
    let exported = proxy.run("export -").stdout;
    let line = exported
        .lines()
        .find(|line| line.contains(&format!("\"name\":\"{name}\"")));
    let user: serde_json::Value = serde_json::from_str(line.unwrap()).unwrap();
    user["password_hash"].as_str().unwrap().to_owned()
}

/// The CPU time of the proxy's threads. It is nearly all password hashing when a login is timed, and excludes other
/// work of the machine, which a clock would count.
fn processor_time(proxy: &Proxy) -> Duration {
    let stat = format!("/proc/{}/stat", proxy.pid().as_raw_nonzero());
    let stat = std::fs::read_to_string(stat).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split(' ').collect();
    // `utime` and `stime`, in hundredths of a second.
    let ticks: u64 = [12, 13]
        .map(|at| fields[at].parse::<u64>().unwrap())
        .iter()
        .sum();
    Duration::from_millis(10 * ticks)
}

#[test]
fn the_time_of_a_login_does_not_depend_on_the_account() {
    let api = Upstream::start();
    let proxy = with_account(&api);
    let User { name: local, .. } = proxy.user("local");
    let cheap = format!("$argon2id$v=19$m=256,t=1,p=1{TAIL}");
    import(
        &proxy,
        &[
            ("imported", Some(IMPORTED), true),
            ("cheap", Some(&cheap), true),
            ("disabled", Some(IMPORTED), false),
            ("django", Some(DJANGO), true),
            ("outside", None, true),
        ],
    );
    let form = LoginForm::open(&proxy);
    let attempts = [
        ("unknown", "wrong"),
        (&local, "wrong"),
        ("imported", "wrong"),
        ("cheap", "wrong"),
        ("django", "wrong"),
        ("disabled", "wrong"),
        // The right password of a user who may not log in.
        ("disabled", "password"),
        ("outside", "wrong"),
    ];
    let mut times = vec![Vec::new(); attempts.len()];
    for _ in 0..4 {
        for ((name, password), times) in attempts.iter().zip(&mut times) {
            let before = processor_time(&proxy);
            form.send(name, password).has_status(403);
            times.push(processor_time(&proxy) - before);
        }
    }
    // Other work of the proxy only adds time.
    let minima: Vec<Duration> = times
        .into_iter()
        .filter_map(|times| times.into_iter().min())
        .collect();
    eprintln!(
        "minima: {:?}",
        attempts.iter().zip(&minima).collect::<Vec<_>>()
    );
    // An imported hash took five times as long as ours, and a cheap one no time.
    let (least, most) = (minima.iter().min().unwrap(), minima.iter().max().unwrap());
    assert!(most.as_secs_f64() < 2.0 * least.as_secs_f64(), "{minima:?}");
}

#[test]
fn a_login_replaces_an_imported_hash_by_one_of_ours() {
    let api = Upstream::start();
    let proxy = with_account(&api);
    let users = [
        ("imported", Some(IMPORTED), true),
        ("disabled", Some(IMPORTED), false),
    ];
    import(&proxy, &users);
    let form = LoginForm::open(&proxy);
    form.send("imported", "wrong").has_status(403);
    form.send("disabled", "password").has_status(403);
    assert_eq!(hash_of(&proxy, "imported"), IMPORTED);
    // Several at once, each with its own session.
    let sessions: Vec<_> = thread::scope(|scope| {
        let logins: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| session(&form.send("imported", "password"))))
            .collect();
        let logins = logins.into_iter();
        logins.map(|login| login.join().unwrap().unwrap()).collect()
    });
    let ours = hash_of(&proxy, "imported");
    assert!(
        ours.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
        "{ours}"
    );
    assert_eq!(hash_of(&proxy, "disabled"), IMPORTED);
    let cookie = session(&form.send("imported", "password")).unwrap();
    assert_eq!(hash_of(&proxy, "imported"), ours);
    form.send("imported", "Password").has_status(403);
    for cookie in sessions.iter().chain([&cookie]) {
        proxy.passes(Call::get("/account").header("Cookie", cookie));
    }
    // The file can be imported once more.
    import(&proxy, &users);
    assert_eq!(hash_of(&proxy, "imported"), ours);
}

#[test]
fn hashes_of_other_systems_open_a_session_once_and_are_replaced() {
    let api = Upstream::start();
    let proxy = with_account(&api);
    let users = [
        (
            "bcrypt",
            "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
            "U*U",
        ),
        ("django", DJANGO, "lètmein"),
        (
            "scrypt",
            "$scrypt$ln=10,r=8,p=16$TmFDbA$/bq+HJ00cgB4VucZDQHp/nxq18vII3gw53N2Y0s3MWIurzDZLiKjiG/xCSedmDDaxyevuUqD7m2DYMvfoswGQA",
            "password",
        ),
        ("phpass", "$P$9IQRaTwmfeRo7ud9Fh4E2PdI0S3r.L0", "test12345"),
        (
            "drupal",
            "$S$Cabcdefgh6mR6yYMnABQaI213551nJk5P.vXhSnFQ8NKBZ1aTJIg",
            "password",
        ),
        (
            "crypt",
            "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5",
            "Hello world!",
        ),
    ];
    let records = users.map(|(name, hash, _)| (name, Some(hash), true));
    import(&proxy, &records);
    let form = LoginForm::open(&proxy);
    for (name, hash, password) in users {
        form.send(name, "wrong").has_status(403);
        assert_eq!(hash_of(&proxy, name), hash);
        for _ in 0..2 {
            let cookie = session(&form.send(name, password)).unwrap();
            proxy.passes(Call::get("/account").header("Cookie", &cookie));
            let ours = hash_of(&proxy, name);
            assert!(
                ours.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
                "{ours}"
            );
        }
        form.send(name, "wrong").has_status(403);
    }
    import(&proxy, &records);
    let md5 =
        r#"{"kind":"user","id":"x","name":"x","password_hash":"5f4dcc3b5aa765d61d8327deb882cf99"}"#;
    let lines = format!("{{\"kind\":\"export\",\"version\":1}}\n\n{md5}\n");
    let ended = proxy.command_with(&["import", "-"], &lines);
    assert_eq!(ended.code(), Some(1));
    let expected = "standard input:3: user \"x\": password_hash is not a hash of a known form";
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
}

/// bcrypt of cost 12, which every login of this store then computes: a quarter of a second.
const SLOW: &str = "$2b$12$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";

#[test]
fn one_address_does_not_take_all_places_of_the_check() {
    const OTHERS: usize = 5;
    let api = Upstream::start();
    let proxy = Proxy::with(
        &api,
        "listen.trusted_proxies = ['127.0.0.1']\nlogin.max_failures = '100000 per 15m'",
    );
    let users: Vec<User> = (0..OTHERS)
        .map(|number| proxy.user(&format!("user-{number}")))
        .collect();
    import(&proxy, &[("slow", Some(SLOW), true)]);
    let form = &LoginForm::open(&proxy);
    let (is_full, fullness) = channel();
    thread::scope(|scope| {
        let flood: Vec<_> = (0..40)
            .map(|host| {
                let is_full = is_full.clone();
                scope.spawn(move || {
                    // One host has all addresses of its /64.
                    let answer = form.send_from(&format!("2001:db8:1:2::{host}"), "eve", "a guess");
                    if answer.status == 503 {
                        let _ = is_full.send(());
                    }
                    answer.status
                })
            })
            .collect();
        fullness.recv_timeout(PATIENCE).unwrap();
        let others: Vec<_> = users
            .iter()
            .enumerate()
            .map(|(number, user)| {
                let address = format!("198.51.100.{number}");
                scope.spawn(move || form.send_from(&address, &user.name, &user.password))
            })
            .collect();
        for other in others {
            let answer = other.join().unwrap();
            assert!(session(&answer).is_some(), "{answer:?}");
        }
        let mut flood: Vec<u16> = flood.into_iter().map(|it| it.join().unwrap()).collect();
        flood.sort_unstable();
        assert_eq!(flood[..4], [403; 4], "a quarter of 18 places");
    });
}

/// The number of times that `needle` is in the writable memory of the process.
fn occurrences(proxy: &Proxy, needle: &[u8]) -> usize {
    let pid = proxy.pid().as_raw_nonzero();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let mut found = 0;
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let from = u64::from_str_radix(from, 16).unwrap();
        let to = u64::from_str_radix(to, 16).unwrap();
        let mut bytes = vec![0; usize::try_from(to - from).unwrap()];
        // A mapping may have gone since the list was read.
        if memory.read_exact_at(&mut bytes, from).is_ok() {
            found += memmem(&bytes, needle);
        }
    }
    found
}

fn memmem(bytes: &[u8], needle: &[u8]) -> usize {
    let mut found = 0;
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == needle[0]) {
        found += usize::from(rest[at..].starts_with(needle));
        rest = &rest[at + 1..];
    }
    found
}

/// The buffers of the HTTP and TLS libraries keep the form as it was sent, with its escapes. Only the program's own
/// memory has the password itself.
#[test]
fn the_process_forgets_the_password_of_a_login() {
    let api = Upstream::start();
    let proxy = with_account(&api);
    let user = proxy.user("alice");
    let form = LoginForm::open(&proxy);
    let send = |call: Call| proxy.send(call.header("Cookie", &form.cookie)).status;
    let fields = |password: &str| {
        format!(
            "csrf={}&username={}&password={password}",
            form.csrf, user.name
        )
    };
    let call = || Call::post(LOGIN).header("Origin", &proxy.origin());
    // For an existing and an unknown account, in chunks, and in a malformed form.
    form.send("nobody", "Qv7 first secret").has_status(403);
    assert_eq!(send(call().form(&fields("Qv7+second+secret%21"))), 403);
    let body = fields("Qv7+third+secret");
    let (front, back) = body.as_bytes().split_at(body.len() - 9);
    let chunked = call().header("Content-Type", "application/x-www-form-urlencoded");
    assert_eq!(send(chunked.chunked(&[front, back])), 403);
    assert_eq!(send(call().form(&fields("Qv7+fourth+secret%ff"))), 400);
    for secret in ["Qv7 first", "Qv7 second", "Qv7 third", "Qv7 fourth"] {
        assert_eq!(occurrences(&proxy, secret.as_bytes()), 0, "{secret}");
    }
    // The search finds text that is there.
    assert!(occurrences(&proxy, b"countersign") > 0);
}

#[test]
fn the_process_forgets_a_password_that_another_system_checks() {
    let api = Upstream::start();
    let system = Upstream::replying(|_| Reply::ok(r#"{"id":"ada"}"#));
    for request in ["json", "form"] {
        let config = format!(
            "[login]\nbackend = 'http'\nurl = '{}/check'\nrequest = '{request}'",
            system.url()
        );
        let proxy = Proxy::with(&api, &config);
        let form = LoginForm::open(&proxy);
        // So long that later allocations do not overwrite all of a copy.
        let password: String = (0..100).map(|number| format!("Qv7 {number:03} ")).collect();
        assert!(session(&form.send("ada", &password)).is_some());
        assert_eq!(occurrences(&proxy, b"Qv7 050 "), 0, "{request}");
    }
}

#[test]
fn the_process_forgets_both_passwords_of_a_change() {
    let api = Upstream::start();
    let proxy = with_account(&api);
    let user = proxy.user("alice");
    let mut visitor = Visitor::to(&proxy);
    let page = visitor.open(LOGIN);
    visitor.log_in(&page, &user);
    let mut change = |current: &str, new: &str| {
        let page = visitor.open(PASSWORD);
        let filled = page
            .form_with("new_password")
            .set("current_password", current)
            .set("new_password", new)
            .set("new_password_again", new);
        visitor.submit(&page, &filled).answer.status
    };
    assert_eq!(change("Qv7 first wrong", "Qv7 first new"), 403);
    assert_eq!(change(&user.password, "Qv7 two"), 400);
    assert_eq!(change(&user.password, "Qv7 third new"), 200);
    assert_eq!(change("Qv7 third new", "Qv7 fourth new"), 200);
    for secret in ["Qv7 first", "Qv7 two", "Qv7 third", "Qv7 fourth"] {
        assert_eq!(occurrences(&proxy, secret.as_bytes()), 0, "{secret}");
    }
}
