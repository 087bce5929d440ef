//! The settings of public URLs and of the proxies in front.

use ipnet::IpNet;

use super::origin::{ForwardedFamily, Origins, PrefixMode, PublicUrl};
use crate::{
    base::settings::{choices, distinct, filled, section},
    wire::url::origin::{HttpUrl, Origin},
};

section! {
    /// The proxies in front.
    ProxySettings["listen"] {
        /// Networks whose forwarded fields count.
        #[serde(deserialize_with = "distinct")] trusted_proxies: Vec<IpNet> = [], reload;
        /// The fields that these proxies write: "x-forwarded" (X-Forwarded-For, -Proto, -Host) or "forwarded" (RFC 7239). The
        /// other family is always dropped.
        forwarded: ForwardedFamily = "x-forwarded", reload;
    }
}

section! {
    /// The service as consumers and browsers see it.
    ServiceSettings["service"] {
        /// The public origin of the token endpoints and pages. https unless its host is loopback.
        base_url: Option<Origin> [else "the listener, if it is loopback": "https://auth.example.com"], reload;
        /// Lets base_url be http on another host than loopback: passwords and cookies then cross the network in clear.
        allow_http: bool = false, reload;
        /// The URLs, with a path prefix or without, for which consumers sign protected calls. The signature's origin is taken
        /// from here, never from the request.
        #[serde(default, deserialize_with = "filled")]
        public_api_urls: Vec<HttpUrl> [else "[service.base_url]": ["https://api.example.com"]], reload;
        /// Such a prefix: "strip", "keep", or "restore" (a proxy in front removed it: put back for the signature only).
        prefix: PrefixMode = "strip", reload;
        /// Further origins of the pages, each with its own sessions and flows. Token calls are under base_url alone.
        #[serde(default, deserialize_with = "distinct")]
        page_urls: Vec<Origin> [else "none": ["https://www.example.com"]], reload;
    }
}

impl ServiceSettings {
    /// The public URLs, where those that are not written are `base` and `public`, and the proxies in front of them.
    pub fn origins(&self, base: Origin, public: Vec<HttpUrl>, proxies: &ProxySettings) -> Origins {
        Origins {
            base: HttpUrl::from(base).into(),
            pages: self.page_urls.clone(),
            public: public.into_iter().map(PublicUrl::from).collect(),
            prefix_mode: self.prefix,
            trusted_proxies: proxies.trusted_proxies.clone(),
            family: proxies.forwarded,
        }
    }
}

choices!(ForwardedFamily, PrefixMode);
