//! Forwards calls to the API, and answers what is for this program itself.
//!
//! `worker.rs` has the steps of a request in their order; each of the other files has one of them, or what they share.

mod current;
mod decision;
mod failure;
mod forward;
mod in_flight;
mod live;
mod receive;
mod record;
mod service;
mod shared;
mod waiting;
mod worker;

pub use self::{
    current::Current,
    decision::{begin, decide, handshake},
    in_flight::{AnonymousCalls, InFlight},
    live::{Conventions, Live},
    receive::{Received, receive},
    record::{RequestRecord, Served},
    service::jwk_set,
    shared::{Phase, Shared},
    waiting::Waiting,
    worker::Worker,
};
