//! The Debian package and the container image, made of this build, installed and run: `tests/run packages`.
//!
//! Promise (Storage and operation): The Debian package installs, starts, reloads, upgrades and is removed; its unit has no
//! capability.
//! Promise (Storage and operation): The image runs not as root on a read-only file system; manifests and chart fit the
//! restricted Pod Security Standard. Also in `tests/deploy/manifests.rs`.
//! Promise (Storage and operation): A release follows its checks, lists its crates, and does not verify with a changed file,
//! list or key. Also in `tests/deploy/release.rs`.

use std::{fs, path::Path, process::Command, sync::Mutex};

use super::{file, printed, read};

const PROGRAM: &str = env!("CARGO_BIN_EXE_countersign");

/// `deploy/package` puts the files of a package into one place.
static PLACE: Mutex<()> = Mutex::new(());

/// A command that needs root and a tool of `tests/.tools`.
fn command(name: &str) -> Command {
    assert!(rustix::process::geteuid().is_root(), "{name} needs root");
    let tools = file("tests/.tools/cargo/bin").display().to_string();
    let mut command = Command::new(name);
    command.env(
        "PATH",
        format!("{tools}:{}", std::env::var("PATH").unwrap()),
    );
    command
}

fn script(path: &str) -> Command {
    command(file(path).to_str().unwrap())
}

#[test]
#[ignore = "needs root and boots a container: tests/run packages"]
fn the_debian_package_installs_starts_upgrades_and_uninstalls() {
    let directory = tempfile::TempDir::new().unwrap();
    let place = PLACE.lock();
    for revision in ["1", "2"] {
        let mut package = script("deploy/package");
        package.arg(PROGRAM).arg(directory.path());
        printed(package.args(["--fast", "--deb-revision", revision]));
    }
    drop(place);
    let version = env!("CARGO_PKG_VERSION");
    let at = |revision: &str| format!("/packages/countersign_{version}-{revision}_amd64.deb");
    fs::copy(
        file("tests/deploy/package.sh"),
        directory.path().join("package.sh"),
    )
    .unwrap();
    let unit = directory.path().join("package.service");
    // As in a shell, a program whose reader has found what it looked for ends without an error.
    let text = format!(
        "[Unit]\nAfter=multi-user.target\nSuccessAction=exit\nFailureAction=exit\nFailureActionExitStatus=1\n\
         [Service]\nType=oneshot\nIgnoreSIGPIPE=no\nStandardOutput=file:/packages/output\nStandardError=inherit\n\
         ExecStart=/bin/bash /packages/package.sh {} {}\n",
        at("1"),
        at("2")
    );
    fs::write(&unit, text).unwrap();
    // A whole Debian with systemd, discarded afterwards.
    let mut machine = command("systemd-nspawn");
    machine
        .args([
            "--quiet",
            "--register=no",
            "--keep-unit",
            "--volatile=overlay",
            "--private-network",
            "--boot",
        ])
        .arg("-D")
        .arg(file("tests/.tools/debian"))
        .arg(format!("--bind={}:/packages", directory.path().display()))
        .arg(format!(
            "--bind-ro={}:/etc/systemd/system/package.service",
            unit.display()
        ))
        .arg("systemd.wants=package.service");
    let ended = machine.output().unwrap();
    let output = fs::read_to_string(directory.path().join("output")).unwrap_or_default();
    assert!(
        ended.status.success(),
        "{output}\n{}",
        String::from_utf8_lossy(&ended.stdout)
    );
}

/// Runs the commands of `docs/verify.md` in a directory.
fn is_verified(directory: &Path) -> bool {
    let page = read("docs/verify.md");
    let (_, commands) = page.split_once("```sh\n").unwrap();
    let (commands, _) = commands.split_once("```").unwrap();
    let mut shell = Command::new("bash");
    let ended = shell
        .args(["-e", "-c", commands])
        .current_dir(directory)
        .output();
    ended.unwrap().status.success()
}

/// Makes a key: the public one in `directory`, the secret one beside it.
fn sign(directory: &Path) {
    let key = directory.with_extension("key");
    let mut generate = Command::new("minisign");
    generate.args(["-G", "-W", "-f", "-p"]);
    printed(
        generate
            .arg(directory.with_extension("pub"))
            .arg("-s")
            .arg(&key),
    );
    let mut sign = Command::new(file("deploy/sign"));
    printed(sign.arg(directory).env("MINISIGN_SECRET_KEY", &key));
    fs::copy(
        directory.with_extension("pub"),
        directory.join("minisign.pub"),
    )
    .unwrap();
}

#[test]
fn the_commands_of_the_page_reject_a_changed_file_list_or_key() {
    let directory = tempfile::TempDir::new().unwrap();
    let release = |name: &str| {
        let release = directory.path().join(name);
        fs::create_dir(&release).unwrap();
        fs::write(release.join("countersign.deb"), "package").unwrap();
        fs::write(release.join("image.tar.gz"), "image").unwrap();
        sign(&release);
        release
    };
    let (ours, theirs) = (release("ours"), release("theirs"));
    assert!(is_verified(&ours));
    let sums = fs::read_to_string(ours.join("SHA256SUMS")).unwrap();

    fs::write(ours.join("image.tar.gz"), "changed").unwrap();
    assert!(!is_verified(&ours), "a file changed");
    let changed = printed(
        Command::new("sha256sum")
            .args(["countersign.deb", "image.tar.gz"])
            .current_dir(&ours),
    );
    fs::write(ours.join("SHA256SUMS"), changed).unwrap();
    assert!(!is_verified(&ours), "a file and the list changed");
    fs::copy(
        theirs.join("SHA256SUMS.minisig"),
        ours.join("SHA256SUMS.minisig"),
    )
    .unwrap();
    assert!(!is_verified(&ours), "a list that another key signed");
    fs::write(ours.join("SHA256SUMS"), sums).unwrap();
    fs::remove_file(ours.join("SHA256SUMS.minisig")).unwrap();
    assert!(!is_verified(&ours), "no signature");
}

/// The list of crates in a program.
fn crates_in(program: &Path) -> Vec<serde_json::Value> {
    let list = tempfile::NamedTempFile::new().unwrap();
    let mut dump = Command::new("objcopy");
    let section = format!(".dep-v0={}", list.path().display());
    let dump = dump.args(["--dump-section", &section]).arg(program);
    printed(dump.arg("/dev/null"));
    let mut python = Command::new("python3");
    let read = "import sys, zlib; print(zlib.decompress(open(sys.argv[1], 'rb').read()).decode())";
    let text = printed(python.args(["-c", read]).arg(list.path()));
    let list: serde_json::Value = serde_json::from_str(&text).unwrap();
    list["packages"].as_array().unwrap().clone()
}

#[test]
fn a_program_gets_the_list_of_its_crates() {
    let directory = tempfile::TempDir::new().unwrap();
    let program = directory.path().join("countersign");
    fs::copy(PROGRAM, &program).unwrap();
    // A list that is there already is replaced.
    for _ in 0..2 {
        printed(script("deploy/add-crates").arg(&program));
    }
    let version = printed(Command::new(&program).arg("--version"));
    assert_eq!(
        version.trim(),
        concat!("countersign ", env!("CARGO_PKG_VERSION"))
    );
    let crates = crates_in(&program);
    let named = |name: &str| crates.iter().find(|it| it["name"] == name);
    assert_eq!(named("proptest"), None);
    assert_eq!(named("cc").unwrap()["kind"], "build");
    let rustls = named("rustls").unwrap();
    assert_eq!(
        (&rustls["kind"], &rustls["source"]),
        (&serde_json::Value::Null, &"crates.io".into())
    );
    let roots = Vec::from_iter(crates.iter().filter(|it| it["root"] == true));
    let [root] = roots[..] else {
        panic!("{roots:?}")
    };
    assert_eq!(root["name"], "countersign");
    let mut needed = root["dependencies"].as_array().unwrap().iter();
    let at = |index: &serde_json::Value| &crates[usize::try_from(index.as_u64().unwrap()).unwrap()];
    assert!(needed.any(|index| at(index) == rustls));
}

#[test]
fn a_release_says_why_an_ignored_weakness_does_not_matter() {
    let directory = tempfile::TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("deploy")).unwrap();
    fs::copy(file("deploy/sbom"), at("deploy/sbom")).unwrap();
    for name in ["Cargo.toml", "Cargo.lock", "src", "benches"] {
        std::os::unix::fs::symlink(file(name), at(name)).unwrap();
    }
    let rules = read("deny.toml");
    let vex = |ignored: &str| {
        let changed = rules.replace("\nignore = []\n", &format!("\nignore = [{ignored}]\n"));
        assert_ne!(changed, rules);
        fs::write(at("deny.toml"), changed).unwrap();
        let ended = Command::new(at("deploy/sbom")).arg("vex").output().unwrap();
        serde_json::from_slice::<serde_json::Value>(&ended.stdout)
            .map_err(|_| String::from_utf8(ended.stderr).unwrap())
    };
    let told = vex(
        r#"{ id = "RUSTSEC-2026-0001", reason = "not affected: it is not called; ends with a 2.0" },
        { id = "RUSTSEC-2026-0002", reason = "affected: a caller can stop one worker; ends with b 3.1" },
        { crate = "c@1.0.0", reason = "was taken back" }"#,
    )
    .unwrap();
    let component = &told["metadata"]["component"]["bom-ref"];
    let known = told["vulnerabilities"].as_array().unwrap();
    let states = known.iter().map(|it| {
        assert_eq!(it["affects"][0]["ref"], *component);
        (it["id"].as_str().unwrap(), &it["analysis"])
    });
    let analysis =
        |state: &str, detail: &str| serde_json::json!({ "state": state, "detail": detail });
    assert_eq!(
        Vec::from_iter(states),
        [
            (
                "RUSTSEC-2026-0001",
                &analysis("not_affected", "it is not called; ends with a 2.0")
            ),
            (
                "RUSTSEC-2026-0002",
                &analysis(
                    "exploitable",
                    "a caller can stop one worker; ends with b 3.1"
                )
            )
        ]
    );
    for unexplained in [
        "'RUSTSEC-2026-0001'",
        "{ id = 'RUSTSEC-2026-0001' }",
        "{ id = 'RUSTSEC-2026-0001', reason = 'ends with a 2.0' }",
        "{ id = 'RUSTSEC-2026-0001', reason = 'not affected: ' }",
    ] {
        let complaint = vex(unexplained).unwrap_err();
        assert!(
            complaint.contains("the reason of RUSTSEC-2026-0001"),
            "{complaint}"
        );
    }
}

#[test]
#[ignore = "builds the program twice: tests/run packages"]
fn the_plain_build_is_the_same_in_two_directories() {
    let sum = printed(&mut script("deploy/reproduce"));
    assert_eq!(sum.trim().len(), 64, "{sum}");
}

#[test]
#[ignore = "needs a cross compiler and qemu-user: tests/run packages"]
fn image_for_another_machine_has_its_programs_libraries() {
    let directory = tempfile::TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    let text = "#include <math.h>\n#include <stdio.h>\nint main(int n, char **_) { printf(\"%.0f\\n\", floor(n + 0.5)); }\n";
    fs::write(at("program.c"), text).unwrap();
    let mut compiler = Command::new("aarch64-linux-gnu-gcc");
    compiler.args(["-o", "program", "program.c", "-lm"]);
    printed(compiler.current_dir(directory.path()));
    let mut rootfs = script("deploy/rootfs");
    let rootfs = rootfs.current_dir(file("")).arg(at("program"));
    printed(rootfs.arg(at("root")));
    let mut qemu = Command::new("qemu-aarch64");
    let printed = printed(
        qemu.arg("-L")
            .arg(at("root"))
            .arg(at("root/usr/local/bin/countersign")),
    );
    assert_eq!(printed, "1\n");
}

#[test]
#[ignore = "needs root and cargo-deb: tests/run packages"]
fn a_release_has_all_its_files() {
    let directory = tempfile::TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    let place = PLACE.lock();
    // A program that is not optimized is larger than a release may be.
    let mut release = script("deploy/release");
    printed(
        release
            .env("IMAGE_LIMIT", "99999999")
            .arg(PROGRAM)
            .arg(at("release"))
            .arg("--fast"),
    );
    assert!(!crates_in(&file("target/package/countersign")).is_empty());
    drop(place);
    let version = env!("CARGO_PKG_VERSION");
    let mut check = Command::new("sha256sum");
    let checked = printed(
        check
            .args(["--check", "SHA256SUMS"])
            .current_dir(at("release")),
    );
    assert_eq!(checked.lines().count(), 5, "{checked}");
    sign(&at("release"));
    assert!(is_verified(&at("release")));
    let bill = fs::read_to_string(at(&format!("release/countersign-{version}.cdx.json"))).unwrap();
    let bill: serde_json::Value = serde_json::from_str(&bill).unwrap();
    let names: Vec<&str> = bill["components"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"rustls") && !names.contains(&"proptest"),
        "{names:?}"
    );
}

#[test]
fn the_image_and_the_unit_set_a_tunable_that_glibc_knows() {
    let libraries = printed(Command::new("ldd").arg(PROGRAM));
    let loader = libraries
        .split_whitespace()
        .find(|word| word.contains("/ld-linux"))
        .unwrap();
    for (path, before) in [
        ("Dockerfile", "ENV "),
        ("deploy/countersign.service", "Environment="),
    ] {
        let text = read(path);
        let mut sets = text.lines().filter_map(|line| line.strip_prefix(before));
        let set = sets.find_map(|set| set.split_once("GLIBC_TUNABLES="));
        // glibc passes over a name that it does not know.
        let mut list = Command::new(loader);
        list.arg("--list-tunables");
        let tunables = printed(list.env("GLIBC_TUNABLES", set.unwrap().1));
        assert!(tunables.contains("tcache_count: 0x40 "), "{tunables}");
    }
}

#[test]
fn the_unit_starts_the_service_again_without_end() {
    let unit = read("deploy/countersign.service");
    for line in [
        "StartLimitIntervalSec=0",
        "Restart=on-failure",
        "RestartSec=2",
    ] {
        assert!(unit.lines().any(|it| it == line), "{line}");
    }
}

#[test]
#[ignore = "needs root and buildah: tests/run packages"]
fn the_image_runs_without_root_and_on_a_read_only_root() {
    let directory = tempfile::TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    let large = script("deploy/image")
        .env("IMAGE_LIMIT", "1048576")
        .args([Path::new(PROGRAM), &at("large.tar")])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&large.stderr);
    assert!(told.contains("more than 1048576;"), "{told}");
    assert!(!large.status.success() && !at("large.tar").exists());
    // A program that is not optimized is larger than an image may be.
    let mut image = script("deploy/image");
    image.env("IMAGE_LIMIT", "99999999");
    printed(image.args([Path::new(PROGRAM), &at("image.tar")]));
    let unpack = |archive: &Path, into: &Path| {
        fs::create_dir_all(into).unwrap();
        printed(
            Command::new("tar")
                .arg("-xf")
                .arg(archive)
                .arg("-C")
                .arg(into),
        );
    };
    unpack(&at("image.tar"), directory.path());
    let read_json = |name: &str| {
        serde_json::from_slice::<serde_json::Value>(&fs::read(at(name)).unwrap()).unwrap()
    };
    let manifest = &read_json("manifest.json")[0];
    let config = &read_json(manifest["Config"].as_str().unwrap())["config"];
    assert_eq!(config["User"], "10001:10001");
    assert_eq!(config["Entrypoint"], serde_json::json!(["countersign"]));
    assert_eq!(
        config["Healthcheck"]["Test"],
        serde_json::json!(["CMD", "countersign", "health", "--ready"])
    );
    let environment: Vec<&str> = config["Env"]
        .as_array()
        .unwrap()
        .iter()
        .map(|variable| variable.as_str().unwrap())
        .collect();
    let layers = manifest["Layers"].as_array().unwrap();
    assert_eq!(layers.len(), 1);
    unpack(&at(layers[0].as_str().unwrap()), &at("root"));
    let root = at("root");
    let files = printed(
        Command::new("find")
            .arg(&root)
            .args(["-type", "f", "-printf", "%P\n"]),
    );
    for name in files.lines() {
        let is_known = name.starts_with("etc/")
            || name == "usr/local/bin/countersign"
            || name.starts_with("usr/share/doc/countersign/")
            || name.contains(".so.");
        assert!(is_known, "{name}");
    }
    let size: u64 = files
        .lines()
        .map(|name| root.join(name).metadata().unwrap().len())
        .sum();
    let program = root
        .join("usr/local/bin/countersign")
        .metadata()
        .unwrap()
        .len();
    // deploy/image accepts no program larger than 25 MiB; the program of a release has nearly 20 MiB.
    assert!(size - program < 5 << 20, "{}", size - program);
    for (name, part) in [
        ("LICENSE", "Apache License"),
        ("NOTICE", "Django"),
        ("THIRD-PARTY", "rustls "),
    ] {
        let text = fs::read_to_string(root.join("usr/share/doc/countersign").join(name));
        assert!(text.unwrap().contains(part), "{name}");
    }
    assert!(!crates_in(&root.join("usr/local/bin/countersign")).is_empty());
    let readme = read("README.md");
    let (_, shown) = readme.split_once("```toml\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    fs::write(root.join("etc/countersign/config.toml"), shown).unwrap();
    printed(
        command("unshare")
            .args(["--mount", "--net", "env"])
            .args(environment.iter().filter(|set| !set.starts_with("PATH=")))
            .arg(file("tests/deploy/image.sh"))
            .arg(&root),
    );
}
