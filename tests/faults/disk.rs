//! A full disk: nothing is acknowledged that is not stored, and nothing is forgotten.

use std::{fs::File, io::Write, path::PathBuf, process::Command};

use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
use tempfile::TempDir;

use crate::support::has;
use crate::support::{
    Answer, Call, Connection, Consumer, PATIENCE, Postgres, Proxy, Token, Upstream,
    legs::{asks, exchanges, token_of},
    now,
    proxy::Builder,
    visitor::Visitor,
    within,
};

/// A public address that outlives a restart on another port.
/// The window is wide, so that timestamps do not leave it while the disk is filled slowly.
const FIXED: &str = "service.base_url = 'https://api.test'\nlog.access = false\n\
                     signature.timestamp_window = '1h'";

/// A file system of its own, of a few MiB.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount() -> Self {
        let directory = TempDir::new().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"])
            .arg(directory.path())
            .status();
        assert!(mounted.unwrap().success(), "a tmpfs is mounted");
        Self(directory)
    }

    fn filler(&self) -> PathBuf {
        self.0.path().join("filler")
    }

    fn fill(&self) {
        let mut file = File::create(self.filler()).unwrap();
        let mut size = 1 << 20;
        while size > 0 {
            if file.write_all(&vec![b'x'; size]).is_err() {
                size /= 2;
            }
        }
    }

    fn free(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.0.path()).status());
    }
}

#[test]
fn a_full_disk_fails_closed_and_loses_nothing() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("only root can mount a disk to fill; the test beside this one does without");
        return;
    }
    let api = Upstream::start();
    let disk = SmallDisk::mount();
    let at = |name: &str| disk.0.path().join(name).display().to_string();
    let mut builder = Proxy::in_front_of(&api).config(FIXED);
    builder.set("store.url", at("countersign.db").into());
    builder.set("nonce.path", at("window.nonces").into());
    fails_closed_and_loses_nothing(&api, builder, |_| disk.fill(), |_| disk.free());
}

#[test]
fn a_full_disk_of_postgresql_is_503_and_nothing_is_forwarded() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("only root can mount a disk to fill");
        return;
    }
    let (api, server, disk) = (Upstream::start(), Postgres::start(), SmallDisk::mount());
    let given = Command::new("chown")
        .arg("postgres")
        .arg(disk.0.path())
        .status();
    assert!(given.unwrap().success());
    let url = server.database();
    let place = disk.0.path().display();
    server.sql(
        "postgres",
        &format!("CREATE TABLESPACE small LOCATION '{place}'"),
    );
    server.sql(
        "postgres",
        "ALTER DATABASE test0 SET default_tablespace = small",
    );
    let mut builder = Proxy::in_front_of(&api).config("store.backend = 'postgres'");
    builder.set("store.url", url.into());
    let proxy = builder.start();
    let caller = proxy.somebody();
    let send = || proxy.send(Call::get("/x").of(&caller));
    proxy.passes(Call::get("/x").of(&caller));
    let is_logged = |text: &str, times: usize| {
        within(PATIENCE, text, || {
            (proxy.logged(&[text]) >= times).then_some(())
        });
    };
    for round in 1..=2 {
        disk.fill();
        // Pages already allocated have room, and a slow server is no full disk.
        within(PATIENCE, "the disk is full", || {
            send();
            let said = proxy.logged(&["nonces cannot be recorded: signed"]);
            (said >= round).then_some(())
        });
        let forwarded = api.count();
        for _ in 0..5 {
            let answer = send();
            answer.has_status(503);
            assert!(answer.header("Retry-After").is_some());
        }
        assert_eq!(api.count(), forwarded);
        let ready = proxy.ask_admin("/readyz");
        has(&ready.text(), &["No space left on device"]);
        let kept = server.sql("test0", "SELECT count(*) FROM countersign.nonces");
        assert!(
            kept.parse::<usize>().unwrap() >= forwarded,
            "{kept} {forwarded}"
        );
        disk.free();
        within(PATIENCE, "requests pass again", || {
            (send().status == 200).then_some(())
        });
        is_logged("nonces are recorded again", round);
    }
}

#[test]
fn a_file_size_limit_fails_closed_and_loses_nothing() {
    let api = Upstream::start();
    let builder = Proxy::in_front_of(&api).config(FIXED);
    let maximum = getrlimit(Resource::Fsize).maximum;
    let limit = |proxy: &Proxy, current| {
        let limit = Rlimit { current, maximum };
        prlimit(Some(proxy.pid()), Resource::Fsize, limit).unwrap();
    };
    fails_closed_and_loses_nothing(
        &api,
        builder,
        |proxy| limit(proxy, Some(4096)),
        |proxy| limit(proxy, maximum),
    );
}

/// The results that callers were given.
struct Told<'a> {
    proxy: Proxy,
    consumer: &'a Consumer,
    token: &'a Token,
    requests: Vec<Vec<u8>>,
    request_tokens: Vec<Token>,
}

impl Told<'_> {
    /// A call with that timestamp, remembered if it passed.
    fn call(&mut self, timestamp: u64) -> Answer {
        let call = Call::get("/x").by(self.consumer).with(self.token);
        let wire = self
            .proxy
            .wire(&call.parameter("oauth_timestamp", &timestamp.to_string()));
        let mut connection = self.proxy.connect();
        connection.send(&wire);
        let answer = connection.answer("GET");
        if answer.status == 200 {
            self.requests.push(wire);
        }
        answer
    }

    /// A call for a request token, remembered if there is one.
    fn ask(&mut self) -> Answer {
        let answer = self.proxy.send(asks(self.consumer, "oob"));
        if answer.status == 200 {
            self.request_tokens.push(token_of(&answer));
        }
        answer
    }

    /// None of the requests passes again.
    fn nothing_passes_twice(&self, api: &Upstream) {
        let before = api.count();
        for wire in &self.requests {
            let mut connection: Connection = self.proxy.connect();
            connection.send(wire);
            connection.answer("GET").is(401, "nonce_used");
        }
        assert_eq!(api.count(), before);
    }

    /// All tokens are known.
    fn nothing_is_lost(&self) {
        for token in &self.request_tokens {
            // A part of the nonce window may notice a second later than others that there is room again.
            let answer = within(PATIENCE, "the call is answered", || {
                let answer = self.proxy.send(exchanges(self.consumer, token, "0"));
                (answer.status != 503).then_some(answer)
            });
            answer.is(401, "permission_unknown");
        }
    }
}

fn fails_closed_and_loses_nothing(
    api: &Upstream,
    builder: Builder,
    fill: impl Fn(&Proxy),
    free: impl Fn(&Proxy),
) {
    let proxy = builder.start();
    let caller = proxy.somebody();
    let mut told = Told {
        proxy,
        consumer: &caller.consumer,
        token: &caller.token,
        requests: Vec::new(),
        request_tokens: Vec::new(),
    };
    for _ in 0..20 {
        told.call(now()).has_status(200);
    }
    told.ask().has_status(200);

    fill(&told.proxy);
    // Each second needs room of its own: soon there is none left.
    let mut timestamps = (now() - 250..now() + 250).cycle();
    let mut refused = 0;
    for _ in 0..20_000 {
        let answer = told.call(timestamps.next().unwrap());
        if answer.status != 200 {
            answer.has_status(503);
            assert!(answer.header("retry-after").is_some(), "{answer:?}");
            refused += 1;
        }
        if refused == 100 {
            break;
        }
    }
    assert_eq!(refused, 100, "the nonce window fills up");
    let mut failed = 0;
    for _ in 0..1_000 {
        let answer = told.ask();
        if answer.status != 200 {
            answer.has_status(503);
            failed += 1;
        }
        if failed == 10 {
            break;
        }
    }
    assert_eq!(failed, 10, "request tokens are no longer given out");
    // Each condition begins with a failed write, and ends when none has failed for some seconds.
    within(PATIENCE, "the full nonce window is a condition", || {
        told.call(timestamps.next().unwrap());
        let ready = told.proxy.ask_admin("/readyz").text();
        ready
            .contains("not ready: nonce_window_full since ")
            .then_some(())
    });
    // A login needs no nonce: it writes a session, and the store takes nothing once its own files have no room left.
    within(
        PATIENCE,
        "the full disk of the store is a condition",
        || {
            let mut visitor = Visitor::to(&told.proxy);
            let page = visitor.open("/service.oauth?mode=login");
            let status = visitor.log_in(&page, &caller.user).answer.status;
            let ready = told.proxy.ask_admin("/readyz").text();
            let is_noted = status == 503 && ready.contains("degraded: disk_full since ");
            is_noted.then_some(())
        },
    );
    let lines = told.proxy.log().lines().into_iter();
    let audited = lines.filter(|line| line.contains("request_token_issued"));
    assert_eq!(
        audited.count(),
        told.request_tokens.len(),
        "the audit log has what happened"
    );
    told.nothing_passes_twice(api);
    told.proxy.ask_admin("/healthz").has_status(200);

    free(&told.proxy);
    within(PATIENCE, "requests pass again", || {
        (told.call(now()).status == 200).then_some(())
    });
    within(PATIENCE, "tokens are given out again", || {
        (told.ask().status == 200).then_some(())
    });
    within(PATIENCE, "the condition ends", || {
        let ready = told.proxy.ask_admin("/readyz");
        (ready.status == 200 && !ready.text().contains("disk_full")).then_some(())
    });
    let lines = told.proxy.log().lines();
    let faults = lines
        .iter()
        .filter(|line| line.contains("request failed"))
        .count();
    assert_eq!(
        faults, 0,
        "the log has the condition, and not each request: {lines:#?}"
    );
    told.nothing_passes_twice(api);
    told.nothing_is_lost();

    // Nor does it appear later.
    fill(&told.proxy);
    for _ in 0..200 {
        told.call(timestamps.next().unwrap());
    }
    free(&told.proxy);
    told.proxy.kill();
    told.proxy.start();
    told.nothing_passes_twice(api);
    told.nothing_is_lost();
    within(PATIENCE, "requests pass after the restart", || {
        (told.call(now()).status == 200).then_some(())
    });
    assert!(told.proxy.stop().success());
}
