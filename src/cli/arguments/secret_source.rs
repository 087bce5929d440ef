//! Secrets on the command line: as they are, from a file, or from standard input.
//!
//! Every process of the machine can read a command line, and the shell keeps it in its history, so there are two other
//! ways to give a secret.

use std::{convert::Infallible, fmt, fs, io::Read, path::PathBuf, str::FromStr};

use crate::{
    base::secret::Secret,
    cli::context::{About as _, CommandError},
};

/// A secret, or its place: `@FILE`, or `-` for standard input; anything else is the secret itself.
#[derive(Clone)]
pub enum SecretArg {
    /// The secret itself.
    Literal(Secret),
    /// A file that holds it.
    File(PathBuf),
    /// Standard input, to its end.
    Stdin,
}

impl SecretArg {
    /// Fetches the secret. One final newline (`\n` or `\r\n`) of a file or of standard input is dropped, as editors and
    /// `echo` put one there.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&self, stdin: &mut dyn Read) -> Result<Secret, CommandError> {
        let mut contents = match self {
            Self::Literal(secret) => return Ok(secret.clone()),
            Self::File(path) => {
                fs::read(path).about(format!("cannot read the secret from {}", path.display()))?
            }
            Self::Stdin => {
                let mut contents = Vec::new();
                let read = stdin.read_to_end(&mut contents);
                read.about("cannot read the secret from standard input")?;
                contents
            }
        };
        if contents.ends_with(b"\n") {
            contents.pop();
            if contents.ends_with(b"\r") {
                contents.pop();
            }
        }
        Ok(Secret::from(contents))
    }
}

impl FromStr for SecretArg {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.strip_prefix('@') {
            Some(path) => Self::File(path.into()),
            None if text == "-" => Self::Stdin,
            None => Self::Literal(Secret::from(text)),
        })
    }
}

impl fmt::Debug for SecretArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(secret) => secret.fmt(f),
            Self::File(path) => write!(f, "@{}", path.display()),
            Self::Stdin => f.write_str("-"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(argument: &str, mut stdin: &[u8]) -> Result<Vec<u8>, CommandError> {
        let argument: SecretArg = argument.parse().unwrap();
        argument
            .read(&mut stdin)
            .map(|secret| secret.expose().to_vec())
    }

    #[test]
    fn a_secret_is_taken_as_it_is() {
        for literal in ["hunter2", "", "a@b", "--x", "-x", "line\n"] {
            assert_eq!(read(literal, b"other").unwrap(), literal.as_bytes());
        }
    }

    #[test]
    fn one_final_newline_of_a_file_or_of_standard_input_is_dropped() {
        for (contents, expected) in [
            (&b"s"[..], &b"s"[..]),
            (b"s\n", b"s"),
            (b"s\r\n", b"s"),
            (b"s\n\n", b"s\n"),
            (b"s\r", b"s\r"),
            (b" s ", b" s "),
            (b"\xff\n", b"\xff"),
            (b"\n", b""),
            (b"", b""),
        ] {
            assert_eq!(read("-", contents).unwrap(), expected);
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(contents).unwrap();
            assert_eq!(
                read(&format!("@{}", file.path().display()), b"other").unwrap(),
                expected
            );
        }
    }

    #[test]
    fn debug_prints_no_secret() {
        assert_eq!(
            format!("{:?}", "hunter2".parse::<SecretArg>().unwrap()),
            "<redacted>"
        );
    }
}
