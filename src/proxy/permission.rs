//! From a call's parameters to the permit to forward it, as the kind of caller that its credentials make it.

use crate::{
    http1::{head::RequestHead, name::Name},
    oauth::ProtocolParameter,
    parse::{
        origin::Received,
        signed::{Collected, SignedRequest},
        target::Target,
    },
    policy::{operations::Found, permit::Permit},
    refusal::{Failure, Refusal},
    respond::{self, Format},
    route::ApiCall,
    server::connection::Connection,
};

use super::{Live, Worker, laps::Laps, nanoseconds};

/// A call on its way to the API.
pub(super) struct Way<'r> {
    pub(super) live: &'r Live,
    pub(super) head: &'r RequestHead,
    pub(super) target: &'r Target<'r>,
    pub(super) received: &'r Received<'r>,
    pub(super) call: ApiCall<'r>,
    pub(super) found: Found<'r>,
    pub(super) laps: &'r Laps,
}

impl Way<'_> {
    /// The path for which the call was signed.
    fn signed_path(&self) -> std::borrow::Cow<'_, [u8]> {
        if self.call.restored_prefix.is_empty() {
            self.target.path.into()
        } else {
            [self.call.restored_prefix.as_bytes(), self.target.path]
                .concat()
                .into()
        }
    }
}

impl Worker {
    /// Proves that the call may pass, as the kind of caller that its credentials make it.
    pub(super) async fn permit(
        &self,
        way: &Way<'_>,
        collected: &mut Collected,
        connection: &mut Connection,
    ) -> Result<Permit, Failure> {
        let enforced = match way.found {
            Found::Operation(operation) => operation.enforce,
            Found::OtherMethod { .. } | Found::Unlisted(_) => None,
        };
        let outcome = self.permit_enforced(way, collected, connection).await;
        if enforced.unwrap_or(way.live.enforce) {
            return outcome;
        }
        match outcome {
            Err(Failure::CallerGone) => Err(Failure::CallerGone),
            // The rules of HTTP and the limits hold whether or not signatures are enforced.
            Err(Failure::Refusal(
                refusal @ (Refusal::Malformed(_)
                | Refusal::BodyTooLarge
                | Refusal::TooSlow
                | Refusal::Busy
                | Refusal::TooManyRequests { .. }),
            )) => Err(refusal.into()),
            Err(failure) if self.is_always_enforced(collected).await => Err(failure),
            outcome => {
                if let Err(failure) = outcome {
                    let answer = respond::failure(&failure, "", Format::Form, "");
                    tracing::info!(reason = answer.verdict.as_str(), %failure, "observed");
                    self.metrics().observed(answer.verdict);
                }
                Ok(Permit::danger_for_observed_call())
            }
        }
    }

    async fn permit_enforced(
        &self,
        way: &Way<'_>,
        collected: &mut Collected,
        connection: &mut Connection,
    ) -> Result<Permit, Failure> {
        let operations = &way.live.operations;
        if collected.signed {
            let params = &way.live.endpoints.verify;
            collected
                .hold_hashed_body(params.methods, connection)
                .await?;
            let credentials = collected.protocol(params.methods)?.demand(&[])?;
            if credentials.token.is_some_and(<[u8]>::is_empty) {
                let names = [ProtocolParameter::Token].into_iter().collect();
                return Err(crate::oauth::ShapeError::Absent(names).into());
            }
            let path = way.signed_path();
            let request = SignedRequest {
                method: way.head.method(),
                url: way.call.url,
                path: &path,
                query: way.target.query.unwrap_or_default(),
                parameters: &collected.parameters,
                credentials,
                body: collected.held.as_deref(),
                secure: way.received.secure,
            };
            if request.body.is_some() {
                // It was waited for.
                way.laps.lap();
            }
            let verified = self.shared.verifier.protected(params, &request).await;
            self.metrics()
                .verify_nanoseconds(nanoseconds(way.laps.lap()));
            let verified = verified?;
            if let Some(skew) = verified.skew_seconds() {
                self.metrics()
                    .clock_skew_nanoseconds(skew.saturating_mul(1_000_000_000));
            }
            // Also what is not permitted counts: it may be observed alone, and go on to the API.
            if let Some(rate) = &way.live.rate {
                rate.count(verified.consumer(), self.shared.started.elapsed())
                    .map_err(|retry_after| Refusal::TooManyRequests { retry_after })?;
            }
            return Ok(Permit::for_signed(verified, operations, &way.found)?);
        }
        let pages = &way.live.endpoints.pages;
        let cookies: Vec<&[u8]> = way.head.fields.all(Name::Cookie).collect();
        if !pages.has_session_cookie(&cookies) {
            return Ok(Permit::for_anonymous(&way.found)?);
        }
        check_same_origin(way)?;
        let session = pages
            .session(&cookies, way.live.endpoints.clock.now())
            .await?;
        let (_, user) = session.ok_or(Refusal::NoCredentials)?;
        Ok(Permit::for_session(user.id, operations, &way.found)?)
    }

    /// Whether the consumer that the call names is enforced whatever the configuration observes.
    async fn is_always_enforced(&self, collected: &Collected) -> bool {
        let Some(key) = collected.parameters.find("oauth_consumer_key").next() else {
            return false;
        };
        match self
            .shared
            .verifier
            .credentials()
            .consumer(&key.value)
            .await
        {
            Ok(Some(consumer)) => consumer.consumer.enforce,
            Ok(None) => false,
            // Nothing is known: fail closed.
            Err(_) => true,
        }
    }
}

/// A session opens an operation only to the service's own pages.
fn check_same_origin(way: &Way<'_>) -> Result<(), Refusal> {
    let single = |name| way.head.fields.single(name).map_err(|_| Refusal::CrossSite);
    if !way.live.origins.is_base(way.received) {
        return Err(Refusal::CrossSite);
    }
    match single(Name::SecFetchSite)? {
        Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(Refusal::CrossSite),
        None if matches!(way.head.method(), b"GET" | b"HEAD")
            && !way.head.fields.has(Name::Upgrade) =>
        {
            Ok(())
        }
        None => match single(Name::Origin)? {
            Some(origin) if origin == way.live.origins.base.origin().as_bytes() => Ok(()),
            _ => Err(Refusal::CrossSite),
        },
    }
}
