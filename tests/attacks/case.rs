//! One case of an attack and the stage on which cases are played.

use std::{
    fmt::Write as _,
    io,
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::{
    attacks::script::{self, SMUGGLED},
    support::{Answer, Call, Caller, Connection, Proxy, Reply, Upstream, upstream::Seen, words},
};

/// The state of a connection after the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It ends without another byte.
    Closed,
    /// It serves another request.
    Kept,
    /// It ends in the middle of an answer, or without any.
    Broken,
}

/// The bytes and the expected results of one connection.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    name: String,
    source: String,
    script: String,
    answers: Vec<u16>,
    end: End,
    seen: Vec<String>,
    /// The method and target of a request that is cut off, and the most of its body.
    cut: Option<(String, String)>,
    told: Vec<&'static str>,
    kind: Kind,
}

/// The kind of caller that the API sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Consumer,
    Anonymous,
}

impl Case {
    fn new(name: &str, source: &str, script: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            source: source.to_owned(),
            script: script.into(),
            answers: Vec::new(),
            end: End::Kept,
            seen: Vec::new(),
            cut: None,
            told: Vec::new(),
            kind: Kind::Consumer,
        }
    }

    /// The connection ends in or before an answer, so that nothing looks whole.
    pub(crate) fn broken(mut self) -> Self {
        self.end = End::Broken;
        self.answers.clear();
        self
    }

    /// The connection ends after the answers.
    pub(crate) fn closed(mut self) -> Self {
        self.end = End::Closed;
        self
    }

    /// The API saw just these: `METHOD target`, with ` | body` if there is a body.
    pub(crate) fn seen(mut self, seen: &[&str]) -> Self {
        self.seen = seen.iter().map(|&one| one.to_owned()).collect();
        self
    }

    /// A signed `POST /x` (see [`crate::attacks::script::post`]) of which the API saw nothing, or the part before the fault, at
    /// most `body` and visibly cut off. It gets a target of its own, since it may arrive late.
    pub(crate) fn cut(mut self, body: &str) -> Self {
        static CUT: AtomicUsize = AtomicUsize::new(0);
        let target = format!("/cut/{}", CUT.fetch_add(1, Ordering::Relaxed));
        self.script = self
            .script
            .replacen("POST /x", &format!("POST {target}"), 2);
        self.cut = Some((format!("POST {target}"), body.to_owned()));
        self
    }

    /// These statuses, in this order.
    pub(crate) fn answers(mut self, answers: &[u16]) -> Self {
        self.answers = answers.to_vec();
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether this status is the first answer.
    pub(crate) fn is(&self, status: u16) -> bool {
        self.answers.first() == Some(&status)
    }

    /// The body of the last answer contains this text.
    pub(crate) fn told(mut self, text: &'static str) -> Self {
        self.told.push(text);
        self
    }

    /// The API sees a request of an anonymous caller.
    pub(crate) fn anonymous(mut self) -> Self {
        self.kind = Kind::Anonymous;
        self
    }
}

/// Refused with this status, the connection closed, and the API sees neither this nor the signed request after it.
pub(crate) fn refused(name: &str, source: &str, status: u16, script: impl Into<String>) -> Case {
    let script = script.into() + SMUGGLED;
    Case::new(name, source, script).answers(&[status]).closed()
}

/// Refused with this status; the connection stays open, since the end of the request is beyond doubt.
pub(crate) fn answered(name: &str, source: &str, status: u16, script: impl Into<String>) -> Case {
    Case::new(name, source, script).answers(&[status])
}

/// Forwarded and answered; the API saw only this (see [`Case::seen`]) and the connection stays open.
pub(crate) fn passes(name: &str, source: &str, seen: &str, script: impl Into<String>) -> Case {
    Case::new(name, source, script)
        .answers(&[200])
        .seen(&[seen])
}

/// An API, a proxy in front of it and a caller that signs.
pub(crate) struct Stage {
    pub(crate) api: Upstream,
    pub(crate) proxy: Proxy,
    pub(crate) caller: Caller,
}

impl Stage {
    /// With this configuration added to the defaults; each answer names the target it is for.
    pub(crate) fn new(config: &str) -> Self {
        Self::before(
            Upstream::replying(|seen| Reply::ok(&seen.target).header("X-Target", &seen.target)),
            config,
        )
    }

    /// The same in front of another API.
    pub(crate) fn before(api: Upstream, config: &str) -> Self {
        let proxy = Proxy::in_front_of(&api)
            .config("listen.workers = 1")
            .config(config)
            .start();
        let caller = proxy.somebody();
        Self { api, proxy, caller }
    }

    /// The bytes of a script.
    pub(crate) fn bytes(&self, text: &str) -> Vec<u8> {
        script::bytes(text, &self.proxy, &self.caller)
    }

    /// A correctly signed `GET` of this target, by this stage's caller.
    pub(crate) fn get(&self, target: &str) -> Call {
        Call::get(target).of(&self.caller)
    }

    /// Plays all cases, which are this many, and reports all that failed.
    ///
    /// The count is given next to each table, so that a table, or a loop that makes one, cannot lose cases unnoticed.
    #[track_caller]
    pub(crate) fn play(&self, count: usize, cases: &[Case]) {
        assert_eq!(cases.len(), count, "so many cases are here");
        let mut failures = String::new();
        let mut failed = 0;
        for case in cases {
            if let Err(why) = self.try_case(case) {
                failed += 1;
                let _ = writeln!(failures, "\n* {} [{}]\n  {why}", case.name, case.source);
            }
        }
        if let Err(why) = self.check_cut(cases) {
            failed += 1;
            let _ = writeln!(failures, "\n* {why}");
        }
        assert!(
            failed == 0,
            "{failed} of {} cases fail:\n{failures}",
            cases.len()
        );
    }

    fn try_case(&self, case: &Case) -> Result<(), String> {
        let before = self.api.count();
        let wire = self.bytes(&case.script);
        let mut connection = self.proxy.connect();
        // The proxy may close before it has read everything.
        drop(connection.try_send(&wire));
        let mut answers = Vec::new();
        let method = case.script.split(' ').next().unwrap_or_default();
        for (index, &status) in case.answers.iter().enumerate() {
            let method = if index == 0 { method } else { "GET" };
            let answer = match connection.try_answer(method) {
                Ok(Some(answer)) => answer,
                Ok(None) => {
                    return Err(format!(
                        "answer {} of {:?} is missing: closed; before: {answers:?}",
                        index + 1,
                        case.answers
                    ));
                }
                Err(error) => return Err(format!("answer {}: {error}", index + 1)),
            };
            if answer.status != status {
                return Err(format!("expected {status}, got {answer:?}"));
            }
            if !answer.interim.is_empty() {
                return Err(format!("1xx answers without a cause: {answer:?}"));
            }
            answers.push(answer);
        }
        self.check_end(case, &mut connection, &answers)?;
        if let Some(text) = case
            .told
            .iter()
            .find(|text| !answers.last().is_some_and(|a| a.text().contains(**text)))
        {
            return Err(format!("{text:?} is not in the answer: {answers:?}"));
        }
        self.check_seen(case, &self.api.requests_since(before), &answers)
    }

    fn check_end(
        &self,
        case: &Case,
        connection: &mut Connection,
        answers: &[Answer],
    ) -> Result<(), String> {
        let says_close = answers.last().is_some_and(|answer| {
            answer
                .fields
                .all("connection")
                .iter()
                .any(|value| value.eq_ignore_ascii_case("close"))
        });
        match case.end {
            End::Broken => match connection.try_answer("GET") {
                Ok(Some(answer)) => Err(format!("an answer that looks whole: {answer:?}")),
                Ok(None) | Err(_) => Ok(()),
            },
            End::Closed => {
                let rest = connection.wire().rest();
                if !rest.is_empty() {
                    let rest = crate::support::http::latin1(&rest);
                    return Err(format!("more on the connection: {rest:?}"));
                }
                // HTTP/1.0 ends without `Connection: close` (RFC 9112 §9.3).
                let line = case.script.lines().next().unwrap_or_default();
                if !says_close && !line.ends_with(" HTTP/1.0") && !answers.is_empty() {
                    return Err(format!("closed without saying so: {answers:?}"));
                }
                Ok(())
            }
            End::Kept => {
                let mut answer = self.probe(connection);
                // The API may have closed its connection just when the request was sent on it.
                if let Ok((_, Some(Answer { status: 502, .. }))) = &answer {
                    answer = self.probe(connection);
                }
                match answer {
                    Ok((probe, Some(answer))) if answer.status == 200 && answer.text() == probe => {
                        Ok(())
                    }
                    other => Err(format!(
                        "the connection does not go on: {other:?} after {answers:?}"
                    )),
                }
            }
        }
    }

    /// Sends one more request on the connection; returns its target with the answer.
    fn probe(&self, connection: &mut Connection) -> io::Result<(String, Option<Answer>)> {
        static PROBES: AtomicUsize = AtomicUsize::new(0);
        let probe = format!("/probe/{}", PROBES.fetch_add(1, Ordering::Relaxed));
        drop(connection.try_send(&self.proxy.wire(&self.get(&probe))));
        Ok((probe, connection.try_answer("GET")?))
    }

    fn check_seen(&self, case: &Case, seen: &[Seen], answers: &[Answer]) -> Result<(), String> {
        let seen: Vec<&Seen> = seen
            .iter()
            .filter(|seen| !seen.target.starts_with("/probe/") && !is_cut(seen))
            .collect();
        let found: Vec<String> = seen
            .iter()
            .map(|seen| {
                let body = crate::support::http::latin1(&seen.body);
                let line = format!("{} {}", seen.method, seen.target);
                if body.is_empty() {
                    line
                } else {
                    format!("{line} | {body}")
                }
            })
            .collect();
        if found != case.seen || !seen.iter().all(|seen| seen.whole) {
            return Err(format!(
                "the API was to see {:?} and saw {found:?}; answers: {answers:?}",
                case.seen
            ));
        }
        for seen in seen {
            self.check_identity(case.kind, seen)?;
        }
        Ok(())
    }

    /// Checks the parts that arrived of the requests that are cut off: each once at most, and none whole.
    fn check_cut(&self, cases: &[Case]) -> Result<(), String> {
        let mut cut: Vec<&(String, String)> =
            cases.iter().filter_map(|case| case.cut.as_ref()).collect();
        for seen in self.api.requests().iter().filter(|seen| is_cut(seen)) {
            let line = format!("{} {}", seen.method, seen.target);
            let Some(at) = cut.iter().position(|(request, _)| *request == line) else {
                return Err(format!("no case sent this, or it came twice: {seen:?}"));
            };
            let (_, body) = cut.swap_remove(at);
            if seen.whole || !body.as_bytes().starts_with(&seen.body) {
                return Err(format!("not cut off: {seen:?}"));
            }
            self.check_identity(Kind::Consumer, seen)?;
        }
        Ok(())
    }

    /// Only the proxy named the caller to the API, once; and no field meant for the proxy was forwarded.
    pub(crate) fn check_identity(&self, kind: Kind, seen: &Seen) -> Result<(), String> {
        let folded = |name: &str| {
            name.to_ascii_lowercase()
                .replace(|c: char| !c.is_ascii_alphanumeric(), "-")
        };
        let all = |name: &str| -> Vec<&str> {
            seen.fields
                .0
                .iter()
                .filter(|(n, _)| folded(n) == name)
                .map(|(_, value)| value.as_str())
                .collect()
        };
        let expected = match kind {
            Kind::Consumer => (
                vec![self.caller.user.id.as_str()],
                vec![self.caller.consumer.key.as_str()],
                vec!["consumer"],
            ),
            Kind::Anonymous => (vec![], vec![], vec!["anonymous"]),
        };
        let told = (
            all("x-auth-user"),
            all("x-auth-consumer"),
            all("x-auth-kind"),
        );
        if told != expected {
            return Err(format!(
                "identity {told:?}, expected {expected:?}: {seen:?}"
            ));
        }
        for once in words("host x-forwarded-for x-forwarded-proto x-forwarded-host") {
            if all(once).len() != 1 {
                return Err(format!("{once} {} times: {seen:?}", all(once).len()));
            }
        }
        let framing = all("content-length").len() + all("transfer-encoding").len();
        if framing > 1 {
            return Err(format!("framing that two could read differently: {seen:?}"));
        }
        for never in words(
            "upgrade http2-settings te trailer keep-alive proxy-connection proxy-authorization
             expect",
        ) {
            if !all(never).is_empty() {
                return Err(format!("{never} ends at the proxy: {seen:?}"));
            }
        }
        Ok(())
    }
}

/// Whether a request is one of [`Case::cut`].
fn is_cut(seen: &Seen) -> bool {
    seen.target.starts_with("/cut/")
}
