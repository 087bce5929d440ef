import os
import tempfile

import pytumblr


def calls(app):
    client = pytumblr.TumblrRestClient(app.key, app.secret, app.token, app.token_secret)

    def answered(answer):
        assert "meta" not in answer, answer

    def photo():
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "a.png")
            with open(path, "wb") as file:
                file.write(b"PNG")
            answered(client.create_photo("blog", data=[path], caption=app.tricky, tags=["a", "b c"]))

    app.call("who", lambda: answered(client.info()))
    app.call("posts", lambda: answered(client.posts("blog", tag=app.tricky, offset=0)))
    app.call("text", lambda: answered(client.create_text("blog", title=app.tricky, body="", tags=["a", "b c"])))
    app.call("photo", photo)
