//! The whole service on streams in memory: a caller that sends what an input says, and an API that judges the requests.

mod api;
mod script;
pub mod template;

use std::{
    cell::{Cell, RefCell},
    net::{IpAddr, SocketAddr},
    num::NonZeroU32,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use countersign::{
    base::{
        clock::{Clock, UnixTime},
        network::peer::Peer,
        rate::Rate,
        secret::Secret,
    },
    gateway::{
        forward_auth::ForwardAuthHandler,
        live::{Phase, Shared},
        proxy::Worker,
    },
    operator::admin::readiness::Readiness,
    provider::{
        login::{Login, LoginBackend, LoginError, PasswordPool, Throttle},
        pages,
    },
    records::{
        credentials::{self, Cached, feed::ChangeHub},
        nonce::{LocalWindow, Nonces, OnLost, WindowParams},
        store::test_double::TestStore,
        values::record::{AccessToken, Consumer, Session, User},
    },
    request::{forward::pool, verify::Verifier},
    run::{
        app::{live, services::Services},
        config,
    },
    telemetry::{
        calls::{previous_secrets::PreviousSecrets, rejections::Rejections},
        conditions::Conditions,
        heartbeats::Heartbeats,
        metrics::Metrics,
    },
    wire::{
        server::{
            caller::{
                buffered::{API_FORMS, FormMemory, PAGE_FORMS, Shares},
                connection_table::ConnectionEntry,
                unproved,
            },
            connection,
            handler::Handler,
        },
        stream::Stream,
        watched::WatchedStream,
    },
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf},
    runtime::Runtime,
    sync::{Notify, mpsc, watch},
    task::{JoinHandle, LocalSet, spawn_local},
    time::{sleep, timeout},
};

use self::{
    api::{Api, SURPLUS, Turn},
    script::Action,
};

/// The client's connection preface (RFC 9113 §3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const CONFIG: &str = r#"
[listen]
workers = 1
[service]
base_url = "https://api.test"
[upstream]
api_url = "http://localhost"
[limits]
head_bytes = "4KiB"
head_fields = 24
target_bytes = "1KiB"
form_bytes = "1KiB"
form_fields = 16
[log]
access = false
[signature]
advice = "ADVICE"
[[permission]]
name = "members.read"
[[permission]]
name = "secrets.read"
[[operation]]
path = "/members/{id}"
methods = ["GET", "DELETE"]
permission = "members.read"
[[operation]]
path = "/form"
[[operation]]
path = "/upload"
[[operation]]
path = "/secret"
permission = "secrets.read"
[[operation]]
path = "/app"
access = ["application"]
[[operation]]
path = "/ws"
upgrade = ["websocket"]
[[operation]]
path = "/open/{*rest}"
access = ["anonymous"]
[[operation]]
path = "/office"
access = ["anonymous"]
from = ["203.0.113.0/24"]
[[operation]]
path = "/me"
methods = ["GET"]
access = ["user"]
"#;

/// Nothing takes longer: every wait of the service has a limit.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// After this many executions the service is made again, so that the memory of used nonces stays small.
const LIFE: u64 = 4096;

/// A backend that refuses every login.
struct NoLogin;

#[async_trait::async_trait]
impl LoginBackend for NoLogin {
    async fn login(&self, _: IpAddr, _: &str, _: Secret) -> Result<Login, LoginError> {
        Err(LoginError::Rejected { account: None })
    }
}

/// The service, which outlives an execution.
struct World {
    runtime: Runtime,
    shared: Arc<Shared>,
    phase: watch::Sender<Phase>,
    /// The API's ends of the connections that the service opens.
    opened: mpsc::UnboundedReceiver<DuplexStream>,
    executions: u64,
}

fn records() -> TestStore {
    let store = TestStore::default();
    let id = template::USER.parse().expect("an id");
    let user = User::new(id, "u".to_owned(), UnixTime(0));
    let key = template::CONSUMER.parse().expect("a key");
    let secret = Secret::from(template::CONSUMER_SECRET);
    let consumer = Consumer {
        callbacks: vec!["https://consumer.test/back".to_owned(), "oob".to_owned()],
        permissions: vec![template::PERMISSION.parse().expect("a name")],
        ..Consumer::new(key, secret, "A consumer".to_owned(), UnixTime(0))
    };
    let token = |token: &str, revoked_at| AccessToken {
        token: token.to_owned(),
        secret: Secret::from(template::TOKEN_SECRET),
        consumer: consumer.key.clone(),
        user: user.id.clone(),
        permissions: vec![
            template::PERMISSION.parse().expect("a name"),
            "secrets.read".parse().expect("a name"),
        ],
        issued_at: UnixTime(0),
        expires_at: None,
        last_used_at: None,
        last_used_from: None,
        revoked_at,
        began: Default::default(),
        with_display_name: false,
    };
    let session = Session {
        id_hash: template::session_hash(),
        user: user.id.clone(),
        created_at: UnixTime(template::NOW),
        expires_at: UnixTime(template::NOW + 1_000),
        address: [127, 0, 0, 1].into(),
        browser: None,
        system: None,
    };
    let tokens = [
        token(template::TOKEN, None),
        token(template::REVOKED_TOKEN, Some(UnixTime(1))),
    ];
    store.put_consumer(&consumer);
    for token in tokens {
        store.put_access_token(&token);
    }
    store.put_session(&session);
    store.put_user(user);
    store
}

impl World {
    fn new(advises: bool) -> Self {
        let config = CONFIG.replace("ADVICE", if advises { "full" } else { "off" });
        let config = config::parse(&config, "config.toml", []).expect("a configuration");
        let clock = Clock::manual(UnixTime(template::NOW));
        let store = records().store();
        let cache = credentials::CacheSettings {
            max_entries: 1000,
            ttl: DAY,
            negative_ttl: Duration::from_secs(1),
            stale_if_error: Duration::ZERO,
        };
        let credentials = Arc::new(Cached::new(Arc::clone(&store), &cache, clock.clone()));
        let window = WindowParams {
            path: None,
            window: config.signature.timestamp_window,
            max_entries: 1_000_000,
        };
        let window = LocalWindow::open(&window)
            .and_then(|opened| opened.start(clock.now(), None, OnLost::Refuse));
        let nonces = Arc::new(Nonces::new(window.expect("memory"), None));
        let mark = nonces.next_high_water_mark(clock.now()).expect("no disk");
        nonces
            .note_written_mark(mark, clock.now())
            .expect("no disk");
        let verifier = Arc::new(Verifier::new(
            Arc::clone(&credentials),
            Arc::clone(&store),
            Arc::clone(&nonces),
            clock.clone(),
        ));
        let metrics = Arc::new(Metrics::default());
        let conditions = Arc::new(Conditions::new(clock.clone()));
        let readiness = Arc::new(Readiness {
            store: Arc::clone(&store),
            verifier: Arc::clone(&verifier),
            nonces: Arc::clone(&nonces),
            max_nonces: 1_000_000,
            heartbeats: Arc::new(Heartbeats::new(1)),
            metrics: Arc::clone(&metrics),
            conditions: Arc::clone(&conditions),
        });
        let rejections = Arc::new(Rejections::new(clock.clone()));
        let feed = Arc::new(ChangeHub::new(
            Arc::clone(&store),
            clock.clone(),
            Arc::clone(&credentials),
            Arc::clone(&rejections),
            |_| (),
        ));
        let previous_secrets = PreviousSecrets::new(clock.clone());
        let services = Services {
            keep_audit: DAY,
            keep_expired: DAY,
            developer_checks: Arc::new(PasswordPool::start(1, 4).expect("a thread")),
            clock: clock.clone(),
            instance_id: "instance".into(),
            store: Arc::clone(&store),
            lookup: None,
            bearer: Default::default(),
            credentials,
            feed: Arc::clone(&feed),
            nonces,
            verifier: Arc::clone(&verifier),
            pages: pages::PageServices {
                store,
                feed,
                clock,
                login: Arc::new(NoLogin),
                passwords: None,
                throttle: Arc::new(Throttle::new(
                    Rate {
                        count: NonZeroU32::new(1000).expect("above zero"),
                        period: DAY,
                    },
                    &Secret::from(""),
                )),
                rejections: Arc::clone(&rejections),
                developer_rates: Default::default(),
            },
            metrics: Arc::clone(&metrics),
            conditions: Arc::clone(&conditions),
            certificates: Arc::default(),
            rejections: Arc::clone(&rejections),
            charts: Arc::default(),
            readiness,
        };
        let listener = SocketAddr::from(([127, 0, 0, 1], 8080));
        let mut live =
            live::live(&config, listener, &services).unwrap_or_else(|error| panic!("{error}"));
        let (sender, opened) = mpsc::unbounded_channel();
        live.upstream.as_mut().expect("there is an API").address = pool::Address::Memory(sender);
        let phase = watch::Sender::new(Phase::Serving);
        let shared = Arc::new(Shared {
            live: Arc::new(live).into(),
            generation: 0.into(),
            verifier,
            anonymous: Default::default(),
            metrics,
            phase: phase.subscribe(),
            conditions,
            rejections,
            traces: None,
            previous_secrets,
            reached: 0.into(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        Self {
            runtime: runtime.expect("a runtime"),
            shared,
            phase,
            opened,
            executions: 0,
        }
    }
}

thread_local! {
    /// Without and with advice, which takes several times as long as all else that a wrong signature causes.
    static WORLDS: RefCell<[Option<World>; 2]> = const { RefCell::new([None, None]) };
}

/// Checks that valid requests pass; otherwise no later check would mean anything.
pub fn check() {
    let expected: Vec<usize> = (0..template::COUNT)
        .filter(|&kind| template::passes(kind))
        .collect();
    for first in [0, 0x20] {
        let mut input = vec![4];
        if first > 0 {
            input.extend([script::MARK, 0x4f]);
        }
        for kind in 0..u8::try_from(template::COUNT).expect("few") {
            // Each has a connection of its own, since some end theirs; but frames share one.
            input.extend([script::MARK, first + kind, script::MARK, 0x44]);
            if first == 0 {
                input.extend([script::MARK, 0x4a]);
            }
        }
        let seen = run(&input);
        // HTTP/2 has no handshake of this kind: there the fields of one are forwarded as they are.
        assert_eq!(seen.signed, expected, "beginning with {first}");
    }
    for way in 0..3 {
        let kinds = 0..u8::try_from(template::COUNT).expect("few");
        let input = [0]
            .into_iter()
            .chain(kinds.flat_map(|kind| [script::MARK, 0x51, kind, way]));
        let seen = run(&Vec::from_iter(input));
        assert_eq!(
            seen.described,
            (0..template::COUNT)
                .filter(|&kind| template::passes_described(kind))
                .count()
        );
    }
    let session = run(&[0, script::MARK, 0x50]);
    let anonymous = run(b"\0GET /open/x HTTP/1.1\r\nHost: api.test\r\n\r\n");
    assert_eq!((session.others, anonymous.others), (1, 1));
}

/// The requests that the API saw.
pub struct Seen {
    /// The numbers of the signed requests, in order.
    pub signed: Vec<usize>,
    /// The number of other requests.
    pub others: usize,
    /// The number of descriptions that were permitted.
    pub described: usize,
}

/// Executes `input` and checks the result.
pub fn run(input: &[u8]) -> Seen {
    WORLDS.with_borrow_mut(|worlds| {
        let advises = input.first().is_some_and(|flags| flags >> 3 == 31);
        let world = &mut worlds[usize::from(advises)];
        if world.as_ref().is_some_and(|world| world.executions >= LIFE) {
            *world = None;
        }
        let world = world.get_or_insert_with(|| World::new(advises));
        world.executions += 1;
        let World {
            runtime,
            shared,
            phase,
            opened,
            executions,
        } = world;
        let api = Rc::new(Api::default());
        LocalSet::new().block_on(
            runtime,
            execute(input, shared, phase, opened, &api, *executions),
        );
        while opened.try_recv().is_ok() {}
        let _ = phase.send(Phase::Serving);
        api.seen()
    })
}

/// A connection of the caller.
struct Line {
    write: Option<WriteHalf<DuplexStream>>,
    reader: Rc<Reader>,
    reading: JoinHandle<()>,
    served: JoinHandle<()>,
    next_stream: u32,
}

#[derive(Default)]
struct Reader {
    stopped: Cell<bool>,
    changed: Notify,
    read: RefCell<Vec<u8>>,
}

impl Reader {
    async fn run(self: Rc<Self>, mut stream: ReadHalf<DuplexStream>) {
        let mut buffer = [0; 4096];
        loop {
            while self.stopped.get() {
                self.changed.notified().await;
            }
            tokio::select! {
                read = stream.read(&mut buffer) => match read {
                    Ok(1..) => {
                        let mut all = self.read.borrow_mut();
                        if let (Ok(count), true) = (read, all.len() < 16 * 1024) {
                            all.extend(&buffer[..count]);
                        }
                    }
                    _ => return,
                },
                () = self.changed.notified() => {}
            }
        }
    }
}

impl Line {
    fn open<H: Handler>(handler: &Rc<H>, room: usize) -> Self {
        let peer = Peer {
            address: Some(IpAddr::from([192, 0, 2, 7])),
            secure: true,
            is_relay: false,
        };
        let (ours, theirs) = tokio::io::duplex(room);
        let (wire, handler) = (
            WatchedStream::new(Stream::Memory(theirs)),
            Rc::clone(handler),
        );
        let served = spawn_local(async move {
            connection::serve(wire, peer, handler, &Rc::new(ConnectionEntry::default())).await;
        });
        let (read, write) = tokio::io::split(ours);
        let reader = Rc::new(Reader::default());
        Self {
            write: Some(write),
            reading: spawn_local(Rc::clone(&reader).run(read)),
            reader,
            served,
            next_stream: 1,
        }
    }

    async fn write(&mut self, bytes: &[u8]) {
        if let Some(write) = &mut self.write {
            // A caller whose bytes are not read gives up.
            let _ = timeout(Duration::from_secs(100), write.write_all(bytes)).await;
        }
    }

    async fn finish(&mut self) {
        if let Some(write) = &mut self.write {
            let _ = write.shutdown().await;
        }
    }

    fn leave(&mut self) {
        self.write = None;
        self.reading.abort();
    }
}

async fn execute(
    input: &[u8],
    shared: &Arc<Shared>,
    phase: &watch::Sender<Phase>,
    opened: &mut mpsc::UnboundedReceiver<DuplexStream>,
    api: &Rc<Api>,
    execution: u64,
) {
    let Some((&flags, input)) = input.split_first() else {
        return;
    };
    let worker = Rc::new(Worker::new(Arc::clone(shared)));
    let room = [64 * 1024, 64, 1024, 4096][usize::from(flags & 3)];
    let acting = act(input, shared, phase, &worker, api, room, execution, flags);
    let accepting = async {
        while let Some(stream) = opened.recv().await {
            let api = Rc::clone(api);
            spawn_local(async move { api.serve(stream).await });
        }
    };
    tokio::select! {
        () = acting => {}
        () = accepting => unreachable!("the service goes on"),
    }
}

async fn act(
    input: &[u8],
    shared: &Arc<Shared>,
    phase: &watch::Sender<Phase>,
    worker: &Rc<Worker>,
    api: &Rc<Api>,
    room: usize,
    execution: u64,
    flags: u8,
) {
    let mut lines = vec![Line::open(worker, room)];
    let gate = Rc::new(ForwardAuthHandler::new(Rc::clone(worker)));
    let mut gate_lines: Vec<Line> = Vec::new();
    let mut sent: Vec<Vec<u8>> = Vec::new();
    let mut raw = input.windows(SURPLUS.len()).any(|part| part == SURPLUS);
    for action in script::read(input) {
        let line = lines.last_mut().expect("one at least");
        match action {
            Action::Write(bytes) => line.write(&bytes).await,
            Action::Template {
                kind,
                http2,
                changes,
            } => {
                let number = api.signed.borrow().len();
                let (signed, message) =
                    template::make(kind, &format!("{execution:x}-{number}"), number);
                api.signed.borrow_mut().push(signed);
                let mut bytes = if http2 {
                    let stream = line.next_stream;
                    line.next_stream += 2;
                    message.http2(stream)
                } else {
                    message.http1()
                };
                sent.push(bytes.clone());
                for change in changes {
                    change.apply(&mut bytes);
                }
                line.write(&bytes).await;
            }
            Action::Describe { kind, way, changes } => {
                let number = api.signed.borrow().len();
                let (signed, message) =
                    template::make(kind, &format!("{execution:x}-{number}"), number);
                api.signed.borrow_mut().push(signed);
                // The same request to the API is a replay.
                sent.push(message.http1());
                let mut bytes = message.described(way);
                for change in changes {
                    change.apply(&mut bytes);
                }
                let mut line = Line::open(&gate, 64 * 1024);
                line.write(&bytes).await;
                gate_lines.push(line);
            }
            Action::Session => line.write(&template::of_session().http1()).await,
            Action::Replay(number) => {
                if let Some(bytes) = sent.iter().rev().nth(number % sent.len().max(1)) {
                    line.write(bytes).await;
                }
            }
            Action::Wait(quarters) => {
                sleep(Duration::from_millis(1 + 250 * u64::from(quarters))).await
            }
            Action::Finish => line.finish().await,
            Action::Api(turn) => api.turns.borrow_mut().push_back(Turn::Usual(turn)),
            Action::Answer(bytes) => {
                raw |= bytes.windows(SURPLUS.len()).any(|part| part == SURPLUS);
                api.turns.borrow_mut().push_back(Turn::Raw(bytes));
            }
            Action::Read(reads) => {
                line.reader.stopped.set(!reads);
                line.reader.changed.notify_one();
            }
            Action::Connect => {
                if lines.len() < 32 {
                    lines.push(Line::open(worker, room));
                }
            }
            Action::Leave => line.leave(),
            Action::Drain => {
                let _ = phase.send(Phase::Draining);
            }
            Action::Tidy => worker.evict_idle(),
        }
    }
    if flags & 4 != 0
        && let Some(line) = lines.last_mut()
    {
        line.finish().await;
    }
    for line in lines {
        timeout(DAY, line.served)
            .await
            .expect("a connection has no end")
            .expect("no panic");
        let read = line.reader.read.borrow();
        assert!(
            raw || !read.windows(SURPLUS.len()).any(|part| part == SURPLUS),
            "a response to no request was used"
        );
    }
    let mut described = [0; 2];
    for mut line in gate_lines {
        line.finish().await;
        timeout(DAY, line.served)
            .await
            .expect("a connection has no end")
            .expect("no panic");
        let _ = timeout(DAY, line.reading).await;
        let found = api::permitted(&line.reader.read.borrow());
        described = [described[0] + found[0], described[1] + found[1]];
    }
    api.judge_permitted(described);
    // Work that a connection leaves unfinished ends as well.
    let quiet = async {
        while unproved::in_flight() > 0 {
            sleep(Duration::from_secs(10)).await;
        }
    };
    timeout(DAY, quiet).await.expect("a request has no end");
    assert_eq!(shared.metrics.connections.get(), 0);
    assert!(
        is_free(&API_FORMS) && is_free(&PAGE_FORMS),
        "memory of forms is not given back"
    );
}

/// Whether none of it is reserved, except for a byte or two.
fn is_free(memory: &'static FormMemory) -> bool {
    memory
        .reserve(None)
        .resize(1, Shares { all: 4, each: 1 })
        .is_ok()
}
