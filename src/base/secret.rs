//! Secrets: bytes that do not print and are wiped when dropped.

pub mod hashed;
pub mod random;

use std::{fmt, fs::File, io::Read as _, path::Path};

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// The longest secret in a file, in bytes.
const MAX_LINE_BYTES: u64 = 4096;

/// A shared secret or a password: never printed, compared in constant time, wiped on drop. The default is empty.
#[derive(Clone, Default)]
pub struct Secret(Zeroizing<Box<[u8]>>);

impl Secret {
    /// Reads the secret that a file has in one line of visible ASCII characters.
    ///
    /// # Errors
    /// What is wrong, and the fix.
    pub fn read_line(path: &Path) -> Result<Self, String> {
        let mut line = Zeroizing::new(Vec::new());
        let read =
            File::open(path).and_then(|file| file.take(MAX_LINE_BYTES).read_to_end(&mut line));
        read.map_err(|error| format!("{error}; check the path and its rights"))?;
        let text = line.trim_ascii_end();
        match !text.is_empty() && text.iter().all(u8::is_ascii_graphic) {
            true => Ok(Self::from(text.to_vec())),
            false => Err(
                "expected one line of visible ASCII characters, as openssl rand -hex 32 makes it"
                    .to_owned(),
            ),
        }
    }

    /// The bytes themselves, for a key or for the one answer that issues them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// The secret as text, lossily if it is not UTF-8; for the one answer that issues it.
    pub fn expose_text(&self) -> Zeroizing<String> {
        Zeroizing::new(String::from_utf8_lossy(&self.0).into_owned())
    }

    /// Whether the secret has no byte at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<u8>> for Secret {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes.into_boxed_slice()))
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::from(text.into_bytes())
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::from(text.as_bytes().to_vec())
    }
}

impl PartialEq for Secret {
    /// Takes the same time wherever the secrets differ; their lengths are not hidden.
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn does_not_print() {
        assert_eq!(format!("{:?}", Secret::from("hunter2")), "<redacted>");
    }
}
