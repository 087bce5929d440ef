from wordpress import API


def client(app):
    return API(
        url="https://blog.example.com",
        consumer_key=app.key,
        consumer_secret=app.secret,
        api="wp-json",
        version="wp/v2",
        oauth1a_3leg=True,
        callback=app.callback,
        access_token=app.token,
        access_token_secret=app.token_secret,
    )


def flow(app):
    app.token = app.token_secret = None
    api = client(app)
    token, _ = api.auth.get_request_token()
    back = app.back(f"{api.auth.authentication['oauth1']['authorize']}?oauth_token={token}")
    # The SDK itself would fill in WordPress's login form here.
    api.auth._oauth_verifier = back.get("oauth_verifier", "none")
    token, secret = api.auth.get_access_token()
    return token, secret, {}


def calls(app):
    api = client(app)
    app.call("posts", lambda: api.get("posts?status[]=draft&status[]=publish&search=a%26b%2Bc&after="))
    app.call("create", lambda: api.post("posts", {"title": app.tricky, "tags": [1, 2]}))
    app.call("delete", lambda: api.delete("posts/7?force=true"))
