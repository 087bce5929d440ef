//! The program from outside: its binary, its sockets, its files.

mod harness;

mod telemetry {
    mod logs;
}
mod wire {
    mod early_responses;
    mod origins;
    mod websocket;
}
mod records {
    mod change_of_store;
    mod ended_tokens;
    mod lookup;
    mod postgres;
    mod shared_nonces;
    mod unfit_databases;
}
mod request {
    mod assertion;
    mod bearer;
    mod bodies;
    mod caller_networks;
    mod credentials;
    mod deviations;
    mod failed_launches;
    mod forwarding;
    mod identity;
    mod limits;
    mod mixed_up_credentials;
    mod negative_vectors;
    mod permissions;
    mod rejections;
    mod replay;
    mod signature_advice;
    mod timestamp_windows;
    mod two_legged_receivers;
}
mod provider {
    pub(crate) mod accessibility;
    mod appearance;
    mod callbacks;
    mod collections;
    mod consent;
    mod cors;
    mod error_pages;
    mod flow;
    mod flow_paths;
    mod forged_forms;
    mod header_login;
    mod languages;
    mod new_password;
    mod oauth_libraries;
    mod outside_login;
    mod page_size;
    mod pages_in_browser;
    mod parameter_placement;
    mod passwords;
    mod registration;
    mod remembered;
    mod sessions;
    mod token_calls;
}
mod gateway {
    mod described_bodies;
    mod forward_auth;
    mod guard;
    mod observe;
    mod sunset;
}
mod operator {
    mod admin_api;
    mod console;
    mod console_more;
    mod demo;
    mod named_tokens;
}
mod run {
    mod bad_configuration;
    mod check;
    mod readiness;
    mod restarts;
}
mod cli {
    mod commands_while_serving;
    mod why;
}
