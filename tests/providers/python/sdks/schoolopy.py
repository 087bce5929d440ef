import schoolopy


def flow(app):
    auth = schoolopy.Auth(app.key, app.secret, domain="https://www.schoology.com", three_legged=True)
    app.decide(auth.request_authorization(callback_url=app.callback))
    if not auth.authorize():
        raise PermissionError("not authorized")
    return auth.access_token, auth.access_token_secret, {}


def calls(app):
    """The SDK never signs with an access token, not even with one that it is given."""
    api = schoolopy.Schoology(schoolopy.Auth(app.key, app.secret))
    app.call("user", lambda: api._get("users/1", params={"q": "a", "extended": "TRUE"}))
    app.call("post", lambda: api._post("courses", {"title": app.tricky, "ids": [1, 2]}))
