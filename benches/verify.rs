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
    sync::atomic::{AtomicUsize, Ordering},
};

use arc_swap::ArcSwapOption;
use aws_lc_rs::{
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
    records::store::cached::CachedAssertion,
    request::identity::{Claims, keys::Keys},
};
use criterion::{Criterion, Throughput, criterion_group};
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

fn stages(criterion: &mut Criterion) {
    let case = Case::signed_with(SignatureMethod::HmacSha1);
    let mut parameters = Parameters::new();
    assert!(case.check(&mut parameters));
    let message = base(&case.origin, &parameters).to_vec();

    let mut group = criterion.benchmark_group("HMAC-SHA1");
    group.throughput(Throughput::Elements(1));
    group.bench_function("parse to verdict", |bencher| {
        bencher.iter(|| assert!(black_box(&case).check(&mut parameters)));
    });
    group.bench_function("stage: parse", |bencher| {
        bencher.iter(|| black_box(&case).parse(&mut parameters));
    });
    group.bench_function("stage: protocol parameters", |bencher| {
        bencher.iter(|| {
            let protocol = black_box(&parameters)
                .protocol(MethodSet::ALL, LocationRule::OneLocation)
                .unwrap();
            black_box(protocol.demand(&[]).unwrap());
        });
    });
    group.bench_function("stage: base string", |bencher| {
        bencher.iter(|| {
            let mut sink = Discard(0);
            base(&case.origin, black_box(&parameters)).write_to(&mut sink);
            sink.0
        });
    });
    group.bench_function("stage: verify", |bencher| {
        let protocol = parameters
            .protocol(MethodSet::ALL, LocationRule::OneLocation)
            .unwrap();
        let sent = protocol.demand(&[]).unwrap().signature;
        bencher.iter(|| {
            let base = base(&case.origin, black_box(&parameters));
            verify(SignatureMethod::HmacSha1, &case.key, None, &base, sent).unwrap()
        });
    });
    group.bench_function("pure HMAC from prepared states", |bencher| {
        let key = format!("{CONSUMER_SECRET}&{TOKEN_SECRET}");
        let prepared = Hmac::<Sha1>::new_from_slice(key.as_bytes()).unwrap();
        bencher.iter(|| {
            let mut hmac = prepared.clone();
            hmac.update(black_box(&message));
            hmac.finalize().into_bytes()
        });
    });
    group.finish();
}

fn methods(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse to verdict");
    for method in [
        SignatureMethod::HmacMd5,
        SignatureMethod::HmacSha256,
        SignatureMethod::HmacSha512,
        SignatureMethod::Plaintext,
    ] {
        let case = Case::signed_with(method);
        let mut parameters = Parameters::new();
        group.bench_function(method.as_str(), |bencher| {
            bencher.iter(|| assert!(black_box(&case).check(&mut parameters)));
        });
    }
    group.finish();
}

/// A form body of 16 KiB, whose hash is most of the work.
fn form(criterion: &mut Criterion) {
    let body: String = (0..512)
        .map(|at| format!("field{at:03}=value+%26+more{at:08}&"))
        .collect();
    let mut parameters = Parameters::new();
    let mut group = criterion.benchmark_group("form body");
    group.throughput(Throughput::Bytes(body.len() as u64));
    group.bench_function("parse", |bencher| {
        bencher.iter(|| {
            parameters.clear();
            parameters.read_body(black_box(body.as_bytes())).unwrap();
        });
    });
    let key = SigningKey::new(&Secret::from(CONSUMER_SECRET), &Secret::from(TOKEN_SECRET));
    let origin = EncodedOrigin::new(Scheme::Https, "api.example.com", None);
    group.bench_function("parse and sign", |bencher| {
        bencher.iter(|| {
            parameters.clear();
            parameters.read_body(black_box(body.as_bytes())).unwrap();
            sign(SignatureMethod::HmacSha1, &key, &base(&origin, &parameters))
        });
    });
    let message = base(&origin, &parameters).to_vec();
    let prepared = Hmac::<Sha1>::new_from_slice(b"key").unwrap();
    group.bench_function("pure HMAC from prepared states", |bencher| {
        bencher.iter(|| {
            let mut hmac = prepared.clone();
            hmac.update(black_box(&message));
            hmac.finalize().into_bytes()
        });
    });
    group.finish();
}

/// The identity assertion of a request: signed for it, or cached with the credential.
fn assertion(criterion: &mut Criterion) {
    let claims = Claims {
        iss: "https://auth.example.com",
        aud: "https://api.internal",
        sub: Some("4a1d8f6e2b9c47d3a5e0f1"),
        client_id: Some("9f2c4b7d1e8a4c60b3d5f7"),
        scope: "members.read members.write",
        kind: Some("consumer"),
        iat: 1_795_229_418,
        exp: 1_795_229_478,
        jti: "kPrKqmxVWaYVA9wwBF6Iuo",
        htm: Some("GET"),
        htu: Some("https://api.example.com/members/42"),
    };
    let random = SystemRandom::new();
    let p256 = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let keys = [
        ("Ed25519", Ed25519KeyPair::generate_pkcs8v1(&random)),
        ("P-256", EcdsaKeyPair::generate_pkcs8(p256, &random)),
    ];
    let mut group = criterion.benchmark_group("assertion");
    let path = std::env::temp_dir().join(format!("countersign-bench-{}.pem", std::process::id()));
    for (name, key) in keys {
        let der = STANDARD.encode(key.unwrap());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----\n");
        std::fs::write(&path, pem).unwrap();
        let keys = Keys::read(std::slice::from_ref(&path)).unwrap().unwrap();
        std::fs::remove_file(&path).unwrap();
        let signer = keys.signer("countersign+jwt");
        group.bench_function(name, |bencher| {
            bencher.iter(|| signer.sign(black_box(&claims)).unwrap());
        });
    }
    let place = ArcSwapOption::from_pointee(CachedAssertion {
        value: HeaderValue::from_str(&"a".repeat(700)).unwrap(),
        signer: 0,
        usable: UnixTime(0)..UnixTime(u64::MAX),
    });
    let clock = Clock::system();
    group.bench_function("kept", |bencher| {
        bencher.iter(|| {
            let kept = black_box(&place).load();
            let kept = kept.as_ref().unwrap();
            assert!(kept.usable.contains(&clock.now()));
            kept.value.clone()
        });
    });
    group.finish();
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

criterion_group!(benches, stages, methods, form, assertion);

fn main() {
    assert_no_allocation();
    benches();
    Criterion::default().configure_from_args().final_summary();
}
