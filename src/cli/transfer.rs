//! `export` and `import`: consumers, users and access tokens as JSON Lines, for backup, for moving between stores and
//! for taking over an existing system's keys. [`mod@format`] describes the format.

mod csv_lines;
mod file;
pub mod format;

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use self::{
    csv_lines::{CsvError, Mapping},
    file::NewFile,
    format::Checked,
};
use super::{
    context::{CommandError, Context, Output, RecordArgs, StoreArgs, StoreFile},
    output::Members,
    progress::ProgressLine,
};
use crate::{
    clock::UnixTime,
    config::NonceScope,
    issue::callback,
    names::Permission,
    nonce,
    store::transfer::{
        self, Cut, Import, ImportRefusal, Numbered, Origin, Part, Receiver, Record, Sender, Source,
    },
    telemetry::audit::CommandRecord,
};

// Each paragraph is one line: clap breaks it where the terminal ends.
const EXPORT_HELP: &str = "\
The export holds every secret in clear, whether or not the store is encrypted: keep it as you keep the store. \
Request tokens, sessions and nonces are not in it.";

const IMPORT_HELP: &str = "\
The import is atomic. A record that is in the store already is left alone; if it is there with other content, \
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
            description, website, rsa_only, enforce, enabled, created_at,
            previous_secret with previous_secret_until
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
    pub fn run(self) -> Result<Output, CommandError> {
        self.store
            .run(false, StoreFile::MustExist, async |context| {
                let is_stdout = self.file == Path::new("-");
                if !is_stdout {
                    file::check(&self.file, self.force)?;
                }
                let mut target = match is_stdout {
                    true => ExportTo::Stdout(io::stdout()),
                    false => ExportTo::File(NewFile::create(&self.file, self.force)?),
                };
                let (sender, mut receiver) = transfer::stream();
                let accepted_until = accepted_until(context);
                let (exported, written) = tokio::join!(
                    context.store()?.export_to(sender),
                    // The stream is dropped with it, so that the store does not wait if it cannot be written.
                    async move {
                        write(&mut target, &mut receiver, accepted_until)
                            .await
                            .map(|head| (target, head))
                    }
                );
                let (target, head) = match written {
                    Err(ExportFailure::Closed) => return Ok(String::new()),
                    Err(ExportFailure::Failed(error)) => return Err(error),
                    Err(ExportFailure::Cut(cut)) => {
                        return Err(exported.err().map_or_else(|| cut.into(), Into::into));
                    }
                    Ok(written) => written,
                };
                exported?;
                if let ExportTo::File(file) = target {
                    file.finish(head.as_deref())?;
                }
                let about = CommandRecord::counting("store_exported", []);
                context.audit(about).await;
                Ok(String::new())
            })
    }
}

impl ImportArgs {
    /// Runs the command.
    pub fn run(self) -> Result<Output, CommandError> {
        let file = StoreFile::MayBeCreated;
        self.store
            .run(file, async |context| self.import(context).await)
    }

    async fn import(&self, context: &Context) -> Result<String, CommandError> {
        let path = self.path();
        let name = match path == Path::new("-") {
            true => "standard input".to_owned(),
            false => path.display().to_string(),
        };
        let failed =
            |problem| CommandError::failed(format!("{name}:{problem}; nothing was imported"));
        let unreadable = |error: io::Error| match error.get_ref().and_then(|e| e.downcast_ref()) {
            Some(csv @ CsvError { .. }) => failed(csv.to_string()),
            None => CommandError::from(error).about(format!("{name}: cannot be read")),
        };
        let mut warnings = ImportWarnings::default();
        let mut progress = ProgressLine::new("checked");
        let mut count = 0;
        let checked = format::check(self.open().map_err(unreadable)?, context.now, |record| {
            count += 1;
            progress.show(count);
            warnings.note(record);
        });
        drop(progress);
        let checked = checked.map_err(unreadable)?;
        let mut checked = checked.map_err(|problem| failed(problem.to_string()))?;
        if checked.is_undated_export {
            // Its store may have accepted requests until just now.
            checked.origin = Some(Origin {
                store: String::new(),
                accepted_until: next_high_water_mark(context),
            });
        }
        let checked = Arc::new(checked);
        warnings.print(context);
        match context.store()?.import_from(source(&checked)).await? {
            Import::Imported(all) => {
                let counts = [
                    ("added", all.added),
                    ("unchanged", all.unchanged),
                    ("revoked", all.revoked),
                    ("kept_out", all.kept_out),
                ];
                let about = CommandRecord::counting("records_imported", counts);
                context.audit(about).await;
                let until = context.store()?.imported_nonces_until().await?;
                if let Some(until) = until.filter(|until| *until >= context.now) {
                    context.warn(&format!(
                        "the store of an import may have accepted requests with timestamps up to {until}, and they could \
                         be replayed: until then signed requests get 503; nonce.on_lost = \"accept\" waives this"
                    ));
                }
                let with = |members: Members, (name, count)| members.with(name, count);
                Ok(context.show(&counts.into_iter().fold(Members::default(), with)))
            }
            Import::Refused { index, refusal } => {
                let record = checked.name(index).map_err(unreadable)?;
                let fix = fix(refusal);
                Err(failed(format!("{index}: {record} {refusal}; {fix}")))
            }
        }
    }

    fn path(&self) -> &Path {
        let file = self.csv.as_deref().or(self.file.as_deref());
        file.unwrap_or(Path::new(""))
    }

    /// Opens the file so that it can be read several times: what cannot, such as a pipe, and what is no JSON yet, is
    /// copied to a temporary file without a name.
    fn open(&self) -> io::Result<File> {
        let mut input: Box<dyn Read> = match self.path() == Path::new("-") {
            true => Box::new(io::stdin().lock()),
            false => {
                let file = File::open(self.path())?;
                if self.csv.is_none() && file.metadata()?.is_file() {
                    return Ok(file);
                }
                Box::new(io::BufReader::new(file))
            }
        };
        let copy = tempfile::tempfile()?;
        let mut lines = io::BufWriter::new(&copy);
        match &self.csv {
            Some(_) => csv_lines::convert(input, &self.map, self.kind.as_deref(), &mut lines)?,
            None => drop(io::copy(&mut input, &mut lines)?),
        }
        lines.flush()?;
        drop(lines);
        Ok(copy)
    }
}

/// The last timestamp that a process on the store may have accepted without a mark in the store: nonces that processes
/// share are recorded one by one, perhaps outside the store, and the processes may still run.
fn accepted_until(context: &Context) -> UnixTime {
    match context.config.nonce_scope() {
        NonceScope::Local => UnixTime(0),
        NonceScope::Shared => next_high_water_mark(context),
    }
}

/// A timestamp above any that a process with this configuration accepts now.
fn next_high_water_mark(context: &Context) -> UnixTime {
    nonce::next_high_water_mark(context.now, context.config.signature.timestamp_window)
}

/// Where an export goes.
enum ExportTo {
    Stdout(io::Stdout),
    File(NewFile),
}

/// Why an export was not written to its end.
enum ExportFailure {
    /// The reader of standard output has read enough.
    Closed,
    Failed(CommandError),
    Cut(Cut),
}

impl ExportTo {
    fn write(&mut self, text: &str) -> Result<(), ExportFailure> {
        let stdout = match self {
            Self::File(file) => return file.write(text.as_bytes()).map_err(ExportFailure::Failed),
            Self::Stdout(stdout) => stdout,
        };
        let written = stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush());
        written.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => ExportFailure::Closed,
            _ => ExportFailure::Failed(
                CommandError::from(error).about("cannot write to standard output"),
            ),
        })
    }
}

/// Writes an export; returns the first line if it was not known in the beginning.
async fn write(
    target: &mut ExportTo,
    records: &mut Receiver<Record>,
    accepted_until: UnixTime,
) -> Result<Option<String>, ExportFailure> {
    let mut progress = ProgressLine::new("exported");
    let (mut count, mut is_counted, mut is_begun) = (0, false, false);
    let mut origin = None;
    loop {
        match records.receive().await.map_err(ExportFailure::Cut)? {
            Part::Origin(mut from) => {
                from.accepted_until = from.accepted_until.max(accepted_until);
                origin = Some(from);
            }
            Part::Count(records) => {
                target.write(&format::head(Some(records), origin.as_ref()))?;
                (is_counted, is_begun) = (true, true);
            }
            Part::Records(records) => {
                if !is_begun {
                    target.write(&format::padded_head(None))?;
                    is_begun = true;
                }
                count += records.len() as u64;
                let text: String = records.iter().map(format::line).collect();
                target.write(&text)?;
                progress.show(count);
            }
            Part::End => return Ok((!is_counted).then(|| format::padded_head(Some(count)))),
        }
    }
}

/// Streams of the records of a file, each read by a thread of its own.
fn source(checked: &Arc<Checked>) -> Source {
    let checked = Arc::clone(checked);
    Arc::new(move || {
        let (sender, receiver) = transfer::stream();
        let checked = Arc::clone(&checked);
        // If the thread fails, the stream ends early, and the store rejects such an import.
        tokio::task::spawn_blocking(move || send(&checked, &sender));
        receiver
    })
}

fn send(checked: &Checked, to: &Sender<Numbered>) -> io::Result<()> {
    let send = |part| to.blocking_send(part).map_err(io::Error::other);
    if let Some(origin) = checked.origin.clone() {
        send(Part::Origin(origin))?;
    }
    let mut progress = ProgressLine::new("imported");
    let (mut count, mut batch) = (0, Vec::with_capacity(transfer::BATCH));
    checked.each(|record| {
        batch.push(record);
        if batch.len() == transfer::BATCH {
            count += batch.len() as u64;
            send(Part::Records(std::mem::take(&mut batch)))?;
            progress.show(count);
        }
        Ok(())
    })?;
    send(Part::Records(batch))?;
    send(Part::End)
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

/// Settings that are valid but unwise, printed once for each kind: an import may be long.
#[derive(Default)]
struct ImportWarnings {
    permissions: BTreeSet<Permission>,
    unprotected: usize,
}

impl ImportWarnings {
    fn note(&mut self, record: &Record) {
        let permissions = match record {
            Record::Consumer(consumer) => {
                let is_warned = |callback: &String| {
                    matches!(callback::check_registration(callback), Ok(Some(_)))
                };
                self.unprotected += usize::from(consumer.callbacks.iter().any(is_warned));
                &consumer.permissions
            }
            Record::AccessToken(token) => &token.permissions,
            Record::User(_) | Record::RemovedUser(_) | Record::RemovedToken(_) => return,
        };
        for permission in permissions {
            if !self.permissions.contains(permission) {
                self.permissions.insert(permission.clone());
            }
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
