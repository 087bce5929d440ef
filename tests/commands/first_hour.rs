//! `docs/first-hour.md` and other guides: their commands, run in order in one shell, print what the guides say.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

/// How long a command may take.
const LONGEST: Duration = Duration::from_secs(60);
/// Ends the output of a command.
const MARK: &str = "--- end of the output ---";

/// A command of the guide and what it prints: `…` in a line is any text, and as a line any number of lines.
#[derive(Debug)]
struct Step {
    section: String,
    command: String,
    expected: Vec<String>,
}

/// The `console` blocks of the guide.
fn steps(guide: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut section, mut is_inside, mut is_here_document) = (String::new(), false, false);
    for line in guide.lines() {
        // A block may belong to an item of a list.
        let line = match is_here_document {
            true => line,
            false => line.strip_prefix("   ").unwrap_or(line),
        };
        match (line, is_inside) {
            ("```console", _) => is_inside = true,
            ("```", _) => is_inside = false,
            (_, false) => {
                if let Some(title) = line.strip_prefix("## ") {
                    title.clone_into(&mut section);
                }
            }
            (_, true) => {
                if let Some(command) = line.strip_prefix("$ ").filter(|_| !is_here_document) {
                    is_here_document = command.ends_with("<<'END'");
                    steps.push(Step {
                        section: section.clone(),
                        command: command.to_owned(),
                        expected: Vec::new(),
                    });
                    continue;
                }
                let step = steps.last_mut().unwrap();
                if is_here_document {
                    step.command += &format!("\n{line}");
                    is_here_document = line != "END";
                } else {
                    step.expected.push(line.to_owned());
                }
            }
        }
    }
    steps
}

fn line_matches(line: &str, expected: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    for (number, part) in parts.iter().enumerate() {
        let is_last = number + 1 == parts.len();
        // Something stands for each `…`.
        let found = match is_last {
            true => rest.ends_with(part).then(|| rest.len() - part.len()),
            false => rest.find(part),
        };
        match found {
            Some(at) if at > 0 => rest = &rest[at + part.len()..],
            _ => return false,
        }
    }
    rest.is_empty()
}

fn matches(lines: &[&str], expected: &[String]) -> bool {
    match expected {
        [] => lines.is_empty(),
        [any, others @ ..] if any == "…" => {
            (0..=lines.len()).any(|skipped| matches(&lines[skipped..], others))
        }
        [first, others @ ..] => {
            lines.first().is_some_and(|line| line_matches(line, first))
                && matches(&lines[1..], others)
        }
    }
}

/// A shell that runs the commands.
struct Shell {
    process: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Shell {
    fn start(directory: &Path) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_countersign"));
        let path = std::env::var("PATH").unwrap();
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/.tools/venv/bin");
        let mut command = Command::new("bash");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("COUNTERSIGN") {
                command.env_remove(name);
            }
        }
        let mut process = command
            .current_dir(directory)
            .env("HOME", directory)
            .env(
                "PATH",
                format!(
                    "{}:{}:{path}",
                    program.parent().unwrap().display(),
                    tools.display()
                ),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(process.stdout.take().unwrap());
        thread::spawn(move || {
            for line in output.lines() {
                let _ = sender.send(line.unwrap());
            }
        });
        let mut input = process.stdin.take().unwrap();
        input.write_all(b"exec 2>&1\n").unwrap();
        Self {
            process,
            input,
            lines,
        }
    }

    /// Runs a command, with the lines that it reads behind it.
    fn run(&mut self, command: &str) -> String {
        let text = format!("{command}\nprintf '\\n%s\\n' '{MARK}'\n");
        self.input.write_all(text.as_bytes()).unwrap();
        let mut printed = String::new();
        loop {
            let line = self.lines.recv_timeout(LONGEST);
            let line = line.unwrap_or_else(|error| panic!("{command}: {error}: {printed}"));
            if line == MARK {
                return printed;
            }
            printed += &(line + "\n");
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // The servers that it started are in its group.
        let _ = kill_process_group(Pid::from_child(&self.process), Signal::KILL);
        let _ = self.process.wait();
    }
}

/// A browser for the parts that a person does.
struct Browser<'a> {
    jar: &'a Path,
    origin: String,
}

impl Browser<'_> {
    fn open(&self, url: &str, form: &[(&str, &str)]) -> String {
        let mut curl = Command::new("curl");
        curl.args([
            "-s",
            "-L",
            "-H",
            "Accept: text/html",
            "-H",
            "Sec-Fetch-Site: none",
        ]);
        curl.arg("-b").arg(self.jar).arg("-c").arg(self.jar);
        if !form.is_empty() {
            curl.args(["-H", &format!("Origin: {}", self.origin)]);
        }
        for (name, value) in form {
            curl.args(["--data-urlencode", &format!("{name}={value}")]);
        }
        String::from_utf8(curl.arg(url).output().unwrap().stdout).unwrap()
    }

    /// Fills the first form of a page.
    fn submit(&self, page: &str, form: &[(&str, &str)]) -> String {
        let action = between(page, "action=\"", "\"").replace("&#38;", "&");
        let csrf = between(page, "name=\"csrf\" value=\"", "\"");
        self.open(
            &(self.origin.clone() + &action),
            &[&[("csrf", csrf)], form].concat(),
        )
    }
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> &'t str {
    let found = text
        .split_once(before)
        .and_then(|(_, rest)| rest.split_once(after));
    found.unwrap_or_else(|| panic!("no {before:?} in {text}")).0
}

#[test]
fn every_command_prints_what_the_guide_says() {
    follow("first-hour");
}

#[test]
fn every_command_of_an_upgrade_prints_what_the_guide_says() {
    follow("upgrading");
}

#[test]
fn every_command_of_a_migration_prints_what_the_guide_says() {
    follow("migrating");
}

#[test]
fn every_command_of_the_way_to_oauth_2_prints_what_the_guide_says() {
    follow("leaving");
}

#[test]
fn every_command_about_the_assertion_prints_what_its_page_says() {
    follow("assertion");
}

#[test]
fn every_command_of_the_admin_api_prints_what_its_page_says() {
    follow("admin-api");
}

/// Runs the commands of a guide in `docs`.
fn follow(name: &str) {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/{name}.md"));
    let mut guide = fs::read_to_string(guide).unwrap();
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [public, admin, api] = listeners.map(|free| free.local_addr().unwrap().port().to_string());
    for (written, free) in [("8080", &public), ("8081", &admin), ("9000", &api)] {
        guide = guide.replace(written, free);
    }
    let steps = steps(&guide);
    assert!(steps.len() >= 6, "{steps:?}");

    let directory = TempDir::new().unwrap();
    // A terminal gets no progress meter either.
    fs::write(directory.path().join(".curlrc"), "silent\n").unwrap();
    let jar = directory.path().join("jar");
    let browser = Browser {
        jar: &jar,
        origin: format!("http://127.0.0.1:{public}"),
    };
    let mut shell = Shell::start(directory.path());
    let mut printed = String::new();
    let mut has_visited = false;
    for step in steps {
        let mut command = step.command.clone();
        if command == "read -r verifier" {
            let page = browser.open(printed.trim(), &[]);
            let login = [("username", "ada"), ("password", "enchantress of numbers")];
            let page = browser.submit(&page, &login);
            let page = browser.submit(&page, &[("decision", "allow")]);
            command += &format!("\n{}", between(&page, "id=\"verifier\">", "<"));
        }
        if step.section == "Stop" && !has_visited {
            let account = browser.open(&format!("{}/account", browser.origin), &[]);
            assert!(account.contains("X-Auth-Kind: user"), "{account}");
            has_visited = true;
        }
        printed = shell.run(&command);
        let lines: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
        assert!(
            matches(&lines, &step.expected),
            "{}: {command}\nprinted:\n{printed}expected:\n{}\nserve.log:\n{}",
            step.section,
            step.expected.join("\n"),
            fs::read_to_string(directory.path().join("serve.log")).unwrap_or_default()
        );
    }
    assert_eq!(has_visited, name == "first-hour");
}

#[test]
fn an_ellipsis_is_some_text_or_any_lines() {
    for (lines, expected, is_match) in [
        (&["a"][..], &["a"][..], true),
        (&["a"], &["b"], false),
        (&["a b"], &["a …"], true),
        (&["a "], &["a …"], false),
        (&["a b c b d"], &["a … b d"], true),
        (&["a", "b"], &["a"], false),
        (&["a", "b", "c"], &["a", "…"], true),
        (&["a"], &["a", "…"], true),
        (&["a", "b", "c"], &["…", "c"], true),
        (&["a", "b", "c"], &["…", "b"], false),
    ] {
        let expected: Vec<String> = expected.iter().map(|line| (*line).to_owned()).collect();
        assert_eq!(
            matches(lines, &expected),
            is_match,
            "{lines:?} {expected:?}"
        );
    }
}
