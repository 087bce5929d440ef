//! The moving picture of the README, `docs/pictures/why.svg`: a wrong call, the command that says why, and the right call, with
//! what the running program printed. `tests/pictures` writes it.
//!
//! Promise (Storage and operation): Each picture in the documents shows the page, or what the program prints, as it is. Also in
//! `tests/deploy/pictures.rs`.

use std::{fmt::Write as _, fs, process::Command};

use super::{file, printed};
use crate::support::{Proxy, Reply, Upstream, free_port, until};

const PICTURE: &str = "docs/pictures/why.svg";
/// Seconds after which the picture begins again, and between a command and its output.
const LENGTH: f64 = 20.0;
const RUNNING: f64 = 1.2;
/// Seconds for which a reader gets each output.
const READING: f64 = 5.0;
const WIDTH: usize = 940;
const LINE_HEIGHT: usize = 21;

const CONFIG: &str = "
[[permission]]
name = 'photos.read'
title = 'See your photos'

[[operation]]
path = '/photos/{id}'
permission = 'photos.read'
";

const RECORDS: &str = r#"{"kind":"export","version":1}
{"kind":"user","id":"4711","name":"ada"}
{"kind":"consumer","key":"wall","secret":"secret of wall","name":"Wall calendar","permissions":["photos.read"]}
{"kind":"token","token":"token-of-ada","token_secret":"secret of ada","consumer":"wall","user":"4711","permissions":["photos.read"]}
"#;

/// A command as the reader sees it, and the lines of its output.
type Step = (String, Vec<String>);

/// Runs the three commands.
fn session() -> Vec<Step> {
    let api = Upstream::replying(|seen| {
        let user = seen.header("x-auth-user").unwrap_or_default();
        let consumer = seen.header("x-auth-consumer").unwrap_or_default();
        Reply::ok(format!(
            "The API got {}\nX-Auth-User: {user}\nX-Auth-Consumer: {consumer}\n",
            seen.target
        ))
    });
    let admin = format!("admin.listen = '127.0.0.1:{}'\n{CONFIG}", free_port());
    let builder = Proxy::in_front_of(&api).with_console().config(&admin);
    let proxy = builder.start();
    proxy.command_with(&["import", "-"], RECORDS).done();
    let url = format!("{}/photos/7", proxy.origin());
    let call = |signed: &str| {
        let credentials = ["--consumer-key", "wall", "--token", "token-of-ada"];
        let sign = [&["sign"], &credentials[..], &["GET", signed]].concat();
        let header = proxy.command(&sign).done().stdout;
        let mut curl = Command::new("curl");
        curl.args(["-si", "-H", header.trim_end()]);
        printed(curl.arg(format!("{url}?size=large")))
    };
    let shown = |signed: &str| {
        format!(
            "curl -i \"$API/photos/7?size=large\" -H \"$(countersign sign GET \"$API/photos/7{signed}\" …)\""
        )
    };
    // The status and the body, which is all that a consumer's developer looks at.
    let seen = |response: String| {
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        let mut lines = vec![head.lines().next().unwrap().to_owned()];
        for line in body.lines().flat_map(|line| line.split('&')) {
            lines.push(line.replace("%20", " "));
        }
        lines
    };
    let rejected = seen(call(&url));
    let mut why = String::new();
    until("the call is counted", || {
        why = proxy.command(&["why", "wall"]).done().stdout;
        why.contains("advice")
    });
    let why = why
        .lines()
        .filter(|line| !line.contains("20"))
        .map(str::to_owned);
    let why = Vec::from_iter(why);
    let accepted = seen(call(&format!("{url}?size=large")));
    vec![
        (shown(""), rejected),
        ("countersign why wall".to_owned(), why),
        (shown("?size=large"), accepted),
    ]
}

/// The picture: each line appears at its time and stays, and all are there for readers who want no motion.
fn picture(session: &[Step]) -> String {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let (mut rows, mut styles, mut row, mut time) = (String::new(), String::new(), 0, 0.4);
    let mut show = |class: &str, text: &str, time: f64| {
        row += 1;
        let (y, percent) = (24 + row * LINE_HEIGHT, 100.0 * time / LENGTH);
        writeln!(
            rows,
            "<text class=\"{class} l{row}\" x=\"20\" y=\"{y}\">{}</text>",
            escaped(text)
        )
        .unwrap();
        writeln!(styles, "@keyframes k{row} {{ 0% {{ opacity: 0 }} {percent:.1}%, 100% {{ opacity: 1 }} }} .l{row} {{ animation: k{row} {LENGTH}s step-end infinite }}").unwrap();
        y
    };
    let mut height = 0;
    for (command, lines) in session {
        show("command", &format!("$ {command}"), time);
        time += RUNNING;
        for line in lines {
            let class = match line {
                line if line.starts_with("HTTP/1.1 4") => "wrong",
                line if line.starts_with("HTTP/1.1 2") => "right",
                line if line.contains("advice") => "advice",
                _ => "output",
            };
            height = show(class, line, time);
        }
        show("output", "", time);
        time += READING;
    }
    height += 20;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">
<title>A wrong call gets 401, countersign why says why, and the right call gets 200</title>
<style>
text {{ font: 13px ui-monospace, \"DejaVu Sans Mono\", Menlo, Consolas, monospace; fill: #333; white-space: pre }}
.frame {{ fill: #f6f7f9; stroke: #c9ced6 }}
.command {{ fill: #111; font-weight: bold }} .wrong {{ fill: #a3150e; font-weight: bold }} .right {{ fill: #13602b; font-weight: bold }} .advice {{ fill: #1a3fae }}
@media (prefers-color-scheme: dark) {{
text {{ fill: #c8ccd4 }} .frame {{ fill: #16181d; stroke: #3a3f4a }}
.command {{ fill: #fff }} .wrong {{ fill: #ff8f85 }} .right {{ fill: #79d894 }} .advice {{ fill: #9db8ff }}
}}
@media (prefers-reduced-motion: no-preference) {{
{styles}}}
</style>
<rect class=\"frame\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>
{rows}</svg>
",
        WIDTH - 1,
        height - 1,
    )
}

#[test]
fn the_moving_picture_shows_what_the_program_prints() {
    let picture = picture(&session());
    if std::env::var_os("COUNTERSIGN_WRITE_PICTURES").is_some() {
        fs::write(file(PICTURE), &picture).unwrap();
    }
    let committed = fs::read_to_string(file(PICTURE)).unwrap_or_default();
    assert!(
        picture == committed,
        "the output changed; tests/pictures makes the picture again:\n{picture}"
    );
}
