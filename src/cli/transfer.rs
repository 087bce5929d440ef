//! `export` and `import`: consumers, users and access tokens as JSON Lines, for backup, for moving between stores and
//! for taking over an existing system's keys. The format is told at `format`.

mod file;
mod format;
#[cfg(fuzzing)]
pub mod fuzzing;

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    process::ExitCode,
};

use self::format::Line;
use super::{
    context::{self, CommandError, Context, OutputArgs, StoreArgs, StoreFile},
    output::Record as Shown,
};
use crate::{
    issue::callback,
    store::transfer::{Import, ImportRefusal, Imported, Record},
};

// Each paragraph is one line: clap breaks it where the terminal ends.
const EXPORT_HELP: &str = "\
The export holds every secret in clear, whether or not the store is encrypted: keep it as you keep the store. \
Request tokens, sessions and nonces are not in it.";

const IMPORT_HELP: &str = "\
All is taken in or nothing. A record that is in the store already is left alone; if it is there with other content, \
that is an error. Nothing that was revoked or removed comes back.

The file is JSON Lines. To take over the keys of another system, write it like this:

  {\"kind\":\"export\",\"version\":1}
  {\"kind\":\"consumer\",\"key\":\"shop\",\"secret\":\"…\",\"name\":\"Shop\",\"callbacks\":[\"https://shop.example/back\"]}
  {\"kind\":\"user\",\"id\":\"4711\",\"name\":\"alice\"}
  {\"kind\":\"token\",\"token\":\"…\",\"token_secret\":\"…\",\"consumer\":\"shop\",\"user\":\"4711\"}

What else there is, and may be left out:

  consumer  permissions, dialect (\"rfc5849\" or \"legacy\"), rsa_public_key (PEM),
            enforce, enabled, created_at, previous_secret with previous_secret_until
  user      display_name, password_hash (argon2id in PHC form), enabled, created_at
  token     permissions, issued_at, expires_at, last_used_at, revoked_at

Times are RFC 3339. A secret that is no text stands in base64 under secret_base64 or token_secret_base64. Users without \
password_hash get a password from countersign user passwd. A password_hash may ask for 128 MiB, 256 MiB times passes and \
16 lanes, and the store may hold four different costs: every login takes the time of each. A login that succeeds \
replaces the hash by one of ours.";

/// Writes consumers, users and access tokens to a file
#[derive(Debug, clap::Args)]
#[command(after_help = EXPORT_HELP)]
pub struct ExportArgs {
    /// The file to make, readable by its owner alone; - for standard output
    file: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// Takes consumers, users and access tokens in from a file
#[derive(Debug, clap::Args)]
#[command(after_long_help = IMPORT_HELP)]
pub struct ImportArgs {
    /// The file; - for standard input
    file: PathBuf,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl ExportArgs {
    /// Runs the command.
    #[must_use]
    pub fn run(self) -> ExitCode {
        context::run(&self.store, false, StoreFile::IsThere, async |context| {
            let is_stdout = self.file == Path::new("-");
            if !is_stdout {
                file::check(&self.file, self.force)?;
            }
            let text = format::write(&context.store()?.export().await?);
            tracing::info!(target: "audit", event = "store_exported", by = "command");
            if is_stdout {
                return Ok(text);
            }
            file::write(&self.file, text.as_bytes(), self.force)?;
            Ok(String::new())
        })
    }
}

impl ImportArgs {
    /// Runs the command.
    #[must_use]
    pub fn run(self) -> ExitCode {
        let (json, file) = (self.output.json, StoreFile::MayBeMade);
        context::run(&self.store, json, file, async |context| {
            import(&self.file, context).await
        })
    }
}

async fn import(path: &Path, context: &Context) -> Result<String, CommandError> {
    let name = if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    };
    let lines = read(path, &name, context)?;
    warn(&lines, context);
    let (numbers, records): (Vec<usize>, Vec<Record>) = lines
        .into_iter()
        .map(|line| (line.number, line.record))
        .unzip();
    let names: Vec<String> = records.iter().map(format::name).collect();
    match context.store()?.import(records).await? {
        Import::Imported(imported) => {
            let Imported {
                added,
                unchanged,
                revoked,
                kept_out,
            } = imported;
            tracing::info!(
                target: "audit", event = "records_imported", by = "command", added, unchanged, revoked, kept_out,
            );
            Ok(context.show(Shown::imported(&imported)))
        }
        Import::Refused { index, refusal } => {
            let number = numbers.get(index).copied().unwrap_or_default();
            let record = names.get(index).map_or("", String::as_str);
            Err(CommandError::Refused(format!(
                "{name}:{number}: {record} {refusal}; {}; nothing was imported",
                mend(refusal)
            )))
        }
    }
}

fn read(path: &Path, name: &str, context: &Context) -> Result<Vec<Line>, CommandError> {
    let unreadable = |source| CommandError::File {
        what: format!("{name}: cannot be read"),
        source,
    };
    let input: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(BufReader::new(File::open(path).map_err(unreadable)?))
    };
    let lines = format::read(input, context.now).map_err(unreadable)?;
    lines.map_err(|error| CommandError::Refused(format!("{name}:{error}; nothing was imported")))
}

const fn mend(refusal: ImportRefusal) -> &'static str {
    match refusal {
        ImportRefusal::Differs => "make the two alike, or take the line out",
        ImportRefusal::NameTaken => "rename one of the two, or take the line out",
        ImportRefusal::ConsumerUnknown => "add a line with that consumer",
        ImportRefusal::UserUnknown => "add a line with that user",
        ImportRefusal::TooManyCosts => "leave password_hash out and set a password",
        ImportRefusal::UserDisabled => "enable the user, or give the token a revoked_at",
    }
}

/// Warns of what is valid and unwise, once for each kind: an import may be long.
fn warn(lines: &[Line], context: &Context) {
    let declared = &context.config.permission;
    let is_declared = |name| declared.is_empty() || declared.iter().any(|entry| entry.name == name);
    let mut undeclared = BTreeSet::new();
    let mut unprotected = 0_usize;
    for line in lines {
        let permissions = match &line.record {
            Record::Consumer(consumer) => {
                let warned = |callback: &String| {
                    matches!(callback::check_registration(callback), Ok(Some(_)))
                };
                unprotected += usize::from(consumer.callbacks.iter().any(warned));
                &consumer.permissions
            }
            Record::AccessToken(token) => &token.permissions,
            Record::User(_) | Record::RemovedUser(_) | Record::RemovedToken(_) => continue,
        };
        let foreign = permissions
            .iter()
            .filter(|permission| !is_declared((*permission).clone()));
        undeclared.extend(foreign);
    }
    for permission in undeclared {
        context.warn(format!(
            "permission {permission}: the configuration has no [[permission]] of that name"
        ));
    }
    if unprotected > 0 {
        context.warn(format!(
            "{unprotected} of the consumers have a callback that is http on another host: the verifier travels unprotected"
        ));
    }
}
