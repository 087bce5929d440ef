//! `deploy/train`: which builds its profile fits, and how old it is.
//!
//! Promise (Storage and operation): The guided build uses the profile of the repository only with the crates and options that it was
//! made with, and a release refuses one that is too old.

use std::{fs, path::Path, process::Command};

use super::{file, printed};

/// A repository with `deploy/train`, the crates of this project and one file of ten lines; its directory and its commit.
fn repository() -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::create_dir_all(root.join("deploy/profile")).unwrap();
    fs::create_dir(root.join("src")).unwrap();
    for path in ["deploy/train", "Cargo.toml", "Cargo.lock"] {
        fs::copy(file(path), root.join(path)).unwrap();
    }
    fs::write(root.join("src/lib.rs"), "// A line.\n".repeat(10)).unwrap();
    let git = |arguments: &[&str]| {
        let author = ["-c", "user.name=test", "-c", "user.email=test@example.test"];
        let mut git = Command::new("git");
        printed(git.args(author).args(arguments).current_dir(root))
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "first"]);
    let commit = git(&["rev-parse", "HEAD"]);
    (directory, commit.trim().to_owned())
}

fn train(root: &Path, arguments: &[&str]) -> Command {
    let mut train = Command::new(root.join("deploy/train"));
    train.args(arguments);
    train
}

#[test]
fn a_profile_is_too_old_once_more_lines_have_changed_than_allowed() {
    let (directory, commit) = repository();
    let root = directory.path();
    let fails = |arguments: &[&str], reason: &str| {
        let output = train(root, arguments).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && complaint.contains(reason),
            "{complaint}"
        );
    };
    let made = root.join("deploy/profile/made-with");
    fails(&["--age"], "deploy/train makes one");
    fs::write(&made, format!("release: 1\ncommit: {}\n", "0".repeat(40))).unwrap();
    fails(&["--age"], "fetch the whole history");
    fs::write(&made, format!("release: 1\ncommit: {commit}\n")).unwrap();
    assert!(printed(&mut train(root, &["--age"])).starts_with("0 lines"));
    let changed = "// A line.\n".repeat(8) + "// Another.\n// One more.\n// A third.\n";
    fs::write(root.join("src/lib.rs"), changed).unwrap();
    assert!(printed(&mut train(root, &["--age", "5"])).starts_with("5 lines"));
    fails(&["--age", "4"], "too old");
}

#[test]
fn a_profile_fits_builds_with_the_same_crates_and_options() {
    let (directory, _) = repository();
    let root = directory.path();
    let key = || printed(&mut train(root, &["--key"]));
    let first = key();
    let version = printed(Command::new("rustc").arg("-V"));
    let release = version.split(' ').nth(1).unwrap();
    assert!(first.contains(&format!("release: {release}\n")), "{first}");
    let manifest = fs::read_to_string(file("Cargo.toml")).unwrap();
    let change = |from: &str, to: &str| {
        assert!(manifest.contains(from), "{from}");
        fs::write(root.join("Cargo.toml"), manifest.replace(from, to)).unwrap();
    };
    change("recommends = \"ca-certificates\"", "recommends = \"curl\"");
    assert_eq!(key(), first);
    change("lto = \"fat\"", "lto = \"thin\"");
    assert_ne!(key(), first);
    fs::copy(file("Cargo.toml"), root.join("Cargo.toml")).unwrap();
    assert_eq!(key(), first);
    fs::write(root.join("Cargo.lock"), "version = 4\n").unwrap();
    assert_ne!(key(), first);
}
