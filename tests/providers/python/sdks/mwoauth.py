from urllib.parse import urlsplit

import mwoauth
import requests
from requests_oauthlib import OAuth1

WIKI = "https://wiki.example.org/w/"


def flow(app):
    handshaker = mwoauth.Handshaker(WIKI + "index.php", mwoauth.ConsumerToken(app.key, app.secret), callback=app.callback, user_agent="Shop")
    url, request_token = handshaker.initiate()
    back = urlsplit(app.decide(url)).query
    token = handshaker.complete(request_token, back)
    return token.key, token.secret, handshaker.identify(token)


def calls(app):
    """Edits, as mwoauth's own documentation makes them."""
    auth = OAuth1(app.key, app.secret, app.token, app.token_secret)

    def post(**more):
        requests.post(WIKI + "api.php", auth=auth, **more).raise_for_status()

    app.call("query", lambda: requests.get(WIKI + "api.php", params={"titles": app.tricky, "continue": ""}, auth=auth).raise_for_status())
    app.call("edit", lambda: post(data={"action": "edit", "text": app.tricky, "tags": ["a", "b"], "summary": ""}))
    app.call("upload", lambda: post(data={"action": "upload"}, files={"file": ("a.png", b"PNG")}))
