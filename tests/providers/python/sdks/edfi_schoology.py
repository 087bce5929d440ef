from edfi_schoology_extractor.api.request_client import RequestClient


def calls(app):
    client = RequestClient(app.key, app.secret)
    app.call("users", lambda: client.get("users?start=0&limit=20&q=a%26b%2Bc&e="))
    app.call("post", lambda: client.post("sections", {"name": app.tricky}))
