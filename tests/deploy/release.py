"""Runs the steps of .github/workflows/release.yml in order, in a copy of the project, with stand-ins for all programs that build, sign or
publish: release.py PROJECT. Prints what the stand-ins were called with. Each call in the log begins with its job."""
import concurrent.futures, hashlib, os, pathlib, re, shutil, subprocess, sys, tempfile, tomllib, yaml

project = pathlib.Path(sys.argv[1])
version = tomllib.loads((project / "Cargo.toml").read_text())["package"]["version"]
place = tempfile.TemporaryDirectory()
home = pathlib.Path(place.name)
REGISTRY = "registry.test:5000/team"
PASSWORD = "a password that no argument shows"

# The sources, in which all is set that a release needs.
sources = home / "sources"
sources.mkdir()
for name in ["Cargo.lock", "Cargo.toml", "Dockerfile", "LICENSE", "NOTICE", "benches", "config.example.toml", "config.schema.json", "deny.toml", "deploy", "docs", "src", ".github"]:
    (shutil.copytree if (project / name).is_dir() else shutil.copy)(project / name, sources / name)
for pattern in ["*.md", "*.yml"]:
    for file in project.glob(pattern):
        shutil.copy(file, sources)
(sources / "tests").mkdir()
shutil.copy(project / "tests/run", sources / "tests")
(sources / ".ci").mkdir()
(sources / ".ci/run").write_text("#!/bin/sh\nexec checks\n")
(sources / ".ci/run").chmod(0o755)


def change(path, *changes):
    text = (sources / path).read_text()
    for old, new in changes:
        text = text.replace(old, new)
    (sources / path).write_text(text)


for file in [*sources.glob("*.md"), *sources.glob("*.yml"), sources / "Cargo.toml", *(sources / ".github").rglob("*"), *(sources / "deploy/charts").rglob("*")]:
    if file.is_file():
        change(file.relative_to(sources), ("countersign.example", "countersign.test"))
change("CHANGELOG.md", ("Not released yet.", "The first release."))
# The profile of the guided build is not what is tried here.
(sources / "deploy/profile/made-with").write_text(subprocess.check_output([sources / "deploy/train", "--key"], text=True))
(sources / "deploy/profile/made-of").write_text(
    "".join(f"{hashlib.sha256(it.read_bytes()).hexdigest()}  {it.relative_to(sources)}\n" for it in (sources / "src").rglob("*.rs"))
)

# A program that has the commands that the scripts call.
program = home / "countersign"
(home / "countersign.c").write_text(f"""#include <stdio.h>
#include <string.h>
int main(int count, char **word) {{
    char path[4096];
    if (count == 2 && !strcmp(word[1], "--version")) puts("countersign {version}");
    else if (count == 3 && !strcmp(word[1], "man")) {{
        snprintf(path, sizeof path, "%s/countersign.1", word[2]);
        FILE *page = fopen(path, "w");
        return !page || fclose(page);
    }} else if (count == 3 && !strcmp(word[1], "completions")) puts("complete");
    else return 1;
}}
""")
subprocess.run(["cc", "-o", program, home / "countersign.c"], check=True)

# The stand-ins: each writes its name and arguments into the log, and fails if a test wants this call to fail.
bin = home / "bin"
bin.mkdir()
(bin / "stand-in").write_text(f"""#!{sys.executable}
import hashlib, os, pathlib, re, shutil, subprocess, sys
name, words = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
after = lambda option: words[words.index(option) + 1]
target = lambda: pathlib.Path(after("--target-dir") if "--target-dir" in words else "target")
if name == "cargo" and words[0] == "metadata":
    os.execv({shutil.which("cargo")!r}, ["cargo", *words])
if name == "sudo":
    os.execvp(words[0], words)
if name == "debconf-set-selections":
    sys.stdin.read()
if name in ("chown", "debconf-set-selections"):
    sys.exit()
line = re.sub(r"/tmp/tmp[.]\\w+$|/tmp/[^ ,:]*/|countersign-[0-9.]+-\\d+$|(?<=localhost/)\\S+", "", " ".join([name, *words])).rstrip()
with open(os.environ["LOG"], "a") as log:
    log.write(os.environ["JOB"] + ": " + line + "\\n")
if os.environ["FAILS"] and re.match(os.environ["FAILS"], line):
    sys.exit(f"{{name}} fails, as the test wants")
digest = "sha256:" + hashlib.sha256(line.encode()).hexdigest()
match name, words:
    case "cargo", ["build", *_]:
        place = target() / after("--target") / after("--profile")
        place.mkdir(parents=True)
        shutil.copy({str(program)!r}, place / "countersign")
    case "cargo", ["deb", *_]:
        (pathlib.Path(after("--output")) / "countersign_{version}-1_amd64.deb").write_text("package")
    case "buildah", ["from", "scratch"]:
        print("working-container")
    case "buildah", ["commit", *_]:
        pathlib.Path(words[-1].split(":")[1]).write_text(f"image {{words[-1]}}")
    case "buildah", ["manifest", "push", *_]:
        pathlib.Path(after("--digestfile")).write_text(digest)
    case "buildah", ["login", *_]:
        assert sys.stdin.read() == {PASSWORD!r} + "\\n"
    case "helm", ["package", chart, "--destination", place]:
        assert "{REGISTRY}/countersign" in (pathlib.Path(chart) / "values.yaml").read_text()
        assert "artifacthub.io/changes" in (pathlib.Path(chart) / "Chart.yaml").read_text()
        (pathlib.Path(place) / "countersign-{version}.tgz").write_text("chart")
    case "helm", ["push", *_]:
        print(f"Pushed: {{words[-1]}}\\nDigest: {{digest}}", file=sys.stderr)
    case "cosign", ["sign-blob", *_]:
        pathlib.Path(after("--bundle")).write_text("bundle")
    case "minisign", _:
        assert "a secret key" in pathlib.Path(after("-s")).read_text()
        pathlib.Path(after("-m") + ".minisig").write_text("signature")
    case "gh", _:
        assert pathlib.Path(after("--notes-file")).read_text().strip()
        assert os.environ["GH_TOKEN"] == "token of the host"
    case "qemu-aarch64", ["-L", _, program, *rest]:
        os.execv(program, [program, *rest])
""")
(bin / "stand-in").chmod(0o755)
STANDS_IN = "cargo rustup buildah helm cosign minisign gh sudo apt-get chown debconf-set-selections checks attest dpkg-shlibdeps aarch64-linux-gnu-gcc aarch64-linux-gnu-g++ qemu-aarch64"
for name in STANDS_IN.split():
    (bin / name).symlink_to("stand-in")

PUBLISHES = re.compile(r"\w+: (cosign|gh|attest|helm push|buildah (login|manifest push))\b")
workflow = lambda path: yaml.load((sources / path).read_text(), yaml.BaseLoader)


class Run:
    """A run of a workflow for a tag. `kept` has the artifacts of an earlier run, whose jobs are not run again."""

    def __init__(self, tag=f"v{version}", registry=REGISTRY, fails="", key="a secret key", kept=None):
        self.directory = pathlib.Path(tempfile.mkdtemp(dir=home))
        self.log, self.output = self.directory / "log", self.directory / "output"
        self.log.write_text("")
        self.artifacts, self.done, self.error = {}, {}, ""
        self.context = {
            "vars.REGISTRY": registry, "secrets.MINISIGN_KEY": key, "secrets.REGISTRY_USER": "", "secrets.REGISTRY_PASSWORD": PASSWORD,
            "github.actor": "maintainer", "github.token": "token of the host", "github.repository": "team/countersign",
        }
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("CARGO_TARGET", "COUNTERSIGN", "MINISIGN", "REGISTRY", "GITHUB"))},
            "LC_ALL": "C", "PATH": f"{bin}:{os.environ['PATH']}", "LOG": str(self.log), "FAILS": fails, "GITHUB_REF_NAME": tag, "GITHUB_OUTPUT": str(self.output),
            "POLICY_RC_D": str(self.directory / "policy"),
        }
        if kept:
            self.artifacts = kept.artifacts
            self.done = {name: True for name in kept.done if name != "publish"}
        self.jobs(workflow(".github/workflows/release.yml"))
        self.calls = self.log.read_text().splitlines()
        self.succeeded = all(self.done.values())

    def value(self, text):
        """The text with its expressions replaced: names of the context, and the first of several that is not empty."""
        first = lambda found: next(filter(None, (self.context.get(name.strip(), "") for name in found[1].split("||"))), "")
        return re.sub(r"\$\{\{(.*?)\}\}", first, text)

    def jobs(self, text, outside={}):
        waiting = dict(text["jobs"])
        while waiting:
            needs = lambda job: [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
            name = next(name for name, job in waiting.items() if not set(needs(job)) & waiting.keys())
            job = waiting.pop(name)
            if name in self.done and not outside:
                continue
            environment = {**outside, **text.get("env", {}), **job.get("env", {})}
            if not all(self.done[it] for it in needs(job)):
                self.done[name] = False
            elif "uses" in job:
                called = workflow(job["uses"])
                assert "workflow_call" in called["on"]
                before = dict(self.done)
                self.jobs(called, {"IS_CALLED": "1"})
                self.done = before | {name: all(it for one, it in self.done.items() if one not in before)}
            else:
                workspace = self.directory / name
                workspace.mkdir()
                self.done[name] = all(self.step(name, workspace, step, environment) for step in job["steps"])

    def step(self, job, workspace, step, environment):
        environment = {**environment, **step.get("env", {})}
        environment = {**self.environment, **{name: self.value(text) for name, text in environment.items()}, "JOB": job}
        if "run" in step:
            shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            ended = subprocess.run(shell, cwd=workspace, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.error += ended.stdout
            if "id" in step and self.output.exists():
                for line in self.output.read_text().splitlines():
                    name, text = line.split("=", 1)
                    self.context[f"steps.{step['id']}.outputs.{name}"] = text
            return ended.returncode == 0
        options = {name: self.value(text) for name, text in step.get("with", {}).items()}
        match step["uses"].split("@")[0]:
            case "actions/checkout":
                # No step writes to these.
                share = lambda source, target: (os.link if re.match(f"{sources}/(benches|docs|src)/", source) else shutil.copy)(source, target)
                shutil.copytree(sources, workspace, copy_function=share, dirs_exist_ok=True)
            case "actions/upload-artifact":
                self.artifacts[options["name"]] = workspace / options["path"]
            case "actions/download-artifact":
                shutil.copytree(self.artifacts[options["name"]], workspace / options["path"])
            case "sigstore/cosign-installer":
                pass
            case "actions/attest":
                if "subject-checksums" in options:
                    assert (workspace / options["subject-checksums"]).exists()
                words = [f"{name}={text}" for name, text in options.items()]
                ended = subprocess.run([bin / "attest", *words], env=environment, stderr=subprocess.PIPE, text=True)
                self.error += ended.stderr
                return ended.returncode == 0
            case other:
                raise AssertionError(f"{other} has no stand-in")
        return True


def fails(reason, **options):
    run = Run(**options)
    assert not run.succeeded and reason in run.error, f"{options}: {run.error}"
    return run


def at_once(do, several):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return list(pool.map(do, several))


whole = Run()
assert whole.succeeded, "\n".join([*whole.calls, whole.error])
digests = re.findall(r"sha256:[0-9a-f]{64}", (whole.directory / "output").read_text())
assert len(set(digests)) == 2, digests
image, chart = digests
calls = [re.sub(r"sha256:[0-9a-f]{64}", lambda found: "IMAGE" if found[0] == image else "CHART", line) for line in whole.calls]
print("\n".join(calls))

# The check comes before what is published, and so do both builds.
at = lambda start: next(number for number, line in enumerate(calls) if line.startswith(start))
first = min(number for number, line in enumerate(calls) if PUBLISHES.match(line))
for start in ["run: checks", "build: rustup target add aarch64-unknown-linux-gnu", "build: cargo install", "build: cargo build", "build: cargo deb", "build: buildah commit", "build: qemu-aarch64"]:
    assert at(start) < first, start
assert len([line for line in calls if line.startswith("build: cargo build")]) == 2, calls
published = [line for line in calls if line.startswith("publish: ")]
assert published == [
    f"publish: {line}"
    for line in [
        "apt-get update -q",
        "apt-get install -q -y --no-install-recommends buildah minisign",
        "minisign -S -s key -t files of dist -m SHA256SUMS",
        "cosign sign-blob --yes --bundle dist/SHA256SUMS.sigstore.json dist/SHA256SUMS",
        "attest subject-checksums=dist/SHA256SUMS",
        "buildah login --username maintainer --password-stdin registry.test:5000",
        "helm package countersign --destination",
        "buildah manifest create localhost/",
        f"buildah manifest add localhost/ docker-archive:countersign-{version}-aarch64-linux-image.tar",
        f"buildah manifest add localhost/ docker-archive:countersign-{version}-x86_64-linux-image.tar",
        f"buildah manifest push --all --format v2s2 --digestfile digest localhost/ docker://{REGISTRY}/countersign:{version}",
        f"cosign sign --yes --recursive {REGISTRY}/countersign@IMAGE",
        f"helm push countersign-{version}.tgz oci://{REGISTRY}/charts",
        f"cosign sign --yes {REGISTRY}/charts/countersign@CHART",
        "buildah manifest rm localhost/",
        f"attest subject-name={REGISTRY}/countersign subject-digest=IMAGE",
        f"gh release create v{version} --verify-tag --title countersign {version} --notes-file notes "
        + " ".join(f"dist/{name}" for name in sorted(it.name for it in (whole.directory / "publish/dist").iterdir())),
    ]
], "\n".join(published)
names = {it.name for it in (whole.directory / "publish/dist").iterdir()}
assert names == {
    f"countersign_{version}-1_amd64.deb", f"countersign-{version}-x86_64-linux.tar.gz", f"countersign-{version}.cdx.json", f"countersign-{version}.vex.cdx.json",
    f"countersign-{version}-x86_64-linux-image.tar.gz", f"countersign-{version}-aarch64-linux-image.tar.gz",
    "SHA256SUMS", "SHA256SUMS.minisig", "SHA256SUMS.sigstore.json",
}, names
assert PASSWORD not in whole.error + "".join(whole.calls) and "a secret key" not in whole.error

# Nothing is published after a failure: of a check, of a build, and of each call that publishes.
for run in at_once(lambda start: fails("as the test wants", fails=start), ["checks", "cargo build", "buildah commit", "qemu-aarch64"]):
    assert not [line for line in run.calls if PUBLISHES.match(line) or line.startswith("publish: ")], run.calls
starts = {" ".join(line.split(" ")[1:4]) for line in whole.calls if line.startswith("publish: ")}
starts = sorted(starts - {"buildah manifest rm"})
for start, run in zip(starts, at_once(lambda start: Run(fails=re.escape(start), kept=whole), starts)):
    calls = [line.removeprefix("publish: ") for line in run.calls]
    failed = next(number for number, line in enumerate(calls) if line.startswith(start))
    rest = [line for line in calls[failed + 1 :] if not line.startswith("buildah manifest rm")]
    assert not run.succeeded and "as the test wants" in run.error, start
    assert not rest, f"{start}: {rest}"

# The first step names what is not ready, before anything runs.
ready = {name: (sources / name).read_text() for name in ["Cargo.toml", "CHANGELOG.md", ".github/ISSUE_TEMPLATE/config.yml"]}
for reason, changes, options in [
    (f"the tag is v9.9.9, and Cargo.toml has version {version}", {}, {"tag": "v9.9.9"}),
    (f"the tag is v{version}, and Cargo.toml has version 9.9.9", {"Cargo.toml": (f'version = "{version}"', 'version = "9.9.9"')}, {}),
    (f"CHANGELOG.md has no changes of {version}", {"CHANGELOG.md": (f"## {version}\n", f"## {version}-next\n")}, {}),
    (f"CHANGELOG.md calls {version} not released", {"CHANGELOG.md": ("The first release.", "Not released yet.")}, {}),
    ("REGISTRY is '', not a registry", {}, {"registry": ""}),
    ("REGISTRY is 'registry.test/Team', not a registry", {}, {"registry": "registry.test/Team"}),
    ("set maintainer and repository in Cargo.toml, and their places in Cargo.toml", {"Cargo.toml": ("countersign.test", "countersign.example")}, {}),
    ("and their places in .github/ISSUE_TEMPLATE/config.yml", {".github/ISSUE_TEMPLATE/config.yml": ("countersign.test", "countersign.example")}, {}),
]:
    for path, text in changes.items():
        change(path, text)
        assert (sources / path).read_text() != ready[path], path
    run = fails(reason, **options)
    assert run.calls == [], run.calls
    for path, text in ready.items():
        (sources / path).write_text(text)

# A key that is not set, and a file that changed after the build.
assert not [it for it in fails("neither MINISIGN_SECRET_KEY nor MINISIGN_KEY", key="", kept=whole).calls if PUBLISHES.match(it)]
(whole.artifacts["dist"] / f"countersign-{version}.cdx.json").write_text("{}")
assert not [it for it in fails("FAILED", kept=whole).calls if PUBLISHES.match(it)]
