//! The page of one call that was rejected or failed, or that enforcing would reject: all that is known of it.

use std::sync::Arc;

use askama::Template;

use crate::{
    oauth::compare::{ComparedPart, Parts, side_by_side},
    operator::{
        admin::console::{
            ConsoleRequest, Rejected, Result,
            page::{ConsoleFrame, show},
            parts::{Moment, Named, Tag, path},
        },
        reasons::{advice, mistake},
    },
    provider::respond::OwnResponse,
    telemetry::calls::{
        facts::{Door, OtherSecret, SenderProof},
        record::CallRecord,
        rejections::{BaseStrings, KeptCall},
    },
};

#[derive(Template)]
#[template(path = "console/call.html")]
struct CallPage<'a> {
    frame: ConsoleFrame<'a>,
    time: Moment,
    consumer: Option<Named>,
    proof: Option<Tag>,
    /// The beginning of the token, and the list that has it.
    token: Option<(String, Option<String>)>,
    mistake: String,
    word: &'static str,
    advice: String,
    facts: Vec<(&'static str, String)>,
    /// The base strings, which are of this call or of another one with the same mistake.
    texts: Vec<(&'static str, Parts)>,
    /// Their decoded parts, side by side.
    compared: Vec<ComparedPart>,
    are_of_another: bool,
    others: String,
}

/// The address of the page of a call.
pub(crate) fn href(one: &KeptCall) -> String {
    let number = one.number.to_string();
    let id = one.call.request_id.as_deref().unwrap_or_default();
    path("/rejection", &[("number", &number), ("request_id", id)])
}

/// What a call proves of the consumer that it names.
pub(crate) fn proof(call: &CallRecord<'_>) -> Tag {
    match call.proof.unwrap_or_default() {
        SenderProof::Verified if call.door == Some(Door::Bearer) => Tag::new("token right", ""),
        SenderProof::Verified if call.is_fault() => Tag::new("signature right", ""),
        SenderProof::Verified => Tag::new("signature right", "good"),
        SenderProof::Secrets => Tag::new("made with its secrets", "warn"),
        SenderProof::None => Tag::new("not proved", "warn"),
    }
}

impl ConsoleRequest<'_> {
    pub(crate) async fn rejected_call(&self) -> Result<OwnResponse> {
        let (number, id) = (self.field("number"), self.field("request_id"));
        let kept = self.admin.shared.rejections.newest();
        // A number is of one process, and an id of all.
        let has_id = |one: &KeptCall| one.call.request_id.as_deref().unwrap_or_default() == id;
        let same_id = || kept.iter().find(|one| !id.is_empty() && has_id(one));
        let numbered = kept.iter().find(|one| one.number.to_string() == number);
        let found = numbered.filter(|one| has_id(one)).or_else(same_id);
        let Some(one) = found else {
            let text =
                "This call is no longer kept, or another process has it. The log has its line.";
            return Err(Rejected::Gone(text));
        };
        let call = &one.call;
        let key = call.named_consumer();
        let names = self.names(key.into_iter(), std::iter::empty()).await?;
        let texts = self.base_strings(one);
        let are_of_another = texts.as_ref().is_some_and(|(of, _)| *of != one.number);
        let texts = texts.map_or_else(Vec::new, |(_, texts)| shown(&texts));
        let word = call.mistake();
        let page = CallPage {
            frame: self.shell.frame(call.called()),
            time: self.moment(one.time),
            consumer: key.map(|key| names.consumer(key)),
            proof: key.map(|_| proof(call)),
            token: match call.named_token().filter(|start| !start.is_empty()) {
                Some(start) => Some((start.to_owned(), self.list_with(start).await?)),
                None => None,
            },
            mistake: mistake(call),
            word,
            advice: advice(call),
            facts: facts(one),
            compared: side_by_side(&texts),
            texts,
            are_of_another,
            others: path(
                "/rejections",
                &[("consumer", key.unwrap_or_default()), ("reason", word)],
            ),
        };
        Ok(show(200, &page))
    }

    /// The number of the last call with the mistake of this one whose base strings are kept, and these.
    fn base_strings(&self, one: &Arc<KeptCall>) -> Option<(u64, Arc<BaseStrings>)> {
        let key = one.call.named_consumer().filter(|_| one.is_registered)?;
        let reasons = self.admin.shared.rejections.reasons(Some(key));
        let reason = reasons.into_iter().find(|reason| reason.is_of(one))?;
        Some((reason.base_strings_of, reason.base_strings?))
    }

    /// The list of tokens that has the one that begins so.
    async fn list_with(&self, start: &str) -> Result<Option<String>> {
        Ok(self.token_beginning(start).await?.map(|token| {
            let (consumer, user) = (token.consumer.as_str(), token.user.as_str());
            path("/tokens", &[("consumer", consumer), ("user", user)])
        }))
    }
}

fn shown(texts: &BaseStrings) -> Vec<(&'static str, Parts)> {
    let signed = texts.signed.as_ref();
    let signed = signed.map(|signed| ("What the consumer signed", signed.parts()));
    let right = ("Right base string", texts.right.parts());
    std::iter::once(right).chain(signed).collect()
}

/// The facts that have no place of their own on the page; those that are not known are left out.
fn facts(one: &KeptCall) -> Vec<(&'static str, String)> {
    let call = &one.call;
    let text = |text: Option<&str>| text.map(str::to_owned);
    let facts = [
        ("Status", Some(call.status.to_string())),
        ("Verdict", Some(call.verdict.as_str().to_owned())),
        (
            "Enforcing would say",
            call.observed().map(|it| it.as_str().to_owned()),
        ),
        ("Operation", text(call.operation.as_deref())),
        ("Door", call.door.map(|door| <&str>::from(door).to_owned())),
        (
            "Missing permission",
            text(call.missing_permission.as_deref()),
        ),
        ("Parameters", text(call.parameters.as_deref())),
        ("Problem", text(call.problem.as_deref())),
        (
            "Clock ahead by",
            call.skew_seconds.map(|seconds| format!("{seconds} s")),
        ),
        (
            "Accepted if it was allowed",
            call.needs.map(|it| it.as_str().to_owned()),
        ),
        (
            "Secret",
            (call.secret == Some(OtherSecret::Previous))
                .then(|| "the previous one, in its grace".to_owned()),
        ),
        ("Account", text(call.user.as_deref())),
        ("Address", call.caller_address().map(|it| it.to_string())),
        ("Request id", text(call.request_id.as_deref())),
        (
            "Took",
            call.ms
                .map(|took| format!("{:.1} ms", took.as_secs_f64() * 1e3)),
        ),
    ];
    facts
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}
