//! HTTP/2 on the public listener: the same calls under the same rules, and attacks on the connection itself.

mod api;
mod calls;
mod client;
mod curl;
mod floods;
mod life;
mod rules;
mod unproved;
mod upstream;
