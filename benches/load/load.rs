//! The load of `benches/run`: kept connections, each request signed beforehand with a nonce of its own, so that the same
//! bytes can be sent to a proxy that verifies and to one that does not.
//!
//! In a closed loop the next request is sent when an answer has arrived. With `--rate` the loop is open: requests are
//! due at times drawn beforehand (exponential gaps, the same for every run), and a latency counts from the time when
//! its request was due, even if it was sent later; so a proxy that stalls pays for every request that it delays.
//! Before that, each connection is opened and has one request answered, and the word `ready` is printed; the run begins
//! with a line on standard input. Then one line of JSON is printed, and connections stay open until standard input
//! ends. So a measurement can leave out signing, opening and closing.
//!
//! Every answer other than 200 counts as a failure.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a measuring tool: it reports on standard output and stops at the first surprise"
)]

mod connection;
mod options;
mod requests;
mod schedule;
mod tls;

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use clap::Parser;
use mio::{Events, Poll, Token, Waker};

use self::{
    connection::{Answer, Connection},
    options::Options,
    requests::Requests,
    schedule::Schedule,
};

/// The token of the clock in an open loop; connections count from 0.
const CLOCK: Token = Token(usize::MAX);

fn main() {
    let options = Options::parse();
    if options.print_targets {
        return requests::print_targets(&options);
    }
    let mut load = Load::open(&options);
    load.warm_up();
    println!("ready");
    let mut input = std::io::stdin().lines();
    if input.next().is_none() {
        return;
    }
    let elapsed = load.run();
    load.tally.report(elapsed);
    _ = input.next();
}

/// All connections, and the progress of the run.
struct Load<'a> {
    options: &'a Options,
    requests: Requests,
    poll: Poll,
    connections: Vec<Connection>,
    /// Connections that wait for a request.
    free: VecDeque<usize>,
    next: usize,
    answered: usize,
    tally: Tally,
}

impl<'a> Load<'a> {
    fn open(options: &'a Options) -> Self {
        let poll = Poll::new().unwrap();
        let count = options.connections;
        let tls = options.tls.then(tls::config);
        let connections =
            (0..count).map(|number| Connection::new(Token(number), options.address, tls.clone()));
        Self {
            connections: connections.collect(),
            options,
            requests: Requests::sign(options),
            poll,
            free: (0..count).collect(),
            next: 0,
            answered: 0,
            tally: Tally::default(),
        }
    }

    /// Sends one request on each connection, a few at a time.
    fn warm_up(&mut self) {
        let last = self.requests.len() - self.options.requests;
        self.run_closed(last, 64);
        self.tally.latencies.clear();
    }

    /// Sends all requests and waits for all answers.
    fn run(&mut self) -> Duration {
        let start = Instant::now();
        match self.options.rate {
            Some(rate) => self.run_open(rate, start),
            None => {
                let in_flight = self.options.in_flight.unwrap_or(usize::MAX);
                self.run_closed(self.requests.len(), in_flight);
            }
        }
        start.elapsed()
    }

    fn run_closed(&mut self, last: usize, in_flight: usize) {
        let mut events = Events::with_capacity(1024);
        while self.answered < last {
            while self.next < last
                && self.next - self.answered < in_flight
                && self.send_next(Instant::now())
            {}
            self.turn(&mut events);
        }
    }

    fn run_open(&mut self, rate: f64, start: Instant) {
        let waker = Waker::new(self.poll.registry(), CLOCK).unwrap();
        let schedule = Schedule::start(rate, self.options.requests, start, waker);
        let first = self.next;
        let mut events = Events::with_capacity(1024);
        while self.answered < self.requests.len() {
            while let Some(due) = schedule.due(self.next - first)
                && self.send_next(due)
            {}
            self.turn(&mut events);
        }
    }

    fn send_next(&mut self, since: Instant) -> bool {
        let Some(number) = self.free.pop_front() else {
            return false;
        };
        self.connections[number].send(self.poll.registry(), self.next, since, &self.requests);
        self.next += 1;
        true
    }

    fn turn(&mut self, events: &mut Events) {
        self.poll
            .poll(events, Some(Duration::from_secs(30)))
            .unwrap();
        assert!(
            !events.is_empty(),
            "no answer for 30 s; {} came",
            self.answered
        );
        for event in events.iter().filter(|event| event.token() != CLOCK) {
            let connection = &mut self.connections[event.token().0];
            let Some(answer) = connection.drive(&self.requests) else {
                continue;
            };
            self.answered += 1;
            self.tally.count(answer);
            if self.options.fresh {
                connection.close();
            }
            self.free.push_back(event.token().0);
        }
    }
}

/// The totals of the whole run.
#[derive(Default)]
struct Tally {
    failures: usize,
    first_failure: Option<String>,
    latencies: Vec<Duration>,
}

impl Tally {
    fn count(&mut self, answer: Answer) {
        self.latencies.push(answer.latency);
        if answer.status != 200 {
            self.failures += 1;
            self.first_failure
                .get_or_insert_with(|| format!("{}\n{}", answer.status, answer.head));
        }
    }

    fn report(&mut self, elapsed: Duration) {
        self.latencies.sort_unstable();
        let quantile = |part: usize| {
            let index = (self.latencies.len() * part / 1000).min(self.latencies.len() - 1);
            self.latencies[index].as_micros()
        };
        let report = serde_json::json!({
            "requests": self.latencies.len(),
            "failures": self.failures,
            "first_failure": self.first_failure,
            "seconds": elapsed.as_secs_f64(),
            "p50_us": quantile(500),
            "p90_us": quantile(900),
            "p99_us": quantile(990),
            "p999_us": quantile(999),
        });
        println!("{report}");
    }
}
