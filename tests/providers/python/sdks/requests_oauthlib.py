"""requests-oauthlib, as the documentation of providers without an SDK of their own uses it."""

import requests
from requests_oauthlib import OAuth1, OAuth1Session


def flow(app):
    request_token, authorize, access_token = app.settings["urls"]
    session = OAuth1Session(app.key, client_secret=app.secret, callback_uri=app.callback)
    token = session.fetch_request_token(request_token)
    back = app.back(session.authorization_url(authorize))
    session = OAuth1Session(app.key, app.secret, token["oauth_token"], token["oauth_token_secret"], verifier=back.get("oauth_verifier", "none"))
    token = session.fetch_access_token(access_token)
    return token["oauth_token"], token["oauth_token_secret"], token


def calls(app):
    url, auth = app.settings["api"], OAuth1(app.key, app.secret, app.token, app.token_secret)
    query = [("q", app.tricky), ("a", "1"), ("a", "2"), ("e", "")]
    app.call("get", lambda: requests.get(url, params=query, auth=auth).raise_for_status())
    app.call("post", lambda: requests.post(url, json={"name": app.tricky}, auth=auth).raise_for_status())
