//! A minute of made-up traffic, so that the console has something to show: most calls are those of an application that makes no
//! mistake, and each of three consumers makes a common one.

use std::{net::TcpStream, time::Duration};

use serde_json::json;
use tokio::{task::spawn_blocking, time::interval};

use super::BoxedError;
use crate::{
    base::clock::Clock,
    cli::{
        arguments::{request::RequestArgs, secret_source::SecretArg, signing_secrets::SecretArgs},
        context::{CommandError, actor},
        service::health,
        signature::sign::SignArgs,
    },
    operator::{
        explain::Asked,
        manage::{Management, view},
    },
    records::values::record::Consumer,
};

/// The traffic lasts this many seconds, with one call of each consumer with a mistake in each.
const SECONDS: u64 = 60;

/// The calls without a mistake in each second, so that about a tenth of all calls is rejected.
const GOOD_CALLS: u64 = 20;

/// The mistake of a consumer.
#[derive(Clone, Copy)]
enum Mistake {
    None,
    /// It signs the address without its query.
    QueryUnsigned,
    /// Its clock is twenty minutes slow.
    SlowClock,
    /// It sends each signed request twice.
    SentAgain,
}

/// The name of each consumer, its path and its mistake.
const CALLERS: [(&str, &str, Mistake); 3] = [
    (
        "Photo printer",
        "/shop/photos?size=large&page=",
        Mistake::QueryUnsigned,
    ),
    ("Night job", "/shop/reports?day=", Mistake::SlowClock),
    ("Ledger sync", "/shop/ledger?entry=", Mistake::SentAgain),
];

/// The consumers that call, and the address of the proxy.
pub(super) struct Traffic {
    authority: String,
    callers: Vec<(Consumer, &'static str, Mistake)>,
}

impl Traffic {
    /// Registers the consumers with mistakes; `application` calls without one.
    pub(super) async fn prepare(
        manage: &Management,
        application: Consumer,
        authority: String,
    ) -> Result<Self, BoxedError> {
        let operator = manage.operator(actor());
        let mut callers = vec![(application, "/shop/orders?page=", Mistake::None)];
        for (name, path, mistake) in CALLERS {
            let members = view::members(&json!({ "name": name, "callbacks": ["oob"] }));
            let consumer = operator.register_consumer(members, None).await?;
            callers.push((consumer, path, mistake));
        }
        Ok(Self { authority, callers })
    }

    /// Makes the traffic. A call that fails is no matter: the console shows it.
    pub(super) async fn run(self) {
        let mut every_second = interval(Duration::from_secs(1));
        for second in 0..SECONDS {
            every_second.tick().await;
            for (consumer, path, mistake) in &self.callers {
                let calls = match mistake {
                    Mistake::None => GOOD_CALLS,
                    _ => 1,
                };
                for number in second * calls..(second + 1) * calls {
                    if let Err(error) = self.call(consumer, path, *mistake, number).await {
                        tracing::debug!(error, "demo: a call of the traffic failed");
                    }
                }
            }
        }
    }

    async fn call(
        &self,
        consumer: &Consumer,
        path: &str,
        mistake: Mistake,
        number: u64,
    ) -> Result<(), BoxedError> {
        let target = format!("{path}{number}");
        let signed = match mistake {
            Mistake::QueryUnsigned => path.split('?').next().unwrap_or(path),
            _ => &target,
        };
        let now = Clock::system().now();
        let clock = match mistake {
            Mistake::SlowClock => Clock::manual(now.before(Duration::from_secs(1200))),
            _ => Clock::manual(now),
        };
        let call = unsigned(&self.authority, "GET", signed, consumer);
        let fields = authorization(&call, &clock)?;
        let times = if matches!(mistake, Mistake::SentAgain) {
            2
        } else {
            1
        };
        for _ in 0..times {
            send(&self.authority, "GET", &target, &fields).await?;
        }
        Ok(())
    }
}

/// A call as `countersign sign` takes it, with the consumer's credentials alone.
pub(super) fn unsigned(authority: &str, method: &str, path: &str, consumer: &Consumer) -> SignArgs {
    SignArgs {
        request: RequestArgs {
            method: method.to_owned(),
            url: format!("http://{authority}{path}"),
            ..RequestArgs::default()
        },
        consumer_key: consumer.key.to_string(),
        secrets: SecretArgs {
            consumer_secret: Some(SecretArg::Literal(consumer.secret.clone())),
            token_secret: None,
        },
        ..SignArgs::default()
    }
}

/// Signs a call as `countersign sign` does: the line of its Authorization header.
pub(super) fn authorization(call: &SignArgs, clock: &Clock) -> Result<String, BoxedError> {
    let unused = &mut |_: &Asked<'_>| Err(CommandError::usage("unused"));
    let signed = call.run(clock, unused, &mut std::io::empty());
    let signed = signed.map_err(|error| error.to_string())?.text;
    Ok(format!("{}\r\n", signed.trim_end()))
}

/// Sends a call over the network and returns status and body of the response.
pub(super) async fn send(
    authority: &str,
    method: &str,
    path: &str,
    fields: &str,
) -> Result<(u16, String), BoxedError> {
    let line = format!("{method} {path} HTTP/1.1");
    let fields = format!("{fields}Content-Length: 0\r\n");
    let authority = authority.to_owned();
    let response = spawn_blocking(move || {
        let stream = TcpStream::connect(&authority)?;
        health::exchange(stream, &line, &authority, &fields)
    });
    Ok(response.await??)
}
