//! Field lines (RFC 9112 §5, RFC 9110 §5.5): invalid names, invalid values, and values over two lines.

use crate::attacks::{
    case::{Case, Stage, passes, refused},
    script::get,
};
use crate::support::rows;

#[test]
fn header_line_without_name_colon_and_value_is_rejected() {
    let stage = Stage::new("");
    let mut cases: Vec<Case> = rows(r#"
        obs-fold by a space              | RFC 9112 §5.2                      | X-A: b\r\n c
        obs-fold by a tab                | RFC 9112 §5.2                      | X-A: b\r\n\tc
        obs-fold that reads like a field | RFC 9112 §5.2                      | X-A: b\r\n X-Auth-User: root
        a fold of nothing                | RFC 9112 §5.2                      | X-A: b\r\n\x20
        a space before the colon         | RFC 9112 §5.1                      | X-A : b
        a tab before the colon           | RFC 9112 §5.1                      | X-A\t: b
        no name                          | RFC 9110 §5.1                      | : b
        no colon                         | RFC 9112 §5                        | X-A
        two words                        | RFC 9110 §5.1                      | X A: b
        quotes                           | RFC 9110 §5.1                      | "X-A": b
        brackets                         | RFC 9110 §5.1                      | X[A]: b
        a slash                          | RFC 9110 §5.1                      | X/A: b
        a comma                          | RFC 9110 §5.1                      | X,A: b
        an at sign                       | RFC 9110 §5.1                      | X@A: b
        a backslash                      | RFC 9110 §5.1                      | X\\A: b
        a byte beyond ASCII in the name  | RFC 9110 §5.1                      | X-\u{c4}: b
        a no-break space behind the name | RFC 9110 §5.1                      | X-A\u{a0}: b
        a NUL in the name                | RFC 9110 §5.1                      | X\0A: b
        a DEL in the name                | RFC 9110 §5.1                      | X\u{7f}A: b
        a NUL in the value               | RFC 9110 §5.5; Envoy CVE-2019-9900 | X-A: b\0c
        a NUL at the end of the value    | RFC 9110 §5.5                      | X-A: b\0
        a backspace in the value         | RFC 9110 §5.5                      | X-A: b\u{8}c
        an escape in the value           | RFC 9110 §5.5                      | X-A: \u{1b}[31m
        a vertical tab in the value      | RFC 9110 §5.5                      | X-A: b\u{b}c
        a form feed in the value         | RFC 9110 §5.5                      | X-A: b\u{c}c
        a DEL in the value               | RFC 9110 §5.5                      | X-A: \u{7f}
        a bare CR                        | RFC 9112 §2.2; RFC 9110 §5.5       | X-A: b\rX-C: d
        a bare CR at the end             | RFC 9112 §2.2                      | X-A: b\r
        CR CR LF                         | RFC 9112 §2.2                      | X-A: b\r\r\nX-C: d
        LF CR                            | RFC 9112 §2.2                      | X-A: b\n\rX-C: d
        a bare CR that ends the head     | RFC 9112 §2.2                      | X-A: b\r\rGET /smuggled HTTP/1.1
        a request line among the fields  | RFC 9112 §5                        | GET /smuggled HTTP/1.1
    "#)
    .iter()
    .map(|[name, source, line]| refused(name, source, 400, get(line)))
    .collect();
    // RFC 9112 §2.2: "a recipient MAY recognize a single LF as a line terminator". The API gets CRLF, and of the fields
    // that such a line hides only those that may pass.
    for (name, lines) in [
        ("a bare LF", "X-A: b\nX-C: d"),
        ("a bare LF that hides a field", "X-A: b\nX-Auth-User: root"),
    ] {
        cases.push(passes(name, "RFC 9112 §2.2", "GET /x", get(lines)));
    }
    // The bytes after the head are a request of their own, without a signature.
    for (name, lines) in [
        (
            "a bare LF that ends the head",
            "X-A: b\n\nGET /smuggled HTTP/1.1",
        ),
        ("CRLF LF", "X-A: b\r\n\nGET /smuggled HTTP/1.1"),
    ] {
        cases.push(
            refused(name, "RFC 9112 §2.2", 400, get(lines))
                .answers(&[200, 400])
                .seen(&["GET /x"]),
        );
    }
    stage.play(36, &cases);
    stage.play(
        2,
        &[
            refused(
                "white space before the first field",
                "RFC 9112 §2.2",
                400,
                "GET /x HTTP/1.1\r\n Host: $H\r\n$A[GET /x]\r\n\r\n",
            ),
            refused(
                "a fold of the request line",
                "RFC 9112 §2.2",
                400,
                "GET /x HTTP/1.1\r\n X-A: b\r\nHost: $H\r\n$A[GET /x]\r\n\r\n",
            ),
        ],
    );
}

#[test]
fn every_control_byte_in_a_field_is_rejected() {
    let stage = Stage::new("");
    let control = (0..=0x1fu8).chain([0x7f]).filter(|&byte| byte != b'\t');
    let cases: Vec<Case> = control
        .flat_map(|byte| {
            let byte = char::from(byte);
            [
                format!("X-A: b{byte}c"),
                format!("X{byte}A: b"),
                format!("X-A:{byte}b"),
            ]
        })
        .map(|line| refused(&format!("{line:?}"), "RFC 9110 §5.5, §5.1", 400, get(&line)))
        .collect();
    stage.play(96, &cases);
}

#[test]
fn field_values_may_have_all_other_bytes() {
    let stage = Stage::new("");
    let every: String = (0x20..=0xffu8)
        .filter(|&byte| byte != 0x7f)
        .map(char::from)
        .filter(|&c| c != '$')
        .collect();
    stage.play(
        3,
        &[
            passes(
                "every byte of a value",
                "RFC 9110 §5.5",
                "GET /x",
                get(&format!("X-A: a{every}z")),
            ),
            passes("an empty value", "RFC 9110 §5.5", "GET /x", get("X-A:")),
            passes(
                "every character of a name",
                "RFC 9110 §5.6.2",
                "GET /x",
                get("!#%&'*+-.^_`|~09azAZ: b"),
            ),
        ],
    );
    let seen = stage.api.requests();
    assert_eq!(seen[0].header("x-a"), Some(format!("a{every}z").as_str()));
    let sent = seen
        .iter()
        .find(|seen| seen.fields.has("!#%&'*+-.^_`|~09azAZ"));
    assert!(sent.is_some(), "{seen:?}");
}
