"""Checks the measured programs before the measurement: checking peers refuse, and forwarding peers reach the same API."""

import http.client
import re
import subprocess
import sys
import urllib.request

from .peers import HOST, WHO

QUERY = "fields=id%2Cname&limit=20&page=3&sort=name"
IDENTITY = ("x-auth-user", "x-auth-consumer", "x-auth-permissions", "x-auth-kind", "authorization")


def forwards(peer, signer):
    """A peer that checks nothing: unsigned requests pass, and signed ones with their credentials."""
    expect(peer, "an unsigned request", ask(peer, {})[0], 200)
    field = sign(signer, signer.credentials[0])
    status, seen = ask(peer, {"Authorization": field})
    expect(peer, "a signed request", status, 200)
    expect(peer, "Authorization at the API", seen["authorization"], field)


def enforces(peer, signer):
    """A peer that checks: only a fresh and right signature passes, and the API gets the caller's identity."""
    one = signer.credentials[0]
    wrong = {**one, "secret": one["secret"][::-1]}
    unknown = {**one, "token": one["token"][::-1]}
    expect(peer, "an unsigned request", ask(peer, {})[0], 401)
    expect(peer, "a wrong signature", ask(peer, {"Authorization": sign(signer, wrong)})[0], 401)
    expect(peer, "an unknown token", ask(peer, {"Authorization": sign(signer, unknown)})[0], 401)
    old = re.sub(r'oauth_timestamp="\d+"', 'oauth_timestamp="1000000000"', sign(signer, one))
    expect(peer, "an old timestamp", ask(peer, {"Authorization": old})[0], 401)
    field = sign(signer, one)
    status, seen = ask(peer, {"Authorization": field, "X-Auth-User": "forged"})
    expect(peer, "a signed request", status, 200)
    expect(peer, "the consumer at the API", seen["x-auth-consumer"], one["key"])
    expect(peer, "the permissions at the API", seen["x-auth-permissions"], "members.read")
    expect(peer, "the kind of caller at the API", seen["x-auth-kind"], "consumer")
    expect(peer, "credentials at the API", seen["authorization"], "")
    if seen["x-auth-user"] in ("", "forged"):
        sys.exit(f"{peer.name}: the API was told the user {seen['x-auth-user']!r}")
    expect(peer, "the same request again", ask(peer, {"Authorization": field})[0], 401)


def permissions(peer):
    """Operations are matched: unlisted ones, and ones without the token's permission, stay hidden."""
    one = peer.credentials[0]
    other = peer.register("other", permission=None)
    expect(peer, "an unlisted path", ask(peer, {"Authorization": sign(peer, one, path="/other")}, path="/other")[0], 404)
    expect(peer, "a consumer without the permission", ask(peer, {"Authorization": sign(peer, other)})[0], 404)


def counts_all(peer, load, requests):
    """Every request of a run was verified, recorded and counted, and found its credentials in the cache."""
    with load.connected(peer, requests, connections=64) as run:
        before = counted(peer)
        run()
        after = counted(peer)
    for name, number in after.items():
        expect(peer, f"{name} in {requests} requests", number - before[name], 0 if name == "cache misses" else requests)


def counted(peer):
    """The metrics of countersign: requests forwarded, nonces stored, lookups that the cache answered."""
    with urllib.request.urlopen(f"http://127.0.0.1:{peer.admin}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    numbers = dict(line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
    return {
        "forwarded": int(float(numbers['countersign_requests_total{verdict="forwarded"}'])),
        "nonces": int(float(numbers["countersign_nonces"])),
        "cache misses": sum(
            int(float(value)) for name, value in numbers.items() if name.startswith("countersign_cache_requests_total") and '"miss"' in name
        ),
    }


def sign(signer, one, path=WHO):
    command = [
        str(signer.binary), "sign", "GET", f"http://{HOST}{path}?{QUERY}", "--consumer-key", one["key"], "--consumer-secret",
        one["secret"], "--token", one["token"], "--token-secret", one["token_secret"],
    ]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    return text.split(": ", 1)[1] if text.lower().startswith("authorization:") else text


def ask(peer, fields, path=WHO):
    """Status, and the fields with the caller's identity that the API saw."""
    connection = http.client.HTTPConnection("127.0.0.1", peer.port, timeout=30)
    connection.request("GET", f"{path}?{QUERY}", headers={"Host": HOST, **fields})
    answer = connection.getresponse()
    lines = answer.read().decode().split("\n")
    connection.close()
    return answer.status, dict(zip(IDENTITY, lines)) if len(lines) >= len(IDENTITY) else {}


def expect(peer, what, found, wanted):
    if found != wanted:
        sys.exit(f"{peer.name}: {what}: {found!r} rather than {wanted!r}; what was to be measured is not there")
