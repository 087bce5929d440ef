//! Permits unsigned calls: those of users with a session, preflights, and anonymous ones.

use http::{Method, header};

use super::Authorizer;
use crate::{
    base::{
        network::http_fields::{Initiator, SEC_FETCH_MODE, parameter},
        text::percent_encoded,
    },
    gateway::cors::is_preflight,
    provider::{
        respond::{Failure, is_navigation},
        theme::frame::UI_LOCALES,
    },
    request::{
        parse::signed::{is_form, is_multipart},
        policy::{
            PolicyRejection, access::CallerKind, call::Call, operations::Found, permit::Permit,
        },
    },
};

/// The longest path and query that a login leads back to, in bytes.
const MAX_RETURN_BYTES: usize = 2_048;

impl Authorizer {
    /// Permits an unsigned call, or returns why not.
    pub(crate) async fn permit_unsigned(&self, call: &Call<'_>) -> Result<Permit, Failure> {
        self.check_claimed(call)?;
        let parts = call.head.parts;
        if !self.pages.has_session_cookie(&parts.headers) {
            let permit = match self.forwards_preflight(call) {
                true => Permit::for_preflight(call),
                false => Permit::for_anonymous(call),
            };
            let mut permit = permit.map_err(|rejection| self.or_login(call, rejection));
            if let Some(unseen) = call.unseen()
                && matches!(permit, Err(PolicyRejection::NoCredentials))
                && is_form(&parts.headers)?
            {
                permit = Err(PolicyRejection::CredentialsNotSeen(unseen));
            }
            let is_multipart = is_multipart(&parts.headers);
            if call.has_unread_body()
                && !call.is_described()
                && matches!(permit, Err(PolicyRejection::NoCredentials))
                && (is_multipart || !parts.headers.contains_key(&header::CONTENT_TYPE))
            {
                permit = Err(PolicyRejection::CredentialsNotRead { is_multipart });
            }
            return Ok(permit?);
        }
        self.check_same_origin(call)?;
        // In a description, only its own fields and the caller's address come from the proxy, the rest from the caller.
        let trusted = call.head.received.trusted && !call.is_described();
        let user = self.pages.session(&parts.headers, trusted).await?;
        let user = user.ok_or_else(|| self.or_login(call, PolicyRejection::NoCredentials))?;
        let permit = Permit::for_session(user.id, call);
        Ok(permit.map_err(|rejection| self.or_login(call, rejection))?)
    }

    /// Whether a call is a preflight that goes to the API. WordPress takes the method of any call from the parameter `_method`:
    /// a preflight that has it may be another call there.
    fn forwards_preflight(&self, call: &Call<'_>) -> bool {
        self.forward_preflights
            && is_preflight(call.head.parts)
            && !call.has_unread_body()
            && !call.collected.parameters.may_name_method()
    }

    /// The rejection of a request without credentials that permit it. A browser that navigates to what a user may open is sent
    /// to the login, and from `/` and `service.path`, where there is nothing for people, to the user's applications.
    #[cold]
    fn or_login(&self, call: &Call<'_>, rejection: PolicyRejection) -> PolicyRejection {
        let (head, found) = (call.head, &call.found);
        let query = head.target.query.unwrap_or_default();
        let is_open_to_users = match found {
            Found::Operation(_) | Found::Unlisted(_) => found.access().admits(CallerKind::User),
            Found::OtherMethod(_) | Found::Similar { .. } | Found::Ambiguous { .. } => false,
        };
        let parts = head.parts;
        if self.flow.guards()
            || !self.origins.is_base(&head.received)
            || !is_navigation(&parts.method, &parts.headers)
        {
            return rejection;
        }
        let endpoint = &self.flow.endpoint;
        let page = |mode| format!("{endpoint}?mode={mode}");
        if rejection != PolicyRejection::NoCredentials || !is_open_to_users {
            let is_typed = parts.headers.contains_key(&SEC_FETCH_MODE);
            let location = page("applications");
            let is_page_path =
                matches!(&*call.signed_path, b"/") || *call.signed_path == *endpoint.as_bytes();
            return match found {
                Found::Unlisted(_) if is_typed && is_page_path => {
                    PolicyRejection::LoginNeeded { location }
                }
                _ => rejection,
            };
        }
        let mut location = page("login");
        if let Ok(Some(languages)) = parameter(query, UI_LOCALES) {
            location.extend(["&", UI_LOCALES, "="]);
            location.extend(percent_encoded(&languages));
        }
        let separator = head.target.query.map_or("", |_| "?").as_bytes();
        let back = [&call.signed_path, separator, query].concat();
        // The login page checks this path; the escapes of a longer one would make the target too long.
        if let Ok(back) = std::str::from_utf8(&back)
            && back.len() <= MAX_RETURN_BYTES
        {
            location.push_str("&return_to=");
            location.extend(percent_encoded(back));
        }
        PolicyRejection::LoginNeeded { location }
    }

    /// A session opens an operation only to the service's own pages.
    fn check_same_origin(&self, call: &Call<'_>) -> Result<(), PolicyRejection> {
        let initiator = Initiator::from_headers(&call.head.parts.headers);
        let initiator = initiator.map_err(|_| PolicyRejection::CrossSite)?;
        if !self.origins.is_base(&call.head.received) {
            return Err(PolicyRejection::CrossSite);
        }
        match initiator.is_own_site {
            Some(true) => Ok(()),
            Some(false) => Err(PolicyRejection::CrossSite),
            None if is_plain_read(call) => Ok(()),
            None => match initiator.origin {
                Some(origin) if origin == self.origins.base.origin.to_string().as_bytes() => Ok(()),
                _ => Err(PolicyRejection::CrossSite),
            },
        }
    }
}

/// GET or HEAD, and no upgrade.
fn is_plain_read(call: &Call<'_>) -> bool {
    matches!(call.head.parts.method, Method::GET | Method::HEAD)
        && !call.head.parts.headers.contains_key(header::UPGRADE)
}
