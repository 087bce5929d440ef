//! The cost of checking a signed request and of the assertion, whole and by stage: `cargo bench --bench verify`.
//!
//! The request is a usual one: GET with four query parameters, and seven protocol parameters in the Authorization
//! header. Before anything is timed, a counting allocator shows that the check allocates nothing.

#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot do its work should end"
)]
#![expect(clippy::print_stdout, reason = "this is where a benchmark reports")]
#![expect(
    unsafe_code,
    reason = "a global allocator can only be replaced by an unsafe impl"
)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    hint::black_box,
    io::Write as _,
    sync::atomic::{AtomicUsize, Ordering},
};

use arc_swap::ArcSwapOption;
use aws_lc_rs::{
    error::Unspecified,
    pkcs8::Document,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use countersign::{
    base::{
        clock::{Clock, UnixTime},
        secret::Secret,
    },
    oauth::{
        BaseString, DeviationSet, EncodedOrigin, LocationRule, MethodSet, Parameters, RsaPublicKey,
        Scheme, Selection, SignatureMethod, SigningKey, percent, sign, verify,
    },
    records::credentials::CachedAssertion,
    request::identity::{Claims, keys::Keys},
};
use divan::{Bencher, counter::BytesCount};
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderValue;
use sha1::Sha1;

/// Counts allocations.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `System`, as all of ours do.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the pointer came from `System`, as all of ours do.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const QUERY: &[u8] = b"page=2&size=50&sort=name&q=caf%C3%A9";
const PATH: &[u8] = b"/members/42";
const CONSUMER_SECRET: &str = "kd94hf93k423kf44kd94hf93k423kf44";
const TOKEN_SECRET: &str = "pfkkdhi9sl3r4s00pfkkdhi9sl3r4s00";

/// A request as received, and the data known of its consumer.
struct Case {
    header: String,
    origin: EncodedOrigin,
    key: SigningKey,
    rsa: Option<RsaPublicKey>,
}

impl Case {
    fn signed_with(method: SignatureMethod) -> Self {
        let origin = EncodedOrigin::new(Scheme::Https, "api.example.com", None);
        let key = SigningKey::new(&Secret::from(CONSUMER_SECRET), &Secret::from(TOKEN_SECRET));
        let unsigned = format!(
            "OAuth oauth_consumer_key=\"9f2c4b7d1e8a4c60b3d5f7a1928e6c4d\", oauth_token=\"4a1d8f6e2b9c47d3a5e0f1b2c3d4e5f6\", \
             oauth_signature_method=\"{method}\", oauth_timestamp=\"1795229418\", \
             oauth_nonce=\"c0ffee12d4b14f6a8e3b5d7c9f1a2b3c\", oauth_version=\"1.0\""
        );
        let mut parameters = Parameters::new();
        parameters.read_header(unsigned.as_bytes()).unwrap();
        parameters.read_query(QUERY).unwrap();
        let signature = sign(method, &key, &base(&origin, &parameters)).unwrap();
        let signature = percent::encode(signature.as_bytes());
        Self {
            header: format!("{unsigned}, oauth_signature=\"{signature}\""),
            origin,
            key,
            rsa: None,
        }
    }

    fn parse(&self, parameters: &mut Parameters) {
        parameters.clear();
        parameters.read_header(self.header.as_bytes()).unwrap();
        parameters.read_query(QUERY).unwrap();
    }

    /// The whole check, from bytes to verdict.
    fn check(&self, parameters: &mut Parameters) -> bool {
        self.parse(parameters);
        self.check_parsed(parameters)
    }

    fn check_parsed(&self, parameters: &Parameters) -> bool {
        let protocol = parameters
            .protocol(MethodSet::ALL, LocationRule::OneLocation)
            .unwrap();
        let credentials = protocol.demand(&[]).unwrap();
        let base = base(&self.origin, parameters);
        verify(
            credentials.signature_method,
            &self.key,
            self.rsa.as_ref(),
            &base,
            credentials.signature,
        )
        .is_ok()
    }
}

fn base<'a>(origin: &'a EncodedOrigin, parameters: &'a Parameters) -> BaseString<'a> {
    BaseString {
        method: b"GET",
        origin,
        path: PATH,
        parameters,
        selection: Selection::Rfc5849,
        deviations: DeviationSet::NONE,
    }
}

/// Receives the bytes that a hash would.
struct Discard(usize);

impl countersign::oauth::sink::Sink for Discard {
    fn write(&mut self, bytes: &[u8]) {
        self.0 += black_box(bytes).len();
    }
}

#[divan::bench_group(name = "HMAC-SHA1")]
mod stages {
    use super::*;

    fn case() -> (Case, Parameters) {
        let case = Case::signed_with(SignatureMethod::HmacSha1);
        let mut parameters = Parameters::new();
        assert!(case.check(&mut parameters));
        (case, parameters)
    }

    #[divan::bench(name = "parse to verdict")]
    fn whole(bencher: Bencher) {
        let (case, mut parameters) = case();
        bencher.bench_local(|| assert!(black_box(&case).check(&mut parameters)));
    }

    #[divan::bench(name = "stage: parse")]
    fn parse(bencher: Bencher) {
        let (case, mut parameters) = case();
        bencher.bench_local(|| black_box(&case).parse(&mut parameters));
    }

    #[divan::bench(name = "stage: protocol parameters")]
    fn protocol(bencher: Bencher) {
        let (_, parameters) = case();
        bencher.bench_local(|| {
            let protocol = black_box(&parameters)
                .protocol(MethodSet::ALL, LocationRule::OneLocation)
                .unwrap();
            black_box(protocol.demand(&[]).unwrap());
        });
    }

    #[divan::bench(name = "stage: base string")]
    fn base_string(bencher: Bencher) {
        let (case, parameters) = case();
        bencher.bench_local(|| {
            let mut sink = Discard(0);
            base(&case.origin, black_box(&parameters)).write_to(&mut sink);
            sink.0
        });
    }

    #[divan::bench(name = "stage: verify")]
    fn signature(bencher: Bencher) {
        let (case, parameters) = case();
        let protocol = parameters
            .protocol(MethodSet::ALL, LocationRule::OneLocation)
            .unwrap();
        let sent = protocol.demand(&[]).unwrap().signature;
        bencher.bench_local(|| {
            let base = base(&case.origin, black_box(&parameters));
            verify(SignatureMethod::HmacSha1, &case.key, None, &base, sent).unwrap()
        });
    }

    #[divan::bench(name = "pure HMAC from prepared states")]
    fn pure_hmac(bencher: Bencher) {
        let (case, parameters) = case();
        let message = base(&case.origin, &parameters).to_vec();
        let key = format!("{CONSUMER_SECRET}&{TOKEN_SECRET}");
        bench_hmac(bencher, key.as_bytes(), &message);
    }
}

fn bench_hmac(bencher: Bencher, key: &[u8], message: &[u8]) {
    let prepared = Hmac::<Sha1>::new_from_slice(key).unwrap();
    bencher.bench_local(|| {
        let mut hmac = prepared.clone();
        hmac.update(black_box(message));
        hmac.finalize().into_bytes()
    });
}

#[divan::bench(
    name = "parse to verdict",
    args = [
        SignatureMethod::HmacMd5,
        SignatureMethod::HmacSha256,
        SignatureMethod::HmacSha512,
        SignatureMethod::Plaintext,
    ]
)]
fn methods(bencher: Bencher, method: SignatureMethod) {
    let case = Case::signed_with(method);
    let mut parameters = Parameters::new();
    bencher.bench_local(|| assert!(black_box(&case).check(&mut parameters)));
}

/// A form body of 16 KiB, whose hash is most of the work.
#[divan::bench_group(name = "form body")]
mod form {
    use super::*;

    fn body() -> String {
        (0..512)
            .map(|at| format!("field{at:03}=value+%26+more{at:08}&"))
            .collect()
    }

    #[divan::bench]
    fn parse(bencher: Bencher) {
        let body = body();
        let mut parameters = Parameters::new();
        bencher.counter(BytesCount::of_str(&body)).bench_local(|| {
            parameters.clear();
            parameters.read_body(black_box(body.as_bytes())).unwrap();
        });
    }

    #[divan::bench(name = "parse and sign")]
    fn parse_and_sign(bencher: Bencher) {
        let body = body();
        let mut parameters = Parameters::new();
        let key = SigningKey::new(&Secret::from(CONSUMER_SECRET), &Secret::from(TOKEN_SECRET));
        let origin = EncodedOrigin::new(Scheme::Https, "api.example.com", None);
        bencher.counter(BytesCount::of_str(&body)).bench_local(|| {
            parameters.clear();
            parameters.read_body(black_box(body.as_bytes())).unwrap();
            sign(SignatureMethod::HmacSha1, &key, &base(&origin, &parameters))
        });
    }

    #[divan::bench(name = "pure HMAC from prepared states")]
    fn pure_hmac(bencher: Bencher) {
        let body = body();
        let mut parameters = Parameters::new();
        parameters.read_body(body.as_bytes()).unwrap();
        let origin = EncodedOrigin::new(Scheme::Https, "api.example.com", None);
        bench_hmac(bencher, b"key", &base(&origin, &parameters).to_vec());
    }
}

/// The identity assertion of a request: signed for it, or cached with the credential.
mod assertion {
    use super::*;

    #[divan::bench(name = "Ed25519")]
    fn ed25519(bencher: Bencher) {
        bench_signer(bencher, |random| Ed25519KeyPair::generate_pkcs8v1(random));
    }

    #[divan::bench(name = "P-256")]
    fn p256(bencher: Bencher) {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        bench_signer(bencher, |random| {
            EcdsaKeyPair::generate_pkcs8(algorithm, random)
        });
    }

    fn bench_signer(
        bencher: Bencher,
        generate: impl FnOnce(&SystemRandom) -> Result<Document, Unspecified>,
    ) {
        let claims = Claims {
            iss: "https://auth.example.com",
            aud: "https://api.internal",
            sub: Some("4a1d8f6e2b9c47d3a5e0f1"),
            client_id: Some("9f2c4b7d1e8a4c60b3d5f7"),
            scope: "members.read members.write",
            kind: Some("consumer"),
            oauth_token: None,
            iat: 1_795_229_418,
            exp: 1_795_229_478,
            jti: "kPrKqmxVWaYVA9wwBF6Iuo",
            htm: Some("GET"),
            htu: Some("https://api.example.com/members/42"),
        };
        let der = STANDARD.encode(generate(&SystemRandom::new()).unwrap());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----\n");
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(pem.as_bytes()).unwrap();
        let keys = Keys::read(&[file.path().to_owned()]).unwrap().unwrap();
        let signer = keys.signer("countersign+jwt");
        bencher.bench_local(|| signer.sign(black_box(&claims)).unwrap());
    }

    #[divan::bench]
    fn kept(bencher: Bencher) {
        let place = ArcSwapOption::from_pointee(CachedAssertion {
            value: HeaderValue::from_str(&"a".repeat(700)).unwrap(),
            signer: 0,
            usable: UnixTime(0)..UnixTime(u64::MAX),
        });
        let clock = Clock::system();
        bencher.bench_local(|| {
            let kept = black_box(&place).load();
            let kept = kept.as_ref().unwrap();
            assert!(kept.usable.contains(&clock.now()));
            kept.value.clone()
        });
    }
}

/// Checks a thousand requests in memory that was used before, and asserts that nothing was allocated.
fn assert_no_allocation() {
    let case = Case::signed_with(SignatureMethod::HmacSha1);
    let mut parameters = Parameters::new();
    assert!(case.check(&mut parameters));
    let base_string = base(&case.origin, &parameters).to_vec().len();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for _ in 0..1000 {
        assert!(black_box(&case).check(&mut parameters));
    }
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    println!(
        "{} bytes of Authorization header, {base_string} bytes of base string, {allocations} allocations in 1000 checks",
        case.header.len()
    );
    assert_eq!(allocations, 0);
}

fn main() {
    assert_no_allocation();
    divan::main();
}
