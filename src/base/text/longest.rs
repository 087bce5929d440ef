//! The limits of the texts that operators and other systems give: the same on the command line, in the admin API, in the
//! console and in an import. A test writes them into the OpenAPI document. In bytes, unless the name says characters.

/// A consumer key, a user id or a permission.
pub const NAME: usize = 255;
/// A text that pages show, such as the name and the description of a consumer.
pub const SHOWN_CHARACTERS: usize = 255;
/// A name to log in with; a longer one is rejected like an unknown one.
pub const LOGIN_NAME: usize = 255;
/// The identifier of a token; ours are shorter, those of an earlier system may be anything.
pub const TOKEN: usize = 255;
/// The secret of a consumer or of a token of an earlier system; ours are shorter.
pub const SECRET: usize = 4_096;
/// A public key as PEM: a certificate with many names, or a key of the largest size several times over.
pub const PUBLIC_KEY: usize = 16_384;
/// A callback: with token and verifier it still fits the header buffers in use.
pub const CALLBACK: usize = 4_096;
/// The address of a web page.
pub const WEB_PAGE: usize = 2_048;
/// The contact of a consumer: the address of a web page, or a mail address.
pub const CONTACT: usize = WEB_PAGE;
/// A network of callers: an IPv6 address and a length.
pub const NETWORK: usize = 64;
/// A pinned parameter, name and value.
pub const PINNED: usize = 512;
/// A number of requests in a period.
pub const RATE: usize = 64;
/// A password.
pub const PASSWORD: usize = 1_024;
/// The hash of a password, as other systems write it.
pub const PASSWORD_HASH: usize = 1_024;
/// The items of a list of a record: callbacks, permissions, pinned parameters.
pub const ITEMS: usize = 1_000;
