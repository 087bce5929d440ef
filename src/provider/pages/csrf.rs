//! The value in every form that proves it came from our own page, shown to this very browser.
//!
//! It is an HMAC. The key is the secret in the browser's cookie (the session id, or the login cookie before there is a
//! session); the message is the purpose of the form and its subject. Nobody without the cookie can make it, and it is not
//! valid for another session, subject or form. No key has to be kept: forms stay valid over a reload, a restart and on every
//! replica, and end with the session.
//!
//! A second key of our own would add nothing: an attacker who can plant a cookie can also request a form.

use aws_lc_rs::hmac;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use subtle::ConstantTimeEq;

use crate::base::secret::Secret;

/// The purpose of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormPurpose {
    /// Logs in at a place; keyed by the login cookie, as all others are by the session.
    LogIn,
    /// Decides about a request token, or goes on as another user.
    Decide,
    /// Revokes the access tokens of a consumer.
    Revoke,
    /// Logs out.
    LogOut,
    /// Ends all other sessions of the user.
    LogOutElsewhere,
    /// Ends all sessions of the user.
    LogOutEverywhere,
    /// Ends one other session of the user.
    EndSession,
    /// Sets another password.
    ChangePassword,
    /// Changes nothing: a notice of the user's last action, in an address that is valid only in this browser.
    Notice,
    /// Changes something in the operator's console; the subject says what.
    Console,
}

/// Makes the value for a form that does `purpose` to `subject`.
pub(crate) fn value(cookie: &Secret, purpose: FormPurpose, subject: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, cookie.expose());
    // The name of a purpose has no zero byte: everything after the first one is the subject.
    let message = format!("{purpose:?}\0{subject}");
    URL_SAFE_NO_PAD.encode(hmac::sign(&key, message.as_bytes()))
}

/// Whether `sent` is that value.
pub(crate) fn is_value(
    sent: Option<&str>,
    cookie: &Secret,
    purpose: FormPurpose,
    subject: &str,
) -> bool {
    let expected = value(cookie, purpose, subject);
    sent.is_some_and(|sent| sent.as_bytes().ct_eq(expected.as_bytes()).into())
}
