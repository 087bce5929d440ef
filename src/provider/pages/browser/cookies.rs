//! The two cookies: the session's, and the one that binds a login form to the browser before there is a session.

use std::time::Duration;

use aws_lc_rs::digest;
use http::{HeaderMap, header};

use crate::{
    base::{
        network::http_fields::{self, all},
        secret::{Secret, random},
    },
    provider::pages::PageError,
};

/// The names of our cookies. Neither is sent to the API, and a `Set-Cookie` of the API by either name is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CookieNames {
    /// Holds the id of a session.
    pub session: &'static str,
    /// Binds a login form to the browser that requested it.
    pub login: &'static str,
    secure: bool,
}

/// The names under https (`secure`), where a browser takes them from this host alone, or under plain http.
pub const fn cookie_names(secure: bool) -> CookieNames {
    let (session, login) = match secure {
        true => ("__Host-countersign", "__Host-countersign-login"),
        false => ("countersign", "countersign-login"),
    };
    CookieNames {
        session,
        login,
        secure,
    }
}

impl CookieNames {
    /// A `Set-Cookie` that gives the browser its session.
    pub(in crate::provider::pages) fn set_session(
        &self,
        id: &Secret,
        lifetime: Duration,
    ) -> String {
        // With `Max-Age` the cookie ends with the session: a stale one would count as a user's and be rejected.
        let age = format!("; Max-Age={}", lifetime.as_secs());
        self.set(self.session, &id.expose_text(), &age)
    }

    /// A `Set-Cookie` for the login form; it ends with the browser.
    pub(in crate::provider::pages) fn set_login(&self, value: &Secret) -> String {
        self.set(self.login, &value.expose_text(), "")
    }

    /// A `Set-Cookie` that makes the browser forget `name`.
    pub(in crate::provider::pages) fn forget(&self, name: &str) -> String {
        self.set(name, "", "; Max-Age=0")
    }

    fn set(&self, name: &str, value: &str, age: &str) -> String {
        let secure = if self.secure { "; Secure" } else { "" };
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{age}{secure}")
    }
}

/// Whether a cookie of this name is sent, whatever its value.
pub(in crate::provider::pages) fn is_sent(headers: &HeaderMap, name: &str) -> bool {
    values(headers, name).next().is_some()
}

/// The value of our cookie of this name (RFC 6265 §4.2.1); `None` also for a value that we never made.
///
/// # Errors
/// [`PageError::SeveralSessionCookies`]
pub(crate) fn read(headers: &HeaderMap, name: &str) -> Result<Option<Secret>, PageError> {
    let mut values = values(headers, name);
    let first = values.next();
    if values.next().is_some() {
        return Err(PageError::SeveralSessionCookies);
    }
    let is_ours = |value: &&[u8]| {
        value.len() == random::SECRET_LENGTH && value.iter().all(u8::is_ascii_alphanumeric)
    };
    Ok(first
        .filter(is_ours)
        .map(|value| Secret::from(value.to_vec())))
}

fn values<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h [u8]> {
    let cookies = all(headers, &header::COOKIE).flat_map(http_fields::cookies);
    let cookies = cookies.filter(move |(known, _)| *known == name.as_bytes());
    cookies.map(|(_, cookie)| {
        cookie
            .splitn(2, |byte| *byte == b'=')
            .nth(1)
            .unwrap_or_default()
    })
}

/// The key of a session in the store.
pub(crate) fn id_hash(id: &Secret) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest::digest(&digest::SHA256, id.expose()).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "aaaaaaaaaaBBBBBBBBBBcccccccccc0000000000xyz";

    fn read_lines(lines: &[&str]) -> Option<Option<String>> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::COOKIE, line.parse().unwrap());
        }
        let found = read(&headers, "countersign").ok();
        found.map(|found| found.map(|id| id.expose_text().to_string()))
    }

    #[test]
    fn finds_the_one_cookie_that_was_made_here() {
        for lines in [
            &[&*format!("countersign={ID}")][..],
            &[&format!("a=b; countersign={ID}; c")],
            &[&format!("a=b;countersign={ID} ;;")],
            &[&format!(
                "a=\"x\"; countersign-login=zz; xcountersign=1; countersign={ID}"
            )],
            &["a=b", &format!("countersign={ID}")],
        ] {
            assert_eq!(read_lines(lines), Some(Some(ID.to_owned())), "{lines:?}");
        }
        for value in [
            "",
            "x",
            &ID[1..],
            &format!("{ID}x"),
            &format!("\"{}\"", &ID[2..]),
            &format!("{}-", &ID[1..]),
            &format!(" {}", &ID[1..]),
        ] {
            assert_eq!(read_lines(&[&format!("countersign={value}")]), Some(None));
        }
        for field in ["", ";", "a=countersign", "Countersign=x", "=countersign"] {
            assert_eq!(read_lines(&[field]), Some(None), "{field}");
        }
    }

    #[test]
    fn rejects_two_even_if_alike() {
        let one = format!("countersign={ID}");
        for other in [&*one, "countersign=", "countersign", "countersign =x"] {
            assert_eq!(read_lines(&[&format!("{one}; {other}")]), None, "{other}");
            assert_eq!(read_lines(&[&one, other]), None, "{other}");
        }
    }

    #[test]
    fn cookies_are_kept_from_scripts_other_sites_and_plain_http() {
        let id = Secret::from(ID);
        let hour = Duration::from_secs(3600);
        assert_eq!(
            cookie_names(true).set_session(&id, hour),
            format!(
                "__Host-countersign={ID}; Path=/; HttpOnly; SameSite=Lax; Max-Age=3600; Secure"
            )
        );
        assert_eq!(
            cookie_names(false).set_session(&id, hour),
            format!("countersign={ID}; Path=/; HttpOnly; SameSite=Lax; Max-Age=3600")
        );
        assert_eq!(
            cookie_names(true).set_login(&id),
            format!("__Host-countersign-login={ID}; Path=/; HttpOnly; SameSite=Lax; Secure")
        );
        assert_eq!(
            cookie_names(true).forget("__Host-countersign"),
            "__Host-countersign=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0; Secure"
        );
    }
}
