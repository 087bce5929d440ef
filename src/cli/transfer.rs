//! `export` and `import`: consumers, users and access tokens as JSON Lines, for backup, for moving between stores and
//! for taking over an existing system's keys. [`mod@format`] describes the format.

mod csv_lines;
mod file;
pub mod format;

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use self::{
    csv_lines::{CsvError, CsvLines, Mapping},
    format::Numbered,
};
use super::{
    context::{CommandError, Context, Output, RecordArgs, StoreArgs, StoreFile},
    output::Members,
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

Or give CSV with a header, and say which column holds what. A row is a consumer if it has a key, a token if it has a token, \
else a user. An empty cell is left out; lists are separated by spaces; a time is also read in seconds since 1970 and as \
2026-01-31 12:00:00, in UTC:

  countersign import --csv apps.csv --map key=consumer_key,secret=consumer_secret,name=title

What else there is, and may be left out:

  consumer  permissions, dialect (\"rfc5849\" or \"legacy\"), rsa_public_key (PEM),
            rsa_only, enforce, enabled, created_at, previous_secret with previous_secret_until
  user      display_name, password_hash, enabled, created_at
  token     permissions, issued_at, expires_at, last_used_at, revoked_at

Times are RFC 3339. A secret that is not text is written in base64 under secret_base64 or token_secret_base64. Users without \
password_hash get a password from countersign user passwd. A password_hash may be:

  argon2id  $argon2id$v=19$m=65536,t=2,p=1$…, at most 128 MiB, 256 MiB times passes, 16 lanes
  bcrypt    $2a$, $2b$ or $2y$, at most cost 13
  PBKDF2    pbkdf2_sha256$600000$… of Django or $pbkdf2-sha256$…, at most 1200000 iterations;
            with sha512 in the name at most 300000
  scrypt    $scrypt$ln=16,r=8,p=1$…, at most 128 MiB times lanes
  phpass    $P$ or $H$, at most 2^16 rounds

The store may hold four different costs, and every login takes the time of each; PBKDF2 counts as 75000, 300000 or \
1200000 iterations. A login that succeeds replaces the hash by one of ours.";

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
    /// The file, as JSON Lines; - for standard input
    #[arg(required_unless_present = "csv")]
    file: Option<PathBuf>,
    /// A CSV file in its place, with a header; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    csv: Option<PathBuf>,
    /// The column that holds each member, as in key=consumer_key,secret; other columns are left out [default: every
    /// column, under its own name]
    #[arg(long, value_name = "MEMBER=COLUMN", value_delimiter = ',', value_parser = Mapping::parse, requires = "csv", conflicts_with = "file")]
    map: Vec<Mapping>,
    /// What the rows are [default: consumer if there is a key, token if there is a token, else user]
    #[arg(long, value_parser = ["consumer", "user", "token"], requires = "csv", conflicts_with = "file")]
    kind: Option<String>,
    #[command(flatten)]
    store: RecordArgs,
}

impl ExportArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// [`CommandError`]
    pub fn run(self) -> Result<Output, CommandError> {
        self.store
            .run(false, StoreFile::MustExist, async |context| {
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
    ///
    /// # Errors
    /// [`CommandError`]
    pub fn run(self) -> Result<Output, CommandError> {
        let Self {
            file,
            csv,
            map,
            kind,
            store,
        } = self;
        let is_csv = csv.is_some();
        let path = csv.or(file).unwrap_or_default();
        let wrap = move |input: Box<dyn BufRead>| -> io::Result<Box<dyn BufRead>> {
            if !is_csv {
                return Ok(input);
            }
            let lines = CsvLines::new(input, &map, kind.as_deref())?;
            Ok(Box::new(BufReader::new(lines)))
        };
        store.run(StoreFile::MayBeCreated, async |context| {
            import(&path, wrap, context).await
        })
    }
}

async fn import(
    path: &Path,
    wrap: impl FnOnce(Box<dyn BufRead>) -> io::Result<Box<dyn BufRead>>,
    context: &Context,
) -> Result<String, CommandError> {
    let is_stdin = path == Path::new("-");
    let name = match is_stdin {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    let failed = |problem| CommandError::failed(format!("{name}:{problem}; nothing was imported"));
    let unreadable = |error: io::Error| match error.get_ref().and_then(|e| e.downcast_ref()) {
        Some(csv @ CsvError { .. }) => failed(csv.to_string()),
        None => CommandError::from(error).about(format!("{name}: cannot be read")),
    };
    let input: Box<dyn BufRead> = match is_stdin {
        true => Box::new(io::stdin().lock()),
        false => Box::new(BufReader::new(File::open(path).map_err(unreadable)?)),
    };
    let input = wrap(input).map_err(unreadable)?;
    let lines = format::read(input, context.now).map_err(unreadable)?;
    let lines = lines.map_err(|error| failed(error.to_string()))?;
    warn(&lines, context);
    let (numbers, records): (Vec<usize>, Vec<Record>) = lines.into_iter().unzip();
    let names: Vec<String> = records.iter().map(format::name).collect();
    match context.store()?.import(records).await? {
        Import::Imported(Imported {
            added,
            unchanged,
            revoked,
            kept_out,
        }) => {
            tracing::info!(
                target: "audit", event = "records_imported", by = "command", added, unchanged, revoked, kept_out,
            );
            let counts = Members::default()
                .with("added", added)
                .with("unchanged", unchanged)
                .with("revoked", revoked)
                .with("kept_out", kept_out);
            Ok(context.show(counts))
        }
        Import::Refused { index, refusal } => {
            let number = numbers.get(index).copied().unwrap_or_default();
            let record = names.get(index).map_or("", String::as_str);
            Err(failed(format!(
                "{number}: {record} {refusal}; {}",
                fix(refusal)
            )))
        }
    }
}

const fn fix(refusal: ImportRefusal) -> &'static str {
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
fn warn(lines: &[Numbered], context: &Context) {
    let mut permissions = BTreeSet::new();
    let mut unprotected = 0_usize;
    for (_, record) in lines {
        match record {
            Record::Consumer(consumer) => {
                let is_warned = |callback: &String| {
                    matches!(callback::check_registration(callback), Ok(Some(_)))
                };
                unprotected += usize::from(consumer.callbacks.iter().any(is_warned));
                permissions.extend(&consumer.permissions);
            }
            Record::AccessToken(token) => permissions.extend(&token.permissions),
            Record::User(_) | Record::RemovedUser(_) | Record::RemovedToken(_) => {}
        }
    }
    context.warn_of_undeclared("permission", permissions);
    if unprotected > 0 {
        context.warn(&format!(
            "{unprotected} of the consumers have a callback that is http on another host: the verifier travels unprotected"
        ));
    }
}
