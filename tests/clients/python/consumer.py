"""The whole flow and a set of protected calls, as a Python application does them with requests-oauthlib."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qsl, urlsplit

import requests
from requests_oauthlib import OAuth1, OAuth1Session
from requests_oauthlib.oauth1_session import TokenRequestDenied

settings = json.loads(sys.argv[1])
base = settings["base_url"]
placement = {"header": "AUTH_HEADER", "query": "QUERY", "body": "BODY"}[settings["placement"]]
form = {"Content-Type": "application/x-www-form-urlencoded"}


def say(word, text):
    print(word, text, flush=True)


class Callback(BaseHTTPRequestHandler):
    """Receives the browser's redirect."""

    arrived = threading.Event()
    query = {}

    def do_GET(self):
        path = urlsplit(self.path)
        self.send_response(200 if path.path == "/callback" else 404)
        self.end_headers()
        self.wfile.write(b"Thank you. You can close this window.")
        if path.path == "/callback":
            Callback.query = dict(parse_qsl(path.query))
            Callback.arrived.set()

    def log_message(self, *_):
        pass


def credentials(**more):
    return dict(client_secret=settings["consumer_secret"], signature_type=placement, **more)


def decide(address):
    """Sends the person to the service; returns the callback's values."""
    say("AUTHORIZE", address)
    if settings["callback"] == "oob":
        return {"oauth_verifier": sys.stdin.readline().rstrip("\n")}
    assert Callback.arrived.wait(60), "the browser never came back"
    return Callback.query


def flow():
    callback = settings["callback"]
    if callback != "oob":
        server = HTTPServer(("127.0.0.1", 0), Callback)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        callback = f"http://127.0.0.1:{server.server_port}/callback?from=python"
    key = settings["consumer_key"]
    session = OAuth1Session(key, callback_uri=callback, **credentials())
    # requests-oauthlib puts its parameters into a body only if there is one; this is what applications send there.
    extra = {"data": {"xoauth_displayname": "Shop & Co"}} if placement == "BODY" else {}
    request_token = session.fetch_request_token(f"{base}/service.oauth?mode=req_req_token", **extra)
    assert request_token["oauth_callback_confirmed"] == "true", request_token
    address = session.authorization_url(f"{base}/service.oauth?mode=auth_req_token")
    back = decide(address)
    session = OAuth1Session(
        key,
        resource_owner_key=request_token["oauth_token"],
        resource_owner_secret=request_token["oauth_token_secret"],
        verifier=back.get("oauth_verifier", "none"),
        **credentials(),
    )
    try:
        token = session.fetch_access_token(f"{base}/service.oauth?mode=req_acc_token", **extra)
    except TokenRequestDenied as denied:
        return back, None, denied.response
    return back, token, None


def calls(token):
    """Name, method, address and the arguments of `requests` for each protected call."""
    tricky = [("a", "1"), ("a", "2 3"), ("empty", ""), ("é", "ü&="), ("~", "-._~!*'()"), ("b[]", "x+y"), ("%", "%41")]
    yield "plain", "GET", "/members/1", {}
    yield "tricky query", "GET", "/members", {"params": tricky}
    yield "raw query", "GET", "/members?b=%7e&a=1+2&c=%20&c=&d=%E2%82%AC&a=0", {}
    yield "path", "GET", "/caf%C3%A9/a%20b/~x", {}
    yield "head", "HEAD", "/members/1", {}
    yield "delete", "DELETE", "/members/1", {}
    yield "form", "POST", "/members", {"data": [("b", "2 é"), ("a", "1"), ("a", ""), ("c&", "=+")]}
    yield "form and query", "POST", "/members?x=1&a=q", {"data": {"a": "b"}}
    yield "empty post", "POST", "/members", {}
    if placement != "BODY":
        yield "json", "POST", "/members", {"json": {"oauth_token": "x", "a": "b=c&d"}}
        yield "bytes", "PUT", "/files/1", {"data": bytes(range(256)), "headers": {"Content-Type": "application/octet-stream"}}


def main():
    back, token, denied = flow()
    report = {"back": back}
    if denied is not None:
        report["denied"] = [denied.status_code, dict(parse_qsl(denied.text))]
        return report
    report["token"] = token
    auth = OAuth1(
        settings["consumer_key"],
        resource_owner_key=token["oauth_token"],
        resource_owner_secret=token["oauth_token_secret"],
        **credentials(),
    )
    report["calls"] = {}
    with requests.Session() as session:
        for name, method, target, arguments in calls(token):
            if placement == "BODY" and "data" not in arguments:
                continue
            answer = session.request(method, base + target, auth=auth, timeout=30, **arguments)
            report["calls"][name] = answer.status_code
        # The same bytes twice.
        body = {"data": "a=1", "headers": form} if placement == "BODY" else {}
        prepared = session.prepare_request(requests.Request("POST", f"{base}/pay?amount=1", auth=auth, **body))
        first, second = session.send(prepared, timeout=30), session.send(prepared, timeout=30)
        report["replay"] = [first.status_code, second.status_code, dict(parse_qsl(second.text)).get("oauth_problem")]
    return report


say("REPORT", json.dumps(main()))
