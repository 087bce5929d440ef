//! The contract of the store port, run over every backend: one function for each fact, generic over the backend.

#[macro_use]
mod suite;

mod changes;
mod consumers;
mod exchange;
mod flow;
mod lookup;
mod postgres;
mod records;
mod redis;
mod registrations;
mod reseal;
mod schemas;
mod sessions;
mod shared_nonces;
mod sqlite;
mod sqlite_file;
mod tokens;
mod transfer;
mod upkeep;
mod users;
