"""Runs tests/run with stand-ins for all that installs and builds, with and without a terminal: running.py PROJECT"""
import os, pathlib, pty, re, shutil, subprocess, sys, tempfile

project = pathlib.Path(sys.argv[1])
place = tempfile.TemporaryDirectory()
home = pathlib.Path(place.name)

# A machine without any of the programs of the lists.
bin = home / "bin"
bin.mkdir()
for name in "basename bash cat chmod cmp comm cp dirname env find grep id ln mkdir nproc rm sed sh sort tee".split():
    (bin / name).symlink_to(shutil.which(name))
(bin / "stand-in").write_text(f"""#!/bin/bash
name=${{0##*/}}
[ "$name" != sudo ] || exec "$@"
echo "$name $*" >>"$LOG"
case "$name $*" in
    "debconf-set-selections "*) cat >/dev/null ;;
    "apt-get install "*) [ -x "$POLICY_RC_D" ] ;;
    "python3 -m venv "*) mkdir -p "$3/bin" && ln -s "{bin}/python" "$3/bin/python" ;;
    "npm ci --prefix "*) mkdir "$3/node_modules" ;;
    "cargo test "*) [ -n "$RUST_TEST_THREADS" ] ;;
esac
""")
(bin / "stand-in").chmod(0o755)
for name in "apt-get cargo debconf-set-selections npm python python3 rustup sudo".split():
    (bin / name).symlink_to("stand-in")


def copy(directory, names):
    for name in names:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(project / name, directory / name)


LISTS = ["tests/clients/python/requirements.txt", "tests/deploy/requirements.txt", "tests/providers/python/requirements.txt",
         "tests/providers/python/keystone/requirements.txt"]
LISTS += [f"tests/{name}/{file}" for name in ("clients/collections", "clients/node", "providers/node") for file in ("package.json", "package-lock.json")]
NPM_OPTIONS = "tests/clients/node/.npmrc"
# A suite of tests/suites.rs, or a program of its own.
SUITES = {it.parent.name: f"tests/{it.parent.name}/{it.name}" for it in (project / "tests").glob("*/m*.rs") if it.name in ("mod.rs", "main.rs")}
del SUITES["support"]


def fresh():
    directory = pathlib.Path(tempfile.mkdtemp(dir=home))
    copy(directory, ["tests/run", *LISTS, *SUITES.values()])
    return directory


class Run:
    """A run in a directory. With an answer it has a terminal, and gets the answer to each question."""

    def __init__(self, *arguments, directory=None, answer=None):
        self.directory = directory or fresh()
        log = self.directory / "log"
        log.write_text("")
        environment = {"PATH": str(bin), "HOME": str(home), "LOG": str(log), "POLICY_RC_D": str(self.directory / "policy")}
        command = [self.directory / "tests/run", *arguments]
        if answer is None:
            ended = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            self.said = ended.stderr
        else:
            ours, theirs = pty.openpty()
            os.write(ours, answer.encode())
            with subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs) as ended:
                os.close(theirs)
                said = b""
                while True:
                    try:
                        part = os.read(ours, 4096)
                    except OSError:
                        break
                    if not part:
                        break
                    said += part
            self.said = said.decode()
        self.code = ended.returncode
        self.calls = log.read_text().splitlines()
        self.questions = self.said.count("[y/N]")
        assert not (self.directory / "policy").exists(), "services may not start after this"

    def has(self, start):
        return [call for call in self.calls if call.startswith(start)]


TESTS = "cargo test --locked --no-fail-fast "
# On a terminal nothing is installed before an answer.
for answer in ["n\n", "\n"]:
    no = Run(answer=answer)
    # python3 is only asked for parts that it may have.
    assert no.code == 1 and no.questions == 1 and not [it for it in no.calls if not it.startswith("python3 -c")], (no.said, no.calls)
for part in ["clocks of tests: openssl curl faketime", "stores: redis-server redis-sentinel", *(it for it in LISTS if "package.json" not in it), "tests/run quick needs none"]:
    assert part in re.sub(r"\s+", " ", no.said), (part, no.said)
# It says all before it asks.
assert no.said.index("quick needs none") < no.said.index("[y/N]")
yes = Run(answer="y\n")
assert yes.code == 0 and yes.questions == 1, yes.said
named = {package for line in yes.said.splitlines() for package in (re.match(r"tests/run:   .*?: (.*)", line) or [None, ""])[1].split()}
(installed,) = yes.has("apt-get install")
assert set(installed.split("--no-install-recommends ")[1].split()) == named and len(named) > 10, (installed, named)
assert len(yes.has("python -m pip install")) == 3 and len(yes.has("npm ci")) == 3, yes.calls
assert yes.calls[-1].strip() == TESTS.strip(), yes.calls
# What is there is not installed again; a changed list is.
again = Run("--test", "suites", "attacks::host", directory=yes.directory)
assert not again.has("python -m pip") and not again.has("npm ci") and again.calls[-1] == TESTS + "--test suites attacks::host", again.calls
with open(yes.directory / "tests/deploy/requirements.txt", "a") as file:
    file.write("\n")
assert len(Run(directory=yes.directory).has("python -m pip")) == 1
# Without a terminal, as .ci/run is hosted, and with --yes it goes on.
for run in [Run(), Run("--yes", answer="n\n")]:
    assert run.code == 0 and run.questions == 0 and run.has("apt-get install") and run.has(TESTS.strip()), (run.said, run.calls)

# quick installs nothing, asks nothing, and says what it leaves out.
quick = Run("quick", "some", "names", answer="n\n")
assert quick.code == 0 and quick.questions == 0, quick.said
build, sources, suites = quick.calls
assert build == "cargo test --locked --no-run --lib --test layers --test suites" and sources == TESTS + "--lib --test layers some names", quick.calls
words = suites.removeprefix(TESTS).split(" ")
assert words[:5] == ["--test", "suites", "some", "names", "--"] and all(word.startswith("--skip=") for word in words[5:]), suites
skipped = [word.removeprefix("--skip=") for word in words[5:]]
assert all(word in quick.said for word in skipped)
run = {suite for suite in SUITES if f"{suite}::" not in skipped}
assert run == {"commands", "vectors"} and all(f" {suite}" in quick.said for suite in SUITES.keys() - run), quick.said
# A test of these suites, or a file of tests, that starts another program is left out, and no other one. A Debian has these two.
program = r"Command::new\(\"(?!setsid|script)|\.tools/"
for source in (it for suite in run for it in (project / "tests" / suite).glob("*.rs")):
    file = f"{source.parent.name}::{source.stem}"
    head, *tests = source.read_text().split("#[test]")
    if not tests:
        continue
    assert bool(re.search(program, head)) == (file in skipped), f"{source}: `without` of tests/run has the files that start other programs"
    for test in [] if file in skipped else tests:
        name = re.match(r"\s*fn (\w+)", test)
        starts_another = re.search(program + r"|Api::\w+\(\)|\b(Postgres|Redis|Browser|rsa_key)\b", test)
        is_skipped = bool(name) and any(word in f"{file}::{name[1]}" for word in skipped)
        assert bool(starts_another) == is_skipped, f"{source}: {name}; `without` of tests/run has the tests that start other programs"

# Only an installation: of what the tests need, or of what deploy/release needs.
install = Run("install")
assert install.code == 0 and install.has("apt-get install") and not install.has("cargo"), install.calls
release = Run("install", "release")
(installed,) = release.has("apt-get install")
assert "buildah" in installed and "chromium" not in installed and not release.has("npm") and not release.has(TESTS.strip()), installed
assert release.has("cargo install --quiet --locked cargo-deb") and release.has("rustup target add aarch64-unknown-linux-gnu"), release.calls
unknown = Run("install", "everything")
assert unknown.code == 2 and not unknown.calls, unknown.calls

# The container has the files that the installation reads, before the sources.
container = (project / "tests/Dockerfile").read_text()
before, after = container.split("RUN tests/run install\n")
assert "COPY . .\n" in after and 'ENTRYPOINT ["tests/run"]' in after
directory = home / "container"
copy(directory, [name for line in before.splitlines() if line.startswith("COPY ") for name in line.split()[1:-1]])
assert sorted(str(it.relative_to(directory)) for it in directory.rglob("*") if it.is_file()) == sorted(["tests/run", NPM_OPTIONS, *LISTS])
assert Run("install", directory=directory).code == 0
