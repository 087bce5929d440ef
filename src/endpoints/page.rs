//! The way to the pages: what a browser sent, in the form they take, and their answer in ours.

use super::{Call, Endpoints};
use crate::{
    http1::{framing::Framing, name::Name},
    pages::{Page, PageRequest},
    parse::signed::is_form,
    refusal::{Failure, Refusal},
    respond::Answer,
    route::Endpoint,
    server::{connection::Connection, held::HeldBody},
    telemetry::metrics::Verdict,
};

/// Answers a page call.
///
/// # Errors
/// A repeated Origin or Sec-Fetch-Site, a body that is too large or too slow, and a caller who left.
pub(super) async fn answer(
    endpoints: &Endpoints,
    endpoint: Endpoint,
    call: &Call<'_>,
    connection: &mut Connection,
) -> Result<Answer, Failure> {
    let form = if connection.framing != Framing::None && is_form(call.head)? {
        connection.read_page_form().await?
    } else {
        HeldBody::default()
    };
    let single = |name| {
        let repeated =
            || Refusal::Malformed("Origin or Sec-Fetch-Site is given more than once".into());
        call.head.fields.single(name).map_err(|_| repeated())
    };
    let request = PageRequest {
        method: std::str::from_utf8(call.head.method()).unwrap_or_default(),
        path: std::str::from_utf8(call.target.path).unwrap_or_default(),
        query: call.target.query.unwrap_or_default(),
        form: &form,
        cookies: call.head.fields.all(Name::Cookie).collect(),
        origin: single(Name::Origin)?,
        sec_fetch_site: single(Name::SecFetchSite)?,
        peer: call
            .received
            .address
            .unwrap_or(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)),
        now: endpoints.clock.now(),
    };
    let pages = &endpoints.pages;
    let page = match endpoint {
        Endpoint::Login => pages.login(request).await,
        Endpoint::Logout => pages.logout(request).await,
        Endpoint::Applications => pages.applications(request).await,
        Endpoint::Authorize
        | Endpoint::RequestToken
        | Endpoint::AccessToken
        | Endpoint::RevokeToken => pages.authorize(request).await,
    };
    if call.head.method() == b"POST" {
        // What a page has revoked is refused from now on, not with the next look at the store's changes.
        endpoints.verifier.credentials().follow_changes().await?;
    }
    Ok(from_page(page))
}

fn from_page(page: Page) -> Answer {
    Answer {
        status: page.status,
        fields: page.fields,
        body: page.body.into_bytes(),
        verdict: Verdict::Page,
    }
}
