//! The keys in Redis. All have one hash tag, so that one node of a Cluster has them all.

/// The key of the state of the server and of the window.
pub(super) const STATE: &str = "cs:1:{store}:nonces";
/// The beginning of a nonce's key.
const NONCE: &str = "cs:1:{store}:n:";

/// The key of a nonce.
pub(super) fn nonce_key(digest: [u8; 16]) -> Vec<u8> {
    [NONCE.as_bytes(), &digest].concat()
}
