//! Passes a browser's request to the pages and their response back.

use http::{HeaderName, HeaderValue, Method, header};

use super::Endpoints;
use crate::{
    fields::{all, single},
    pages::PageRequest,
    parse::{Rejection, head::Head},
    respond::{Failure, OwnResponse},
    route::{self, Endpoint},
    telemetry::request_id::RequestId,
};

/// The field in which a browser reports what caused a request (Fetch Metadata).
pub static SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// See [`SEC_FETCH_SITE`]: `navigate` for what a person opens.
pub static SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// See [`SEC_FETCH_SITE`]: `document` for a whole window.
pub static SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Responds to a page call.
///
/// # Errors
/// A repeated Origin or Sec-Fetch-Site.
pub(super) async fn respond(
    endpoints: &Endpoints,
    endpoint: Endpoint,
    head: &Head<'_>,
    form: &[u8],
    request_id: &RequestId,
) -> Result<OwnResponse, Failure> {
    let parts = head.parts;
    let single = |name| {
        let repeated = Rejection::Malformed("Origin or Sec-Fetch-Site is given more than once");
        single(&parts.headers, name).map_err(|_| repeated)
    };
    if endpoint == Endpoint::Asset {
        let asset = endpoints.pages.asset(head.target.path);
        return asset.ok_or_else(|| route::Rejection::NotFound.into());
    }
    let request = PageRequest {
        method: parts.method.as_str(),
        path: std::str::from_utf8(head.target.path).unwrap_or_default(),
        query: head.target.query.unwrap_or_default(),
        form,
        accept_language: parts
            .headers
            .get(header::ACCEPT_LANGUAGE)
            .map(HeaderValue::as_bytes),
        cookies: all(&parts.headers, &header::COOKIE).collect(),
        origin: single(&header::ORIGIN)?,
        sec_fetch_site: single(&SEC_FETCH_SITE)?,
        trusted_fields: head.trusted_fields(),
        peer: head
            .received
            .address
            .unwrap_or(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)),
        now: endpoints.clock.now(),
        request_id,
    };
    let pages = &endpoints.pages;
    let page = match endpoint {
        Endpoint::Home => pages.home(),
        Endpoint::Login => pages.login(request).await,
        Endpoint::Logout => pages.logout(request).await,
        Endpoint::Password => pages.password(request).await,
        Endpoint::Applications => pages.applications(request).await,
        Endpoint::Authorize
        | Endpoint::Asset
        | Endpoint::RequestToken
        | Endpoint::AccessToken
        | Endpoint::RevokeToken => pages.authorize(request).await,
    };
    if parts.method == Method::POST {
        // A token that a page has revoked is rejected from now on, not only after the next poll of the store's changes.
        endpoints.verifier.credentials().follow_changes().await?;
    }
    Ok(page)
}
