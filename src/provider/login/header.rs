//! Logins that a trusted proxy in front has checked: it names the user in a field of every request.
//!
//! Only the field's own name counts, in one line with one user id; a list, or a second line, is not a user.
//! `parse::origin` decides whose fields are read: those of `listen.trusted_proxies`.

use http::{HeaderMap, HeaderName};

use crate::{
    base::network::http_fields::single, provider::issue::registration,
    records::values::record::OutsideUser,
};

/// The fields that the proxy sets.
#[derive(Debug, Clone)]
pub struct UserHeaders {
    /// The user's id.
    pub user: HeaderName,
    /// The name that pages show.
    pub display_name: Option<HeaderName>,
}

impl UserHeaders {
    /// The names of the fields.
    pub fn names(self) -> impl Iterator<Item = HeaderName> {
        [Some(self.user), self.display_name].into_iter().flatten()
    }
}

/// The field that names the user is repeated, or is not a user id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotOneUser;

impl UserHeaders {
    /// The user that the proxy names; `None` if it names no user.
    ///
    /// # Errors
    /// [`NotOneUser`]
    pub fn read(&self, headers: &HeaderMap) -> Result<Option<OutsideUser>, NotOneUser> {
        let Some(value) = single(headers, &self.user).map_err(|_| NotOneUser)? else {
            return Ok(None);
        };
        // A proxy may send the field empty if no user is logged in.
        if value.is_empty() {
            return Ok(None);
        }
        // Apache sends `(null)` for a variable that is not set.
        let id = str::from_utf8(value).ok().filter(|id| *id != "(null)");
        let id = id.and_then(|id| id.parse().ok());
        let display_name = self.display_name.as_ref();
        let display_name = display_name
            .and_then(|name| single(headers, name).ok().flatten())
            .and_then(|value| str::from_utf8(value).ok())
            .and_then(|text| registration::shown_name(text).ok());
        Ok(Some(OutsideUser {
            id: id.ok_or(NotOneUser)?,
            name: None,
            display_name,
        }))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::base::text::names::NameEncoding;

    #[test]
    fn takes_one_user_and_no_other_spelling() {
        NameEncoding::None.set();
        let fields = UserHeaders {
            user: HeaderName::from_static("remote-user"),
            display_name: Some(HeaderName::from_static("remote-name")),
        };
        let read = |lines: &[(&str, &[u8])]| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                let name: HeaderName = name.parse().unwrap();
                headers.append(name, HeaderValue::from_bytes(value).unwrap());
            }
            fields.read(&headers)
        };
        let ada = read(&[("Remote-User", b"ada@example.org"), ("remote-name", b"Ada")]);
        let ada = ada.unwrap().unwrap();
        assert_eq!(ada.id.as_str(), "ada@example.org");
        assert_eq!((ada.name, ada.display_name.as_deref()), (None, Some("Ada")));
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[("remote_user", b"ada")]), Ok(None));
        assert_eq!(read(&[("remote-user", b"")]), Ok(None));
        for value in [&b"ada,eve"[..], b"ada eve", b"\xe9", b"(null)", b"ada\t"] {
            let value = read(&[("remote-user", value)]);
            assert_eq!(value, Err(NotOneUser));
        }
        let twice = read(&[("remote-user", b"ada"), ("remote-user", b"ada")]);
        assert_eq!(twice, Err(NotOneUser));
    }
}
