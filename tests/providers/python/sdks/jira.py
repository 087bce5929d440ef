import io

from jira import JIRA
from oauthlib.oauth1 import SIGNATURE_RSA


def calls(app):
    jira = JIRA(
        "https://jira.example.com",
        oauth={
            "access_token": app.token,
            "access_token_secret": app.token_secret,
            "consumer_key": app.key,
            "key_cert": app.settings["options"]["private_key"],
            "signature_method": SIGNATURE_RSA,
        },
        get_server_info=False,
        max_retries=0,
    )
    app.call("who", lambda: jira.myself())
    app.call("search", lambda: jira.search_issues(app.tricky, fields="a,b", maxResults=2))
    app.call("create", lambda: jira.create_issue(fields={"project": {"key": "X"}, "issuetype": {"id": "1"}, "summary": app.tricky, "labels": ["a", "b"]}, prefetch=False))
    app.call("attach", lambda: jira.add_attachment("X-1", io.BytesIO(b"text"), filename="a.txt"))
