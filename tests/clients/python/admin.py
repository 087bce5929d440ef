"""Makes a client from the OpenAPI document of the admin API, and manages a consumer with it.

Arguments: the origin of the admin listener, the token that writes, the id of a user. The working directory is the test's own.
The last line of the output is JSON.
"""

import importlib
import json
import os
import subprocess
import sys

import requests

ORIGIN, TOKEN, USER = sys.argv[1:]


def main():
    document = requests.get(f"{ORIGIN}/v1/openapi.json", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30)
    document.raise_for_status()
    with open("openapi.json", "w", encoding="utf-8") as file:
        file.write(document.text)
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--path", "openapi.json", "--meta", "none"]
    # Its formatter is beside the interpreter.
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    made = subprocess.run(
        [*command, "--output-path", "admin_client"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": path},
    )
    print(made.stdout, made.stderr)
    assert "Warning" not in made.stdout, "every operation is generated"
    sys.path.insert(0, ".")
    module = importlib.import_module("admin_client")
    models = importlib.import_module("admin_client.models")
    client = module.AuthenticatedClient(base_url=ORIGIN, token=TOKEN, raise_on_unexpected_status=True)

    def call(operation, *arguments, **named):
        tag, name = operation.split(".")
        function = importlib.import_module(f"admin_client.api.{tag}.{name}")
        response = function.sync_detailed(*arguments, client=client, **named)
        assert 200 <= response.status_code < 300, response
        return response.parsed

    new = models.NewConsumer(name="Generated", callbacks=["https://app.example/callback"], permissions=["read"])
    consumer = call("consumers.register_consumer", body=new)
    page = call("consumers.list_consumers", q="generated", limit=1)
    assert [item.key for item in page.items] == [consumer.key], page
    patch = models.ConsumerPatch(description="Made by a generated client")
    assert call("consumers.change_consumer", consumer.key, body=patch).description == patch.description
    tokens = {}
    for name in ("kept", "revoked"):
        token = call("tokens.issue_token", body=models.NewToken(consumer=consumer.key, user=USER))
        tokens[name] = {"token": token.token, "token_secret": token.token_secret}
    call("tokens.revoke_token", tokens["revoked"]["token"])
    left = call("tokens.list_tokens", consumer=consumer.key)
    assert [token.token for token in left.items] == [tokens["kept"]["token"]], left
    print(json.dumps({"key": consumer.key, "secret": consumer.secret, **tokens}))


main()
