//! HTTP/1.1 as bytes (RFC 9112): heads, framing and chunked bodies, strict where leniency makes two readings possible.
//!
//! The HTTP layer is part of the signature check: whatever the API could read differently from what was verified is
//! refused here. Nothing in this module does I/O; `server` and `forward` bring the bytes.

pub mod body;
pub mod chunked;
pub mod framing;
pub mod head;
pub mod name;
pub mod pool;
pub mod token;
pub mod write;
