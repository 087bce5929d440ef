//! The steps of a request: each takes the value of the step before, so none can be left out.

pub mod bearer;
pub mod forward;
pub mod identity;
pub mod parse;
pub mod policy;
pub mod problem;
pub mod route;
pub mod verify;
