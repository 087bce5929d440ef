//! The response to a browser whose launch failed: a page for the person in front of it, or the way back to the platform.
//!
//! A launch is a signed form that a browser posts for its user, as LTI 1.1 has it. The person can do the same in every case:
//! open the activity again. So the page has the same words for every failure, also for a nonce that was used before: a double
//! click, or a reload of the page.

use super::{
    Failure, advised,
    challenge::Schemes,
    format::{Format, render},
    own_response::OwnResponse,
};
use crate::{
    provider::{issue::callback, theme::frame::Frame},
    request::{problem::Problem, verify::VerifyRejection},
    telemetry::metrics::Verdict,
};

/// The page with which a failed launch is answered, or the redirect to `return_url`, an address of the platform that may be
/// trusted.
pub fn failed_launch(
    failure: &Failure,
    frame: Frame<'_>,
    return_url: Option<&str>,
    request_id: &str,
) -> OwnResponse {
    let problem = advised(failure);
    let mut response = match return_url {
        Some(url) => back(&problem, frame, url, request_id),
        None => render(problem, frame, Format::Launch, request_id, Schemes::OAuth),
    };
    if matches!(failure, Failure::Verify(VerifyRejection::NonceUsed)) {
        response.verdict = Verdict::LaunchRepeated;
    }
    response
}

/// 303 to the platform, with a message for its user and one for its log (LTI 1.1 §3, `launch_presentation_return_url`).
fn back(problem: &Problem, frame: Frame<'_>, url: &str, request_id: &str) -> OwnResponse {
    let message = frame
        .texts
        .title("launch-message", &[("reference", request_id)]);
    let word = problem.code.unwrap_or(problem.verdict.as_str());
    let advice = problem.advice.as_deref().unwrap_or_default();
    let log = format!("{word}: {advice} (request {request_id})");
    let parameters = [("lti_errormsg", &*message), ("lti_errorlog", &*log)];
    let mut fields = frame.theme.fields("", frame.ancestors);
    fields.push(("Location", callback::redirect(url, &parameters)));
    fields.push(("X-Request-Id", request_id.to_owned()));
    OwnResponse {
        fields,
        ..OwnResponse::empty(303, problem.verdict)
    }
}
