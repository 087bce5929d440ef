//! Decides on calls to the API: forwards them, or answers another proxy that forwards them itself.
//!
//! The types of one call, in the order in which they are made:
//!
//! | type | file | is the call |
//! |---|---|---|
//! | `ApiCall` | `request/route.rs` | as the route found it: its public URL and its path |
//! | `IncomingCall` | `gateway/proxy/decision.rs` | with its head, fields and body, before it is decided |
//! | `JudgedCall` | `request/policy/permit.rs` | as the rules of its operation see it: operation and caller |
//! | `Subject` | `gateway/authorize` | with its parameters, as the authorizer gets it |
//! | `AssertedCall` | `request/identity/assertion.rs` | as an assertion is bound to it |
//! | `Permitted` | `gateway/proxy/decision.rs` | after the decision, with its `Permit` |
//! | `UpstreamCall` | `request/forward/request.rs` | as it is rewritten for the API |
//! | `Admitted` | `gateway/proxy/call.rs` | rewritten, with the body that the API gets |
//! | `Outgoing` | `request/forward/request.rs` | as one attempt sends it to the API |

pub mod authorize;
pub mod forward_auth;
pub mod launch;
pub mod proxy;
pub mod settings;
