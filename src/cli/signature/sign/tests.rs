use crate::text::words;
use clap::Parser;

use super::*;
use crate::{
    base::secret::Secret,
    oauth::{DeviationSet, LocationRule, RequestUri, Selection, is_form_content_type, verify},
    operator::explain::KnownSecrets,
};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    sign: SignArgs,
}

const NOW: UnixTime = UnixTime(137_131_202);

/// Runs the command with an empty store.
fn run(arguments: &[&str], stdin: &str) -> (u8, String, String) {
    run_with_store(arguments, stdin, &mut |_| {
        Err(CommandError::failed("the store is empty"))
    })
}

/// The secrets in the store, which is asked for those of the consumer `k` and the token `t`.
fn stored(asked: &Asked<'_>) -> KnownSecrets {
    let names = (asked.consumer_key, asked.token);
    assert_eq!(names, (&b"k"[..], Some(&b"t"[..])));
    KnownSecrets {
        consumer_secret: "stored".into(),
        token_secret: "too".into(),
        rsa_public_key: None,
        server: None,
    }
}

fn run_with_store(
    arguments: &[&str],
    stdin: &str,
    lookup: &mut Lookup<'_>,
) -> (u8, String, String) {
    let Ok(command) = Command::try_parse_from([&["sign"], arguments].concat()) else {
        return (2, String::new(), String::new());
    };
    let clock = Clock::manual(NOW);
    match command.sign.run(&clock, lookup, &mut stdin.as_bytes()) {
        Ok(output) => (output.code, output.text, output.notes.join("\n")),
        Err(error) => (error.code, String::new(), error.report() + "\n"),
    }
}

fn line(arguments: &[&str], nonce: &str) -> String {
    let command = Command::try_parse_from([&["sign"], arguments].concat()).unwrap();
    let mut lookup = |_: &Asked<'_>| -> Result<KnownSecrets, CommandError> {
        Err(CommandError::failed("the store is empty"))
    };
    command
        .sign
        .signed(NOW, nonce, &mut lookup, &mut &b""[..])
        .unwrap()
}

const PHOTOS: [&str; 10] = [
    "GET",
    "http://photos.example.net/photos?file=vacation.jpg&size=original",
    "--consumer-key",
    "dpf43f3p2l4k3l03",
    "--consumer-secret",
    "kd94hf93k423kf44",
    "--token",
    "nnch734d00sl2jdk",
    "--token-secret",
    "pfkkdhi9sl3r4s00",
];

#[test]
fn signs_the_request_of_rfc_5849_section_1_2() {
    // The RFC's request has no oauth_version; the signature with it was computed apart from this code.
    let printed = line(&PHOTOS, "chapoH");
    assert_eq!(
        printed,
        "Authorization: OAuth oauth_consumer_key=\"dpf43f3p2l4k3l03\", oauth_token=\"nnch734d00sl2jdk\", \
         oauth_signature_method=\"HMAC-SHA1\", oauth_timestamp=\"137131202\", oauth_nonce=\"chapoH\", \
         oauth_version=\"1.0\", oauth_signature=\"1IAE9RzK%2BDqSqVTdQ%2F0zWANXVzs%3D\""
    );
}

#[test]
fn prints_one_line_with_a_nonce_of_its_own_each_time() {
    let (code, first, errors) = run(&PHOTOS, "");
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(
        first.starts_with("Authorization: OAuth ") && first.ends_with("\"\n"),
        "{first}"
    );
    assert_eq!(first.lines().count(), 1);
    assert_ne!(run(&PHOTOS, "").1, first);
}

/// Checks a printed header the way the server does.
fn verifies(
    printed: &str,
    method: &str,
    url: &str,
    body: Option<(&str, &str)>,
    secrets: [&str; 2],
) -> bool {
    let uri = RequestUri::parse(url).unwrap();
    let mut parameters = Parameters::new();
    parameters
        .read_header(
            printed
                .trim_end()
                .strip_prefix("Authorization: ")
                .unwrap()
                .as_bytes(),
        )
        .unwrap();
    parameters
        .read_query(uri.query.unwrap_or_default().as_bytes())
        .unwrap();
    if let Some((content_type, body)) = body
        && is_form_content_type(content_type.as_bytes())
    {
        parameters.read_body(body.as_bytes()).unwrap();
    }
    let credentials = parameters
        .protocol(MethodSet::ALL, LocationRule::OneLocation)
        .unwrap()
        .demand(&[])
        .unwrap();
    let [consumer_secret, token_secret] = secrets.map(Secret::from);
    let base = BaseString {
        method: method.as_bytes(),
        origin: &uri.origin(),
        path: uri.path.as_bytes(),
        parameters: &parameters,
        selection: Selection::Rfc5849,
        deviations: DeviationSet::NONE,
    };
    let key = SigningKey::new(&consumer_secret, &token_secret);
    verify(
        credentials.signature_method,
        &key,
        None,
        &base,
        credentials.signature,
    )
    .is_ok()
}

#[test]
fn signs_bodies_as_they_will_be_sent() {
    let url = "https://h/x?b=%20";
    let base = [
        "POST",
        url,
        "--consumer-key",
        "k",
        "--consumer-secret",
        "c s",
        "--data",
        "a=1&a=0+2",
    ];
    let form = "application/x-www-form-urlencoded";
    let (_, printed, _) = run(&base, "");
    assert!(verifies(
        &printed,
        "POST",
        url,
        Some((form, "a=1&a=0+2")),
        ["c s", ""]
    ));
    let (_, printed, _) = run(
        &[&base[..], &["--header", "Content-Type: text/plain"]].concat(),
        "",
    );
    assert!(verifies(&printed, "POST", url, None, ["c s", ""]));
}

#[test]
fn signs_with_each_shared_secret_method_and_its_spellings() {
    for method in words("HMAC-SHA1 HMAC-MD5 HMAC-SHA256 HMAC-SHA512 PLAINTEXT hmac_sha1 HMACSHA256")
    {
        let (code, printed, errors) = run(&[&PHOTOS[..], &["--method", method]].concat(), "");
        let name: SignatureMethod = method.parse().unwrap();
        assert_eq!(code, 0, "{errors}");
        assert_eq!(errors.contains("holds both secrets"), method == "PLAINTEXT");
        assert!(
            // In the registered spelling, whatever was typed.
            printed.contains(&format!("oauth_signature_method=\"{name}\"")),
            "{printed}"
        );
        assert!(
            verifies(&printed, "GET", PHOTOS[1], None, [PHOTOS[5], PHOTOS[9]]),
            "{method}"
        );
    }
}

#[test]
fn the_token_calls_get_their_parameters() {
    let arguments = [
        "POST",
        "http://h/",
        "--consumer-key",
        "k",
        "--consumer-secret",
        "s",
        "--token",
        "",
    ];
    let printed = line(
        &[&arguments[..], &["--callback", "http://c/?x=1 2"]].concat(),
        "n",
    );
    assert!(
        printed.contains("oauth_callback=\"http%3A%2F%2Fc%2F%3Fx%3D1%202\""),
        "{printed}"
    );
    assert!(!printed.contains("oauth_token="), "{printed}");
    let printed = line(
        &[
            &arguments[..7],
            &["-t", "--token-secret", "", "--verifier", "-v"],
        ]
        .concat(),
        "n",
    );
    assert!(
        printed.contains("oauth_token=\"-t\"") && printed.contains("oauth_verifier=\"-v\""),
        "{printed}"
    );
}

#[test]
fn prints_the_curl_command_that_sends_it() {
    let arguments = [
        "PUT",
        "HTTP://[::1]:8080/a/../b?x=it's",
        "--consumer-key",
        "k",
        "--consumer-secret",
        "s",
        "--data",
        "@not a file",
        "--header",
        "Content-Type: text/plain",
        "--header",
        "X-Empty:",
        "--curl",
    ];
    let printed = line(&arguments, "n");
    let (before, rest) = printed.split_once("Authorization: OAuth ").unwrap();
    let (_, after) = rest.split_once("' ").unwrap();
    assert_eq!(
        before,
        "curl --request 'PUT' --path-as-is --globoff --header '"
    );
    assert_eq!(
        after,
        r"--header 'Content-Type: text/plain' --header 'X-Empty;' --data-raw '@not a file' 'http://[::1]:8080/a/../b?x=it'\''s'"
    );
    let head = line(
        &words("HEAD http://h/ --consumer-key k --consumer-secret s --curl"),
        "n",
    );
    assert!(
        head.starts_with("curl --head --header 'Authorization: "),
        "{head}"
    );
}

#[test]
fn secrets_come_from_files_standard_input_or_the_store() {
    let with = |consumer_secret: &[&str], stdin: &str| {
        let arguments = words("GET http://h/ --consumer-key k --method PLAINTEXT");
        run(&[&arguments[..], consumer_secret].concat(), stdin)
    };
    assert!(
        with(&["--consumer-secret", "-"], "from stdin\n")
            .1
            .contains("\"from%2520stdin%26\"")
    );
    assert!(with(&["--token-secret", "-x"], "").1.contains("\"%26-x\""));
    let one = with(&["--consumer-secret", "s", "--token-secret", "-"], "x");
    assert!(one.1.contains("\"s%26x\""));
    let both = with(&["--consumer-secret", "-", "--token-secret", "-"], "s");
    assert_eq!(both.0, 2);
    assert_eq!(
        both.2,
        "countersign: only one secret can come from standard input; use @FILE for the other\n"
    );
    let missing = with(&["--consumer-secret", "@/nowhere"], "");
    assert_eq!(missing.0, 1);
    assert!(
        missing
            .2
            .starts_with("countersign: cannot read the secret from /nowhere: "),
        "{}",
        missing.2
    );

    let arguments = words("GET http://h/ --consumer-key k --token t --method PLAINTEXT");
    let found = run_with_store(&arguments, "", &mut |asked| Ok(stored(asked)));
    assert!(found.1.contains("\"stored%26too\""), "{found:?}");
    let (code, _, errors) = run(&arguments, "");
    assert_eq!(code, 1);
    assert_eq!(
        errors,
        "countersign: cannot find the secrets of consumer \"k\"; give --consumer-secret: the store is empty\n"
    );
}

#[test]
fn token_secret_not_given_is_read_from_the_store_never_empty() {
    let arguments = words(
        "GET http://h/ --consumer-key k --consumer-secret given --token t --method PLAINTEXT",
    );
    let found = run_with_store(&arguments, "", &mut |asked| Ok(stored(asked)));
    assert!(found.1.contains("\"given%26too\""), "{found:?}");
    let (code, printed, errors) = run(&arguments, "");
    assert_eq!((code, printed.as_str()), (1, ""));
    assert_eq!(
        errors,
        "countersign: cannot find the secrets of consumer \"k\"; give --token-secret: the store is empty\n"
    );
    // An empty secret is given on purpose, and without a token there is no secret.
    let empty = [&arguments[..], &["--token-secret", ""]].concat();
    assert!(run(&empty, "").1.contains("\"given%26\""));
    let without = [&arguments[..6], &arguments[8..]].concat();
    assert!(run(&without, "").1.contains("\"given%26\""));
}

#[test]
fn tells_what_cannot_be_signed() {
    let secret = ["--consumer-key", "k", "--consumer-secret", "s"];
    for [arguments, code, message] in crate::text::rows(
        r"
        GET\nh/x                           | 2 | countersign: URL: it must start with http:// or https://\n
        GET\nhttp://h/\n--method\nRSA-SHA1 | 2 | countersign: --method RSA-SHA1 needs the consumer's private key
        GET\nhttp://h/?oauth_token=t       | 1 | countersign: the request cannot be signed: not in one place with the other oauth_ parameters: oauth_token\n
        GET\nhttp://h/?a=%zz               | 1 | countersign: the request cannot be signed: malformed query
        GET\nhttp://h/\n--callback\n       | 1 | countersign: the request cannot be signed: empty: oauth_callback\n
    ",
    ) {
        let arguments = &arguments.split('\n').collect::<Vec<_>>()[..];
        let code = code.parse().unwrap();
        let (found, printed, errors) = run(&[arguments, &secret].concat(), "");
        assert_eq!((found, printed.as_str()), (code, ""), "{arguments:?}");
        assert!(errors.starts_with(message), "{errors}");
        assert_eq!(errors.lines().count(), 1);
    }
    assert_eq!(run(&["GET", "http://h/"], "").0, 2);
    let unknown = ["GET", "http://h/", "--method", "SHA1"];
    assert_eq!(run(&[&unknown[..], &secret].concat(), "").0, 2);
}
