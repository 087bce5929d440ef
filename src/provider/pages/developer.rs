//! `mode=developer`: the developer of one consumer sees why its calls are rejected, and has a request checked.
//!
//! The operator makes the link. It is a random value, and the store has only its hash: no part of it can be changed to
//! reach another consumer or a later time, it is valid at every replica, and it ends when its row is removed. Whoever has
//! it reads the page, so the page shows no secret, no user, and nothing of other consumers. Every link that is not valid
//! gets the same response.

use std::{net::IpAddr, num::NonZeroU32, sync::Arc, time::Duration};

use askama::Template;
use async_trait::async_trait;

use super::{PageError, PageRequest};
use crate::{
    base::{
        clock::UnixTime,
        rate::Rate,
        secret::{Secret, random::SECRET_LENGTH},
        text::names::ConsumerKey,
    },
    oauth::compare::{Parts, marked},
    provider::{
        login::{pool::PoolError, throttle::Throttle},
        pages::{
            browser::cookies,
            form::csrf::{self, FormPurpose},
        },
        respond::{Failure, OwnResponse},
        theme::frame::Frame,
    },
    records::values::StoreError,
    request::policy::{PolicyRejection, rate_limit::ConsumerRates},
    telemetry::calls::rejections::{BaseStrings, KeptCall, ReasonCount},
};

/// The parameter of the link.
pub const PARAMETER: &str = "link";

/// Checks a request that the developer of a consumer pasted, with the secrets of that consumer alone.
#[async_trait(?Send)]
pub trait ChecksSignatures: Send + Sync + 'static {
    /// Checks a request of this consumer, for a caller at an address; `None`: it names another one, of which nothing is read.
    ///
    /// # Cancel safety
    /// It changes nothing.
    async fn check(
        &self,
        consumer: &ConsumerKey,
        request: &str,
        address: IpAddr,
    ) -> Result<Option<Checked>, Unchecked>;

    /// The base string of the request that a base string describes. It needs no secret.
    ///
    /// # Errors
    /// Why it describes no request.
    fn rebuilt(&self, base_string: &str) -> Result<String, String>;
}

/// The findings about a request.
pub struct Checked {
    /// The signature is right.
    pub is_right: bool,
    /// The mistakes, in English.
    pub diagnosis: Option<String>,
    /// The right base string.
    pub right: String,
    /// The base string that was signed, if a known mistake makes it another one.
    pub signed: Option<String>,
    /// The end of the previous secret, if the request is signed with that one.
    pub previous_secret_until: Option<UnixTime>,
}

/// Why a request is not checked.
pub enum Unchecked {
    /// It cannot be read; why, in English.
    Unreadable(String),
    /// It cannot be examined now.
    Pool(PoolError),
    /// The store fails.
    Store(StoreError),
}

/// Limits the pages that are shown for a link, and the requests that are checked.
#[derive(Debug, Clone)]
pub struct DeveloperRates {
    pages: ConsumerRates,
    checks: ConsumerRates,
    /// Links that are not valid, by address. Not those of failed logins: another site can make a browser open wrong links, which
    /// then pauses this page for its user and no login.
    unknown: Arc<Throttle>,
}

impl Default for DeveloperRates {
    fn default() -> Self {
        let [pages, checks] = [(); 2].map(|()| ConsumerRates::new(None));
        let unknown = Throttle::new(UNKNOWN, &Secret::default());
        Self {
            pages,
            checks,
            unknown: Arc::new(unknown),
        }
    }
}

/// Pages of one consumer.
const PAGES: Rate = per_minute(60);

/// Requests of one consumer that are checked: each takes as long as several thousand signatures.
const CHECKS: Rate = per_minute(10);

/// Links that are not valid, from one address. No limit is needed to make guessing hopeless: it spares the store.
const UNKNOWN: Rate = per_minute(30);

const fn per_minute(count: u32) -> Rate {
    let count = match NonZeroU32::new(count) {
        Some(count) => count,
        None => NonZeroU32::MIN,
    };
    let period = Duration::from_secs(60);
    Rate { count, period }
}

#[derive(Template)]
#[template(path = "developer.html")]
struct DeveloperPage<'a> {
    frame: Frame<'a>,
    consumer: &'a str,
    /// The end of the link.
    until: UnixTime,
    /// The start of this process.
    since: UnixTime,
    reasons: Vec<ReasonCount>,
    calls: Vec<Arc<KeptCall>>,
    action: String,
    csrf: String,
    /// What the form had.
    request: &'a str,
    signed: &'a str,
    finding: Option<Finding>,
}

/// A base string, with the message that is its heading.
struct Text {
    label: &'static str,
    parts: Parts,
}

/// The finding about a request that was checked.
struct Finding {
    class: &'static str,
    message: &'static str,
    /// What is wrong, in English.
    details: Option<String>,
    /// The end of the previous secret that signed it.
    previous_secret_until: Option<UnixTime>,
    texts: Vec<Text>,
}

impl Finding {
    const fn new(class: &'static str, message: &'static str) -> Self {
        Self {
            class,
            message,
            details: None,
            previous_secret_until: None,
            texts: Vec::new(),
        }
    }
}

impl PageRequest<'_> {
    /// Responds to the developer of a consumer.
    pub(super) async fn developer(&self) -> Result<OwnResponse, Failure> {
        let unknown = || Failure::from(PageError::LinkUnknown);
        let rules = &self.pages.rules;
        let check = rules.signature_check.as_ref().ok_or_else(unknown)?;
        let rates = &self.pages.services.developer_rates;
        let link = self.parameter(PARAMETER)?.unwrap_or_default();
        let is_like_one = |byte: u8| byte.is_ascii_alphanumeric();
        if link.len() != SECRET_LENGTH || !link.bytes().all(is_like_one) {
            return Err(unknown());
        }
        let attempt = rates.unknown.begin("", self.address, self.now);
        let too_many = |retry_after| PolicyRejection::TooManyRequests { retry_after };
        let attempt = attempt.map_err(too_many)?;
        let link = Secret::from(link);
        let hash = cookies::id_hash(&link);
        let found = self.store().developer_link(&hash, self.now).await?;
        let (key, until) = found.ok_or_else(unknown)?;
        let consumer = self.store().consumer(&key).await?;
        let consumer = consumer.filter(|consumer| consumer.enabled);
        let consumer = consumer.ok_or_else(unknown)?;
        rates.unknown.withdrawn(&attempt, self.now);
        rates.pages.count(&key, PAGES)?;
        if let Some(file) = self.collection(&consumer)? {
            return Ok(file);
        }
        let here = self
            .frame
            .link_with("developer", PARAMETER, &link.expose_text());
        let [request, signed] = ["request", "signed"].map(|name| self.field(name).unwrap_or(""));
        let finding = match &self.form {
            None => None,
            Some(_) => {
                let (sent, subject) = (self.field("csrf"), key.as_str());
                if !csrf::is_value(sent, &link, FormPurpose::Developer, subject) {
                    return Err(PageError::ForgedForm.into());
                }
                rates.checks.count(&key, CHECKS)?;
                let finding = match (request.trim(), signed.trim()) {
                    ("", "") => Finding::new("bad", "developer-check-nothing"),
                    ("", signed) => compared(check.rebuilt(signed), signed),
                    (request, signed) => {
                        let checked = check.check(&key, request, self.address).await;
                        examined(checked, signed)?
                    }
                };
                Some(finding)
            }
        };
        let rejections = &self.pages.services.rejections;
        let mut page = self.page(&DeveloperPage {
            frame: self.frame,
            consumer: &consumer.name,
            until,
            since: rejections.since,
            reasons: rejections.reasons(Some(key.as_str())),
            calls: rejections.newest_of(key.as_str()),
            action: here,
            csrf: csrf::value(&link, FormPurpose::Developer, key.as_str()),
            request,
            signed,
            finding,
        });
        // The address opens the page, so no other page learns it. Without the origin of the page, its form would come from
        // nowhere.
        for (name, value) in &mut page.fields {
            if *name == "Referrer-Policy" {
                "strict-origin".clone_into(value);
            }
        }
        Ok(page)
    }
}

/// The message about what calls prove of their senders.
fn proof(reason: &ReasonCount) -> &'static str {
    match reason.proofs {
        [0, 0, _] => "developer-proof-none",
        [0, ..] => "developer-proof-secrets",
        _ => "developer-proof-verified",
    }
}

fn texts(kept: &BaseStrings) -> Vec<Text> {
    let signed = kept.signed.as_ref();
    let all = [
        ("developer-right", Some(&kept.right)),
        ("developer-signed", signed),
    ];
    let known = all.into_iter().filter_map(|(label, text)| {
        let parts = text?.parts();
        Some(Text { label, parts })
    });
    known.collect()
}

/// A problem as a sentence: with a capital, unless its first word is a name of the protocol, and a full stop.
fn sentence(problem: &str) -> String {
    let (first, rest) = problem.split_at(problem.chars().next().map_or(0, char::len_utf8));
    let word = problem.split(' ').next().unwrap_or_default();
    let first = match word.contains('_') {
        true => first.to_owned(),
        false => first.to_uppercase(),
    };
    let end = if problem.ends_with(['.', '!', '?']) {
        ""
    } else {
        "."
    };
    [&first, rest, end].concat()
}

/// The finding about a base string alone: how it should have been written.
fn compared(rebuilt: Result<String, String>, signed: &str) -> Finding {
    match rebuilt {
        Err(problem) => Finding {
            details: Some(sentence(&problem)),
            ..Finding::new("bad", "developer-check-unreadable")
        },
        Ok(right) if right == signed => Finding::new("good", "developer-check-well-formed"),
        Ok(right) => Finding {
            texts: both(&right, signed),
            ..Finding::new("bad", "developer-check-differs")
        },
    }
}

/// The finding about a request; `signed` is the base string that its library signed, or empty.
fn examined(
    checked: Result<Option<Checked>, Unchecked>,
    signed: &str,
) -> Result<Finding, StoreError> {
    let checked = match checked {
        Ok(Some(checked)) => checked,
        Ok(None) => return Ok(Finding::new("bad", "developer-check-other")),
        Err(Unchecked::Unreadable(problem)) => {
            return Ok(Finding {
                details: Some(sentence(&problem)),
                ..Finding::new("bad", "developer-check-unreadable")
            });
        }
        Err(Unchecked::Pool(_)) => return Ok(Finding::new("bad", "developer-check-busy")),
        Err(Unchecked::Store(error)) => return Err(error),
    };
    let given = (!signed.is_empty()).then(|| signed.to_owned());
    let texts = match given.or(checked.signed) {
        Some(signed) => both(&checked.right, &signed),
        None => vec![Text {
            label: "developer-right",
            parts: vec![(checked.right, false)],
        }],
    };
    let (class, message) = match (checked.is_right, &checked.diagnosis) {
        (true, _) => ("good", "developer-check-right"),
        (false, Some(_)) => ("bad", "developer-check-wrong"),
        (false, None) => ("bad", "developer-check-unknown"),
    };
    Ok(Finding {
        details: checked.diagnosis.as_deref().map(sentence),
        previous_secret_until: checked.previous_secret_until,
        texts,
        ..Finding::new(class, message)
    })
}

fn both(right: &str, signed: &str) -> Vec<Text> {
    let (right, signed) = marked(right, signed);
    [("developer-right", right), ("developer-signed", signed)]
        .map(|(label, parts)| Text { label, parts })
        .into()
}
