//! Files that the process makes for itself and for the processes after it.

use std::{
    ffi::OsStr,
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt, fchown},
    path::Path,
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
    process::geteuid,
};

/// Makes a file that is not there yet, for its owner alone, and opens it to read and to write. A link is never followed.
/// What root makes in the directory of another account is given to that account: a command that root runs once must leave
/// no file that the service cannot open.
///
/// # Errors
/// The system's; [`io::ErrorKind::AlreadyExists`] if anything has that name.
pub fn create_new(path: &Path) -> io::Result<File> {
    let name = path.file_name().unwrap_or(OsStr::new(""));
    // The directory is opened once, so that owner and file belong to the same one, even if its name leads elsewhere in between.
    let directory = path.parent().filter(|path| !path.as_os_str().is_empty());
    let here = directory.unwrap_or(Path::new("."));
    let found = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = File::from(openat(CWD, here, found, Mode::empty())?);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(openat(&directory, name, flags, Mode::RUSR | Mode::WUSR)?);
    if geteuid().is_root()
        && let Err(error) = give_to_owner(&file, &directory)
    {
        // In a container root may lack this right; then it is the account of the service as well.
        tracing::warn!(path = %path.display(), %error, "the new file cannot be given to the owner of its directory");
    }
    Ok(file)
}

/// As [`create_new`], and opens what is there already, unless it is a link.
///
/// # Errors
/// As [`open_kept`].
pub fn create_or_open(path: &Path) -> io::Result<File> {
    match create_new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            open_kept(path, File::options().read(true).write(true))
        }
        made => made,
    }
}

/// Opens a file that the process keeps. Another account may own its directory, so a link is not followed: a program of root would
/// read or change what the link leads to. It does not wait for the other end of a pipe.
///
/// # Errors
/// The system's; for a link one that says so.
pub fn open_kept(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = options.custom_flags(flags.bits().cast_signed());
    flags
        .open(path)
        .map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::LOOP) => io::Error::new(
                error.kind(),
                "it is a symbolic link, which is not followed; name the file that it leads to",
            ),
            _ => error,
        })
}

fn give_to_owner(file: &File, directory: &File) -> io::Result<()> {
    let found = directory.metadata()?;
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
    fn a_link_is_not_followed_even_if_it_leads_nowhere() {
        let [directory, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [target, link] = [other.path().join("target"), directory.path().join("link")];
        symlink(&target, &link).unwrap();
        let refused = |error: io::Error| {
            let text = error.to_string();
            assert!(text.contains("name the file that it leads to"), "{text}");
        };
        assert!(create_new(&link).is_err());
        refused(create_or_open(&link).unwrap_err());
        assert!(!target.exists(), "nothing is made there");
        fs::write(&target, "kept").unwrap();
        refused(create_or_open(&link).unwrap_err());
        refused(open_kept(&link, File::options().read(true)).unwrap_err());
        assert_eq!(fs::read_to_string(&target).unwrap(), "kept");
    }

    #[test]
    fn a_pipe_is_opened_without_a_wait_for_its_other_end() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        drop(open_kept(&pipe, File::options().read(true)).unwrap());
    }
}
