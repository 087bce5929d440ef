"""Builds the kustomizations that are named, checks them against the schemas of Kubernetes and the rules of restricted pods,
and prints the names, the countersign configuration and the environment of each, one JSON object a line."""
import json, subprocess, sys, yaml
import gateway_api, kubernetes_validate

def check_pod(name, pod):
    assert pod["automountServiceAccountToken"] is False, name
    security = pod["securityContext"]
    assert security["runAsNonRoot"] and security["seccompProfile"] == {"type": "RuntimeDefault"}, name
    for container in pod["containers"]:
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False and security["readOnlyRootFilesystem"] is True, name
        assert security["capabilities"] == {"drop": ["ALL"]}, name
        assert "memory" in container["resources"]["limits"], name
        # Secrets come as files.
        assert not any("valueFrom" in variable for variable in container.get("env", [])), name
        if container["name"] == "countersign":
            assert {"startupProbe", "livenessProbe", "readinessProbe", "lifecycle"} <= container.keys(), name
            assert pod["terminationGracePeriodSeconds"] >= 40, name
            assert "preStop" in container["lifecycle"], name

for directory in sys.argv[1:]:
    kubectl = [sys.executable.replace("python", "kubectl"), "kustomize", directory]
    manifests = list(yaml.safe_load_all(subprocess.run(kubectl, check=True, stdout=subprocess.PIPE, text=True).stdout))
    environment = {}
    for manifest in manifests:
        if gateway_api.is_of_it(manifest):
            gateway_api.validate(manifest)
            continue
        kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
        if "template" in manifest.get("spec", {}):
            pod = manifest["spec"]["template"]["spec"]
            check_pod(manifest["metadata"]["name"], pod)
            environment |= {it["name"]: it["value"] for container in pod["containers"] for it in container.get("env", [])}
    configurations = [it["data"]["config.toml"] for it in manifests if "config.toml" in it.get("data", {})]
    kinds = [f'{it["kind"]}/{it["metadata"]["name"]}' for it in manifests]
    gateway_api.check_references(manifests)
    routes = [it["spec"] for it in manifests if it["kind"] == "HTTPRoute"]
    print(json.dumps({"kinds": kinds, "configuration": configurations[0], "environment": environment, "routes": routes}))
