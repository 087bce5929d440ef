//! Attacks on the HTTP layer, as raw bytes on both sides of the real program.
//!
//! Each case is one connection: some bytes, written for a reason that its source names, and the expected results: the
//! answers, whether it stays open, and every request that the API saw meanwhile. The recording API is the oracle. Most
//! requests are correctly signed, since a request that is refused for its signature says nothing about HTTP.
//!
//! Each table comes with its number of cases, over 1,100 in all. In addition, `mutations` breaks signed requests at
//! random. Floods of HTTP/2 frames (rapid reset, CVE-2023-44487, and its kin) are in `tests/http2/floods.rs`.
//!
//! # Sources
//! - RFC 9110 (semantics), RFC 9112 (HTTP/1.1), RFC 3986 (URIs), RFC 5849 (OAuth 1.0), RFC 7239 (`Forwarded`), RFC 6265.
//! - Request smuggling: James Kettle, "HTTP Desync Attacks" (2019: CL.TE, TE.CL, TE.TE), "Browser-Powered Desync Attacks"
//!   (2022: CL.0, pause-based), "HTTP/1.1 must die" (2025: 0.CL, V-H and H-V discrepancies, `Expect`); Jeppe Bonde Weikop,
//!   "Funky chunks" (2025: TERM.EXT, EXT.TERM, TERM.SPILL, SPILL.TERM); Linhart, Klein, Heled, Orrin, "HTTP Request
//!   Smuggling" (2005).
//! - hyper CVE-2021-32714 (chunk size overflow), CVE-2021-32715 (`Content-Length: +1`).
//! - Pingora CVE-2025-4366 (body left unread), CVE-2026-2833 (pass-through before a 101), CVE-2026-2835 (HTTP/1.0 and
//!   Transfer-Encoding).
//! - oauth2-proxy CVE-2025-64484 (`X_Forwarded_User`), CVE-2026-40575 (`X-Forwarded-Uri` chooses whether to verify).
//! - Oathkeeper CVE-2026-33494 (`/public/../admin`), CVE-2026-33496 (a cached proof counts elsewhere).
//! - Heimdall CVE-2026-42274 (`/user/%2e%2e/admin`), opa-envoy-plugin CVE-2026-26205 (`//admin`).
//! - Traefik GHSA-5m6w-wvh7-57vm (CVE-2026-39858, `X_Forwarded_Proto`), GHSA-6384-m2mw-rf54 (`X-Forwarded-Prefix`),
//!   CVE-2024-45410 and Fabio CVE-2025-48865 (`Connection: X-Forwarded-Host`).
//! - httpoxy CVE-2016-5385 (`Proxy`), Apache CVE-2021-40438 and CVE-2023-25690 (targets that split), Node.js CVE-2022-32213 to
//!   32215 and CVE-2022-35256 (Transfer-Encoding and line ends), Go CVE-2025-22871 (bare LF in a chunk line), Netty
//!   CVE-2025-58056 (the same in an extension), Tomcat CVE-2022-42252 (invalid Content-Length), Envoy CVE-2019-9900 (NUL).

mod apis;
mod case;
mod script;
mod similar;

mod answers;
mod authorization;
mod bearer;
mod chunks;
mod console;
mod developer;
mod differential;
mod early;
mod exchange;
mod fields;
mod framing;
mod host;
mod identity;
mod limits;
mod lookup;
mod loops;
mod memory;
mod mutations;
mod networks;
mod paths;
mod pipelining;
mod proxy_protocol;
mod remembered;
mod request_line;
mod routers;
mod segment_data;
mod trailers;
mod trusted;
mod unreadable;
mod upgrade;
mod websocket;
