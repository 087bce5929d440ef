import discogs_client


def flow(app):
    client = discogs_client.Client("Shop/1.0", consumer_key=app.key, consumer_secret=app.secret)
    _, _, url = client.get_authorize_url(app.callback)
    back = app.back(url)
    token, secret = client.get_access_token(back.get("oauth_verifier", "none"))
    return token, secret, {}


def calls(app):
    client = discogs_client.Client("Shop/1.0", app.key, app.secret, app.token, app.token_secret)
    app.call("who", lambda: client.identity())
    app.call("search", lambda: client.search(app.tricky, artist="", type="release").count)
    app.call("want", lambda: client._request("PUT", "https://api.discogs.com/users/alice/wants/1", data={"notes": app.tricky}))
