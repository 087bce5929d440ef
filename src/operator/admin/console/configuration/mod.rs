//! Pages on the configuration: its settings, and its operations.

mod operations;
mod settings;
