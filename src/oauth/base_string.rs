//! The signature base string, RFC 5849 §3.4.1.

pub mod origin;
pub mod request_uri;

use super::{
    parameters::{Parameters, Selection},
    percent,
    sink::{Chunked, Message, Sink},
};
use crate::oauth::{base_string::origin::EncodedOrigin, parameters::deviation::DeviationSet};

/// The text that is signed, as references to its parts: it is written piece by piece and never built.
#[derive(Debug, Clone, Copy)]
pub struct BaseString<'a> {
    /// The request method as sent; written in upper case.
    pub method: &'a [u8],
    /// Scheme, host and port.
    pub origin: &'a EncodedOrigin,
    /// The path as sent, without query; empty means `/`.
    pub path: &'a [u8],
    /// The request parameters.
    pub parameters: &'a Parameters,
    /// The selection of those that are signed.
    pub selection: Selection,
    /// The accepted deviations in their text.
    pub deviations: DeviationSet,
}

impl BaseString<'_> {
    /// Writes method, base string URI and normalized parameters, each encoded, with `&` between them (§3.4.1.1).
    pub fn write_to(&self, sink: &mut impl Sink) {
        self.write_method(sink);
        sink.write(b"&");
        sink.write(self.origin.as_bytes());
        // §3.4.1.2 leaves the path as it is in the request; an absent one is sent as "/" (RFC 9112 §3.2.1).
        percent::encode_to(
            sink,
            if self.path.is_empty() {
                b"/"
            } else {
                self.path
            },
        );
        sink.write(b"&");
        self.parameters
            .write_encoded(self.selection, self.deviations, sink);
    }

    /// The whole base string.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut whole = Vec::with_capacity(512);
        self.write_to(&mut whole);
        whole
    }

    /// §3.4.1.1: "The HTTP request method in uppercase. [...] If the request uses a custom HTTP method, it MUST be encoded".
    fn write_method(&self, sink: &mut impl Sink) {
        if self.method.iter().all(u8::is_ascii_uppercase) {
            sink.write(self.method);
        } else {
            percent::encode_to(sink, &self.method.to_ascii_uppercase());
        }
    }
}

impl Message for BaseString<'_> {
    fn feed(&self, receive: impl FnMut(&[u8])) {
        let mut chunked = Chunked::new(receive);
        self.write_to(&mut chunked);
        chunked.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::base_string::origin::Scheme;

    fn base_string(method: &str, path: &str, query: &str, selection: Selection) -> String {
        let mut parameters = Parameters::new();
        parameters.read_query(query.as_bytes()).unwrap();
        let origin = EncodedOrigin::new(Scheme::Http, "h", None);
        let base = BaseString {
            method: method.as_bytes(),
            origin: &origin,
            path: path.as_bytes(),
            parameters: &parameters,
            selection,
            deviations: DeviationSet::NONE,
        };
        String::from_utf8(base.to_vec()).unwrap()
    }

    #[test]
    fn description_leaves_the_query_out_but_for_oauth_parameters() {
        let of = |selection| base_string("GET", "/", "z=1&oauth_nonce=n&a=2", selection);
        assert_eq!(
            of(Selection::Rfc5849),
            "GET&http%3A%2F%2Fh%2F&a%3D2%26oauth_nonce%3Dn%26z%3D1"
        );
        assert_eq!(
            of(Selection::Description),
            "GET&http%3A%2F%2Fh%2F&oauth_nonce%3Dn"
        );
    }
}
