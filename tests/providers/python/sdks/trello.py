import builtins
import contextlib
import io

import trello
from trello.util import create_oauth_token


def flow(app):
    """The SDK prints the address and asks for the verifier on the terminal."""
    printed, answers = io.StringIO(), iter(["y", None])

    def typed(_):
        answer = next(answers)
        if answer is None:
            url = [line for line in printed.getvalue().splitlines() if line.startswith("https://")][-1]
            with contextlib.redirect_stdout(terminal):
                answer = app.decide(url)
        return answer

    import sys

    terminal, real_input = sys.stdout, builtins.input
    builtins.input = typed
    try:
        with contextlib.redirect_stdout(printed):
            token = create_oauth_token(expiration="never", scope="read,write", key=app.key, secret=app.secret, name="Shop")
    finally:
        builtins.input = real_input
    return token["oauth_token"], token["oauth_token_secret"], {}


def calls(app):
    client = trello.TrelloClient(app.key, app.secret, app.token, app.token_secret)
    app.call("who", lambda: client.fetch_json("/members/me", query_params={"fields": "", "q": app.tricky}))
    app.call("board", lambda: client.fetch_json("/boards", http_method="POST", post_args={"name": app.tricky, "ids": ["a", "b"]}))
    app.call("attach", lambda: client.fetch_json("/cards/1/attachments", http_method="POST", files={"file": ("a.txt", b"text")}))
