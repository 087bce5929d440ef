//! Providers whose SDKs walk the whole flow.
//!
//! Promise (Signatures): The clients named in [deploy/providers](../deploy/providers/README.md) work unchanged on its files,
//! which pass `check`. Also in `tests/providers/wikis.rs`, `tests/providers/shops.rs`, `tests/providers/tools.rs`,
//! `tests/providers/files.rs`.

use serde_json::{Value, json};

use crate::{
    providers::{
        sdk::{CALLBACK, Run},
        stage::Stage,
    },
    support::{Consumer, Token},
};

impl Stage {
    /// A consumer with the callback of the SDKs.
    pub(crate) fn shop(&self) -> (Consumer, Token) {
        self.consumer(&format!("--callback {CALLBACK}"))
    }

    /// A backend of social-auth-core.
    pub(crate) fn social_auth(&self, backend: &str) -> Run<'_> {
        let settings = json!({ "backend": backend });
        self.python("social_auth", &self.shop(), settings)
    }

    /// A provider of grant.
    fn grant(&self, provider: &str) -> Run<'_> {
        self.node("grant", &self.shop(), json!({ "provider": provider }))
    }

    /// A provider of django-allauth, whose callback is its own.
    fn allauth(&self, provider: &str, options: &str) -> Run<'_> {
        let callback = format!("https://shop.example/{provider}/login/callback/");
        let by = self.consumer(&format!("--callback {callback}{options}"));
        let settings = json!({ "provider": provider, "callback": callback });
        self.python("allauth", &by, settings)
    }
}

#[test]
fn sdks_of_twitter_work_unchanged() {
    let stage = Stage::of("twitter");
    let tweepy = stage.python("tweepy", &stage.shop(), json!({}));
    tweepy.walks("permission_denied");
    tweepy.calls(&[
        "GET /1.1/account/verify_credentials.json ?include_email=true",
        "POST /1.1/statuses/update.json ?status={T} ?in_reply_to_status_id=",
        "GET /1.1/search/tweets.json ?q={T} ?lang=",
        "POST /1.1/media/upload.json | multipart media_category=tweet_image media=PNG",
        "POST /2/tweets | json {\"poll\":{\"options\":[\"a&b\",\"ü\"],\"duration_minutes\":5},\"text\":\"{T}\"}",
        "GET /2/users/by ?user.fields=id,name ?usernames=a,b",
        "DELETE /2/tweets/17",
    ]);

    let social = stage.social_auth("social_core.backends.twitter.TwitterOAuth");
    assert_eq!(
        social.walks("AuthCanceled")["access_token"]["user_id"],
        stage.user.id
    );
    social.calls(&["GET /1.1/account/verify_credentials.json ?include_email=true"]);

    let grant = stage.grant("twitter");
    assert_eq!(grant.walks("oauth_problem")["screen_name"], "alice");

    // The exchange of twitter-lite is signed without the token secret.
    let lite = stage.node("twitter-lite", &stage.shop(), json!({}));
    lite.never_walks("signature_invalid");
    lite.calls(&[
        "GET /1.1/account/verify_credentials.json",
        "GET /1.1/search/tweets.json ?q={T} ?lang=",
        "POST /1.1/statuses/update.json | form status={T}",
        "POST /1.1/direct_messages/events/new.json | json {\"event\":{\"text\":\"{T}\"}}",
    ]);
}

#[test]
fn sdks_of_twitter_by_its_new_name_work_unchanged() {
    let stage = Stage::renamed("twitter", "twitter.com", "x.com");
    let v2 = stage.node("twitter-api-v2", &stage.shop(), json!({}));
    let token = v2.walks("permission_denied");
    assert_eq!(
        *token,
        json!({ "userId": stage.user.id, "screenName": "alice" })
    );
    v2.calls(&[
        "GET /1.1/account/verify_credentials.json ?include_email=true",
        "POST /1.1/statuses/update.json | form status={T} tweet_mode=extended media_ids=1,2",
        "GET /1.1/search/tweets.json ?q={T} ?lang=",
        "POST /2/tweets | json {\"text\":\"{T}\",\"poll\":{\"options\":[\"a&b\",\"ü\"],\"duration_minutes\":5}}",
        "POST /1.1/media/upload.json | multipart command=INIT total_bytes=3 media_type=image/png media_category=TweetImage",
        "POST /1.1/media/upload.json | multipart command=APPEND media_id=1 segment_index=0 media=PNG",
        "POST /1.1/media/upload.json | multipart command=FINALIZE media_id=1",
        "DELETE /2/tweets/17",
    ]);

    let allauth = stage.allauth("twitter", "");
    allauth.walks("cancelled");
    allauth.calls(&["GET /1.1/account/verify_credentials.json"]);
}

#[test]
fn sdks_of_flickr_work_unchanged() {
    let stage = Stage::of("flickr");
    let facts = |token: &Value, id: &str| {
        assert_eq!(
            [&token[id], &token["username"]],
            [stage.user.id.as_str(), "alice"],
            "{token}"
        );
    };
    let flickrapi = stage.python("flickrapi", &stage.shop(), json!({}));
    facts(flickrapi.walks("401"), "user_nsid");
    // The text parts of the upload are signed.
    flickrapi.fails("upload", "401");
    flickrapi.calls_but(
        &["upload"],
        &[
            "POST /services/rest/ | form method=flickr.test.login format=json nojsoncallback=1",
            "POST /services/rest/ | form text={T} tags= method=flickr.photos.search format=json nojsoncallback=1",
        ],
    );

    let sdk = stage.node("flickr-sdk", &stage.shop(), json!({}));
    facts(sdk.walks("Unauthorized"), "nsid");
    // By POST it sends everything, its credentials too, as parts of a multipart body.
    sdk.calls_but(
        &["meta", "upload"],
        &[
            "GET /services/rest ?method=flickr.test.login ?format=json ?nojsoncallback=1",
            "GET /services/rest ?text={T} ?tags= ?method=flickr.photos.search ?format=json ?nojsoncallback=1",
        ],
    );

    let allauth = stage.allauth("flickr", "");
    allauth.walks("cancelled");
    allauth.calls(&[
        "GET /services/rest ?method=flickr.test.login ?nojsoncallback=1 ?format=json",
        "GET /services/rest ?method=flickr.people.getInfo ?user_id=1 ?nojsoncallback=1 ?format=json",
    ]);
    let social = stage.social_auth("social_core.backends.flickr.FlickrOAuth");
    facts(social.walks("AuthProviderError"), "id");
    facts(stage.grant("flickr").walks("oauth_problem"), "user_nsid");
}

#[test]
fn sdks_of_tumblr_work_unchanged() {
    let stage = Stage::of("tumblr");
    let by = stage.shop();
    let api_key = format!("?api_key={}", by.0.key);
    stage.python("pytumblr", &by, json!({})).calls(&[
        "GET /v2/user/info",
        &format!("GET /v2/blog/blog.tumblr.com/posts ?tag={{T}} ?offset=0 {api_key}"),
        "POST /v2/blog/blog.tumblr.com/post | form title={T} body= tags=a,b c type=text",
        "POST /v2/blog/blog.tumblr.com/post ?caption={T} ?tags=a,b c ?type=photo | multipart caption={T} tags=a,b c type=photo data[0]=PNG",
    ]);
    stage.node("tumblr", &stage.shop(), json!({})).calls(&[
        "GET /v2/user/info",
        "GET /v2/blog/blog/posts ?tag={T} ?offset=0",
        "POST /v2/blog/blog/post | json {\"type\":\"text\",\"title\":\"{T}\",\"body\":\"\",\"tags\":\"a,b c\"}",
        "POST /v2/blog/blog/posts | json {\"tags\":\"a,b c\",\"content\":[{\"type\":\"text\",\"text\":\"{T}\"}]}",
        "POST /v2/blog/blog/posts | multipart 0=\"use strict\" json={\"content\":[{\"type\":\"image\",\"media\":{\"identifier\":\"0\"}}]}",
    ]);

    let who = ["GET /v2/user/info"];
    let allauth = stage.allauth("tumblr", "");
    allauth.walks("cancelled");
    allauth.calls(&who);
    let social = stage.social_auth("social_core.backends.tumblr.TumblrOAuth");
    social.walks("AuthProviderError");
    social.calls(&who);
    stage.grant("tumblr").walks("oauth_problem");
}

#[test]
fn sdks_of_discogs_work_unchanged() {
    let stage = Stage::of("discogs");
    let client = stage.python("discogs_client", &stage.shop(), json!({}));
    client.walks("401");
    client.calls(&[
        "GET /oauth/identity",
        "GET /database/search ?artist= ?type=release ?q={T} ?page=1 ?per_page=50",
        "PUT /users/alice/wants/1 | json {\"notes\":\"{T}\"}",
    ]);

    let expected = [
        "GET /oauth/identity",
        "GET /database/search ?query={T} ?artist=",
        "PUT /users/alice/wants/1 | json {\"notes\":\"{T}\"}",
    ];
    for method in ["PLAINTEXT", "HMAC-SHA1"] {
        let settings = json!({ "options": { "signatureMethod": method } });
        let disconnect = stage.node("disconnect", &stage.shop(), settings);
        disconnect.walks("DiscogsError");
        disconnect.calls(&expected);
    }

    let allauth = stage.allauth("discogs", "");
    allauth.walks("cancelled");
    allauth.calls(&["GET /oauth/identity"]);
    let social = stage.social_auth("social_core.backends.discogs.DiscogsOAuth1");
    social.walks("AuthProviderError");
    social.calls(&["GET /oauth/identity", "GET /users/alice"]);
    stage.grant("discogs").walks("oauth_problem");
}

#[test]
fn sdks_of_trello_work_unchanged() {
    let stage = Stage::of("trello");
    let strict = stage.python("trello", &stage.consumer("--callback oob"), json!({}));
    strict.never_walks("parameter_absent");
    let by = stage.consumer("--callback oob --accept callback_absent");
    let trello = stage.python("trello", &by, json!({}));
    trello.walks("permission_denied");
    trello.calls(&[
        "GET /1/members/me ?fields= ?q={T}",
        "POST /1/boards | json {\"name\":\"{T}\",\"ids\":[\"a\",\"b\"]}",
        "POST /1/cards/1/attachments | multipart file=text",
    ]);

    let who = ["GET /1/members/me"];
    let passport = stage.node("passport-trello", &stage.shop(), json!({}));
    assert_eq!(passport.walks("oauth_problem")["displayName"], "alice");
    passport.calls(&who);
    let social = stage.social_auth("social_core.backends.trello.TrelloOAuth");
    social.walks("AuthProviderError");
    social.calls(&who);
    stage.grant("trello").walks("oauth_problem");

    // It asks for its permissions with `scope`, and reads the profile by an address with key and token, without a signature.
    let allauth = stage.allauth("trello", " --permission read");
    allauth.never_walks("401");
}

#[test]
fn sdks_of_openstreetmap_work_unchanged() {
    let stage = Stage::of("openstreetmap");
    let allauth = stage.allauth("openstreetmap", "");
    allauth.walks("cancelled");
    allauth.calls(&["GET /api/0.6/user/details.json"]);
    let grant = stage.grant("openstreetmap");
    assert_eq!(grant.walks("oauth_problem")["user_id"], stage.user.id);
}
