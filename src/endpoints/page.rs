//! Passes a browser's request to the pages and their response back.

use http::{HeaderValue, header};
use http_body::Body as _;

use super::Endpoints;
use crate::{
    fields::{SEC_FETCH_SITE, all, single},
    pages::PageRequest,
    parse::{Rejection, head::Head, signed::is_form},
    respond::{Failure, OwnResponse},
    route::{self, Page},
    server::request::RequestBody,
    telemetry::request_id::RequestId,
};

impl Endpoints {
    /// Responds to a browser. The rejections of pages are pages.
    ///
    /// # Errors
    /// A repeated Origin or Sec-Fetch-Site, an asset that does not exist, a form that cannot be read or names a mode, and a
    /// fault of the store after a POST.
    pub async fn page(
        &self,
        route: &route::Params,
        page: Page,
        head: &Head<'_>,
        body: &mut RequestBody,
        request_id: &RequestId,
    ) -> Result<OwnResponse, Failure> {
        let parts = head.parts;
        let form = match !body.is_end_stream() && is_form(&parts.headers)? {
            true => body.read_page_form().await?,
            false => Default::default(),
        };
        route.check_page_form(head, &form)?;
        let single = |name| {
            let repeated = Rejection::Malformed("Origin or Sec-Fetch-Site is given more than once");
            single(&parts.headers, name).map_err(|_| repeated)
        };
        let request = PageRequest {
            method: parts.method.as_str(),
            path: std::str::from_utf8(head.target.path).unwrap_or_default(),
            query: head.target.query.unwrap_or_default(),
            form: &form,
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
            now: self.clock.now(),
            request_id,
        };
        let pages = &self.pages;
        Ok(match page {
            Page::Authorize => pages.authorize(request).await,
            Page::Applications => pages.applications(request).await,
            Page::Home => pages.home(),
            Page::Login => pages.login(request).await,
            Page::Logout => pages.logout(request).await,
            Page::Password => pages.password(request).await,
            Page::Asset => pages
                .asset(head.target.path)
                .ok_or(route::Rejection::NotFound)?,
        })
    }
}
