//! The commands of the documents, run in order in one shell: `console` blocks print the shown output, `sh` blocks
//! succeed. A script in `guides` prepares what the first command needs.
//!
//! Promise (Permissions and identity): A consumer can move to OAuth 2 while both work, and the API does not change.
//! Promise (Storage and operation): Every command in the documents does what the document says, and every code has a heading in
//! that of errors. Also in `tests/deploy/documents.rs`.

use std::{
    collections::BTreeSet,
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

/// The time limit of a command.
const LONGEST: Duration = Duration::from_secs(60);
/// Ends the output of a command.
const MARK: &str = "--- end of the output ---";

/// Blocks that cannot run here: how they begin, and the file that runs them.
const ELSEWHERE: [(&str, &str); 2] = [
    ("tests/run", ".ci/run"),
    (
        "systemctl start countersign-next",
        "tests/deploy/package.sh",
    ),
];

/// The languages of blocks without commands.
const NO_COMMANDS: [&str; 7] = ["toml", "python", "php", "js", "ruby", "ftl", "text"];

/// A command and its output: `…` in a line is any text, and as a line any lines. `None`: it only has to succeed.
#[derive(Debug)]
struct Step {
    section: String,
    command: String,
    expected: Option<Vec<String>>,
}

/// The blocks of a document that are not in [`NO_COMMANDS`]: section, language and lines.
fn blocks(document: &str) -> Vec<(String, String, Vec<String>)> {
    let (mut blocks, mut section) = (Vec::new(), "");
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        section = line.strip_prefix("## ").unwrap_or(section);
        // A block of a list is indented.
        let Some((indent, language)) = line
            .split_once("```")
            .filter(|(it, _)| it.trim().is_empty())
        else {
            continue;
        };
        let inside = lines.by_ref().take_while(|line| line.trim() != "```");
        let inside = inside.map(|line| line.strip_prefix(indent).unwrap_or(line).to_owned());
        let inside: Vec<String> = inside.collect();
        let is_elsewhere = |begin: &str| language == "sql" && inside[0].starts_with(begin);
        let is_run = ELSEWHERE.iter().any(|(begin, _)| is_elsewhere(begin));
        if !NO_COMMANDS.contains(&language) && !is_run {
            blocks.push((section.to_owned(), language.to_owned(), inside));
        }
    }
    blocks
}

/// The commands of a document.
fn steps(document: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for (section, language, lines) in blocks(document) {
        let step = |command: String, expected| Step {
            section: section.clone(),
            command,
            expected,
        };
        if language == "sh" {
            if !ELSEWHERE
                .iter()
                .any(|(begin, _)| lines[0].starts_with(begin))
            {
                steps.push(step(format!("(set -e\n{}\n)", lines.join("\n")), None));
            }
            continue;
        }
        assert_eq!(language, "console", "{lines:?}");
        let mut is_open = false;
        for line in lines {
            if let Some(command) = line.strip_prefix("$ ").filter(|_| !is_open) {
                is_open = command.contains("<<'END'") || command.ends_with('\\');
                steps.push(step(command.to_owned(), Some(Vec::new())));
                continue;
            }
            let step: &mut Step = steps.last_mut().unwrap();
            if is_open {
                step.command += &format!("\n{line}");
                let is_here_document = step.command.contains("<<'END'");
                is_open = line.ends_with('\\') || (is_here_document && line != "END");
            } else {
                step.expected.as_mut().unwrap().push(line);
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
        // Each `…` must match some text.
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
            .env("PROJECT", env!("CARGO_MANIFEST_DIR"))
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

    /// Runs a command, with the lines that it reads after it. Returns what it prints, and whether it succeeds.
    fn run(&mut self, command: &str) -> (String, bool) {
        let text = format!("{command}\nprintf '\\n%s%d\\n' '{MARK}' $?\n");
        self.input.write_all(text.as_bytes()).unwrap();
        let mut printed = String::new();
        loop {
            let line = self.lines.recv_timeout(LONGEST);
            let line = line.unwrap_or_else(|error| panic!("{command}: {error}: {printed}"));
            if let Some(status) = line.strip_prefix(MARK) {
                return (printed, status == "0");
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

/// A browser for the parts that a user does.
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

/// The documents with commands, each with its test.
macro_rules! guides {
    ($($test:ident: $document:literal,)*) => {
        const GUIDES: &[&str] = &[$($document),*];

        $(#[test]
        fn $test() {
            follow($document);
        })*
    };
}

guides! {
    the_commands_of_the_readme_do_what_it_says: "README.md",
    every_command_prints_what_the_guide_says: "docs/first-hour.md",
    every_command_of_an_upgrade_prints_what_the_guide_says: "docs/upgrading.md",
    every_command_of_a_migration_prints_what_the_guide_says: "docs/migrating.md",
    every_command_of_a_move_from_a_gateway_prints_what_its_page_says: "docs/from-a-gateway.md",
    every_command_of_the_way_to_oauth_2_prints_what_the_guide_says: "docs/leaving.md",
    every_command_of_the_admin_api_prints_what_its_page_says: "docs/admin-api.md",
    every_command_about_the_assertion_prints_what_its_page_says: "docs/assertion.md",
    the_commands_that_verify_a_release_succeed: "docs/verify.md",
    the_commands_for_a_gateway_succeed: "docs/gateways.md",
    every_command_of_the_setup_prints_what_its_page_says: "docs/setup.md",
    the_command_that_explains_a_signature_succeeds: "docs/signatures.md",
    every_command_of_a_launch_prints_what_its_page_says: "docs/lti.md",
    every_command_of_a_signed_call_prints_what_its_page_says: "docs/receiving.md",
    the_command_about_the_log_succeeds: "docs/health.md",
    the_imports_of_another_systems_files_succeed: "docs/backup.md",
    the_commands_for_alerts_succeed: "docs/metrics.md",
    the_commands_for_containers_succeed: "deploy/README.md",
    the_commands_for_the_chart_succeed: "deploy/charts/countersign/README.md",
}

#[test]
fn no_document_has_a_command_that_is_not_run() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documents = BTreeSet::from(
        [
            "README.md",
            "ARCHITECTURE.md",
            "CHANGELOG.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
            "deploy/README.md",
            "deploy/charts/countersign/README.md",
        ]
        .map(str::to_owned),
    );
    for page in fs::read_dir(project.join("docs")).unwrap() {
        let name = page.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") {
            documents.insert(format!("docs/{name}"));
        }
    }
    let read = |name: &str| fs::read_to_string(project.join(name)).unwrap();
    documents.retain(|name| !blocks(&read(name)).is_empty());
    assert_eq!(
        documents,
        GUIDES.iter().map(|&name| name.to_owned()).collect()
    );
    for (command, file) in ELSEWHERE {
        assert!(read(file).contains(command), "{file} runs {command}");
    }
}

/// Runs the commands of a document.
fn follow(name: &str) {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut guide = fs::read_to_string(project.join(name)).unwrap();
    let listeners = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [public, admin, api, server] =
        listeners.map(|free| free.local_addr().unwrap().port().to_string());
    for (written, free) in [
        ("8080", &public),
        ("8081", &admin),
        ("9000", &api),
        ("9001", &server),
    ] {
        guide = guide.replace(written, free);
    }
    let steps = steps(&guide);
    assert!(!steps.is_empty());

    let directory = TempDir::new().unwrap();
    // A terminal gets no progress meter either.
    fs::write(directory.path().join(".curlrc"), "silent\n").unwrap();
    let jar = directory.path().join("jar");
    let browser = Browser {
        jar: &jar,
        origin: format!("http://127.0.0.1:{public}"),
    };
    let mut shell = Shell::start(directory.path());
    let before = name.replace('/', "-").replace(".md", ".sh");
    if project.join("tests/commands/guides").join(&before).exists() {
        let (printed, is_done) = shell.run(&format!(
            "PUBLIC={public} ADMIN={admin} API={api} SERVER={server}; . \"$PROJECT/tests/commands/guides/{before}\""
        ));
        assert!(is_done, "{before}: {printed}");
    }
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
        let is_done;
        (printed, is_done) = shell.run(&command);
        let lines: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
        let is_as_told = step
            .expected
            .as_ref()
            .map_or(is_done, |expected| matches(&lines, expected));
        assert!(
            is_as_told,
            "{name}: {}: {command}\nprinted:\n{printed}expected:\n{}\nserve.log:\n{}",
            step.section,
            step.expected.unwrap_or_default().join("\n"),
            fs::read_to_string(directory.path().join("serve.log")).unwrap_or_default()
        );
    }
    assert_eq!(has_visited, name == "docs/first-hour.md");
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
