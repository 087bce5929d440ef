//! RFC 5849 as data and functions: no async, no I/O, no clock, no randomness, no logging.
//!
//! # The way of a signed request
//!
//! ```text
//! Parameters::read_header, read_query, read_body   bytes -> parameters
//! Parameters::protocol                             -> Protocol: typed, each once, in its location
//! Protocol::demand                                 -> Credentials: nothing missing
//! BaseString                                       the signed text
//! signature::verify                                -> SignatureHolds
//! ```
//!
//! Secrets come in as a [`Key`], whose [`KeyStates`] are kept; other modules check time and nonces.

pub mod base_string;
pub mod body_hash;
pub mod compare;
pub mod diagnosis;
pub mod method;
pub mod parameters;
pub mod percent;
pub mod pinned;
pub mod protocol;
pub mod signature;
pub mod sink;

pub use self::{
    base_string::{
        BaseString,
        origin::{Authority, EncodedOrigin, InvalidUrl, Scheme, split_port},
        request_uri::RequestUri,
    },
    body_hash::{body_hash, is_body_hash},
    method::{
        MethodSet, SignatureMethod, UnknownMethod,
        rsa::{RsaPrivateKey, RsaPublicKey},
        signing_key::{Key, KeyStates, SigningKey},
    },
    parameters::{
        BodyNames, Parameter, Parameters, Selection,
        deviation::{Deviation, DeviationSet},
        has_more_fields, has_other_charset, is_form_content_type, is_oauth_scheme,
        name::{ParameterNames, ProtocolParameter, names_parameter},
        shape::{LocationRule, ParameterLocation, ShapeError},
    },
    pinned::Pinned,
    protocol::{Credentials, Freshness, Nonce, Protocol, Timestamp},
    signature::{SignatureHolds, SignatureInvalid, has_bare_plus, sign, sign_rsa, verify},
};
