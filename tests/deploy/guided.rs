//! `deploy/train`: which builds its profile fits, and how old it is.
//!
//! Promise (Storage and operation): The guided build uses the repository's profile only with its crates and options; a release
//! rejects an old one.

use std::{fs, path::Path, process::Command};

use super::{file, printed};

/// A copy of `deploy/train`, the list of crates, and two files of ten lines each.
fn project() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::create_dir_all(root.join("deploy/profile")).unwrap();
    fs::create_dir(root.join("src")).unwrap();
    for path in ["deploy/train", "Cargo.toml", "Cargo.lock"] {
        fs::copy(file(path), root.join(path)).unwrap();
    }
    for name in ["lib.rs", "main.rs"] {
        fs::write(root.join("src").join(name), "// A line.\n".repeat(10)).unwrap();
    }
    directory
}

fn train(root: &Path, arguments: &[&str]) -> Command {
    let mut train = Command::new(root.join("deploy/train"));
    train.args(arguments);
    train
}

#[test]
fn profile_is_too_old_once_changed_files_exceed_the_lines() {
    let directory = project();
    let root = directory.path();
    let fails = |arguments: &[&str], reason: &str| {
        let output = train(root, arguments).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && complaint.contains(reason),
            "{complaint}"
        );
    };
    fails(&["--age"], "deploy/train makes one");
    let mut digests = Command::new("sha256sum");
    let digests = printed(
        digests
            .args(["src/lib.rs", "src/main.rs"])
            .current_dir(root),
    );
    fs::write(root.join("deploy/profile/made-of"), digests).unwrap();
    let age = |most: &str| printed(&mut train(root, &["--age", most]));
    assert!(age("0").contains(" 0 of 20 lines"));
    fs::write(root.join("src/lib.rs"), "// Another.\n".repeat(10)).unwrap();
    assert!(age("50").contains(" 10 of 20 lines"));
    fails(&["--age", "49"], "too old");
    fs::write(root.join("src/new.rs"), "// New.\n").unwrap();
    fails(&["--age"], "too old");
    // Without a changed file, a removed one is no change.
    fs::remove_file(root.join("src/new.rs")).unwrap();
    fs::remove_file(root.join("src/lib.rs")).unwrap();
    assert!(age("0").contains(" 0 of 10 lines"));
}

#[test]
fn profile_of_this_project_covers_most_of_its_lines() {
    printed(train(&file(""), &["--age"]).current_dir(file("")));
}

#[test]
fn a_profile_fits_builds_with_the_same_crates_and_options() {
    let directory = project();
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
