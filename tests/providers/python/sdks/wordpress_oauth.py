import builtins
import contextlib
import io
import os
import sys
import tempfile

import yaml
from wordpress_oauth import Wordpress

home = tempfile.TemporaryDirectory()


def open_wordpress(app, **owner):
    path = os.path.join(home.name, "wordpress.yaml")
    with open(path, "w") as file:
        file.write(yaml.dump({"url": "https://blog.example.com", "key": app.key, "secret": app.secret, **owner}))
    return path, Wordpress(path)


def flow(app):
    """The SDK prints the address and asks for the verifier on the terminal."""
    printed, terminal, real_input = io.StringIO(), sys.stdout, builtins.input

    def typed(_):
        with contextlib.redirect_stdout(terminal):
            return app.decide(printed.getvalue().strip())

    builtins.input = typed
    try:
        with contextlib.redirect_stdout(printed):
            path, _ = open_wordpress(app)
    finally:
        builtins.input = real_input
    with open(path) as file:
        token = yaml.safe_load(file)
    return token["owner_key"], token["owner_secret"], {}


def calls(app):
    _, wordpress = open_wordpress(app, owner_key=app.token, owner_secret=app.token_secret)

    def image():
        path = os.path.join(home.name, "a.png")
        with open(path, "wb") as file:
            file.write(b"PNG")
        wordpress.upload_image(path).raise_for_status()

    app.call("article", lambda: wordpress.post_article({"title": app.tricky, "tags": [1, 2]}).raise_for_status())
    app.call("image", image)
