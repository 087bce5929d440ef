//! The value in every form that proves it came from our own page, shown to this very browser.
//!
//! It is an HMAC whose key is the secret in the browser's cookie (the session id, or the login cookie before there is a
//! session) and whose message says what the form does and to what. Nobody without the cookie can make it; it serves
//! neither another session, nor another token, nor another form. As the key is the cookie there is no key to keep:
//! forms stay valid over a reload, a restart and on every replica, and end with the session.
//!
//! A key of our own beside it would add nothing: somebody who could plant a cookie could as well ask us for a form.

use aws_lc_rs::hmac;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use subtle::ConstantTimeEq;

use crate::secret::Secret;

/// What a form does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormPurpose {
    /// Logs in at a place; keyed by the login cookie, as all others are by the session.
    LogIn,
    /// Decides about a request token, or goes on as another user.
    Decide,
    /// Revokes an access token.
    Revoke,
    /// Logs out.
    LogOut,
    /// Ends all sessions of the user.
    LogOutEverywhere,
    /// Sets another password.
    ChangePassword,
}

/// Makes the value for a form that does `purpose` to `subject`.
pub(super) fn value(cookie: &Secret, purpose: FormPurpose, subject: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, cookie.expose());
    let mut message = hmac::Context::with_key(&key);
    // No purpose is the beginning of another, and what follows is the subject alone.
    message.update(match purpose {
        FormPurpose::LogIn => b"log in\0",
        FormPurpose::Decide => b"decide\0",
        FormPurpose::Revoke => b"revoke\0",
        FormPurpose::LogOut => b"log out\0",
        FormPurpose::LogOutEverywhere => b"log out everywhere\0",
        FormPurpose::ChangePassword => b"change password\0",
    });
    message.update(subject.as_bytes());
    URL_SAFE_NO_PAD.encode(message.sign())
}

/// Whether `sent` is that value.
pub(super) fn is_value(
    sent: Option<&str>,
    cookie: &Secret,
    purpose: FormPurpose,
    subject: &str,
) -> bool {
    let expected = value(cookie, purpose, subject);
    sent.is_some_and(|sent| sent.as_bytes().ct_eq(expected.as_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serves_one_cookie_one_purpose_and_one_subject() {
        let cookie = Secret::from("cookie");
        let made = value(&cookie, FormPurpose::Decide, "token");
        let sent = Some(made.as_str());
        assert!(is_value(sent, &cookie, FormPurpose::Decide, "token"));
        assert!(!is_value(
            sent,
            &Secret::from("cookiE"),
            FormPurpose::Decide,
            "token"
        ));
        assert!(!is_value(sent, &cookie, FormPurpose::Decide, "other"));
        assert!(!is_value(sent, &cookie, FormPurpose::Decide, ""));
        for other in [
            FormPurpose::LogIn,
            FormPurpose::Revoke,
            FormPurpose::LogOut,
            FormPurpose::LogOutEverywhere,
            FormPurpose::ChangePassword,
        ] {
            assert!(!is_value(sent, &cookie, other, "token"), "{other:?}");
        }
        assert!(!is_value(None, &cookie, FormPurpose::Decide, "token"));
        for sent in ["", &made[1..], &format!("{made}="), &made.to_lowercase()] {
            assert!(
                !is_value(Some(sent), &cookie, FormPurpose::Decide, "token"),
                "{sent}"
            );
        }
    }
}
