//! Reads the input of a request.

use std::{collections::BTreeMap, str::FromStr, time::Duration};

use http::{Request, header};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{
    operations::{ApiOperation, OPTIONAL},
    problem::ApiError,
};
use crate::{
    base::{
        clock::parse_duration,
        network::http_fields::{single, trim},
    },
    operator::manage::{self, InvalidInput},
    wire::server::request::RequestBody,
};

/// Reads the members of the body, which is empty where the operation has none.
pub(super) async fn body(
    request: &mut Request<RequestBody>,
    operation: &ApiOperation,
) -> Result<Map<String, Value>, ApiError> {
    if operation.body.is_none() {
        return Ok(Map::new());
    }
    let kind = single(request.headers(), &header::CONTENT_TYPE).map_err(|_| ApiError::MediaType)?;
    let kind = kind.map(|kind| trim(kind.split(|&byte| byte == b';').next().unwrap_or_default()));
    let is_json = |kind: &[u8]| {
        kind.eq_ignore_ascii_case(b"application/json")
            || kind.eq_ignore_ascii_case(b"application/merge-patch+json")
    };
    let is_missing = kind.is_none();
    if kind.is_some_and(|kind| !is_json(kind)) {
        return Err(ApiError::MediaType);
    }
    let body = request.body_mut().read_admin_body().await?;
    match is_missing {
        true if body.is_empty() && operation.body.is_some_and(|it| OPTIONAL.contains(&it)) => {
            Ok(Map::new())
        }
        true => Err(ApiError::MediaType),
        false => Ok(manage::members(&body)?),
    }
}

/// Reads members as a request that has no other ones.
pub(super) fn typed<T: DeserializeOwned>(members: Map<String, Value>) -> Result<T, ApiError> {
    Ok(manage::read(Value::Object(members))?)
}

/// The query parameters of a request.
pub(super) struct Query(BTreeMap<String, String>);

impl Query {
    /// Reads parameters of these names, each at most once.
    pub(super) fn read(query: &str, known: &[&str]) -> Result<Self, ApiError> {
        let mut parameters = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            if !known.contains(&&*name) {
                let known = known.join(", ");
                return Err(wrong(
                    &name,
                    format!("no such query parameter; there are: {known}"),
                ));
            }
            if parameters
                .insert(name.to_string(), value.into_owned())
                .is_some()
            {
                return Err(wrong(&name, "the query parameter is repeated".to_owned()));
            }
        }
        Ok(Self(parameters))
    }

    /// A parameter as it is.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A parameter as its type reads it.
    pub(super) fn parsed<T: FromStr<Err: ToString>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, ApiError> {
        let value = self.text(name).map(str::parse).transpose();
        value.map_err(|error: T::Err| wrong(name, error.to_string()))
    }

    /// A duration, such as `90d`.
    pub(super) fn duration(&self, name: &str) -> Result<Option<Duration>, ApiError> {
        let value = self.text(name).map(parse_duration).transpose();
        value.map_err(|problem| wrong(name, problem.to_owned()))
    }

    /// `limit`: the most records of a page of a list.
    pub(super) fn limit(&self) -> Result<u32, ApiError> {
        let text = self.text("limit").unwrap_or("100");
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let limit = text.parse().ok().filter(|limit| (1..=1000).contains(limit));
        limit
            .filter(|_| is_number)
            .ok_or_else(|| wrong("limit", "expected 1 to 1000".to_owned()))
    }

    /// `cursor`: the position at which a page of a list begins.
    pub(super) fn cursor<T: FromStr<Err: ToString>>(&self) -> Result<Option<T>, ApiError> {
        self.parsed("cursor")
    }
}

/// A query parameter is invalid.
pub(super) fn wrong(name: &str, detail: String) -> ApiError {
    InvalidInput::named(name, detail).into()
}
