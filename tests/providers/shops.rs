//! Shops, most of whose clients get credentials that an administrator made.

use serde_json::json;

use crate::providers::{sdk::CALLBACK, stage::Stage};

#[test]
fn sdks_of_magento_1_work_unchanged() {
    let stage = Stage::of("magento1");
    stage
        .node("magento-rest-api", &stage.shop(), json!({}))
        .calls(&[
            "GET /api/rest/products ?filter[name]={T} ?page=",
            "POST /api/rest/products | json {\"name\":\"{T}\"}",
        ]);
    let urls = [
        "https://magento1.example.com/oauth/initiate",
        "https://magento1.example.com/admin/oauth_authorize",
        "https://magento1.example.com/oauth/token",
    ];
    let products = "https://magento1.example.com/api/rest/products";
    stage.generic_walks(&stage.shop(), Some(CALLBACK), urls, products);
}

#[test]
fn sdks_of_magento_2_work_unchanged() {
    let stage = Stage::of("magento2");
    stage.node("magento-api-rest", &stage.shop(), json!({})).calls(&[
        "GET /rest/V1/products ?searchCriteria[sort_orders][0][field]=id ?searchCriteria[sort_orders][0][direction]=ASC \
         ?searchCriteria[page_size]=20 ?searchCriteria[filter_groups][0][filters][0][field]=name \
         ?searchCriteria[filter_groups][0][filters][0][value]=a b ?searchCriteria[filter_groups][0][filters][0][condition_type]=eq",
        "GET /rest/V1/modules ?searchCriteria=",
        "POST /rest/V1/products | json {\"product\":{\"name\":\"{T}\",\"ids\":[1,2]}}",
        "DELETE /rest/V1/products/24-MB01",
    ]);
    let by = stage.consumer(&format!("--callback {CALLBACK} --accept callback_absent"));
    let urls = [
        "https://magento.example.com/oauth/token/request",
        "https://magento.example.com/oauth/authorize",
        "https://magento.example.com/oauth/token/access",
    ];
    let products = "https://magento.example.com/rest/V1/products";
    stage.generic_walks(&by, None, urls, products);
}

/// The host name of this SDK's shop is built in.
#[test]
fn social_auth_completes_the_flow_of_magento_2() {
    let stage = Stage::renamed("magento2", "magento.example.com", "docentedigital.app");
    let social = stage.social_auth("oauth_magento.oauth_magento_openedx.MagentoOAuth1");
    social.walks("AuthProviderError");
    social.calls(&["GET /rest/V1/customers/me"]);
}

#[test]
fn sdks_of_woocommerce_work_unchanged() {
    let stage = Stage::of("woocommerce");
    // This client decodes `%41` before it signs, and sends it as it is.
    let settings = json!({ "tricky": "ü + & % ~ * ' =" });
    let by = stage.consumer("--accept repeats_once --accept key_without_ampersand");
    stage.python("woocommerce", &by, settings).calls_itself(&[
        "GET /wp-json/wc/v3/products ?search={T} ?per_page=10",
        "POST /wp-json/wc/v3/products | json {\"name\":\"{T}\",\"tags\":[{\"id\":1}]}",
        "DELETE /wp-json/wc/v3/products/7 ?force=True",
        "GET /wc-api/v2/products ?page=2",
    ]);
    let strict = stage.node("woocommerce", &stage.consumer(""), json!({}));
    strict.fails("delete", "signature_invalid");
    let by = stage.consumer("--accept repeats_once");
    stage.node("woocommerce", &by, json!({})).calls_itself(&[
        "GET /wp-json/wc/v3/products ?include[0]=1 ?include[1]=2 ?per_page=10 ?search={T} ?sku=",
        "POST /wp-json/wc/v3/products | json {\"name\":\"{T}\",\"tags\":[{\"id\":1}]}",
        "DELETE /wp-json/wc/v3/products/7 ?force=true",
    ]);
}
