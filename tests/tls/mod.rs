//! TLS from outside, on both sides: accepted and refused versions, the peers that may connect, the effect of a reload,
//! and the handling of a cut connection.

mod audit;
mod caller;
mod certificates;
mod checking;
mod login;
mod lookup;
mod old_apis;
mod peers;
mod reload;
mod resumption;
mod upstream;
mod versions;
mod wire;
