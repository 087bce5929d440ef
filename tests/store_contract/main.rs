//! The contract of the store port, run over every backend: one function for each fact, generic over the backend.

#![cfg(test)]

#[macro_use]
mod suite;

mod changes;
mod consumers;
mod exchange;
mod flow;
mod lookup;
mod postgres;
#[path = "../support/postgres.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "shared with the tests of the program"
)]
mod postgres_server;
mod records;
mod redis;
#[path = "../support/redis.rs"]
mod redis_server;
mod registrations;
mod reseal;
mod schemas;
mod sessions;
mod shared_nonces;
#[path = "../support/silent.rs"]
#[allow(unreachable_pub, reason = "shared with the tests of the program")]
mod silent;
mod sqlite;
mod sqlite_file;
mod tokens;
mod transfer;
mod upkeep;
mod users;
