//! Services whose clients mostly bring a token that the operator issued.

use serde_json::json;

use crate::{
    providers::{
        api,
        sdk::CALLBACK,
        stage::{Stage, file},
    },
    support::{Upstream, authority::rsa_key},
};

#[test]
fn sdks_of_jira_work_unchanged() {
    let stage = Stage::of("jira");
    let key = rsa_key();
    let public = stage.proxy.directory().join("shop.pem");
    std::fs::write(&public, key.public_key_pem()).unwrap();
    let options = format!(
        "--callback {CALLBACK} --rsa-public-key {}",
        public.display()
    );
    let by = stage.consumer(&options);
    let settings = json!({ "options": { "private_key": key.serialize_pem() } });
    stage.python("jira", &by, settings.clone()).calls(&[
        "GET /rest/api/2/myself",
        "GET /rest/api/2/myself",
        "GET /rest/api/2/field",
        "GET /rest/api/2/search ?jql={T} ?startAt=0 ?validateQuery=True ?fields=a ?fields=b ?maxResults=2",
        "POST /rest/api/2/issue | json {\"fields\":{\"project\":{\"key\":\"X\"},\"issuetype\":{\"id\":\"1\"},\"summary\":\"{T}\",\"labels\":[\"a\",\"b\"]}}",
        "POST /rest/api/2/issue/X-1/attachments | multipart file=text",
    ]);

    let connector = stage.node("jira-connector", &by, settings);
    connector.walks("oauth_problem");
    connector.calls(&[
        "GET /rest/api/2/myself",
        "GET /rest/api/2/search ?jql={T} ?startAt=0 ?maxResults=50 ?fields=a,b",
        "POST /rest/api/2/issue | json {\"fields\":{\"summary\":\"{T}\"}}",
        "POST /rest/api/2/issue/X-1/attachments | multipart file=text",
    ]);
}

#[test]
fn sdks_of_launchpad_work_unchanged() {
    let stage = Stage::of("launchpad");
    let by = stage.consumer_without_secret();
    let launchpadlib = stage.python("launchpadlib", &by, json!({}));
    // Its flow has neither a callback nor a verifier.
    launchpadlib.never_walks("HTTP Error 40");
    launchpadlib.calls(&[
        "GET /devel/people/+me",
        "GET /devel/bugs ?ws.op=searchTasks ?search_text=a&b+c ?tags= ?status=New ?status=Fix Committed",
        "POST /devel/bugs |  title=%C3%BC+%2B+%26+%25+~+%2A+%27+%3D+%2541&description=&ws.op=createBug",
        "PATCH /devel/bugs/1 | json {\"title\":\"{T}\"}",
    ]);
}

#[test]
fn sdks_of_maas_work_unchanged() {
    let stage = Stage::of("maas");
    let by = stage.consumer_without_secret();
    // The values of its multipart bodies are in base64.
    stage.python("libmaas", &by, json!({})).calls(&[
        "GET /MAAS/api/2.0/machines/ ?hostname={T} ?hostname=b ?zone=",
        "POST /MAAS/api/2.0/machines/ ?op=allocate | multipart name=w7wgKyAmICUgfiAqICcgPSAlNDE= tags=YQ== tags=Yg== comment=",
    ]);
    stage.python("maasclient", &by, json!({})).calls(&[
        "GET /MAAS/api/2.0/nodes/ ?op=list ?hostname={T} ?hostname=b ?zone=",
        "POST /MAAS/api/2.0/nodes/ | form op=new hostname={T} tags=a tags=b",
        "DELETE /MAAS/api/2.0/nodes/7/",
    ]);
}

#[test]
fn signers_of_mastercard_work_unchanged() {
    let stage = Stage::of("mastercard");
    let key = rsa_key();
    let public = stage.proxy.directory().join("shop.pem");
    std::fs::write(&public, key.public_key_pem()).unwrap();
    // The form of Mastercard's keys.
    let consumer = format!("{}!{}", "aB3-_kX9".repeat(6), "4b6f0d1c".repeat(6));
    let options = format!(
        "--key {consumer} --rsa-public-key {} --rsa-only --accept values_unencoded",
        public.display()
    );
    let by = stage.consumer(&options);
    let signs = |method: &str| json!({ "options": { "private_key": key.serialize_pem(), "method": method } });
    for method in ["RSA-SHA256", "RSA-PSS"] {
        stage
            .python("mastercard", &by, signs(method))
            .calls_itself(&[
                "GET /locations/atms ?q={T} ?e=",
                "POST /payments | json {\"name\":\"{T}\"}",
                "DELETE /payments/7",
            ]);
    }
    for method in ["RSA-SHA256", "RSA-PSS-SHA256"] {
        stage.node("mastercard", &by, signs(method)).calls_itself(&[
            "GET /locations/atms ?q=ü + & % = ?e=",
            "POST /payments | json {\"name\":\"{T}\"}",
            "DELETE /payments/7",
        ]);
    }
}

#[test]
fn sdks_of_netsuite_work_unchanged() {
    let stage = Stage::of("netsuite");
    stage.python("netsuite", &stage.shop(), json!({})).calls(&[
        "GET /services/rest/record/v1/salesOrder ?q={T} ?limit=10 ?fields=",
        "POST /services/rest/record/v1/customer | json {\"companyName\":\"{T}\",\"ids\":[1,2]}",
        "POST /services/rest/query/v1/suiteql ?limit=10 ?offset=0 | json {\"q\":\"SELECT * FROM t WHERE a = 'ü & %'\"}",
        "GET /app/site/hosting/restlet.nl ?script=987 ?deploy=2",
    ]);
    stage
        .node("netsuite-rest", &stage.shop(), json!({}))
        .calls(&[
            "GET /services/rest/record/v1/salesOrder ?q={T} ?fields=",
            "POST /services/rest/query/v1/suiteql ?limit=10 |  {\"q\":\"{T}\"}",
            "DELETE /services/rest/record/v1/customer/7",
        ]);

    let urls = [
        "https://1234567-sb1.restlets.api.netsuite.com/rest/requesttoken",
        "https://1234567-sb1.app.netsuite.com/app/login/secure/authorizetoken.nl",
        "https://1234567-sb1.restlets.api.netsuite.com/rest/accesstoken",
    ];
    let records = "https://1234567-sb1.suitetalk.api.netsuite.com/services/rest/record/v1/customer";
    stage.generic_walks(&stage.shop(), Some(CALLBACK), urls, records);

    // Authlib hashes bodies with SHA-1, also where no method with SHA-1 is accepted.
    let text = file("netsuite") + "[signature]\nmethods = ['HMAC-SHA256']\n";
    let stage = Stage::on(&text, Upstream::replying(api::answer));
    stage.python("netsuite", &stage.shop(), json!({})).calls(&[
        "GET /services/rest/record/v1/salesOrder ?q={T} ?limit=10 ?fields=",
        "POST /services/rest/record/v1/customer | json {\"companyName\":\"{T}\",\"ids\":[1,2]}",
        "POST /services/rest/query/v1/suiteql ?limit=10 ?offset=0 | json {\"q\":\"SELECT * FROM t WHERE a = 'ü & %'\"}",
        "GET /app/site/hosting/restlet.nl ?script=987 ?deploy=2",
    ]);
}

#[test]
fn sdks_of_schoology_work_unchanged() {
    let stage = Stage::of("schoology");
    let by = stage.consumer(&format!("--callback {CALLBACK} --accept callback_absent"));
    let schoolopy = stage.python("schoolopy", &by, json!({}));
    // It gets a request token, and exchanges it without a verifier.
    schoolopy.never_walks("not authorized");
    schoolopy.calls_itself(&[
        "GET /v1/users/1 ?q=a ?extended=TRUE ?limit=20",
        "POST /v1/courses ?limit=20 | json {\"title\":\"{T}\",\"ids\":[1,2]}",
    ]);
    stage
        .python("edfi_schoology", &by, json!({}))
        .calls_itself(&[
            "GET /v1/users ?start=0 ?limit=20 ?q=a&b+c ?e=",
            "POST /v1/sections | json {\"name\":\"{T}\"}",
        ]);
}
