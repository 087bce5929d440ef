//! `export` and `import`: consumers, users and access tokens as JSON Lines, for backup, for moving between stores and
//! for taking over an existing system's keys. `operator/manage/transfer/export_line.rs` describes the format.

mod contents;
mod differences;
mod file;
#[cfg(fuzzing)]
pub mod fuzzing;
mod import;
mod index;
mod input;
mod quotes;
mod rows;
#[cfg(test)]
mod tests;

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    time::Instant,
};

use serde_json::json;

use self::rows::CsvArgs;
use super::context::{
    About as _, CommandError, Confirmation, Context, Output, RecordArgs, StoreArgs,
};
use crate::{
    base::{
        clock::UnixTime,
        text::{counted, names::UserId},
    },
    cli::terminal::progress::{Progress, took},
    operator::manage::{
        CONSUMER_FIELDS, Operator, RecordField, USER_FIELDS,
        transfer::export_line::{VERSION, line},
    },
    records::{
        nonce::{self, settings::NonceScope},
        values::{
            Opening,
            transfer::{Exported, TransferError},
        },
    },
};

// Each paragraph is one line: clap breaks it where the terminal ends.
const EXPORT_HELP: &str = "\
The export holds every secret in clear, whether or not the store is encrypted: keep it as you keep the store. \
Request tokens, sessions and nonces are not in it. It names the last timestamp that the store may have accepted, so that \
no request is accepted again after a move.";

/// The help of `import` before the list of members.
const IMPORT_HELP: &str = "\
Everything is imported or nothing, and up to 100 problems are reported together, each with its line, or its row of \
CSV, whose first one is the header. A record that is in \
the store already is left alone; if it is there with other content, that is an error. A user whose line has no password keeps the one in the store. What was revoked or removed is not restored.

With --replace a record that is there becomes that of the file. With --update a consumer \
that is there gets the members that its line has, and keeps the others, its secret too. --update --prune also removes the \
consumers that the file does not have, with their tokens: the file says then which consumers there are. Each of the three prints the changes first, \
+ for a new record, ~ for a changed one and - for a removed one, and makes them together; with --dry-run they are only printed.

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
them out and let the consumer sign without a token, where access has application.";

/// The help of `import` after the list of members.
const VALUES_HELP: &str = "\
Times are seconds since 1970, RFC 3339, or in UTC 2026-01-31 12:00:00 or 20260131120000; from 2000 to 9999. A secret that is not text is written in base64 under secret_base64 or token_secret_base64. Users without \
password_hash, and those for whom it is * or begins with !, get a password from countersign user passwd. A password_hash may be:

  argon2id   $argon2id$v=19$m=65536,t=2,p=1$…, at most 128 MiB, 256 MiB times passes, 16 lanes
  bcrypt     $2a$, $2b$ or $2y$, at most cost 13
  PBKDF2     pbkdf2_sha256$600000$… of Django or $pbkdf2-sha256$…, at most 1200000 iterations;
             with sha512 in the name at most 300000; or pbkdf2:sha256:600000$… of Werkzeug
  scrypt     $scrypt$ln=16,r=8,p=1$…, at most 128 MiB times lanes; or scrypt:32768:8:1$… of Werkzeug
  SHA-crypt  $5$ or $6$, at most 100000 rounds
  phpass     $P$ or $H$, and $S$ of Drupal, at most 2^16 rounds

Every login takes the time of all costs in the store, so together they may take one second: bcrypt of cost 13 takes half \
of it. PBKDF2 counts as 75000, 300000 or 1200000 iterations. A login that succeeds replaces the hash by one of ours.";

/// The whole help of `import`, with the members of each kind that may be left out.
fn import_help() -> String {
    let (consumer, user, token) = (
        "enabled, owner, registration, decision, asked_callbacks, created_at, previous_secret with previous_secret_until",
        "password_hash, enabled, created_at",
        "permissions, issued_at, expires_at, last_used_at, last_used_from, revoked_at, began, with_display_name",
    );
    let members = [
        ("consumer", CONSUMER_FIELDS, consumer),
        ("user", USER_FIELDS, user),
        ("token", &[], token),
    ];
    let members = members.map(|(kind, fields, others)| {
        let optional = fields.iter().filter(|field| !field.is_needed);
        let others = others.split(", ").map(str::to_owned);
        hanging(kind, optional.map(RecordField::member).chain(others))
    });
    let members = members.concat();
    format!("{IMPORT_HELP}\n\nAll other members may be left out:\n\n{members}\n{VALUES_HELP}")
}

/// A list as lines of at most 80 characters, of which the first one has its title.
fn hanging(title: &str, items: impl Iterator<Item = String>) -> String {
    let (mut lines, mut line) = (String::new(), format!("  {title:<9}"));
    let mut items = items.peekable();
    while let Some(mut item) = items.next() {
        item += if items.peek().is_some() { "," } else { "" };
        if line.len() + 1 + item.len() > 80 {
            lines += &(line + "\n");
            line = " ".repeat(11);
        }
        line = line + " " + &item;
    }
    lines + &line + "\n"
}

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
#[command(after_long_help = import_help())]
pub struct ImportArgs {
    /// The file, as JSON Lines or with --csv as CSV; - for standard input
    file: PathBuf,
    #[command(flatten)]
    csv: CsvArgs,
    /// The user of access tokens that name none
    #[arg(long, value_name = "ID")]
    token_user: Option<UserId>,
    /// Skip each record that cannot be read, such as one with a key that cannot be one, and the tokens that name it; say which
    #[arg(long, conflicts_with = "prune")]
    skip_invalid: bool,
    /// Report what would be imported, or the problems, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Change records that are in the store with other content to those of the file
    #[arg(long, conflicts_with = "update")]
    replace: bool,
    /// Give consumers that are in the store the members that their lines have
    #[arg(long)]
    update: bool,
    /// Remove the consumers that the file does not have, with their tokens
    #[arg(long, requires = "update")]
    prune: bool,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    store: RecordArgs,
}

impl ExportArgs {
    /// Runs the command.
    pub fn run(self) -> Result<Output, CommandError> {
        self.store.run(false, Opening::Existing, async |context| {
            if self.file == Path::new("-") {
                let operator = context.operator()?;
                let mut stdout = BufWriter::with_capacity(1 << 16, io::stdout().lock());
                let written = write(context, operator, &mut stdout).await;
                match written.and_then(|_| Ok(stdout.flush()?)) {
                    // A reader that closes the pipe has read enough.
                    Err(TransferError::File(error))
                        if error.kind() == io::ErrorKind::BrokenPipe => {}
                    Err(TransferError::Store(error)) => Err(error)?,
                    written => written.about("standard output")?,
                }
            } else {
                let begun = Instant::now();
                let mut file = file::Pending::new(&self.file, self.force)?;
                let written = write(context, context.operator()?, file.writer()).await;
                let records = file.finish(written)?;
                let (file, took) = (self.file.display(), took(begun));
                let records = counted(records, "record");
                let text = format!("Exported {records} to {file} in {took}.");
                return Ok(context.done(&text));
            }
            Ok(String::new())
        })
    }
}

/// Writes an export of the store, and returns the number of its records.
async fn write(
    context: &Context,
    operator: Operator<'_>,
    to: &mut impl Write,
) -> Result<u64, TransferError> {
    let mut writer = ExportWriter::new(to);
    let accepted_until = match context.config.nonce_scope() {
        NonceScope::Shared => next_high_water_mark(context),
        NonceScope::Local => UnixTime::default(),
    };
    let write = |part| writer.write(part, accepted_until);
    operator.export(write).await?;
    Ok(writer.written)
}

/// Writes the parts of an export as lines.
struct ExportWriter<'w, W> {
    to: &'w mut W,
    progress: Progress,
    written: u64,
}

impl<'w, W: Write> ExportWriter<'w, W> {
    fn new(to: &'w mut W) -> Self {
        Self {
            to,
            progress: Progress::new("records written", 0),
            written: 0,
        }
    }

    /// Writes a part. Shared nonces are recorded one by one, perhaps outside the store, and processes may still run: the
    /// store may have accepted requests until this time too.
    fn write(&mut self, part: Exported, accepted_until: UnixTime) -> io::Result<()> {
        match part {
            Exported::Head(origin, records) => {
                self.progress = Progress::new("records written", records);
                let head = json!({
                    "kind": "export",
                    "version": VERSION,
                    "records": records,
                    "store": origin.store,
                    "accepted_until": origin.accepted_until.max(accepted_until),
                });
                writeln!(self.to, "{head}")
            }
            Exported::Records(records) => {
                for record in records {
                    serde_json::to_writer(&mut *self.to, &line(&record))?;
                    self.to.write_all(b"\n")?;
                    self.written += 1;
                    self.progress.at(self.written, self.written);
                }
                Ok(())
            }
        }
    }
}

/// A timestamp above any that a process with this configuration accepts now.
fn next_high_water_mark(context: &Context) -> UnixTime {
    nonce::next_high_water_mark(context.now, context.config.longest_window())
}
