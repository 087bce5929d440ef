//! `why`: what the console knows of a consumer's rejections, from the running process or from its log.

use std::{
    fmt::Write as _,
    fs::File,
    io::{self, BufRead, BufReader, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;

use super::{
    context::{About as _, CommandError, ConfigArgs, Output},
    health,
};
use crate::{
    base::{clock::UnixTime, names::ConsumerKey},
    oauth::percent,
    operator::reasons::{self, access_line},
    request::rejections::KeptCall,
    run::app::StartError,
    telemetry::lines::visible,
};

pub(super) const HELP: &str = "\
Without LOG the running process is asked, by the admin API, with the first token of admin.read_token_file or admin.token_file. It
knows the calls since its start. A log knows those of the time that it covers, and of every replica whose lines are in it; it needs
log.access = true, and may be text or JSON.

Of a service: journalctl -u countersign --since -2h | countersign why KEY -";

/// Prints why calls of a consumer were rejected, and what to do.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The key of the consumer
    #[arg(value_name = "KEY")]
    key: ConsumerKey,
    /// The log of countersign serve, - for standard input
    #[arg(value_name = "LOG")]
    log: Option<PathBuf>,
    /// Print JSON, an object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigArgs,
}

/// Finds the reasons.
///
/// # Errors
/// The process does not answer, the log cannot be read, or nothing is known of such a consumer.
pub(super) fn run(args: &Args) -> Result<Output, CommandError> {
    let (reasons, found, since) = match args.log.as_deref() {
        None => {
            let (reasons, found) = ask(&args.config, &args.key)?;
            let since = "since this process started; the log also has what was before, and what other replicas rejected: countersign why KEY LOG";
            (reasons, found, since)
        }
        Some(log) => (read(log, &args.key)?, None, "in this log"),
    };
    if args.json {
        let lines = reasons.iter().map(|reason| format!("{reason}\n"));
        return Ok(lines.collect::<String>().into());
    }
    let texts: Vec<String> = reasons.iter().map(text).collect();
    let mut text = match texts.is_empty() {
        true => format!("No call that names {} was rejected {since}.\n", args.key),
        false => texts.join("\n"),
    };
    if let Some(contact) = found.as_ref().and_then(|found| found["contact"].as_str()) {
        let _ = writeln!(text, "\nThe contact of its developer: {}", visible(contact));
    }
    // Its own records have no such time.
    if let Some(at) = found
        .as_ref()
        .and_then(|found| found["looked_up_at"].as_str())
    {
        let state = match found.as_ref().is_some_and(|found| found["enabled"] == true) {
            true => "enabled",
            false => "disabled",
        };
        let _ = writeln!(
            text,
            "{} is not registered here: store.lookup.url has it, {state}, asked at {at}.",
            args.key
        );
    }
    Ok(text.into())
}

/// Asks the running process for the reasons, and for the consumer.
fn ask(
    config: &ConfigArgs,
    key: &ConsumerKey,
) -> Result<(Vec<Value>, Option<Value>), CommandError> {
    config.announce();
    let config = config.load()?;
    let (admin, failed) = (&config.admin, |text: String| CommandError::failed(text));
    let token = admin.any_token().map_err(StartError::from)?;
    let token = token.ok_or_else(|| {
        failed(
            "the admin API is off: set admin.token_file, or name the log of countersign serve after the key".to_owned(),
        )
    })?;
    let fields = zeroize::Zeroizing::new(format!(
        "Authorization: Bearer {}\r\n",
        *token.expose_text()
    ));
    let ask = |page: &str| {
        health::ask(&admin.listen, page, &fields).map_err(|error| {
            failed(format!(
                "admin.listen: {}: {error}; is serve running? Else name its log after the key",
                admin.listen
            ))
        })
    };
    let name = percent::encode(key.as_str().as_bytes());
    let page = format!("/v1/rejections/summary?limit=100&consumer={name}");
    let items = match ask(&page)? {
        (200, body) => {
            let mut page: Value = serde_json::from_str(&body).about("the admin API")?;
            match page["items"].take() {
                Value::Array(items) => items,
                _ => Vec::new(),
            }
        }
        (401, _) => {
            return Err(failed(
                "the running process does not accept the token of the file; reload it, for it has read another one".to_owned(),
            ));
        }
        (status, body) => return Err(failed(format!("the admin API answers {status}: {body}"))),
    };
    let (status, found) = ask(&format!("/v1/consumers/{name}"))?;
    if items.is_empty() && status == 404 {
        return Err(failed(format!(
            "no consumer has the key {key}, and no rejected call names it; see countersign consumer list"
        )));
    }
    Ok((items, serde_json::from_str(&found).ok()))
}

/// Reads a log, line by line.
fn read(log: &Path, key: &ConsumerKey) -> Result<Vec<Value>, CommandError> {
    let input: Box<dyn io::Read> = match log.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(log).about(log.display())?),
    };
    let (mut groups, mut access_lines) = (Vec::new(), 0_u64);
    let mut lines = Lines(BufReader::new(input));
    while let Some(line) = lines.next().about(log.display())? {
        let Some((time, call)) = access_line::read(&line) else {
            continue;
        };
        access_lines += 1;
        if call.is_rejected() && call.named_consumer() == Some(key.as_str()) {
            let rejected = KeptCall {
                number: access_lines,
                time,
                is_registered: call.consumer.is_some(),
                ..KeptCall::from(call)
            };
            reasons::count(&mut groups, &Arc::new(rejected));
        }
    }
    if access_lines == 0 {
        return Err(CommandError::failed(
            "no line of a request is in this log; give the standard error of countersign serve, with log.access = true",
        ))
        .about(log.display());
    }
    Ok(reasons::views(groups))
}

/// The lines of an input of any length.
struct Lines<R>(BufReader<R>);

impl<R: io::Read> Lines<R> {
    /// The next line. A longer one than ours can be is not one of ours, and its rest is dropped.
    fn next(&mut self) -> io::Result<Option<String>> {
        /// Longer than the longest line of a request.
        const LONGEST: u64 = 256 * 1024;

        let mut line = Vec::new();
        if (&mut self.0).take(LONGEST).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') {
            self.0.skip_until(b'\n')?;
        }
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
    }
}

/// A reason as text, from the members of the admin API.
fn text(reason: &Value) -> String {
    // A log may have lines of other programs.
    let word = |members: &Value, name: &str| members[name].as_str().map(visible);
    let (count, newest) = (
        reason["count"].as_u64().unwrap_or_default(),
        &reason["newest"],
    );
    let noun = if count == 1 { "call" } else { "calls" };
    let mistake = word(reason, "mistake").unwrap_or_default();
    let mut text = format!(
        "{count} {noun}: {mistake} ({})",
        word(reason, "reason").unwrap_or_default()
    );
    if word(reason, "verdict").as_deref() == Some("observed") {
        text += ", only observed: the calls went to the API";
    }
    text.push('\n');
    let proofs = ["verified", "secrets", "none"];
    let proofs = proofs.map(|name| reason["proof"][name].as_u64().unwrap_or_default());
    let method = word(newest, "method");
    let operation = word(newest, "operation").unwrap_or_default();
    // The label of an operation has its methods before the path.
    let target = operation.rsplit(' ').next().unwrap_or_default();
    let call = [method.as_deref().unwrap_or_default(), target].join(" ");
    let mut last = vec![
        time(&reason["last"]),
        call.trim().to_owned(),
        format!("status {}", newest["status"]),
    ];
    last.extend(word(newest, "address").map(|address| format!("from {address}")));
    last.extend(word(newest, "request_id").map(|id| format!("request id {id}")));
    let mut row = |name: &str, value: &str| {
        // Writing to a `String` never fails.
        let _ = writeln!(text, "  {name:<7} {value}");
    };
    row("first", &time(&reason["first"]));
    row("last", &last.join(", "));
    row("sender", &reasons::proof_of(proofs));
    row("advice", &word(reason, "advice").unwrap_or_default());
    text
}

fn time(value: &Value) -> String {
    let time: Option<UnixTime> = serde_json::from_value(value.clone()).ok();
    time.map_or_else(|| value.to_string(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_of_another_program_steers_no_terminal_and_forges_no_line() {
        let odd = "\u{1b}[2J\n1000 calls: forged";
        let newest = json!({"method": odd, "operation": odd, "address": odd, "request_id": odd, "status": 401});
        let reason =
            json!({"reason": odd, "mistake": odd, "advice": odd, "count": 1, "newest": newest});
        let text = text(&reason);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert_eq!(text.lines().count(), 5, "{text:?}");
    }
}
