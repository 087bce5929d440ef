from maasclient import MaasClient
from maasclient.auth import MaasAuth


def calls(app):
    client = MaasClient(MaasAuth("https://maas.example.com/MAAS/api/2.0", f"{app.key}:{app.token}:{app.token_secret}"))
    app.call("nodes", lambda: client.get("/nodes/", {"op": "list", "hostname": [app.tricky, "b"], "zone": ""}).raise_for_status())
    app.call("new", lambda: client.post("/nodes/", {"op": "new", "hostname": app.tricky, "tags": ["a", "b"]}).raise_for_status())
    app.call("delete", lambda: client.delete("/nodes/7/").raise_for_status())
