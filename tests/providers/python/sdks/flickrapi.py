import io

import flickrapi


def open_flickr(app):
    return flickrapi.FlickrAPI(app.key, app.secret, format="parsed-json", store_token=False)


def flow(app):
    flickr = open_flickr(app)
    flickr.get_request_token(oauth_callback=app.callback)
    back = app.back(flickr.auth_url(perms="write"))
    flickr.get_access_token(back.get("oauth_verifier", "none"))
    token = flickr.token_cache.token
    return token.token, token.token_secret, {"username": token.username, "user_nsid": token.user_nsid}


def calls(app):
    flickr = open_flickr(app)
    flickr.token_cache.token = flickrapi.auth.FlickrAccessToken(app.token, app.token_secret, "write")
    flickr.flickr_oauth.token = flickr.token_cache.token
    app.call("who", lambda: flickr.test.login())
    app.call("search", lambda: flickr.photos.search(text=app.tricky, tags=""))
    app.call("upload", lambda: flickr.upload("a.jpg", fileobj=io.BytesIO(b"JPEG"), title=app.tricky))
