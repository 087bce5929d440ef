//! What operators see of the configuration.

/// A setting that this process runs with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveSetting {
    /// The key, `listen.address`.
    pub key: String,
    /// Its value, without passwords; a description if the value follows from other keys.
    pub value: String,
    /// Its source: `default`, `file`, or the environment's variable.
    pub source: String,
}
