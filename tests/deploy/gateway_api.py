"""What the Gateway API (v1.4, experimental channel) allows in the objects that deploy/kubernetes has of it: their fields, types,
limits, and the rules on several fields. `validate(object)` fails for anything else."""
import jsonschema

def structure(required, optional={}):
    return {"type": "object", "additionalProperties": False, "properties": required | optional, "required": list(required)}

def listed(items, most, least=0, **more):
    return {"type": "array", "items": items, "minItems": least, "maxItems": most} | more

NAME = {"type": "string", "minLength": 1, "maxLength": 253}
NAMESPACE = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}
PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
HEADER = {"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[A-Za-z0-9!#$%&'*+.^_|~-]+$"}
SERVICE = structure({"name": NAME, "port": PORT}, {"namespace": NAMESPACE})
HEADERS = listed(HEADER, 64, uniqueItems=True)
EXTERNAL_AUTH = structure(
    {"protocol": {"enum": ["HTTP", "GRPC"]}, "backendRef": SERVICE},
    {
        "http": structure({}, {
            "path": {"type": "string", "maxLength": 1024, "pattern": "^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+$"},
            "allowedHeaders": HEADERS,
            "allowedResponseHeaders": HEADERS,
        }),
        "grpc": structure({}, {"allowedHeaders": HEADERS}),
        # An unsigned number of 16 bits.
        "forwardBody": structure({}, {"maxSize": {"type": "integer", "minimum": 0, "maximum": 65535}}),
    },
) | {
    "allOf": [
        {"if": {"properties": {"protocol": {"const": protocol}}}, "then": {"required": [own], "not": {"required": [other]}}}
        for protocol, own, other in [("HTTP", "http", "grpc"), ("GRPC", "grpc", "http")]
    ]
}
MODIFIER = structure({}, {"remove": listed({"type": "string"}, 16, uniqueItems=True)})
FILTER = {
    "oneOf": [
        structure({"type": {"const": "ExternalAuth"}, "externalAuth": EXTERNAL_AUTH}),
        structure({"type": {"const": "RequestHeaderModifier"}, "requestHeaderModifier": MODIFIER}),
    ]
}
RULE = structure({"backendRefs": listed(SERVICE, 16)}, {"filters": listed(FILTER, 16)})
PARENT = structure({"name": NAME}, {"namespace": NAMESPACE})
HOSTNAME = {"type": "string", "pattern": r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "maxLength": 253}
ROUTE = structure({"parentRefs": listed(PARENT, 32), "hostnames": listed(HOSTNAME, 16), "rules": listed(RULE, 16, 1)})
GROUP = {"type": "string", "maxLength": 253}
GRANT = structure({
    "from": listed(structure({"group": GROUP, "kind": NAME, "namespace": NAMESPACE}), 16, 1),
    "to": listed(structure({"group": GROUP, "kind": NAME}, {"name": NAME}), 16, 1),
})
METADATA = {"type": "object", "required": ["name", "namespace"]}
SPECS = {("gateway.networking.k8s.io/v1", "HTTPRoute"): ROUTE, ("gateway.networking.k8s.io/v1beta1", "ReferenceGrant"): GRANT}

def is_of_it(manifest):
    return manifest["apiVersion"].startswith("gateway.networking.k8s.io/")

def validate(manifest):
    spec = SPECS[manifest["apiVersion"], manifest["kind"]]
    fields = structure({"apiVersion": {}, "kind": {}, "metadata": METADATA, "spec": spec})
    jsonschema.Draft202012Validator(fields).validate(manifest)

def check_references(manifests):
    """A route refers to a Service of another namespace only where a ReferenceGrant there allows it, and each filter occurs once."""
    grants = [it for it in manifests if it["kind"] == "ReferenceGrant"]
    services = {(it["metadata"]["namespace"], it["metadata"]["name"]): it for it in manifests if it["kind"] == "Service"}
    for route in (it for it in manifests if it["kind"] == "HTTPRoute"):
        own = route["metadata"]["namespace"]
        for rule in route["spec"]["rules"]:
            filters = rule.get("filters", [])
            types = [it["type"] for it in filters]
            assert len(types) == len(set(types)), types
            references = rule["backendRefs"] + [it["externalAuth"]["backendRef"] for it in filters if it["type"] == "ExternalAuth"]
            for reference in references:
                namespace = reference.get("namespace", own)
                granted = any(
                    grant["metadata"]["namespace"] == namespace
                    and {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": own} in grant["spec"]["from"]
                    and any(to["kind"] == "Service" and to.get("name", reference["name"]) == reference["name"] for to in grant["spec"]["to"])
                    for grant in grants
                )
                assert namespace == own or granted, reference
                service = services.get((namespace, reference["name"]))
                assert service is None or any(it["port"] == reference["port"] for it in service["spec"]["ports"]), reference
                assert service is not None or reference["name"] != "countersign", reference
