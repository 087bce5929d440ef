//! The three-legged flow: token calls, the pages where a user logs in and consents, and the responses to failures.

pub mod collection;
pub mod endpoints;
pub mod issue;
pub mod login;
pub mod pages;
pub mod respond;
pub mod theme;
