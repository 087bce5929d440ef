"""Keystone's own clients go through the flow of OS-OAUTH1: python-keystoneclient makes the token calls, keystoneauth1 the signed login.

`client.py URL`. Prints `CONSUMER <key> <secret>` and `TOKEN <token> <secret> <user>`, and after each waits for a line. Then sends a copy of
each signed request, and prints its status: `COPY <path> <first status> <status of the copy>`."""

import sys
from urllib.parse import urlsplit

import requests
from keystoneauth1 import session
from keystoneauth1.extras.oauth1 import V3OAuth1
from keystoneauth1.identity import V3Password
from keystoneclient.v3.client import Client

url = sys.argv[1]
signed = []
send = requests.Session.send


def noting(self, request, **options):
    response = send(self, request, **options)
    if str(request.headers.get("Authorization", "")).startswith(("OAuth", "b'OAuth")):
        signed.append((request, response.status_code))
    return response


def say(*words):
    print(*words, flush=True)
    sys.stdin.readline()


requests.Session.send = noting
names = dict(username="admin", project_name="admin", user_domain_id="default", project_domain_id="default")
admin = session.Session(auth=V3Password(url, password="secret", **names))
client = Client(session=admin, endpoint_override=url)
user = admin.get_user_id()

consumer = client.oauth1.consumers.create("shop")
say("CONSUMER", consumer.id, consumer.secret)
by = (consumer.id, consumer.secret)
request_token = client.oauth1.request_tokens.create(*by, admin.get_project_id())
role = client.roles.list(name="admin")[0]
verifier = client.oauth1.request_tokens.authorize(request_token.key, [role]).oauth_verifier
token = client.oauth1.access_tokens.create(*by, request_token.key, request_token.secret, verifier)
say("TOKEN", token.key, token.secret, user)
shop = session.Session(auth=V3OAuth1(url, *by, token.key, token.secret))
assert shop.get_user_id() == user
assert shop.get(f"{url}/auth/projects").status_code == 200
for request, status in list(signed):
    copy = send(requests.Session(), request)
    print("COPY", urlsplit(request.url).path, status, copy.status_code)
