//! Calls as this process tells of them: the record of each, the types of its facts, and what is remembered of past ones.

pub mod consumer_calls;
pub mod facts;
pub mod last_day;
pub mod previous_secrets;
pub mod record;
pub mod rejections;
pub mod verdict;
