//! Calls as this process tells of them: the record of each, and the types of its facts.

pub mod facts;
pub mod record;
pub mod verdict;
