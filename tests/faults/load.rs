//! Many callers at once, each of which counts the requests that were written and not answered.

use std::{
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use rustix::net::{RecvFlags, recv};

use crate::support::{Answer, Call, Connection, Consumer, Proxy, Token, http::try_open, until};

/// The address that the callers call, and their credentials.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    origin: String,
    host: String,
    consumer: Consumer,
    token: Token,
}

impl Target {
    pub(crate) fn of(proxy: &Proxy, consumer: &Consumer, token: &Token) -> Self {
        Self {
            address: proxy.address(),
            origin: proxy.origin(),
            host: proxy.host(),
            consumer: consumer.clone(),
            token: token.clone(),
        }
    }

    /// The bytes of a signed call.
    pub(crate) fn wire(&self, call: Call) -> (String, Vec<u8>) {
        let call = call.by(&self.consumer).with(&self.token);
        (call.method.clone(), call.wire(&self.origin, &self.host))
    }

    /// The bytes of a signed call, of another kind each time.
    fn any(&self, number: usize) -> (String, Vec<u8>) {
        self.wire(match number % 4 {
            0 => Call::get("/things?of=load"),
            1 => Call::post("/things").json("{\"a\": \"thing\"}"),
            2 => Call::post("/things").chunked(&[b"a thing ", b"in chunks"]),
            _ => Call::post("/things").form("a=thing&as=form"),
        })
    }
}

/// The counts of one caller, or of all of them.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) answered: usize,
    /// Answers that said `Connection: close`.
    pub(crate) told_to_close: usize,
    /// Connections found closed before a request was written on them.
    pub(crate) found_closed: usize,
    /// Requests that were written and not answered with 200.
    pub(crate) failures: Vec<String>,
}

/// Running callers.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    callers: Vec<JoinHandle<Tally>>,
}

impl Load {
    /// Starts this many callers. One in four opens a connection for each request; half of the others pause between
    /// requests. No request is retried; a caller that is told to close connects again, until connections are refused.
    pub(crate) fn begin(target: &Target, callers: usize) -> Self {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let begin = |number| {
            let caller = Caller {
                target: target.clone(),
                stop: Arc::clone(&stop),
                answered: Arc::clone(&answered),
                number,
                tally: Tally::default(),
            };
            std::thread::spawn(move || caller.call())
        };
        let callers = (0..callers).map(begin).collect();
        Self {
            stop,
            answered,
            callers,
        }
    }

    /// The number of requests answered until now.
    pub(crate) fn answered(&self) -> usize {
        self.answered.load(Ordering::SeqCst)
    }

    /// Waits until this many more requests were answered.
    #[track_caller]
    pub(crate) fn goes_on_for(&self, count: usize) {
        let enough = self.answered() + count;
        until("the load goes on", || self.answered() >= enough);
    }

    /// Stops the callers after the current request.
    pub(crate) fn end(self) -> Tally {
        self.stop.store(true, Ordering::SeqCst);
        self.wait()
    }

    /// Waits until the callers' connections are refused.
    pub(crate) fn wait(self) -> Tally {
        let mut all = Tally::default();
        for caller in self.callers {
            let one = caller.join().unwrap();
            all.answered += one.answered;
            all.told_to_close += one.told_to_close;
            all.found_closed += one.found_closed;
            all.failures.extend(one.failures);
        }
        all
    }
}

struct Caller {
    target: Target,
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    number: usize,
    tally: Tally,
}

impl Caller {
    fn call(mut self) -> Tally {
        // Nothing was written yet if the connection is refused.
        while !self.stop.load(Ordering::SeqCst)
            && let Ok(stream) = try_open(self.target.address)
        {
            self.on_a_connection(stream);
        }
        self.tally
    }

    fn on_a_connection(&mut self, stream: TcpStream) {
        let mut connection = Connection::over(stream.try_clone().unwrap());
        let mut first = true;
        while !self.stop.load(Ordering::SeqCst) {
            let number = self.tally.answered + self.number;
            let (method, wire) = self.target.any(number);
            if self.number % 4 > 1 && !first {
                std::thread::sleep(Duration::from_millis((number % 20) as u64));
            }
            if is_closed(&stream) {
                self.tally.found_closed += 1;
                return;
            }
            let answer = match connection.try_send(&wire) {
                Ok(()) => connection.try_answer(&method),
                Err(error) => Err(error),
            };
            let answer: Answer = match answer {
                Ok(Some(answer)) if answer.status == 200 => answer,
                other => {
                    let at = if first { "new" } else { "kept" };
                    let failure = format!("{method} on a {at} connection: {other:?}");
                    return self.tally.failures.push(failure);
                }
            };
            self.tally.answered += 1;
            self.answered.fetch_add(1, Ordering::SeqCst);
            if answer.header("connection") == Some("close") {
                self.tally.told_to_close += 1;
                return;
            }
            if self.number.is_multiple_of(4) {
                return;
            }
            first = false;
        }
    }
}

/// Whether the peer has closed, as far as is known here now.
pub(crate) fn is_closed(stream: &TcpStream) -> bool {
    let mut byte = [0_u8; 1];
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    match recv(stream, &mut byte, flags) {
        Ok((count, _)) => count == 0,
        Err(error) => error != rustix::io::Errno::AGAIN,
    }
}
