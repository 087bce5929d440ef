import json

import requests
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from oauth1.oauth import SignatureMethod
from oauth1.signer import OAuthSigner

HOST = "https://api.mastercard.com"


def calls(app):
    options = app.settings["options"]
    key = load_pem_private_key(options["private_key"].encode(), None)
    signer = OAuthSigner(app.key, key, SignatureMethod(options["method"]))

    def send(method, path, **content):
        request = requests.Request(method, HOST + path, **content).prepare()
        request = signer.sign_request(request.url, request)
        session = requests.Session()
        # A prepared request does not read REQUESTS_CA_BUNDLE by itself.
        trust = session.merge_environment_settings(request.url, {}, None, None, None)
        session.send(request, **trust).raise_for_status()

    app.call("get", lambda: send("GET", "/locations/atms", params={"q": app.tricky, "e": ""}))
    app.call("post", lambda: send("POST", "/payments", data=json.dumps({"name": app.tricky}), headers={"Content-Type": "application/json"}))
    app.call("empty", lambda: send("DELETE", "/payments/7"))
