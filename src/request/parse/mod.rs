//! Reads a request: its head, its origin and the parameters that its signature covers.

pub mod claimed;
pub mod head;
pub mod origin;
pub mod rejection;
pub mod settings;
pub mod signed;
pub mod target;
pub mod unseen_body;

pub use self::rejection::ParseRejection;
