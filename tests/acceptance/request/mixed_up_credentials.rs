//! Credentials valid for one purpose do not pass for another: tokens of one kind for the other, keys of one method for
//! another's, and a changed request for the one that was signed.
//!
//! Promise (Signatures): Credentials work only for their purpose, consumer and method; PLAINTEXT needs permission and TLS. Also
//! in `src/request/verify/tests.rs`, `tests/acceptance/provider/token_calls.rs`, `tests/acceptance/request/rejections.rs`.

use crate::support::{
    Call, Caller, Proxy, Scene, Token, Upstream,
    legs::REVOKE_TOKEN,
    legs::{asks, exchanges},
    signer, words,
};

const CALLBACK: &str = "https://shop.example/ready";

#[test]
fn request_tokens_and_access_tokens_do_not_pass_for_each_other() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (consumer, user) = proxy.shop();
    let access_token = proxy.token(&consumer, &user);
    let request_token = proxy.request_token(&consumer, CALLBACK);
    let verifier = proxy.verifier(&request_token, &user);
    let protected = |token: &Token| Call::get("/a").by(&consumer).with(token);
    let revoking = |token: &Token| Call::post(REVOKE_TOKEN).by(&consumer).with(token);
    for call in [
        protected(&request_token),
        revoking(&request_token),
        exchanges(&consumer, &access_token, &verifier),
        // The secret of one token does not work for the other.
        protected(&Token {
            secret: request_token.secret.clone(),
            token: "t".to_owned(),
        }),
    ] {
        proxy.send(call).is(401, "token_rejected");
    }
    let mixed = Token {
        secret: request_token.secret.clone(),
        ..access_token.clone()
    };
    proxy.send(protected(&mixed)).is(401, "signature_invalid");
    api.saw_nothing();
    // None of these calls has used anything up.
    proxy.passes(exchanges(&consumer, &request_token, &verifier));
    proxy.send(protected(&access_token)).has_status(200);
}

#[test]
fn public_facts_of_a_consumer_are_not_its_key() {
    let api = Upstream::start();
    let proxy = Proxy::in_front_of(&api).start();
    let (private, public) = signer::rsa_key_pair(proxy.directory());
    let pem = std::fs::read_to_string(&public).unwrap();
    let key_file = public.display().to_string();
    let with_key = proxy.consumer_with("Robot", &format!("--rsa-public-key {key_file}"));
    let Caller {
        consumer: without_key,
        user,
        ..
    } = proxy.somebody();
    let token = proxy.token(&with_key, &user);
    let other_token = proxy.token(&without_key, &user);
    let call = || Call::get("/a").by(&with_key).with(&token);
    let mut forged = Vec::new();
    for public in [&pem, pem.trim_end(), &with_key.key, ""] {
        for key in [
            format!(
                "{}&{}",
                signer::encode(public),
                signer::encode(&token.secret)
            ),
            format!("{}&", signer::encode(public)),
            public.to_owned(),
        ] {
            for method in ["HMAC-SHA1", "HMAC-SHA256"] {
                forged.push(call().method(method).key(&key));
            }
        }
    }
    // The right key under the name of another kind of method, and a method without its key.
    let hmac = call()
        .method("HMAC-SHA1")
        .spoiled("oauth_signature_method", "RSA-SHA1");
    forged.push(hmac);
    let rsa = call()
        .rsa("RSA-SHA1", &private)
        .spoiled("oauth_signature_method", "HMAC-SHA1");
    forged.push(rsa);
    let foreign = Call::get("/a").by(&without_key).with(&other_token);
    forged.push(foreign.rsa("RSA-SHA1", &private));
    for call in forged {
        proxy.send(call).is(401, "signature_invalid");
    }
    // It gets no request token either, where the description's key is accepted too.
    for key in [&pem, &with_key.key, "", "&"] {
        proxy.rejects(asks(&with_key, "oob").key(key), 401, "signature_invalid");
    }
    api.saw_nothing();
    proxy.send(call().rsa("RSA-SHA1", &private)).has_status(200);
}

#[test]
fn a_request_that_was_changed_after_signing_is_rejected() {
    let Scene { api, proxy, caller } = Scene::start();
    let signed = "/members/1?a=b%20c&d=%3Be%3Df&g=h";
    let send = |method: &str, target: &str| {
        proxy.send(
            Call::new(method, target)
                .of(&caller)
                .signs_method("GET")
                .signs_target(signed),
        )
    };
    for target in words(
        "/members/2?a=b%20c&d=%3Be%3Df&g=h /Members/1?a=b%20c&d=%3Be%3Df&g=h
         /members/%31?a=b%20c&d=%3Be%3Df&g=h /members/1/?a=b%20c&d=%3Be%3Df&g=h
         //members/1?a=b%20c&d=%3Be%3Df&g=h /./members/1?a=b%20c&d=%3Be%3Df&g=h
         /members/1;x?a=b%20c&d=%3Be%3Df&g=h /members/1%3Fa=b%20c&d=%3Be%3Df&g=h /members/1
         /members/1?a=b%20c&d=%3Be%3Df /members/1?a=b%20c&d=%3Be%3Df&g=h&g=h
         /members/1?a=b%20c&d=%3Be%3Df&g=h&x /members/1?a=b%20c&d=%3Be%3Df&g=i
         /members/1?a=b%20c&d=%3Be%3Df&G=h /members/1?a=b%2Bc&d=%3Be%3Df&g=h
         /members/1?a=b%2520c&d=%3Be%3Df&g=h /members/1?a=b%20c%00&d=%3Be%3Df&g=h
         /members/1?a=b%C2%A0c&d=%3Be%3Df&g=h /members/1?a=b%A0c&d=%3Be%3Df&g=h
         /members/1?a=b%20c&d=&e=f&g=h /members/1?a=b%20c;d=%3Be%3Df&g=h
         /members/1?a=b%20c&d=%3Be%3Df%26g=h /members/1?a=b%20c&amp;d=%3Be%3Df&g=h
         /members/1?a=b%20c&d=%3Be%3Df&g=h?",
    ) {
        send("GET", target).is(401, "signature_invalid");
    }
    for method in ["POST", "HEAD", "DELETE", "GETX", "OPTIONS"] {
        let answer = send(method, signed);
        assert_eq!(answer.status, 401, "{method}: {answer:?}");
    }
    api.saw_nothing();
    // Forms that are the same by RFC 5849 section 3.4.1.3.2, and no others.
    for same in [
        signed,
        "/members/1?g=h&d=%3Be%3Df&a=b%20c",
        "/members/1?a=b+c&d=%3be%3df&g=h",
        "/members/1?&a=b%20c&&d=%3B%65%3Df&g=%68&",
    ] {
        send("GET", same).has_status(200);
        assert_eq!(api.last_request().target, same, "goes on as it came");
    }
}
