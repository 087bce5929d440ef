//! Files that the process writes.

pub mod new_file;
pub mod zip;
