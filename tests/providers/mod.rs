//! SDKs of well-known providers, unchanged, on the configurations of `deploy/providers`: the whole flow with login and
//! consent, a denial, and calls. Each process resolves its provider's host names to the program and trusts a CA of the test.

mod api;
mod cutover;
mod files;
mod guard;
mod logins;
mod lookup;
mod mariadb;
mod sdk;
mod shops;
mod stage;
mod tools;
mod wikis;
