//! The facts about a user that a consumer may learn.

use crate::records::values::record::User;

/// A fact about the user that the access token response may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum UserField {
    /// The id that the API sees.
    Id,
    /// The login name.
    Name,
    /// The name that pages show, if it is known.
    DisplayName,
}

impl UserField {
    /// Its value, if it is known.
    pub(super) fn value(self, user: &User) -> Option<&str> {
        match self {
            Self::Id => Some(user.id.as_str()),
            Self::Name => Some(&user.name),
            Self::DisplayName => user.display_name.as_deref(),
        }
    }
}
