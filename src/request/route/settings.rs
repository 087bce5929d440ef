//! The settings of the paths of the service.

use serde::Deserialize;

use super::{
    flow_path::FlowPath,
    service::{Page, ServiceCall, TokenCall},
};
use crate::base::settings::{choices, distinct, section, texts};

section! {
    /// The paths of the token calls and of the pages.
    FlowSettings["service"] {
        /// "provider": the login, the consent and the token calls are here. "guard": the API stays the provider, keeps its own
        /// check and gets every credential as it came. See docs/guard.md.
        role: Role = "provider", reload;
        /// The path of the token endpoint, under base_url only.
        path: String = "/service.oauth", reload;
        /// Also serves /oauth/request_token, /oauth/authorize, /oauth/authenticate and /oauth/access_token, which many client
        /// libraries expect.
        aliases: bool = true, reload;
        /// Who responds at these paths and the further ones: "here", or "api". Requests to the API's flow are forwarded with
        /// any signature, unless an operation lists the path.
        flow: Option<FlowAt> [else "\"here\"; \"api\" where service.role is \"guard\", or signature.enforcement is \"observe\" and the API has the host of base_url": "here"], reload;
        /// Further paths of the request token call, under base_url. An entry may require a query.
        #[serde(default, deserialize_with = "distinct")]
        request_token_paths: Vec<FlowPath> [else "none": ["/w/index.php?title=Special:OAuth/initiate"]], reload;
        /// Further paths of the authorization page.
        #[serde(default, deserialize_with = "distinct")]
        authorize_paths: Vec<FlowPath> [else "none": ["/w/index.php?title=Special:OAuth/authorize"]], reload;
        /// Further paths of the access token call.
        #[serde(default, deserialize_with = "distinct")]
        access_token_paths: Vec<FlowPath> [else "none": ["/w/index.php?title=Special:OAuth/token"]], reload;
    }
}

/// The task of this program before its API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It is the provider.
    Provider,
    /// The API is the provider and verifies its calls itself: this program verifies them before it.
    Guard,
}

/// Who answers at the paths of the flow but `service.path`, which is always ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowAt {
    /// countersign.
    Here,
    /// The API.
    Api,
}

choices!(Role, FlowAt);

texts! {
    FlowPath: "a path such as \"/oauth/initiate\", with or without a query" => |text: &str| text.parse::<FlowPath>();
}

impl FlowSettings {
    /// The further paths of each call, with their key.
    pub fn further_paths(&self) -> [(&'static str, ServiceCall, &[FlowPath]); 3] {
        let request = ServiceCall::Token(TokenCall::RequestToken);
        let access = ServiceCall::Token(TokenCall::AccessToken);
        let authorize = ServiceCall::Page(Page::Authorize);
        [
            (
                "service.request_token_paths",
                request,
                &self.request_token_paths,
            ),
            ("service.authorize_paths", authorize, &self.authorize_paths),
            (
                "service.access_token_paths",
                access,
                &self.access_token_paths,
            ),
        ]
    }
}
