//! Wikis and blogs, which clients know by their own host names.

use serde_json::json;

use crate::providers::{
    api::{WIKI_KEY, WIKI_SECRET},
    sdk::CALLBACK,
    stage::Stage,
};

#[test]
fn sdks_of_mediawiki_work_unchanged() {
    let stage = Stage::of("mediawiki");
    let options = format!("--callback {CALLBACK} --key {WIKI_KEY} --secret {WIKI_SECRET}");
    let by = stage.consumer(&options);
    let mwoauth = stage.python("mwoauth", &by, json!({}));
    assert_eq!(
        mwoauth.walks("lacks token information")["username"],
        "Alice"
    );
    mwoauth.calls(&[
        "POST /w/index.php ?title=Special:OAuth/identify",
        "GET /w/api.php ?titles={T} ?continue=",
        "POST /w/api.php | form action=edit text={T} tags=a tags=b summary=",
        "POST /w/api.php | multipart action=upload file=PNG",
    ]);

    let settings = json!({
        "backend": "social_core.backends.mediawiki.MediaWiki",
        "options": {
            "SOCIAL_AUTH_MEDIAWIKI_MEDIAWIKI_URL": "https://wiki.example.org/w/index.php",
            "SOCIAL_AUTH_MEDIAWIKI_CALLBACK": CALLBACK,
        },
    });
    let social = stage.python("social_auth", &by, settings);
    assert_eq!(social.walks("AuthProviderError")["sub"], "17");
    social.calls(&["POST /w/index.php ?title=Special:OAuth/identify"]);
}

#[test]
fn sdks_of_wordpress_work_unchanged() {
    let stage = Stage::of("wordpress");
    let api = stage.python("wordpress_api", &stage.shop(), json!({}));
    api.walks("returned 401");
    api.calls(&[
        // The SDK itself drops the second of two values, and the empty one.
        "GET /wp-json/wp/v2/posts ?search=a&b+c ?status[]=draft",
        "POST /wp-json/wp/v2/posts | json {\"title\":\"{T}\",\"tags\":[1,2]}",
        "DELETE /wp-json/wp/v2/posts/7 ?force=true",
    ]);

    let by = stage.consumer("--callback oob --accept callback_absent");
    let oauth = stage.python("wordpress_oauth", &by, json!({}));
    oauth.walks("permission_denied");
    oauth.calls(&[
        "POST /wp-json/wp/v2/posts | json {\"title\":\"{T}\",\"tags\":[1,2]}",
        "POST /wp-json/wp/v2/media | image/png PNG",
    ]);
}
