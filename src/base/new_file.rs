//! Files that the process makes for itself and for the processes after it.

use std::{
    fs::File,
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt, fchown},
    path::Path,
};

use rustix::process::geteuid;

/// Makes a file that is not there yet, for its owner alone, and opens it to read and to write. A link is never followed. What root makes in the
/// directory of another account is given to that account: a command that root runs once must leave no file that the
/// service cannot open.
///
/// # Errors
/// The system's; [`io::ErrorKind::AlreadyExists`] if anything has that name.
pub fn create_new(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let options = options.read(true).write(true).create_new(true).mode(0o600);
    let file = options.open(path)?;
    if geteuid().is_root()
        && let Err(error) = give_to_owner(&file, path)
    {
        // In a container root may lack this right; then it is the account of the service as well.
        tracing::warn!(path = %path.display(), %error, "the new file cannot be given to the owner of its directory");
    }
    Ok(file)
}

/// As [`create_new`], and opens what is there already.
///
/// # Errors
/// The system's.
pub fn create_or_open(path: &Path) -> io::Result<File> {
    match create_new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let mut options = File::options();
            // A link that leads nowhere is followed, as for a file that is there.
            let options = options.read(true).write(true).create(true).truncate(false);
            options.mode(0o600).open(path)
        }
        made => made,
    }
}

fn give_to_owner(file: &File, path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|path| !path.as_os_str().is_empty());
    let found = directory.unwrap_or(Path::new(".")).metadata()?;
    match found.uid() {
        0 => Ok(()),
        owner => fchown(file, Some(owner), Some(found.gid())),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_new_file_belongs_to_the_owner_of_its_directory() {
        let directory = tempfile::tempdir().unwrap();
        // Only root can give a directory away; another account owns what it makes anyway.
        if geteuid().is_root() {
            std::os::unix::fs::chown(directory.path(), Some(4242), Some(4243)).unwrap();
        }
        let of_directory = directory.path().metadata().unwrap();
        let path = directory.path().join("new");
        let file = create_new(&path).unwrap().metadata().unwrap();
        assert_eq!(file.uid(), of_directory.uid());
        assert_eq!(file.gid(), of_directory.gid());
        assert_eq!(file.mode() & 0o777, 0o600);
        let again = create_new(&path).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn what_a_link_leads_to_keeps_its_owner() {
        let [directory, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        if geteuid().is_root() {
            std::os::unix::fs::chown(directory.path(), Some(4242), Some(4243)).unwrap();
        }
        let [target, link] = [other.path().join("target"), directory.path().join("link")];
        symlink(&target, &link).unwrap();
        assert!(create_new(&link).is_err());
        drop(create_or_open(&link).unwrap());
        assert_eq!(target.metadata().unwrap().uid(), geteuid().as_raw());
        fs::write(&target, "kept").unwrap();
        drop(create_or_open(&link).unwrap());
        assert_eq!(fs::read_to_string(&target).unwrap(), "kept");
        assert_eq!(target.metadata().unwrap().uid(), geteuid().as_raw());
    }
}
