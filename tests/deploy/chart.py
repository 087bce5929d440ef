"""Compares the chart of a directory with a kustomization, and tries its schema of values: chart.py CHART KUSTOMIZATION

Helm renders it where it is installed. Otherwise the function here does, which knows what the templates use: values, `if`,
`sha256sum` and `toJson`."""
import hashlib, json, pathlib, re, shutil, subprocess, sys, yaml
import jsonschema, kubernetes_validate

chart, kustomization = map(pathlib.Path, sys.argv[1:])
schema = json.loads((chart / "values.schema.json").read_text())
jsonschema.Draft7Validator.check_schema(schema)
FUNCTIONS = {"sha256sum": lambda value: hashlib.sha256(value.encode()).hexdigest(), "toJson": json.dumps}


def value(values, expression):
    path, *functions = [part.strip() for part in expression.split("|")]
    for name in path.removeprefix(".Values.").split("."):
        values = values[name]
    for function in functions:
        values = FUNCTIONS[function](values)
    return values


def render(values):
    """The objects of the chart with these values on top of its own."""
    if helm := shutil.which("helm"):
        options = [f"--set-json={name}={json.dumps(it)}" for name, it in values.items()]
        text = subprocess.run([helm, "template", "countersign", chart, *options], check=True, stdout=subprocess.PIPE, text=True).stdout
        return list(filter(None, yaml.safe_load_all(text)))
    values = yaml.safe_load((chart / "values.yaml").read_text()) | values
    objects = []
    jsonschema.validate(values, schema)
    for template in (chart / "templates").iterdir():
        block = lambda found: found[2] if value(values, found[1]) else ""
        text = re.sub(r"\{\{- if (.*?) \}\}\n(.*?)\{\{- end \}\}\n", block, template.read_text(), flags=re.S)
        text = re.sub(r"\{\{ (.*?) \}\}", lambda found: str(value(values, found[1])), text)
        objects += filter(None, yaml.safe_load_all(text))
    return objects


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
    except (jsonschema.ValidationError, subprocess.CalledProcessError):
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
