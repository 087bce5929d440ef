//! What commands are given: records by key or name, fields of a record, secrets, a request.

pub(super) mod field_options;
pub(super) mod named;
pub mod password;
pub mod request;
pub mod secret_source;
pub mod signing_secrets;
