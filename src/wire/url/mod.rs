//! URLs as the configuration writes them: origins, web pages, and databases.

pub mod database;
pub mod origin;
pub mod web_page;
