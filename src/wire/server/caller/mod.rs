//! The stream of one caller: its bounds, its share of the memory for bodies, its deadlines, and its place in the table of
//! connections.

pub mod buffered;
pub mod connection_table;
pub mod deadline;
pub mod stream;
pub mod unproved;
