//! The demo's API: tells as JSON what has reached it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    http1::head::{HeadLimits, RequestHead},
    refusal::{Failure, Refusal},
    respond::{self, Answer, Format},
    server::connection::{Connection, Handler, Limits},
    telemetry::metrics::Verdict,
};

/// Bounds of the demo's own servers.
pub(super) const LIMITS: Limits = Limits {
    head: HeadLimits {
        head_bytes: 64 * 1024,
        head_fields: 200,
        target_bytes: 32 * 1024,
    },
    handshake_timeout: Duration::from_secs(10),
    head_timeout: Duration::from_secs(10),
    idle_timeout: Duration::from_secs(300),
    body_timeout: Duration::from_secs(30),
    form_timeout: Duration::from_secs(30),
    form_bytes: 1024 * 1024,
    form_memory: 64 * 1024 * 1024,
    form_fields: 10_000,
    streams: None,
};

/// Echoes.
pub(super) struct Echo;

impl Echo {
    async fn answer(connection: &mut Connection, head: &RequestHead) -> Result<Answer, Failure> {
        let body = connection.read_whole_body().await?;
        let target = String::from_utf8_lossy(head.target()).into_owned();
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path.to_owned(), Some(query.to_owned())),
            None => (target, None),
        };
        let fields = head.fields.iter().map(|field| {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            json!([text(field.name), text(field.value)])
        });
        let echo = json!({
            "method": String::from_utf8_lossy(head.method()),
            "path": path,
            "query": query,
            "headers": Value::Array(fields.collect()),
            "body": String::from_utf8_lossy(&body),
        });
        Ok(Answer::new(
            200,
            "application/json",
            format!("{echo:#}\n"),
            Verdict::Page,
        ))
    }
}

impl Handler for Echo {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn is_draining(&self) -> bool {
        false
    }

    async fn drained(&self) {
        std::future::pending().await
    }

    async fn handle(&self, connection: &mut Connection, head: RequestHead) {
        let answer = Self::answer(connection, &head).await;
        let answer =
            answer.unwrap_or_else(|failure| respond::failure(&failure, "", Format::Json, ""));
        reply(connection, &head, &answer).await;
    }

    async fn refuse(&self, connection: &mut Connection, refusal: Refusal) {
        let answer = respond::failure(&Failure::Refusal(refusal), "", Format::Json, "");
        answer.write(connection.out.buffer(), false, false, connection.version);
        let _ = connection.flush().await;
    }
}

/// Sends an answer.
pub(super) async fn reply(connection: &mut Connection, head: &RequestHead, answer: &Answer) {
    connection.keep_alive &= connection.body.is_done();
    let to_head = head.method() == b"HEAD";
    answer.write(
        connection.out.buffer(),
        to_head,
        connection.keep_alive,
        connection.version,
    );
    connection.keep_alive &= connection.flush().await.is_ok();
}
