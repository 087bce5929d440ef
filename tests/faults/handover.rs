//! One process takes over from another on sockets that were passed to both (`LISTEN_FDS`), and the messages to the
//! service manager.

use std::{
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::{
        fd::OwnedFd,
        unix::net::{UnixDatagram, UnixListener},
    },
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::process::{Signal, kill_process};

use crate::{
    faults::{
        load::{Load, Target},
        process::{HungThread, connections_become},
    },
    support::{
        Call, Connection, PATIENCE, Proxy, Upstream, free_port, has, http, proxy::Builder, until,
        upstream::After,
    },
};

const CONFIG: &str = "service.base_url = 'https://api.test'\nlog.access = false\n\
                      [[operation]]\npath = '/{*rest}'\n\
                      [[operation]]\npath = '/socket'\nupgrade = ['websocket']\n";

const SWITCHING: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                         Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// The least number of pieces of a download; ten are sent each second.
const PIECES: usize = 60;

/// An API with downloads, which end once `may_end`, and sockets that echo.
fn api(may_end: &Arc<AtomicBool>) -> Upstream {
    let may_end = Arc::clone(may_end);
    Upstream::handling(move |exchange| {
        exchange.whole_body()?;
        if exchange.seen.target == "/socket" {
            exchange.write(SWITCHING)?;
            while let Some(bytes) = exchange.raw_piece()? {
                exchange.write(bytes)?;
            }
            return Ok(After::Close);
        }
        if exchange.seen.target == "/download" {
            exchange.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            let mut sent = 0;
            while sent < PIECES || !may_end.load(Ordering::SeqCst) {
                exchange.write("5\r\npiece\r\n")?;
                sent += 1;
                thread::sleep(Duration::from_millis(100));
            }
            exchange.write("0\r\n\r\n")?;
            return Ok(After::Keep);
        }
        exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
        Ok(After::Keep)
    })
}

/// Requests that were accepted, which a thread sends again and again.
struct Replays {
    stop: Arc<AtomicBool>,
    accepted: Arc<Mutex<Vec<Vec<u8>>>>,
    rejected: Arc<AtomicUsize>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Replays {
    fn begin(target: &Target) -> Self {
        let (stop, rejected) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let accepted = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let send = {
            let (stop, accepted, target) = (stop.clone(), accepted.clone(), target.clone());
            move || {
                while !stop.load(Ordering::SeqCst) {
                    let (method, wire) = target.wire(Call::get("/once"));
                    let mut connection = Connection::to(target.address);
                    connection.send(&wire);
                    connection.answer(&method).has_status(200);
                    accepted.lock().unwrap().push(wire);
                    thread::sleep(Duration::from_millis(5));
                }
            }
        };
        let replay = {
            let (stop, accepted, rejected) = (stop.clone(), accepted.clone(), rejected.clone());
            let address = target.address;
            move || {
                while !stop.load(Ordering::SeqCst) {
                    // The last one, and those before it in turn.
                    let wires = accepted.lock().unwrap();
                    let turn = rejected.load(Ordering::SeqCst) % (wires.len() + 1);
                    let chosen = wires.last().into_iter().chain(wires.get(turn));
                    let chosen: Vec<Vec<u8>> = chosen.cloned().collect();
                    drop(wires);
                    for wire in chosen {
                        let mut connection = Connection::to(address);
                        connection.send(&wire);
                        connection.answer("GET").is(401, "nonce_used");
                        rejected.fetch_add(1, Ordering::SeqCst);
                    }
                }
            }
        };
        Self {
            threads: vec![thread::spawn(send), thread::spawn(replay)],
            stop,
            accepted,
            rejected,
        }
    }

    fn go_on_for(&self, count: usize) {
        let enough = self.rejected.load(Ordering::SeqCst) + count;
        until("replays go on", || {
            self.threads.iter().any(thread::JoinHandle::is_finished)
                || self.rejected.load(Ordering::SeqCst) >= enough
        });
    }

    /// Ends them; returns the requests that were accepted.
    fn end(self) -> Vec<Vec<u8>> {
        self.stop.store(true, Ordering::SeqCst);
        for thread in self.threads {
            thread.join().unwrap();
        }
        std::mem::take(&mut self.accepted.lock().unwrap())
    }
}

#[test]
fn a_handover_under_load_has_no_gap_and_admits_nothing_twice() {
    let may_end = Arc::default();
    let api = api(&may_end);
    let mut proxy = Proxy::in_front_of(&api).config(CONFIG).activated().start();
    let caller = proxy.somebody();
    let target = Target::of(&proxy, &caller.consumer, &caller.token);

    let handshake = Call::get("/socket")
        .header("Upgrade", "websocket")
        .header("Connection", "Upgrade")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("Sec-WebSocket-Version", "13");
    let mut socket = proxy.connect();
    socket.send(&proxy.wire(&handshake.of(&caller)));
    assert_eq!(socket.head().status(), 101);
    let mut echoes = |bytes: &[u8]| {
        socket.send(bytes);
        assert_eq!(socket.wire().exactly(bytes.len()).unwrap(), bytes);
    };
    echoes(b"before");
    let mut download = proxy.connect();
    download.send(&proxy.wire(&Call::get("/download").of(&caller)));
    api.wait_for(2);

    let load = Load::begin(&target, 32);
    let replays = Replays::begin(&target);
    load.goes_on_for(320);
    replays.go_on_for(20);
    let mut old = proxy.succeed();
    load.goes_on_for(320);
    replays.go_on_for(20);
    assert!(!old.has_ended(), "it finishes the download");
    echoes(b"after");
    let tally = load.end();
    assert_eq!(tally.failures, [""; 0]);
    assert!(tally.told_to_close > 0, "{tally:?}");
    // Requests of every second before and after.
    let accepted = replays.end();
    for wire in &accepted {
        let mut connection = proxy.connect();
        connection.send(wire);
        connection.answer("GET").is(401, "nonce_used");
    }
    // The old process, which closes the connection after the download, does not accept them either.
    may_end.store(true, Ordering::SeqCst);
    let answer = download.answer("GET");
    assert!(answer.has_status(200).body.len() >= PIECES * "piece".len());
    let seen = api.count();
    for wire in [&accepted[0], &proxy.wire(&Call::get("/late").of(&caller))] {
        let late = download
            .try_send(wire)
            .and_then(|()| download.try_answer("GET"));
        assert!(!matches!(late, Ok(Some(answer)) if answer.status != 503));
    }
    assert_eq!(api.count(), seen);
    drop(socket);
    assert!(old.wait().success());
    proxy.passes(Call::get("/new").of(&caller));
}

#[test]
fn form_too_slow_for_the_handover_goes_to_the_successor() {
    let api = Upstream::start();
    let mut proxy = Proxy::in_front_of(&api).config(CONFIG).activated().start();
    let caller = proxy.somebody();
    let wire = proxy.wire(&Call::post("/form").form("a=thing").of(&caller));
    let mut slow = proxy.connect();
    slow.send(&wire[..wire.len() - 1]);
    connections_become(&proxy, 1.0);
    let mut old = proxy.succeed();
    slow.send(&wire[wire.len() - 1..]);
    let answer = slow.answer("POST");
    answer.has_status(503);
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(old.wait().success());
    for (status, problem) in [(200, None), (401, Some("nonce_used"))] {
        let mut connection = proxy.connect();
        connection.send(&wire);
        let answer = connection.answer("POST");
        assert_eq!(answer.has_status(status).problem().as_deref(), problem);
    }
    assert_eq!(api.count(), 1);
}

#[test]
fn admin_listener_only_reports_health_after_the_handover() {
    let may_end = Arc::default();
    let api = api(&may_end);
    let builder = Proxy::in_front_of(&api).config(CONFIG);
    let token = builder.directory().join("admin.token");
    std::fs::write(&token, "a".repeat(64)).unwrap();
    let token = format!("admin.token_file = '{}'", token.display());
    let mut proxy = builder.config(&token).start();
    let caller = proxy.somebody();
    let mut download = proxy.connect();
    download.send(&proxy.wire(&Call::get("/download").of(&caller)));
    api.wait_for(1);
    let ask = |proxy: &Proxy| {
        let (address, bearer) = (proxy.admin(), "a".repeat(64));
        let mut admin = Connection::to(address);
        let head = format!(
            "GET /v1/consumers HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {bearer}\r\n\r\n"
        );
        admin.send(head.as_bytes());
        admin.answer("GET").status
    };
    assert_eq!(ask(&proxy), 200);
    proxy.signal(Signal::TERM);
    proxy.logs(&["finishing what is running"]);
    assert_eq!(ask(&proxy), 503);
    assert_eq!(proxy.ask_admin("/healthz").status, 200);
    may_end.store(true, Ordering::SeqCst);
    download.answer("GET").has_status(200);
    assert!(proxy.wait().success());
}

#[test]
fn queued_connections_of_a_passed_socket_wait_for_the_successor() {
    let api = Upstream::start();
    let mut proxy = Proxy::in_front_of(&api).config(CONFIG).activated().start();
    let caller = proxy.somebody();
    let address = proxy.address();
    let wire = proxy.wire(&Call::get("/queued").of(&caller));
    assert!(proxy.stop().success());
    let mut queued = Connection::over(TcpStream::connect(address).unwrap());
    queued.send(&wire);
    proxy.start();
    queued.answer("GET").has_status(200);
}

#[test]
fn sockets_of_another_kind_are_rejected_with_the_fix() {
    let tcp = || OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap());
    let directory = tempfile::TempDir::new().unwrap();
    let unix = || OwnedFd::from(UnixListener::bind(directory.path().join("s")).unwrap());
    let connected = TcpListener::bind("127.0.0.1:0").unwrap();
    let connected = TcpStream::connect(connected.local_addr().unwrap()).unwrap();
    for (names, public, admin, told) in [
        (
            "public:admin",
            UdpSocket::bind("127.0.0.1:0").unwrap().into(),
            tcp(),
            "'public' is not a listening TCP socket",
        ),
        (
            "public:admin",
            unix(),
            tcp(),
            "'public' is not a listening TCP socket",
        ),
        (
            "public:admin",
            tcp(),
            connected.into(),
            "'admin' is not a listening TCP or Unix stream socket",
        ),
        (
            "public:admin",
            tcp(),
            UnixDatagram::unbound().unwrap().into(),
            "'admin' is not a listening",
        ),
        (
            "countersign.socket:admin",
            tcp(),
            tcp(),
            "no listener is called 'countersign.socket'; set FileDescriptorName=",
        ),
        (
            "public:unknown",
            tcp(),
            tcp(),
            "no listener is called 'unknown'",
        ),
        ("public", tcp(), tcp(), "invalid LISTEN_FDNAMES"),
        (
            "admin:admin",
            tcp(),
            tcp(),
            "several sockets are called 'admin'",
        ),
        (
            "public:probe",
            tcp(),
            tcp(),
            "admin.probe_listen is not set",
        ),
    ] {
        let ended = Proxy::in_front_of_url("http://127.0.0.1:9")
            .environment("LISTEN_FDNAMES", names)
            .sockets(public, admin)
            .serve_fails();
        assert_eq!(ended.code(), Some(2), "{names}: {ended:?}");
        assert!(ended.stderr.contains(told), "{names}: {ended:?}");
    }
    let any = TcpListener::bind("0.0.0.0:0").unwrap();
    let ended = Proxy::in_front_of_url("http://127.0.0.1:9")
        .environment("LISTEN_FDNAMES", "public:admin")
        .sockets(any, tcp())
        .serve_fails();
    assert!(
        ended.stderr.contains("service.base_url: missing"),
        "{ended:?}"
    );
}

/// A service manager: the messages it receives.
struct Manager {
    socket: UnixDatagram,
    directory: tempfile::TempDir,
}

impl Manager {
    fn start() -> Self {
        let directory = tempfile::TempDir::new().unwrap();
        let socket = UnixDatagram::bind(directory.path().join("notify")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket, directory }
    }

    /// Starts a process that sends to it, with a watchdog.
    fn runs(&self, builder: Builder) -> Proxy {
        let path = self.directory.path().join("notify");
        builder
            .environment("NOTIFY_SOCKET", &path.display().to_string())
            .environment("WATCHDOG_USEC", "400000")
            .start()
    }

    /// The next message.
    fn next(&self) -> std::io::Result<String> {
        let mut message = [0; 1024];
        let length = self.socket.recv(&mut message)?;
        Ok(String::from_utf8_lossy(&message[..length]).into_owned())
    }

    /// Waits for a message that has these parts.
    #[track_caller]
    fn is_told(&self, wanted: &[&str]) {
        loop {
            let message = self.next().expect("the manager is told");
            if wanted.iter().all(|part| message.contains(part)) {
                return;
            }
        }
    }

    /// The messages that have come.
    fn told(&self) -> Vec<String> {
        self.socket.set_nonblocking(true).unwrap();
        let told = std::iter::from_fn(|| self.next().ok()).collect();
        self.socket.set_nonblocking(false).unwrap();
        told
    }
}

#[test]
fn the_service_manager_is_notified_of_each_step() {
    let manager = Manager::start();
    let api = Upstream::start();
    let mut proxy = manager.runs(Proxy::in_front_of(&api));
    manager.is_told(&["READY=1\n", "STATUS=serving\n"]);
    manager.is_told(&["WATCHDOG=1\n"]);
    manager.is_told(&["WATCHDOG=1\n"]);
    proxy.signal(Signal::HUP);
    manager.is_told(&["RELOADING=1\nMONOTONIC_USEC="]);
    manager.is_told(&["READY=1\n", "STATUS=serving\n"]);
    std::fs::write(proxy.directory().join("config.toml"), "nothing = 1").unwrap();
    proxy.signal(Signal::HUP);
    manager.is_told(&["RELOADING=1\nMONOTONIC_USEC="]);
    manager.is_told(&["READY=1\n", "STATUS=serving with the configuration before"]);
    proxy.signal(Signal::TERM);
    manager.is_told(&["STOPPING=1\n"]);
    assert!(proxy.wait().success());
}

#[test]
fn a_successor_that_waits_for_the_nonce_window_says_so() {
    let manager = Manager::start();
    let api = Upstream::start();
    let mut proxy = manager.runs(Proxy::in_front_of(&api).config(CONFIG).activated());
    manager.is_told(&["READY=1\n"]);
    // A stopped process does not give up the nonce window.
    let pid = proxy.pid();
    proxy.signal(Signal::STOP);
    let mut old = thread::scope(|scope| {
        scope.spawn(|| {
            manager.is_told(&["STATUS=waiting for another process to give up the nonce window"]);
            kill_process(pid, Signal::CONT).unwrap();
        });
        proxy.succeed()
    });
    proxy.logs(&["another process has the nonce window: waiting until it ends"]);
    manager.is_told(&["READY=1\n", "STATUS=serving\n"]);
    assert!(old.wait().success());
}

#[test]
fn while_a_worker_hangs_the_watchdog_is_not_fed() {
    let manager = Manager::start();
    let api = Upstream::start();
    let config = "listen.workers = 2\noperations.unlisted = 'anonymous'";
    let proxy = manager.runs(Proxy::in_front_of(&api).config(config));
    manager.is_told(&["WATCHDOG=1\n"]);
    let looks = |count: usize| {
        let missed = || proxy.logged(&["a worker did not run", "worker=1"]);
        let enough = missed() + count;
        until("it is missed", || missed() >= enough);
    };
    let hung = HungThread::of(&proxy, "worker-1");
    // The watchdog may have run since the last look.
    looks(2);
    manager.told();
    looks(3);
    assert_eq!(manager.told(), [""; 0]);
    drop(hung);
    manager.is_told(&["WATCHDOG=1\n"]);
    proxy.passes(Call::get("/"));
}

#[test]
fn while_a_worker_hangs_healthz_is_503_on_each_listener() {
    let api = Upstream::start();
    let (admin, probe) = (free_port(), free_port());
    let config = format!(
        "listen.workers = 2\noperations.unlisted = 'anonymous'\n\
         admin = {{ listen = '127.0.0.1:{admin}', probe_listen = '127.0.0.1:{probe}' }}"
    );
    let proxy = Proxy::in_front_of(&api).config(&config).start();
    let probe = SocketAddr::from(([127, 0, 0, 1], probe));
    for listener in [proxy.admin(), probe] {
        assert_eq!(
            http::get(listener, "/healthz").has_status(200).text(),
            "ok\n"
        );
    }
    let hung = HungThread::of(&proxy, "worker-1");
    for listener in [proxy.admin(), probe] {
        until("the worker is missed", || {
            http::get(listener, "/healthz").status == 503
        });
        let report = http::get(listener, "/healthz").has_status(503).text();
        let seconds = report.strip_prefix("worker 1 has not run for ");
        let seconds = seconds.and_then(|rest| rest.strip_suffix(" s\n")).unwrap();
        assert!(seconds.parse::<u64>().unwrap() >= 5, "{report}");
    }
    let degraded = || proxy.metric("countersign_degraded{cause=\"worker_hung\"}");
    until("the metric shows it", || degraded() == 1.0);
    let health = proxy.command(&["health"]);
    assert_eq!(health.code(), Some(1));
    has(&health.stderr, &["503: worker 1 has not run for"]);
    proxy.logs(&["ERROR", "worker_hung", "worker 1 has not run for"]);

    drop(hung);
    for listener in [proxy.admin(), probe] {
        until("it runs again", || {
            http::get(listener, "/healthz").status == 200
        });
    }
    until("the metric shows it", || degraded() == 0.0);
    proxy.passes(Call::get("/"));
}
