//! `why`: what the console knows of a consumer's rejections, from the running process or from its log.

use std::{
    fmt::Write as _,
    fs::File,
    io::{self, BufRead, BufReader, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;

use super::admin_api::AdminApi;
use crate::{
    base::{
        clock::UnixTime,
        text::{counted, names::ConsumerKey},
    },
    cli::{
        arguments::named::chosen,
        context::{About as _, CommandError, ConfigArgs, Output},
    },
    oauth::percent,
    operator::reasons::{self, logged_call},
    telemetry::{calls::rejections::KeptCall, log::lines::visible},
};

pub(in crate::cli) const HELP: &str = "\
Without LOG the running process is asked, by the admin API, with the first token of admin.read_token_file or admin.token_file. It
knows the calls since its start. A log knows those of the time that it covers, and of every replica whose lines are in it; it needs
log.access = true, and may be text or JSON.

Of a service: journalctl -u countersign --since -2h | countersign why KEY -";

/// Prints why calls of a consumer were rejected, and what to do.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The key of the consumer; without LOG also its name, if no other consumer has it
    #[arg(value_name = "KEY", allow_hyphen_values = true)]
    consumer: String,
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
pub(in crate::cli) fn run(args: &Args) -> Result<Output, CommandError> {
    let config;
    let (key, reasons, found, since) = match args.log.as_deref() {
        None => {
            args.config.announce();
            config = args.config.load()?;
            let api = AdminApi::new(
                &config,
                ", or name the log of countersign serve after the key",
            )?;
            let (key, reasons, found) = ask(&api, &args.consumer)?;
            let since = "since this process started; the log also has what was before, and what other replicas rejected: countersign why KEY LOG";
            (key, reasons, found, since)
        }
        Some(log) => {
            let key: ConsumerKey = args.consumer.parse().map_err(CommandError::usage)?;
            let reasons = read(log, &key)?;
            (key.to_string(), reasons, None, "in this log")
        }
    };
    if args.json {
        let lines = reasons.iter().map(|reason| format!("{reason}\n"));
        return Ok(lines.collect::<String>().into());
    }
    let texts: Vec<String> = reasons.iter().map(text).collect();
    let mut text = match texts.is_empty() {
        true => format!(
            "No call that names {} was rejected {since}.\n",
            visible(&key)
        ),
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
            visible(&key)
        );
    }
    Ok(text.into())
}

/// Asks the running process for the key of a consumer, the reasons, and the consumer.
fn ask(
    api: &AdminApi<'_>,
    named: &str,
) -> Result<(String, Vec<Value>, Option<Value>), CommandError> {
    let path = percent::encode(named.as_bytes());
    if named.parse::<ConsumerKey>().is_ok() {
        let mut items = api.items(&format!("/v1/rejections/summary?consumer={path}"))?;
        // A log does not know these.
        for members in items.iter_mut().filter_map(Value::as_object_mut) {
            members.retain(|name, _| !["name", "needs_attention"].contains(&name.as_str()));
        }
        let found = api.get(&format!("/v1/consumers/{path}"))?;
        if found.is_some() || !items.is_empty() {
            return Ok((named.to_owned(), items, found));
        }
    }
    let similar = api.items(&format!("/v1/consumers?q={path}"))?;
    let text = |of: &Value, name: &str| of[name].as_str().unwrap_or_default().to_owned();
    let names = similar
        .iter()
        .map(|one| (text(one, "name"), text(one, "key")));
    let names = Vec::from_iter(names);
    match chosen(named, &names)? {
        Some(index) => ask(api, &names[index].1),
        None => Err(CommandError::failed(format!(
            "no consumer has the key {named}, and no rejected call names it; see countersign consumer list"
        ))),
    }
}

/// Reads a log, line by line.
fn read(log: &Path, key: &ConsumerKey) -> Result<Vec<Value>, CommandError> {
    let input: Box<dyn io::Read> = match log.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(log).about(log.display())?),
    };
    let (mut groups, mut access_lines) = (Vec::new(), 0_u64);
    let mut input = BufReader::new(input);
    while let Some(line) = next_line(&mut input).about(log.display())? {
        let Some((time, call)) = logged_call::read(&line) else {
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

/// The next line of an input of any length. A longer one than ours can be is not one of ours, and its rest is dropped.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    /// Longer than the longest line of a request.
    const LONGEST: u64 = 256 * 1024;

    let mut line = Vec::new();
    if input.take(LONGEST).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') {
        input.skip_until(b'\n')?;
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

/// A reason as text, from the members of the admin API.
fn text(reason: &Value) -> String {
    // A log may have lines of other programs.
    let word = |members: &Value, name: &str| members[name].as_str().map(visible);
    let (count, newest) = (
        reason["count"].as_u64().unwrap_or_default(),
        &reason["newest"],
    );
    let mistake = word(reason, "mistake").unwrap_or_default();
    let mut text = format!(
        "{}: {mistake} ({})",
        counted(count, "call"),
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
    fn lines_of_other_programs_steer_no_terminal_and_forge_no_line() {
        let odd = "\u{1b}[2J\n1000 calls: forged";
        let newest = json!({"method": odd, "operation": odd, "address": odd, "request_id": odd, "status": 401});
        let reason =
            json!({"reason": odd, "mistake": odd, "advice": odd, "count": 1, "newest": newest});
        let text = text(&reason);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert_eq!(text.lines().count(), 5, "{text:?}");
    }
}
