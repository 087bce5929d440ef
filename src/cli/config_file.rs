//! The configuration file of a command: the one that is named, else one of two places.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::process::{getegid, geteuid};

use crate::{
    cli::terminal::output::say,
    run::config::{self, Config, ConfigErrors},
};

/// The option that names the configuration file.
#[derive(Debug, Clone, clap::Args)]
pub struct ConfigArgs {
    /// The configuration file [default: $COUNTERSIGN_CONFIG, else ./config.toml, else /etc/countersign/config.toml]
    #[arg(long, value_name = "FILE", global = true, display_order = 900)]
    config: Option<PathBuf>,
}

impl ConfigArgs {
    /// The file: as given, else `$COUNTERSIGN_CONFIG`, else `./config.toml`, else that of the package.
    pub fn path(&self) -> PathBuf {
        self.named()
            .unwrap_or_else(|| found(Path::new(HERE), Path::new(INSTALLED)).to_owned())
    }

    fn named(&self) -> Option<PathBuf> {
        let variable = || std::env::var_os("COUNTERSIGN_CONFIG").filter(|name| !name.is_empty());
        self.config
            .clone()
            .or_else(|| variable().map(PathBuf::from))
    }

    /// Says on standard error which file is used, if none was named and the file of the package is there too. A command says it
    /// before it does anything, because the file tells it what to read and whom to send a token.
    pub(super) fn announce(&self) {
        let is_open = self.named().is_none() && Path::new(HERE).exists();
        if is_open && Path::new(INSTALLED).exists() {
            say(&format!(
                "countersign: configuration ./{HERE}, not {INSTALLED}; --config names another file"
            ));
        }
    }

    /// Loads the file and what the environment sets.
    ///
    /// # Errors
    /// All problems of the configuration. A file that was not named, and that another account can have written, is an error
    /// too: it tells the command what to read and whom to send a token.
    pub fn load(&self) -> Result<Config, ConfigErrors> {
        let path = self.path();
        let opened = File::open(&path);
        if self.named().is_none()
            && path == Path::new(HERE)
            && let Ok(file) = &opened
        {
            let found = distrusted(file, &path, Path::new("."));
            let found = found.unwrap_or_else(|_| Some("the file changes while it is read".into()));
            if let Some(reason) = found {
                let text = format!(
                    "{reason}, so it is not used unasked; name it with --config ./{HERE}, or another file"
                );
                return Err(ConfigErrors::for_file(HERE, &text));
            }
        }
        config::load(opened, &path, std::env::vars_os())
    }
}

/// The file of the working directory.
const HERE: &str = "config.toml";
/// The file of the package.
const INSTALLED: &str = "/etc/countersign/config.toml";

/// The file of the working directory, unless only that of the package is there. A file that is there and cannot be read is used,
/// and its error reported, because somebody put it there to be used.
fn found<'p>(here: &'p Path, installed: &'p Path) -> &'p Path {
    let is_missing = matches!(here.try_exists(), Ok(false)) && !here.is_symlink();
    match is_missing && installed.exists() {
        true => installed,
        false => here,
    }
}

/// Why another account than root and that of this process can have written the file, or have put it there.
///
/// # Errors
/// The file was removed.
fn distrusted(file: &File, path: &Path, directory: &Path) -> io::Result<Option<String>> {
    const STICKY: u32 = 0o1000;

    let (link, target) = (fs::symlink_metadata(path)?, file.metadata()?);
    let place = fs::metadata(directory)?;
    let owners = [0, geteuid().as_raw()];
    let groups = [0, getegid().as_raw()];
    let owner = |found: &fs::Metadata| Some(found.uid()).filter(|it| !owners.contains(it));
    let is_open = |found: &fs::Metadata| {
        found.mode() & 0o002 != 0 || found.mode() & 0o020 != 0 && !groups.contains(&found.gid())
    };
    if let Some(owner) = owner(&link).or(owner(&target)) {
        return Ok(Some(format!("the file belongs to the account {owner}")));
    }
    if is_open(&target) {
        return Ok(Some("other accounts can write the file".to_owned()));
    }
    if let Some(owner) = owner(&place) {
        return Ok(Some(format!(
            "its directory belongs to the account {owner}"
        )));
    }
    let is_replaceable = is_open(&place) && place.mode() & STICKY == 0;
    Ok(is_replaceable.then(|| "other accounts can write its directory".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::{
        fs::Permissions,
        os::unix::fs::{PermissionsExt as _, chown, lchown, symlink},
    };

    use super::*;

    #[test]
    fn default_file_is_used_only_if_no_other_account_can_write_it() {
        let reason = |file: &Path, directory: &Path| {
            distrusted(&File::open(file).unwrap(), file, directory).unwrap()
        };
        if !geteuid().is_root() {
            // Only root can give a file away.
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join(HERE);
            fs::write(&file, "").unwrap();
            assert_eq!(reason(&file, directory.path()), None);
            fs::set_permissions(&file, Permissions::from_mode(0o646)).unwrap();
            assert!(reason(&file, directory.path()).is_some());
            return;
        }
        let [own, other] = [None, Some(4242)];
        // The file's owner and mode, the directory's owner and mode.
        for (file_owner, file_mode, owner, mode, expected) in [
            (own, 0o644, own, 0o755, None),
            (own, 0o664, own, 0o755, None),
            (own, 0o600, own, 0o1777, None),
            (other, 0o644, own, 0o755, Some("the file belongs to")),
            (own, 0o646, own, 0o755, Some("can write the file")),
            (own, 0o644, other, 0o755, Some("its directory belongs to")),
            (own, 0o644, own, 0o777, Some("can write its directory")),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join(HERE);
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, Permissions::from_mode(file_mode)).unwrap();
            fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
            chown(&file, file_owner, None).unwrap();
            chown(directory.path(), owner, None).unwrap();
            let found = reason(&file, directory.path());
            let is_expected = match expected {
                None => found.is_none(),
                Some(expected) => found.as_deref().is_some_and(|it| it.contains(expected)),
            };
            assert!(
                is_expected,
                "{file_mode:o} {mode:o} {expected:?}: {found:?}"
            );
        }
        // A link of another account to a file of root.
        let directory = tempfile::tempdir().unwrap();
        let [file, target] = [HERE, "target"].map(|name| directory.path().join(name));
        fs::write(&target, "").unwrap();
        symlink(&target, &file).unwrap();
        assert_eq!(reason(&file, directory.path()), None);
        lchown(&file, other, None).unwrap();
        assert!(reason(&file, directory.path()).is_some());
        // It was opened, and then taken away.
        let opened = File::open(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert!(distrusted(&opened, &file, directory.path()).is_err());
    }

    #[test]
    fn package_file_is_used_if_the_working_directory_has_none() {
        let directory = tempfile::tempdir().unwrap();
        let [here, installed] =
            ["config.toml", "installed.toml"].map(|name| directory.path().join(name));
        assert_eq!(found(&here, &installed), here, "neither is there");
        fs::write(&installed, "").unwrap();
        assert_eq!(found(&here, &installed), installed);
        // A link that leads nowhere is a mistake to report.
        symlink("nowhere", &here).unwrap();
        assert_eq!(found(&here, &installed), here);
        fs::remove_file(&here).unwrap();
        fs::write(&here, "").unwrap();
        assert_eq!(found(&here, &installed), here);
    }
}
