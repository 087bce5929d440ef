//! Names whose addresses a test sets, for the program.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::proxy::Builder;

/// The names of one program.
pub struct Names(PathBuf);

impl Names {
    /// Has the program resolve the names in `lines`, each a name and its addresses, `fails` or `hangs`.
    pub fn of(builder: Builder, lines: &str) -> (Builder, Self) {
        let library = builder.directory().join("names.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/names.c");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([library.as_path(), Path::new(source)])
            .status();
        assert!(compiled.is_ok_and(|status| status.success()), "cc");
        let names = Self(builder.directory().join("names"));
        names.set(lines);
        let builder = builder
            .environment("LD_PRELOAD", &library.display().to_string())
            .environment("NAMES", &names.0.display().to_string());
        (builder, names)
    }

    /// Changes them at once.
    pub fn set(&self, lines: &str) {
        let new = self.0.with_extension("new");
        fs::write(&new, lines).unwrap();
        fs::rename(new, &self.0).unwrap();
    }
}
