//! Captures the log, for tests that read it.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use tracing_subscriber::layer::SubscriberExt as _;

use super::{
    calls::{
        facts::{Door, HttpVersion, OperationRule, OtherSecret, Reason, SenderProof, Upgrade},
        record::CallRecord,
        verdict::Verdict,
    },
    log::{LogFormat, subscriber},
};
use crate::{
    oauth::{
        Deviation, DeviationSet,
        diagnosis::{Diagnosed, Mistake},
    },
    telemetry::log::lines::TextFields,
};

/// The lines that `work` logs, without times.
pub(crate) fn logged(work: impl FnOnce()) -> Vec<String> {
    let captured = CapturedLog::default();
    let writer = captured.clone();
    let lines = tracing_subscriber::fmt::layer()
        .without_time()
        .with_ansi(false)
        .fmt_fields(TextFields)
        .with_writer(move || writer.clone());
    let subscriber = tracing_subscriber::registry().with(lines);
    tracing::subscriber::with_default(subscriber, work);
    captured.take().lines().map(str::to_owned).collect()
}

/// The lines that the log of this process would have in this form after `work`.
pub(crate) fn written(form: LogFormat, work: impl FnOnce()) -> String {
    let captured = CapturedLog::default();
    let writer = captured.clone();
    let level = "info".parse().unwrap();
    let (subscriber, _control) = subscriber(form, &level, move || writer.clone());
    tracing::subscriber::with_default(subscriber, work);
    captured.take()
}

/// Captures what a log writes.
#[derive(Clone, Default)]
pub(super) struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl io::Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl CapturedLog {
    /// Takes out what was written.
    pub(super) fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

/// A record with a value for every fact.
pub(crate) fn call() -> CallRecord<'static> {
    CallRecord {
        method: Some("GET".into()),
        path: Some("/a=b \"c\" consumer=x".into()),
        status: 401,
        verdict: Verdict::SignatureInvalid,
        consumer: Some("shop==".into()),
        token: Some("acc0212b…".into()),
        unverified_consumer: Some("bank".into()),
        unverified_token: Some("b7c4e0aa…".into()),
        user: Some("7 status=200 \"x\"".into()),
        peer: Some([127, 0, 0, 1].into()),
        address: "2001:db8::7".parse().ok(),
        request_id: Some("r-1".into()),
        operation: Some("GET,POST /a/{id}".into()),
        door: Some(Door::Bearer),
        proof: Some(SenderProof::Secrets),
        secret: Some(OtherSecret::Previous),
        http: Some(HttpVersion::Http2),
        upgrade: Some(Upgrade::Dropped),
        host: Some("a.example proof=verified".into()),
        reason: Some(Reason::Observed(Verdict::NonceUsed)),
        missing_permission: Some("pay".into()),
        denied_by: Some(OperationRule::Access),
        parameters: Some("oauth_nonce&a%20b".into()),
        problem: Some("it is \\ wrong, write status=200".into()),
        diagnosis: Diagnosed::Known(Mistake::QueryUnsigned),
        needs: Some(Deviation::EmptySecret),
        deviation: DeviationSet::from_iter([Deviation::RepeatsOnce, Deviation::CallbackAbsent]),
        skew_seconds: Some(-742),
        upstream: Some("10.0.0.1:80".into()),
        cause: Some("API unreachable: it's \"gone\"".into()),
        ms: Some(Duration::from_micros(1_200)),
        upstream_ms: Some(Duration::from_millis(1)),
    }
}
