//! `export` and `import`: consumers, users and access tokens as JSON Lines, for backup, for moving between stores and
//! for taking over an existing system's keys. `line.rs` describes the format.

mod file;
#[cfg(fuzzing)]
pub mod fuzzing;
mod line;
mod read;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, BufReader, Read, Write},
    path::{Path, PathBuf},
};

use serde_json::{Map, json};

use self::{
    line::{Defaults, VERSION, line},
    read::{Contents, Mapping, mapping},
};
use super::{
    context::{About as _, CommandError, Context, Output, RecordArgs, StoreArgs},
    progress::Progress,
};
use crate::{
    base::{
        clock::UnixTime,
        names::{Permission, UserId},
    },
    provider::{issue::callback, login::password},
    records::{
        nonce::{self, settings::NonceScope},
        store::{
            self, Backend, OpenProblem, Opening,
            transfer::{Conflict, Export, Import, ImportList, MAX_PROBLEMS, Numbered, Record},
        },
    },
    run::app::services::{self, ServiceError},
    telemetry::audit::CommandRecord,
};

// Each paragraph is one line: clap breaks it where the terminal ends.
const EXPORT_HELP: &str = "\
The export holds every secret in clear, whether or not the store is encrypted: keep it as you keep the store. \
Request tokens, sessions and nonces are not in it. It names the last timestamp that the store may have accepted, so that \
no request is accepted again after a move.";

const IMPORT_HELP: &str = "\
Everything is imported or nothing, and up to 100 problems are reported together, each with its line. A record that is in \
the store already is left alone; if it is there with other content, that is an error. What was revoked or removed is not restored.

After an import from another store, signed requests with timestamps that it may have accepted get 503, for about six \
minutes after an export of a running serve; nonce.on_lost = \"accept\" waives this.

The file is JSON Lines. To take over the keys of another system, write it like this:

  {\"kind\":\"export\",\"version\":1}
  {\"kind\":\"consumer\",\"key\":\"shop\",\"secret\":\"…\",\"name\":\"Shop\",\"callbacks\":[\"https://shop.example/back\"]}
  {\"kind\":\"user\",\"id\":\"4711\",\"name\":\"alice\"}
  {\"kind\":\"token\",\"token\":\"…\",\"token_secret\":\"…\",\"consumer\":\"shop\",\"user\":\"4711\"}

Or give CSV with a header, and say what the rows are and which column holds which member. An empty cell is left out, and lists \
are separated by spaces:

  countersign import apps.csv --csv consumer --map key=consumer_key,secret=consumer_secret,name=title

An access token acts for a user. To import tokens that have none, add a user for them and name it with --token-user; or leave \
them out and let the consumer sign without a token, where access has application.

All other members may be left out:

  consumer  permissions, dialect (\"rfc5849\" or \"legacy\"), rsa_public_key (PEM),
            description, website, rsa_only, accept, pinned,
            body_hash (\"required\"), enforce, enabled, created_at,
            previous_secret with previous_secret_until
  user      display_name, password_hash, enabled, created_at
  token     permissions, issued_at, expires_at, last_used_at, revoked_at

Times are seconds since 1970, RFC 3339, or in UTC 2026-01-31 12:00:00 or 20260131120000; from 2000 to 9999. A secret that is not text is written in base64 under secret_base64 or token_secret_base64. Users without \
password_hash get a password from countersign user passwd. A password_hash may be:

  argon2id   $argon2id$v=19$m=65536,t=2,p=1$…, at most 128 MiB, 256 MiB times passes, 16 lanes
  bcrypt     $2a$, $2b$ or $2y$, at most cost 13
  PBKDF2     pbkdf2_sha256$600000$… of Django or $pbkdf2-sha256$…, at most 1200000 iterations;
             with sha512 in the name at most 300000
  scrypt     $scrypt$ln=16,r=8,p=1$…, at most 128 MiB times lanes
  SHA-crypt  $5$ or $6$, at most 100000 rounds
  phpass     $P$ or $H$, and $S$ of Drupal, at most 2^16 rounds

Every login takes the time of all costs in the store, so together they may take one second: bcrypt of cost 13 takes half \
of it. PBKDF2 counts as 75000, 300000 or 1200000 iterations. A login that succeeds replaces the hash by one of ours.";

/// Writes consumers, users and access tokens to a file
#[derive(Debug, clap::Args)]
#[command(after_help = EXPORT_HELP)]
pub struct ExportArgs {
    /// The file to make, readable by its owner alone; - for standard output
    file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// Reads consumers, users and access tokens from a file
#[derive(Debug, clap::Args)]
#[command(after_long_help = IMPORT_HELP)]
pub struct ImportArgs {
    /// The file, as JSON Lines or with --csv as CSV; - for standard input
    file: PathBuf,
    /// The file is CSV with a header, and each row is one of these
    #[arg(long, value_name = "KIND", value_parser = ["consumer", "user", "token"])]
    csv: Option<String>,
    /// The column that holds each member, as in key=consumer_key,secret; other columns are left out [default: every
    /// column, under its own name]
    #[arg(long, value_name = "MEMBER=COLUMN", value_delimiter = ',', value_parser = mapping, requires = "csv")]
    map: Vec<Mapping>,
    /// The character between the cells of CSV; \t for a tab
    #[arg(long, value_name = "C", value_parser = delimiter, default_value = ",", requires = "csv")]
    delimiter: u8,
    /// A cell of CSV with this text is left out, as an empty one is; \N for MySQL
    #[arg(long, value_name = "TEXT", default_value = "", requires = "csv")]
    null: String,
    /// The user of access tokens that name none
    #[arg(long, value_name = "ID")]
    token_user: Option<UserId>,
    /// Report what would be imported, or the problems, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    store: RecordArgs,
}

fn delimiter(text: &str) -> Result<u8, &'static str> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [c] if c.is_ascii() && !b"\"\r\n".contains(c) => Ok(*c),
        _ => Err("write one ASCII character, or \\t for a tab"),
    }
}

impl ExportArgs {
    /// Runs the command.
    pub fn run(self) -> Result<Output, CommandError> {
        self.store.run(false, Opening::Existing, async |context| {
            let mut text = Vec::new();
            let is_stdout = self.file == Path::new("-");
            if !is_stdout {
                file::check(&self.file, self.force)?;
            }
            let mut export = context.store()?.export().await?;
            if context.config.nonce_scope() == NonceScope::Shared {
                // Shared nonces are recorded one by one, perhaps outside the store, and processes may still run.
                let until = &mut export.origin.accepted_until;
                *until = next_high_water_mark(context).max(*until);
            }
            if is_stdout {
                write(&mut text, export)?;
            } else {
                file::create(&self.file, self.force, |file| write(file, export))?;
            }
            let about = CommandRecord::counting("store_exported", []);
            context.manage()?.audit(&context.actor, about).await;
            // serde_json writes UTF-8.
            Ok(String::from_utf8(text).unwrap_or_default())
        })
    }
}

/// Writes an export.
fn write(to: &mut impl Write, export: Export) -> io::Result<()> {
    let head = json!({
        "kind": "export",
        "version": VERSION,
        "records": export.records.len(),
        "store": export.origin.store,
        "accepted_until": export.origin.accepted_until,
    });
    writeln!(to, "{head}")?;
    let mut progress = Progress::new("records written");
    for (record, number) in export.records.iter().zip(1..) {
        serde_json::to_writer(&mut *to, &line(record))?;
        to.write_all(b"\n")?;
        progress.at(number);
    }
    Ok(())
}

/// A timestamp above any that a process with this configuration accepts now.
fn next_high_water_mark(context: &Context) -> UnixTime {
    nonce::next_high_water_mark(context.now, context.config.longest_window())
}

impl ImportArgs {
    /// Runs the command.
    pub fn run(self) -> Result<Output, CommandError> {
        let RecordArgs { store, json } = &self.store;
        store.run(*json, Opening::Command, async |context| {
            self.import(context).await
        })
    }

    async fn import(&self, context: &Context) -> Result<String, CommandError> {
        let is_stdin = self.file == Path::new("-");
        let name = match is_stdin {
            true => "standard input".to_owned(),
            false => self.file.display().to_string(),
        };
        let mut contents = Contents::new(Defaults {
            now: context.now,
            token_user: self.token_user.clone(),
            accepted_until: next_high_water_mark(context),
        });
        self.read(is_stdin, &mut contents)
            .about(format!("{name}: cannot be read"))?;
        let records = contents.take_records();
        let warnings = ImportWarnings::new(&records);
        let is_broken = !contents.problems.is_empty();
        let list = ImportList {
            origin: contents.origin.take(),
            dry_run: self.dry_run || is_broken,
            ..ImportList::new(records, password::milliseconds)
        };
        let counts = match import(context, list).await {
            // The problems of the file can be reported without the store.
            Err(_) if is_broken => None,
            Err(error) => return Err(error),
            Ok(Import::Imported(counts)) => Some(counts),
            Ok(Import::Rejected(problems)) => {
                // A record is unknown because its line cannot be read: reported already.
                let follows = |conflict: &Conflict| {
                    let missing = conflict.missing();
                    missing
                        .is_some_and(|name| contents.has_unnamed || contents.unread.contains(&name))
                };
                let found = problems
                    .into_iter()
                    .filter(|found| !follows(&found.conflict));
                let found =
                    found.map(|found| (found.line, format!("{} {}", found.record, found.conflict)));
                contents.problems.extend(found);
                None
            }
        };
        let Some(all) = counts.filter(|_| !is_broken) else {
            return Err(rejected(&name, contents.problems));
        };
        warnings.print(context);
        let counts = [
            ("added", all.added),
            ("unchanged", all.unchanged),
            ("revoked", all.revoked),
            ("not_restored", all.not_restored),
        ];
        if !self.dry_run {
            let about = CommandRecord::counting("records_imported", counts);
            context.manage()?.audit(&context.actor, about).await;
            let until = context.store()?.imported_nonces_until().await?;
            if let Some(until) = until.filter(|until| *until >= context.now) {
                context.warn(&format!(
                    "the store of an import may have accepted requests with timestamps up to {until}, and they could \
                     be replayed: until then signed requests get 503; nonce.on_lost = \"accept\" waives this"
                ));
            }
        }
        let counts = counts.map(|(name, count)| (name.to_owned(), json!(count)));
        let dry_run = self.dry_run.then(|| ("dry_run".to_owned(), json!(true)));
        Ok(context.show(&Map::from_iter(counts.into_iter().chain(dry_run))))
    }

    fn read(&self, is_stdin: bool, contents: &mut Contents) -> io::Result<()> {
        let input: Box<dyn Read> = match is_stdin {
            true => Box::new(io::stdin().lock()),
            false => Box::new(File::open(&self.file)?),
        };
        match &self.csv {
            None => contents.read_lines(BufReader::with_capacity(1 << 16, input)),
            Some(kind) => contents.read_csv(input, &self.map, kind, self.delimiter, &self.null),
        }
    }
}

/// Imports into the store. A dry run does not create one.
async fn import(context: &Context, list: ImportList) -> Result<Import, CommandError> {
    if !list.dry_run {
        return Ok(context.store()?.import(list).await?);
    }
    let opened = match services::open_store(&context.config, Opening::Existing) {
        Err(ServiceError::Missing(_)) => None,
        Err(ServiceError::Store(error)) if matches!(error.problem, OpenProblem::Missing) => None,
        opened => Some(opened?),
    };
    if let Some(store) = opened {
        return Ok(store.import(list).await?);
    }
    let directory = tempfile::tempdir()?;
    let store = store::open_store(store::StoreParams {
        backend: Backend::Sqlite(directory.path().join("store")),
        keys: Vec::new(),
        opening: Opening::Serve,
        external: None,
    })?;
    Ok(store.import(list).await?)
}

/// The problems of a file, a line for each.
fn rejected(name: &str, mut problems: Vec<(usize, String)>) -> CommandError {
    problems.sort();
    let rest = problems.len().saturating_sub(MAX_PROBLEMS);
    problems.truncate(MAX_PROBLEMS);
    let one = problems.len() == 1;
    let lines = problems
        .into_iter()
        .map(|(line, problem)| format!("{name}:{line}: {problem}"));
    let lines = lines.collect::<Vec<_>>().join("\ncountersign: ");
    CommandError::failed_lines(match (one, rest) {
        (true, _) => format!("{lines}; nothing was imported"),
        (false, 0) => format!("{lines}\ncountersign: nothing was imported"),
        (false, _) => {
            format!("{lines}\ncountersign: there are {rest} problems more; nothing was imported")
        }
    })
}

/// Settings that are valid but unwise, each once: an import may be long.
struct ImportWarnings {
    permissions: BTreeSet<Permission>,
    /// The number of consumers with an http callback on another host.
    unprotected: usize,
}

impl ImportWarnings {
    fn new(records: &[Numbered]) -> Self {
        let is_warned =
            |callback: &String| matches!(callback::check_registration(callback), Ok(Some(_)));
        let is_unprotected = |(_, record): &&Numbered| matches!(record, Record::Consumer(consumer) if consumer.callbacks.iter().any(is_warned));
        let permissions = records.iter().flat_map(|(_, record)| match record {
            Record::Consumer(consumer) => &consumer.permissions[..],
            Record::AccessToken(token) => &token.permissions,
            _ => &[],
        });
        Self {
            permissions: permissions.cloned().collect(),
            unprotected: records.iter().filter(is_unprotected).count(),
        }
    }

    fn print(&self, context: &Context) {
        context.warn_of_undeclared("permission", &self.permissions);
        if self.unprotected > 0 {
            context.warn(&format!(
                "{} of the consumers have a callback that is http on another host: the verifier travels unprotected",
                self.unprotected
            ));
        }
    }
}
