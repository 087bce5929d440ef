//! The permissions that a request token asks for.

use crate::{
    base::{
        settings::{Reason, Text, distinct, plain_values, section},
        text::names::Permission,
    },
    provider::issue::IssueRejection,
};

section! {
    /// How a consumer names the permissions that it wants, at the request token call or in the address of the authorization
    /// page; otherwise it gets all.
    ScopeSettings["scope"] {
        /// The parameters that name permissions; a request has one of them at most. The realm of the Authorization header and
        /// the page's address name permissions too, if the consumer may ask for one of theirs.
        #[serde(deserialize_with = "distinct")] names: Vec<ScopeName> = ["scope"], reload;
        /// The characters between permissions.
        separators: String = " ,", reload;
    }
}

/// The name of such a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeName(String);

plain_values!(ScopeName);

impl Text for ScopeName {
    const EXPECTED: &'static str = PARAMETER;

    fn parse(text: &str) -> Result<Self, Reason> {
        match is_parameter(text) && text != "mode" {
            true => Ok(Self(text.to_owned())),
            false => Err("".into()),
        }
    }
}

/// It names nothing: neither "all" nor "none" is a safe guess.
const EMPTY: &str = "names no permission";
/// It names a permission that the consumer is not registered for, or that does not exist.
const NOT_REGISTERED: &str = "names a permission that is not registered for this consumer";
/// It comes twice, or another of the names does too.
const REPEATED: &str = "is sent more than once";

impl ScopeSettings {
    /// Narrows a consumer's registered permissions, in their order, to those that the call asks for. `sent` has the signed
    /// parameters, decoded, and `realm` is that of the Authorization header, or the parameter of the authorization page: no
    /// signature covers it, and it can only narrow.
    ///
    /// # Errors
    /// [`IssueRejection::Scope`]: `400 parameter_rejected` on the request token call.
    pub fn narrow<'p>(
        &self,
        registered: &[Permission],
        mut sent: impl Iterator<Item = (&'p [u8], &'p [u8])>,
        realm: Option<&'p [u8]>,
    ) -> Result<Vec<Permission>, IssueRejection> {
        let scope = sent.find_map(|(name, value)| Some((self.name(name)?, value)));
        if let Some((name, _)) = scope
            && sent.any(|(name, _)| self.name(name).is_some())
        {
            return Err(rejected(name, REPEATED));
        }
        let is_asked = |asked: &[&[u8]], permission: &Permission| {
            asked.contains(&permission.as_str().as_bytes())
        };
        let names_any = |asked: &Vec<&[u8]>| registered.iter().any(|it| is_asked(asked, it));
        let realm = realm.map(|realm| self.split(realm)).filter(names_any);
        let Some((name, asked)) = scope
            .map(|(name, value)| (name, self.split(value)))
            .or_else(|| Some(("realm", realm?)))
        else {
            return Ok(registered.to_vec());
        };
        if asked.is_empty() {
            return Err(rejected(name, EMPTY));
        }
        let is_registered =
            |name: &&[u8]| registered.iter().any(|it| it.as_str().as_bytes() == *name);
        if !asked.iter().all(is_registered) {
            return Err(rejected(name, NOT_REGISTERED));
        }
        Ok(registered
            .iter()
            .filter(|it| is_asked(&asked, it))
            .cloned()
            .collect())
    }

    /// The names of the parameters.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &*name.0)
    }

    /// The name of a parameter, if it is one of `names`.
    fn name(&self, name: &[u8]) -> Option<&str> {
        self.names().find(|known| known.as_bytes() == name)
    }

    fn split<'v>(&self, value: &'v [u8]) -> Vec<&'v [u8]> {
        let is_separator = |byte: &u8| self.separators.as_bytes().contains(byte);
        value
            .split(is_separator)
            .filter(|name| !name.is_empty())
            .collect()
    }
}

fn rejected(name: &str, problem: &'static str) -> IssueRejection {
    let name = name.to_owned();
    IssueRejection::Scope { name, problem }
}

/// The demand of [`is_parameter`]: the name of a response's parameter that needs no escape.
pub const PARAMETER: &str =
    "a name of 1 to 64 letters, digits, -, ., _ and ~ that does not begin with \"oauth_\"";

/// Whether a parameter of a response may have this name.
#[must_use]
pub fn is_parameter(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_name = (1..=64).contains(&name.len()) && name.bytes().all(is_plain);
    is_name && !name.starts_with("oauth_")
}
