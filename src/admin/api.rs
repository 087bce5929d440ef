//! The admin API: JSON under `/v1/`, over the use cases of [`crate::manage`].

mod problem;

use http::Request;

use self::problem::ApiError;
use super::{Admin, Backend, tokens::Denied};
use crate::{respond::OwnResponse, server::request::RequestBody};

/// Responds to a request under `/v1/`.
pub(super) async fn respond(
    admin: &Admin,
    backend: &Backend,
    request: &mut Request<RequestBody>,
) -> OwnResponse {
    match answer(admin, backend, request).await {
        Ok(response) => response,
        Err(error) => error.response(),
    }
}

async fn answer(
    admin: &Admin,
    backend: &Backend,
    request: &mut Request<RequestBody>,
) -> Result<OwnResponse, ApiError> {
    let peer = request.body().caller().peer.address;
    let gate = admin.control.gate();
    let _kind = gate.authenticate(&backend.tokens, request.headers(), peer)?;
    Err(ApiError::NotFound)
}
