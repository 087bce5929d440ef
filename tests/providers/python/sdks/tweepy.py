import io

import tweepy


def flow(app):
    auth = tweepy.OAuth1UserHandler(app.key, app.secret, callback=app.callback)
    back = app.back(auth.get_authorization_url(signin_with_twitter=True))
    token, secret = auth.get_access_token(back.get("oauth_verifier", "none"))
    return token, secret, {}


def calls(app):
    api = tweepy.API(tweepy.OAuth1UserHandler(app.key, app.secret, app.token, app.token_secret))
    client = tweepy.Client(
        consumer_key=app.key, consumer_secret=app.secret, access_token=app.token, access_token_secret=app.token_secret
    )
    app.call("who", lambda: api.verify_credentials(include_email=True))
    app.call("status", lambda: api.update_status(app.tricky, in_reply_to_status_id=""))
    app.call("search", lambda: api.search_tweets(app.tricky, lang=""))
    app.call("media", lambda: api.simple_upload("a.png", file=io.BytesIO(b"PNG"), media_category="tweet_image"))
    app.call("tweet", lambda: client.create_tweet(text=app.tricky, poll_options=["a&b", "ü"], poll_duration_minutes=5))
    app.call("users", lambda: client.get_users(usernames=["a", "b"], user_fields=["id", "name"], user_auth=True))
    app.call("delete", lambda: client.delete_tweet(17))
