//! The two cookies: the session's, and the one that binds a login form to the browser before there is a session.

use std::time::Duration;

use aws_lc_rs::digest;

use crate::{issue::random, secret::Secret};

/// What our cookies are called. Both are kept from the API, and a `Set-Cookie` of the API by either name is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CookieNames {
    /// Holds the id of a session.
    pub session: &'static str,
    /// Binds a login form to the browser that asked for it.
    pub login: &'static str,
    secure: bool,
}

/// The names under https (`secure`), where a browser takes them from this host alone, or under plain http.
#[must_use]
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
    pub(super) fn set_session(&self, id: &Secret, lifetime: Duration) -> String {
        let lifetime = lifetime.as_secs();
        // With `Max-Age` the cookie ends with the session: a stale one would count as a user's and be rejected.
        self.set(
            self.session,
            &id.expose_text(),
            &format!("; Max-Age={lifetime}"),
        )
    }

    /// A `Set-Cookie` for the login form; it ends with the browser.
    pub(super) fn set_login(&self, value: &Secret) -> String {
        self.set(self.login, &value.expose_text(), "")
    }

    /// A `Set-Cookie` that makes the browser forget `name`.
    pub(super) fn forget(&self, name: &str) -> String {
        self.set(name, "", "; Max-Age=0")
    }

    fn set(&self, name: &str, value: &str, age: &str) -> String {
        let secure = if self.secure { "; Secure" } else { "" };
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{age}{secure}")
    }
}

/// What the browser sent under one name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cookie {
    None,
    One(Secret),
    /// One that we never made.
    Invalid,
    Several,
}

/// Looks for a cookie of ours in the values of all `Cookie` fields (RFC 6265 §4.2.1), by its exact name.
pub(super) fn read(fields: &[&[u8]], name: &str) -> Cookie {
    let mut found = Cookie::None;
    for pair in fields
        .iter()
        .flat_map(|field| field.split(|byte| *byte == b';'))
    {
        let pair = pair.trim_ascii();
        let (key, value) = match pair.iter().position(|byte| *byte == b'=') {
            Some(at) => (&pair[..at], &pair[at + 1..]),
            None => (pair, &pair[pair.len()..]),
        };
        if key.trim_ascii_end() != name.as_bytes() {
            continue;
        }
        if found != Cookie::None {
            return Cookie::Several;
        }
        let is_ours =
            value.len() == random::SECRET_LENGTH && value.iter().all(u8::is_ascii_alphanumeric);
        found = if is_ours {
            Cookie::One(Secret::from(value.to_vec()))
        } else {
            Cookie::Invalid
        };
    }
    found
}

/// What the store knows a session by.
pub(super) fn id_hash(id: &Secret) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest::digest(&digest::SHA256, id.expose()).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "aaaaaaaaaaBBBBBBBBBBcccccccccc0000000000xyz";

    fn read_one(field: &str) -> Cookie {
        read(&[field.as_bytes()], "countersign")
    }

    #[test]
    fn finds_the_one_cookie_among_others() {
        let one = || Cookie::One(Secret::from(ID));
        assert_eq!(read_one(&format!("countersign={ID}")), one());
        assert_eq!(read_one(&format!("a=b; countersign={ID}; c")), one());
        assert_eq!(read_one(&format!("a=b;countersign={ID} ;;")), one());
        assert_eq!(
            read_one(&format!(
                "a=\"x\"; countersign-login=zz; xcountersign=1; countersign={ID}"
            )),
            one()
        );
        let several_fields: [&[u8]; 2] = [b"a=b", format!("countersign={ID}").leak().as_bytes()];
        assert_eq!(read(&several_fields, "countersign"), one());
    }

    #[test]
    fn takes_no_other_name_for_ours() {
        for field in [
            "",
            ";",
            "a=countersign",
            "Countersign=x",
            "countersign-login=x",
            "=countersign",
            "xcountersign=x",
        ] {
            assert_eq!(read_one(field), Cookie::None, "{field}");
        }
        assert_eq!(
            read(
                &[format!("countersign={ID}").as_bytes()],
                "__Host-countersign"
            ),
            Cookie::None
        );
    }

    #[test]
    fn rejects_two_even_if_alike() {
        assert_eq!(
            read_one(&format!("countersign={ID}; countersign={ID}")),
            Cookie::Several
        );
        assert_eq!(
            read_one(&format!("countersign=; countersign={ID}")),
            Cookie::Several
        );
        assert_eq!(
            read_one(&format!("countersign={ID}; countersign")),
            Cookie::Several
        );
        assert_eq!(
            read_one(&format!("countersign={ID}; countersign =x")),
            Cookie::Several
        );
        let field = format!("countersign={ID}");
        assert_eq!(
            read(&[field.as_bytes(), field.as_bytes()], "countersign"),
            Cookie::Several
        );
    }

    #[test]
    fn rejects_a_value_that_was_never_made_here() {
        for value in [
            "",
            "x",
            &ID[1..],
            &format!("{ID}x"),
            &format!("\"{}\"", &ID[2..]),
            &format!("{}-", &ID[1..]),
            &format!(" {}", &ID[1..]),
        ] {
            assert_eq!(
                read_one(&format!("countersign={value}")),
                Cookie::Invalid,
                "{value}"
            );
        }
    }

    #[test]
    fn cookies_are_out_of_reach_of_scripts_other_sites_and_plain_http() {
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
