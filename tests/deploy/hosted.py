"""Checks the files that a host of the sources reads: workflows, forms of issues, dependabot, security-insights.yml. hosted.py PROJECT"""
import json, pathlib, re, subprocess, sys, tomllib, yaml

project = pathlib.Path(sys.argv[1])
github = project / ".github"
load = lambda path: yaml.load(path.read_text(), yaml.BaseLoader)


def valid(schema, *files):
    command = [pathlib.Path(sys.executable).parent / "check-jsonschema", "--builtin-schema", f"vendor.{schema}", *files]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return ended.returncode == 0, ended.stdout


def assert_valid(schema, *files):
    assert files
    is_valid, said = valid(schema, *files)
    assert is_valid, said


workflows = sorted((github / "workflows").iterdir())
assert_valid("github-workflows", *workflows)
# Settings of workflows and of dependabot that can be attacked.
audit = [pathlib.Path(sys.executable).parent / "zizmor", "--offline", "--no-progress", "--min-severity=medium", github]
subprocess.run(audit, check=True)
# The rights that a job may have beside reading the sources.
RIGHTS = {
    ("release.yml", "publish"): {"contents": "write", "packages": "write", "id-token": "write", "attestations": "write"},
    ("pages.yml", "publish"): {"contents": "read", "pages": "write", "id-token": "write"},
    ("scorecard.yml", "analysis"): {"contents": "read", "id-token": "write"},
}
for path in workflows:
    workflow = load(path)
    assert workflow["permissions"] in ("", {}, {"contents": "read"}), path
    for line in path.read_text().splitlines():
        if "uses:" in line:
            # A tag can be moved to another commit; a commit cannot.
            assert re.search(r"uses: (\./\S+|[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$", line), f"{path}: {line}"
    for name, job in workflow["jobs"].items():
        rights = job.get("permissions", workflow["permissions"])
        # Absent or wider rights would be those of the token.
        assert rights == RIGHTS.get((path.name, name), {"contents": "read"}), f"{path}: {name}: {rights}"
        assert "uses" in job or "timeout-minutes" in job, f"{path}: {name} may run for six hours"
        for step in job.get("steps", []):
            # The text of an expression becomes a part of the script, whoever wrote it.
            assert "${{" not in step.get("run", ""), f"{path}: {step['run']}"
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] == "false", f"{path}: {name}"
# Nothing that compiles the crates has rights or secrets.
release = load(github / "workflows/release.yml")
assert "secrets" not in json.dumps({name: job for name, job in release["jobs"].items() if name != "publish"})
assert set(release["jobs"]["publish"]["needs"]) == {"check", "build"} and release["jobs"]["check"]["uses"] == "./.github/workflows/check.yml"
assert release["on"] == {"push": {"tags": ["v*"]}}

# The forms.
forms = sorted(it for it in (github / "ISSUE_TEMPLATE").iterdir() if it.name != "config.yml")
assert_valid("github-issue-forms", *forms)
assert_valid("github-issue-config", github / "ISSUE_TEMPLATE/config.yml")
rejected = load(github / "ISSUE_TEMPLATE/rejected-call.yml")["body"]
required = {it["id"] for it in rejected if it.get("validations", {}).get("required") == "true"}
assert {"why", "explain", "version"} <= required, required
for form in forms:
    body = load(form)["body"]
    # Where output is pasted, the form asks to mask it.
    if any("render" in it.get("attributes", {}) for it in body):
        masked = [it for it in body if it["type"] == "checkboxes"]
        assert "public" in body[0]["attributes"]["value"] and masked[0]["attributes"]["options"][0]["required"] == "true", form

# Until Cargo.toml has an address, a placeholder is in its place: deploy/publish publishes none.
package = tomllib.loads((project / "Cargo.toml").read_text())["package"]
address = package.get("repository", "https://countersign.example")
config = load(github / "ISSUE_TEMPLATE/config.yml")
assert config["blank_issues_enabled"] == "false"
assert [it["url"] for it in config["contact_links"]] == [f"{address}/security/policy"], config

# dependabot names the directory of each list, of each image and of the actions.
assert_valid("dependabot", github / "dependabot.yml")
named = {}
for update in load(github / "dependabot.yml")["updates"]:
    named.setdefault(update["package-ecosystem"], set()).update(update.get("directories") or [update["directory"]])
tracked = [project / "Dockerfile", *(it for top in ("deploy", "docs", "fuzz", "tests") for it in (project / top).rglob("*")), project / "Cargo.lock"]
tracked = [it for it in tracked if not {"node_modules", ".tools", "target", "charts"} & set(it.relative_to(project).parts)]
pinned = lambda it: it.suffix == ".yaml" and re.search(r"image: [a-z]+:[0-9]", it.read_text())
LISTS = {
    "cargo": lambda it: it.name == "Cargo.lock",
    "docker": lambda it: it.name == "Dockerfile" or it.name != "compose.yaml" and pinned(it),
    "docker-compose": lambda it: it.name == "compose.yaml",
    "npm": lambda it: it.name == "package-lock.json",
    "pip": lambda it: it.name == "requirements.txt",
    "github-actions": lambda it: it.name == "Dockerfile" and it.parent == project,
}
for ecosystem, is_list in LISTS.items():
    found = {"/" + str(it.parent.relative_to(project)).removeprefix(".") for it in tracked if it.is_file() and is_list(it)}
    assert named.pop(ecosystem) == found, f"{ecosystem}: {found}"
assert not named, named

# security-insights.yml, by the members that its specification requires, knows and gives a form.
CONTACT = {"name": str, "primary": bool, "email?": str, "affiliation?": str, "social?": str}
LINK = {"uri": str, "comment": str}
URL, DATE = re.compile(r"https?://\S+"), re.compile(r"\d{4}-\d{2}-\d{2}")
INSIGHTS = {
    "header": {"schema-version": re.compile(r"2\.\d+\.\d+"), "last-updated": DATE, "last-reviewed": DATE, "url": URL, "comment?": str},
    "project": {
        "name": str, "homepage?": URL, "roadmap?": URL, "administrators": [CONTACT], "repositories": [{"name": str, "comment": str, "url": URL}],
        "vulnerability-reporting": {"reports-accepted": bool, "bug-bounty-available": bool, "policy?": URL, "contact?": CONTACT, "comment?": str},
        "documentation?": {
            f"{name}?": URL for name in
            "design detailed-guide code-of-conduct quickstart-guide release-process support-policy signature-verification".split()
        },
    },
    "repository": {
        "status": re.compile("active|WIP"), "url": URL, "accepts-change-request": bool, "accepts-automated-change-request": bool, "core-team": [CONTACT],
        "license": {"url": URL, "expression": re.compile(package["license"])},
        "documentation?": {f"{name}?": URL for name in "contributing-guide dependency-management-policy governance review-policy security-policy".split()},
        "release?": {"automated-pipeline": bool, "changelog?": URL, "distribution-points": [LINK]},
        "security": {
            "assessments": {"self": {"comment": str, "evidence?": URL, "date?": DATE}},
            "tools?": [{
                "name": str, "type": re.compile("fuzzing|container|secret|SCA|SAST|other"), "rulesets": [str], "comment?": str, "version?": str,
                "integration": {"adhoc": bool, "ci": bool, "release": bool}, "results": {},
            }],
        },
    },
}


def check(value, form, place):
    if isinstance(form, dict):
        known = {name.removesuffix("?") for name in form}
        needed = {name for name in form if not name.endswith("?")}
        assert isinstance(value, dict) and needed <= value.keys() <= known, f"{place}: {value.keys() ^ known}"
        for name, it in value.items():
            check(it, form.get(name, form.get(f"{name}?")), f"{place}.{name}")
    elif isinstance(form, list):
        assert isinstance(value, list) and value, place
        for it in value:
            check(it, form[0], place)
    elif isinstance(form, re.Pattern):
        assert form.fullmatch(str(value)), f"{place}: {value}"
    else:
        assert isinstance(value, form), f"{place}: {value}"


insights = yaml.safe_load((project / "security-insights.yml").read_text())
check(insights, INSIGHTS, "security-insights.yml")
# Its addresses are those of Cargo.toml, and their files are there.
for url in re.findall(r"https?://\S+", re.sub("#.*", "", (project / "security-insights.yml").read_text())):
    assert url.startswith(address), url
    found = re.search(r"/(?:blob|raw)/main/(.*)", url)
    assert not found or (project / found[1]).exists(), url
maintainer = re.fullmatch(r"(.*) <(.*)>", package["metadata"]["deb"]["maintainer"]).groups()
for contact in [*insights["project"]["administrators"], *insights["repository"]["core-team"], insights["project"]["vulnerability-reporting"]["contact"]]:
    assert maintainer == (contact["name"], contact["email"]), contact

# These checks can fail.
wrong = pathlib.Path(sys.argv[2])
for schema, text in [
    ("github-workflows", "on: push\njobs: {a: {runs-on: ubuntu-24.04, permissions: {attestation: write}, steps: [{run: 'true'}]}}\n"),
    ("github-issue-forms", "name: a\ndescription: b\nbody: [{type: text, attributes: {label: c}}]\n"),
    ("dependabot", "version: 2\nupdates: [{package-ecosystem: crates, directory: /, schedule: {interval: weekly}}]\n"),
]:
    wrong.write_text(text)
    assert not valid(schema, wrong)[0], text
