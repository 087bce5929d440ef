//! The value in every form that proves it came from our own page, shown to this very browser.
//!
//! It is an HMAC. The key is the secret in the browser's cookie (the session id, or the login cookie before there is a
//! session); the message is the purpose of the form and its subject. It cannot be made without the cookie, and it is not
//! valid for another session, subject or form. No key has to be kept: forms stay valid over a reload, a restart and on every
//! replica, and end with the session.
//!
//! A second key of our own would add nothing: an attacker who can plant a cookie can also request a form.

use aws_lc_rs::hmac;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use subtle::ConstantTimeEq;

use crate::base::secret::Secret;

/// The purpose of a form. Its name is in the message that is signed; everything after the first zero byte is the subject. Forms
/// in browsers, and other replicas, have values that were made with the names, so they never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
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
    /// Asks for a consumer or changes one; the subject says what.
    Register,
    /// Changes nothing: a request that a developer has checked; keyed by the link.
    Developer,
}

/// Makes the value for a form that does `purpose` to `subject`.
pub(crate) fn value(cookie: &Secret, purpose: FormPurpose, subject: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, cookie.expose());
    let purpose: &str = purpose.into();
    let message = [purpose, "\0", subject].concat();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_earlier_forms_stay_valid() {
        let cookie = Secret::from("a cookie");
        for (purpose, expected) in [
            (
                FormPurpose::LogIn,
                "HgxV6lvkhJN0_LQAKqAEkaCjgQdb1eF4ZEsPghonKOA",
            ),
            (
                FormPurpose::Decide,
                "jemeSjMZE9qrn3P8Oj4oPWlmwwzati99oiHeJsyGLMM",
            ),
            (
                FormPurpose::Revoke,
                "N8aGvt9bQTSRbtYTpNPkIms_XfYI8TkyDFOuC_iOy2g",
            ),
            (
                FormPurpose::LogOut,
                "KpYSed4hd5gIdQwKM5i5enn6H0AXZfVCnvtY5nEVVTw",
            ),
            (
                FormPurpose::LogOutElsewhere,
                "YHKzG0Ra-2bzxuluSU6boW91bgNrsw0OWQlI0pSweEc",
            ),
            (
                FormPurpose::LogOutEverywhere,
                "vIbIX2gm2_B3bcLb3zmx5idSXTSLQFhiCr-xCNU7At4",
            ),
            (
                FormPurpose::EndSession,
                "_8Yrc2KYqLcrh_AOL6EXa3-2VOcwH3WbgNE8zw_NcFQ",
            ),
            (
                FormPurpose::ChangePassword,
                "Mef7FjP6W8-u5BfhopUWOEqa9vNvDWxYgV9VsfRA954",
            ),
            (
                FormPurpose::Notice,
                "-ONheoWZ4F3cHHH3ev4tfHqVAiS1MrJTBUguGWKoxJ8",
            ),
            (
                FormPurpose::Console,
                "flVy3XjhfgWpmwZXgNiXMvhGWNHdFWEYfSYvVDsRcBY",
            ),
        ] {
            assert_eq!(
                value(&cookie, purpose, "a subject"),
                expected,
                "{purpose:?}"
            );
            assert!(is_value(Some(expected), &cookie, purpose, "a subject"));
            assert!(!is_value(Some(expected), &cookie, purpose, "another"));
        }
    }
}
