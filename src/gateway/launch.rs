//! Launches: the forms that browsers post for their users to an operation with `launch`.
//!
//! A user sees a launch that fails. Whether it is one is decided before anything about it is proved, since most
//! failures prove nothing; where it leads back is decided only under a right signature.

use http::request::Parts;

use crate::{
    oauth::{ParameterLocation, Parameters},
    provider::{
        issue::callback,
        respond::{self, Failure, OwnResponse},
        theme::frame::Frame,
    },
    request::{
        parse::signed::{Collected, is_form},
        policy::operations::{
            Found, Operation,
            frame_ancestors::{self, FrameAncestor},
        },
        verify::VerifyRejection,
    },
};

/// The address at the platform to which a launch leads back (LTI 1.1 §3).
const RETURN_URL: &str = "launch_presentation_return_url";

/// The language of the user at the platform.
const LOCALE: &str = "launch_presentation_locale";

/// The longest tag of a language that is read.
const MAX_LOCALE_BYTES: usize = 35;

/// A launch that is under way.
#[derive(Debug, Default)]
pub struct Launch {
    /// The language of its user, as the form has it.
    locale: Option<String>,
    /// The address to which it leads back.
    return_url: Option<String>,
}

impl Launch {
    /// The launch that a request begins, if it is one.
    pub fn begun_by(parts: &Parts, found: &Found<'_>) -> Option<Box<Self>> {
        let is_launch = found.rules()?.launch
            && respond::is_posted_by_person(&parts.method, &parts.headers)
            && is_form(&parts.headers).unwrap_or(false);
        is_launch.then(Box::default)
    }

    /// Notes the language of its user. Nothing about it is proved.
    pub fn read_locale(&mut self, collected: &Collected) {
        let locale = only(&collected.parameters, LOCALE);
        let locale = locale.and_then(|value| std::str::from_utf8(value).ok());
        let locale = locale.filter(|locale| locale.len() <= MAX_LOCALE_BYTES);
        self.locale = locale.map(|locale| locale.replace('_', "-"));
    }

    /// Notes the address to which it leads back, after its signature was found right.
    ///
    /// A right signature is not enough. Somebody who recorded an earlier launch can send it again, outside its time. Somebody who
    /// stole the secret can sign with it for a consumer that has to sign with its RSA key.
    pub fn read_return_url(
        &mut self,
        collected: &Collected,
        operation: &Operation,
        failure: &Failure,
    ) {
        let is_accepted = !matches!(
            failure,
            Failure::Verify(
                VerifyRejection::TimestampOutsideWindow { .. } | VerifyRejection::SignatureWrong(_)
            )
        );
        let url = return_url(&collected.parameters, &operation.rules.framed_by);
        self.return_url = url.filter(|_| is_accepted);
    }

    /// The response to its failure.
    pub fn response_to(
        &self,
        failure: &Failure,
        frame: Frame<'_>,
        operation: &Operation,
        request_id: &str,
    ) -> OwnResponse {
        let frame = self
            .locale
            .as_deref()
            .map_or(frame, |locale| frame.preferring(locale));
        let sources = frame_ancestors::sources(&operation.rules.framed_by);
        let frame = frame.framed_by(sources.as_deref());
        // A rejection leads back, a fault does not: the platform could do nothing about it.
        let url = self.return_url.as_deref().filter(|_| !failure.is_fault());
        respond::failed_launch(failure, frame, url, request_id)
    }
}

/// What a browser gets for a rejected launch with these parameters, for its operator.
pub fn described(parameters: &Parameters, sites: &[FrameAncestor]) -> String {
    let framed = match frame_ancestors::sources(sites) {
        Some(sources) => format!("a page that {sources} may frame"),
        None => "a page that no site may frame".to_owned(),
    };
    let back = match return_url(parameters, sites) {
        Some(url) => format!("it goes back to {url}"),
        None => {
            format!("it gets the same page: no {RETURN_URL} in its form is on a site of framed_by")
        }
    };
    format!("a browser whose launch is rejected gets {framed}; under a right signature {back}")
}

/// The address in a launch whose signature is right, if it is on one of these sites.
///
/// It has to be there once, and in the form: the signature covers a form whatever the consumer leaves unsigned, and there is
/// no copy that the platform did not mean.
pub fn return_url(parameters: &Parameters, sites: &[FrameAncestor]) -> Option<String> {
    let url = only(parameters, RETURN_URL)?;
    let origin = callback::web_origin(url)?;
    let url = std::str::from_utf8(url).ok()?;
    let is_on_site = sites.iter().any(|site| site.admits(&origin));
    is_on_site.then(|| url.to_owned())
}

/// The value of the parameter that is in the form and nowhere else, once.
fn only<'p>(parameters: &'p Parameters, name: &str) -> Option<&'p [u8]> {
    let mut named = parameters.find(name);
    let first = named.next()?;
    (named.next().is_none() && first.location == ParameterLocation::Body).then_some(first.value)
}
