//! The common parts of the commands: options, configuration, store, output, errors.
//!
//! A command returns its output, which is written when it has ended: the text to standard output, warnings to standard
//! error. A command that fails writes its error to standard error.
//!
//! # Log and audit records
//!
//! A command is an audit event like any other. Its record goes into the store's feed of changes, by which every
//! `serve` that runs on the store logs it. With `--log` it goes to standard error too, for those who run commands while
//! no `serve` does.

use std::{
    cell::{OnceCell, RefCell},
    cmp::Ordering,
    error::Error,
    fmt,
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
    process::ExitCode,
    str::FromStr,
    sync::Arc,
};

use rustix::process::{geteuid, getuid};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::runtime::LocalOptions;

pub use super::config_file::ConfigArgs;
use crate::{
    base::{
        clock::{Clock, UnixTime},
        text::names::InvalidName,
    },
    cli::terminal::{
        marks,
        output::{self, Listing, say},
    },
    operator::manage::{Actor, ManageError, Management, Operator, Tool},
    provider::pages::settings::PermissionSettings,
    records::{
        store::Store,
        values::{Opening, StoreError, use_cases::RecordFilter},
    },
    run::{
        app::{
            StartError,
            services::{self, StoreServiceError},
        },
        config::{Config, ConfigErrors},
    },
    telemetry::log::{self, causes::causes, lines::visible},
};

/// Options of every command over the store.
#[derive(Debug, Clone, clap::Args)]
pub struct StoreArgs {
    #[command(flatten)]
    pub(super) config: ConfigArgs,
    /// Write log and audit records to standard error too, as log.format and log.level say
    #[arg(long, global = true, display_order = 902)]
    pub(super) log: bool,
}

/// Options of every command over the store that prints records.
#[derive(Debug, Clone, clap::Args)]
pub struct RecordArgs {
    #[command(flatten)]
    pub(super) store: StoreArgs,
    /// Print JSON: an object, or one object a line for lists
    #[arg(long, global = true, display_order = 901)]
    pub(super) json: bool,
}

/// The consumers or users that a list shows.
#[derive(Debug, clap::Args)]
pub(super) struct FilterArgs {
    /// Only those with this text in the key, the id, a name or the description
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Only those that are enabled, or only those that are not
    #[arg(long, value_name = "true|false")]
    enabled: Option<bool>,
}

impl From<FilterArgs> for RecordFilter {
    fn from(args: FilterArgs) -> Self {
        Self {
            q: args.search,
            enabled: args.enabled,
            ..Self::default()
        }
    }
}

impl StoreArgs {
    /// Runs a command over the store. `json`: records are printed as JSON. [`Opening::Command`]: the command registers
    /// something, perhaps the first record, and may create the store.
    ///
    /// # Errors
    /// Those of [`Context::load`] and of the command.
    pub fn run(
        &self,
        json: bool,
        opening: Opening,
        command: impl AsyncFnOnce(&Context) -> Result<String, CommandError>,
    ) -> Result<Output, CommandError> {
        let context = Context::load(self, json, opening)?;
        let text = block_on(command(&context))??;
        let opened = context.store.get();
        if let Some(error) = opened.and_then(|(_, manage)| manage.take_unrecorded()) {
            context.warn(&format!(
                "serve does not log what was done: {}",
                causes(&error)
            ));
        }
        // For a user, who may have more than one store; a script has named it.
        if io::stderr().is_terminal() && opened.is_some_and(|(_, manage)| manage.has_changed()) {
            let note = format!("countersign: store {}", context.store_location());
            context.notes.borrow_mut().insert(0, note);
        }
        Ok(Output {
            notes: context.notes.into_inner(),
            ..text.into()
        })
    }
}

/// The output of a command and its exit code.
#[derive(Debug, Default)]
pub struct Output {
    /// For standard output.
    pub text: String,
    /// Lines for standard error.
    pub notes: Vec<String>,
    /// The exit code.
    pub code: u8,
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

/// Why a command failed, and its exit code.
#[derive(Debug)]
pub struct CommandError {
    /// 2 for wrong usage and an invalid configuration, 1 for everything else.
    pub(super) code: u8,
    /// The subjects of the error, each with a colon after it: a file, a key of the configuration, an option.
    about: String,
    error: Box<dyn Error>,
    /// The error has a line for each problem.
    has_lines: bool,
}

impl<E: Error + 'static> From<E> for CommandError {
    /// The exit code is 2 for wrong usage and an invalid configuration, 1 for everything else.
    fn from(error: E) -> Self {
        let error: Box<dyn Error> = Box::new(error);
        let start = error.downcast_ref::<StartError>();
        let manage = error.downcast_ref::<ManageError>();
        let is_usage = error.is::<ConfigErrors>()
            || start.is_some_and(StartError::is_configuration)
            || matches!(
                manage,
                Some(
                    ManageError::Invalid(_)
                        | ManageError::CannotSign
                        | ManageError::EmptySecret
                        | ManageError::LongSecret
                )
            );
        let is_store = manage.is_some_and(|error| matches!(error, ManageError::Store(_)));
        let about = match is_store || error.is::<StoreError>() {
            true => "store.url: ".to_owned(),
            false => String::new(),
        };
        let code = 1 + u8::from(is_usage);
        Self {
            code,
            about,
            error,
            has_lines: false,
        }
    }
}

impl CommandError {
    /// The command cannot do what it was asked for: exit code 1.
    pub fn failed(error: impl Into<Box<dyn Error>>) -> Self {
        Self {
            code: 1,
            about: String::new(),
            error: error.into(),
            has_lines: false,
        }
    }

    /// The arguments or the configuration are wrong: exit code 2.
    pub fn usage(error: impl Into<Box<dyn Error>>) -> Self {
        let failed = Self::failed(error);
        Self { code: 2, ..failed }
    }

    /// As [`Self::failed`]; the text has a line for each problem.
    pub(super) fn failed_lines(text: String) -> Self {
        Self {
            has_lines: true,
            ..Self::failed(text)
        }
    }

    /// Puts the subject of the error in front of it.
    pub fn about(mut self, subject: impl fmt::Display) -> Self {
        self.about = format!("{subject}: {}", self.about);
        self
    }

    /// The text for standard error: a line, or for a configuration and an import a line for each problem.
    pub(super) fn report(&self) -> String {
        if self.error.is::<ConfigErrors>() {
            return self.error.to_string();
        }
        match self.has_lines {
            true => {
                let text = self.error.to_string();
                let lines = text.lines().map(visible);
                format!("countersign: {}", Vec::from_iter(lines).join("\n"))
            }
            false => format!("countersign: {self}"),
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = [&self.about, &*causes(&*self.error)].concat();
        f.write_str(&visible(&text.replace('\n', " ")))
    }
}

/// Puts the subject of an error in front of it: [`CommandError::about`].
pub(super) trait About<T> {
    fn about(self, subject: impl fmt::Display) -> Result<T, CommandError>;
}

impl<T, E: Into<CommandError>> About<T> for Result<T, E> {
    fn about(self, subject: impl fmt::Display) -> Result<T, CommandError> {
        self.map_err(|error| error.into().about(subject))
    }
}

/// Checks the name that an option gives to a new record by the `identity.encoding` of the configuration, which was not known when
/// the option was read.
pub(super) fn new_name<N: AsRef<str> + FromStr<Err = InvalidName>>(
    option: &str,
    name: Option<N>,
) -> Result<Option<N>, CommandError> {
    let checked = name.map(|name| name.as_ref().parse::<N>());
    checked
        .transpose()
        .map_err(|error| CommandError::usage(error).about(option))
}

/// Asks before something is removed.
#[derive(Debug, clap::Args)]
pub struct Confirmation {
    /// Do not ask, also on a terminal
    #[arg(long)]
    yes: bool,
}

impl Confirmation {
    /// Asks at the terminal; without a terminal, or with `--yes`, there is no question.
    ///
    /// # Errors
    /// The person does not say yes.
    pub(super) fn ask(&self, question: &str) -> Result<(), CommandError> {
        if self.yes || !io::stdin().is_terminal() {
            return Ok(());
        }
        let _ = write!(io::stderr(), "{question} [y/N] ");
        let mut reply = String::new();
        io::stdin().read_line(&mut reply)?;
        match reply.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(CommandError::failed("nothing is removed")),
        }
    }
}

/// The order of records as they are printed.
pub(super) type RecordOrder = fn(&Value, &Value) -> Ordering;

/// A configuration and its store, which is opened on first use: a command that fails before creates none.
pub struct Context {
    /// The configuration.
    pub config: Config,
    /// The time of the command.
    pub now: UnixTime,
    /// The person who runs the command.
    pub actor: Actor,
    path: PathBuf,
    store: OnceCell<(Arc<Store>, Management)>,
    opening: Opening,
    json: bool,
    notes: RefCell<Vec<String>>,
}

impl Context {
    /// Loads the configuration.
    ///
    /// # Errors
    /// The configuration is invalid, the log cannot be started, or the store must exist and does not.
    pub fn load(args: &StoreArgs, json: bool, opening: Opening) -> Result<Self, CommandError> {
        args.config.announce();
        let config = args.config.load()?;
        if args.log {
            log::start(config.log.format, &config.log.level)?;
        }
        let context = Self {
            config,
            now: Clock::system().now(),
            actor: actor(),
            path: args.config.path(),
            store: OnceCell::new(),
            opening,
            json,
            notes: RefCell::default(),
        };
        if opening != Opening::Command && services::is_store_missing(&context.config) {
            let path = context.config.store.url.sqlite_path();
            Err(StoreServiceError::Missing(path)).about(context.path.display())?;
        }
        Ok(context)
    }

    /// The path or the URL of the store, without the password of a server.
    fn store_location(&self) -> String {
        match self.config.store.file() {
            Some(path) => std::path::absolute(&path)
                .unwrap_or(path)
                .display()
                .to_string(),
            None => match url::Url::parse(self.config.store.url.expose()) {
                Ok(url) => format!("{}{}", url.host_str().unwrap_or("PostgreSQL"), url.path()),
                Err(_) => "PostgreSQL".to_owned(),
            },
        }
    }

    /// The store.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn store(&self) -> Result<&Store, CommandError> {
        Ok(&*self.opened()?.0)
    }

    /// The use cases on the records of the store.
    ///
    /// # Errors
    /// The store cannot be opened.
    pub fn manage(&self) -> Result<&Management, CommandError> {
        Ok(&self.opened()?.1)
    }

    /// Changes the records of the store as the person who runs the command.
    ///
    /// # Errors
    /// The store cannot be opened.
    pub fn operator(&self) -> Result<Operator<'_>, CommandError> {
        Ok(self.manage()?.operator(self.actor.clone()))
    }

    fn opened(&self) -> Result<&(Arc<Store>, Management), CommandError> {
        if let Some(opened) = self.store.get() {
            return Ok(opened);
        }
        let opened = match self.opening {
            Opening::Command => services::open_or_create_store(&self.config),
            opening => services::open_store(&self.config, opening).map(|store| (store, None)),
        };
        let (store, created) = opened.about(self.path.display())?;
        if let Some(path) = created {
            // Also if the command fails after this.
            say(&format!("countersign: created the store {path}"));
        }
        let settings = (self.config.signature, self.config.tokens);
        let manage = Management::new(Arc::clone(&store), Clock::system(), settings, None);
        Ok(self.store.get_or_init(|| (store, manage)))
    }

    /// Warns, when the command has succeeded, of something valid and unwise.
    pub fn warn(&self, warning: &str) {
        self.note(&format!("warning: {warning}"));
    }

    /// Tells a consequence of the command, when it has succeeded.
    pub fn note(&self, note: &str) {
        self.notes.borrow_mut().push(format!("countersign: {note}"));
    }

    /// Warns of permissions that the configuration does not declare; each warning begins with `prefix`.
    pub fn warn_of_undeclared<'a>(
        &self,
        prefix: &str,
        permissions: impl IntoIterator<Item = &'a crate::base::text::names::Permission>,
    ) {
        let declared = &self.config.permission;
        for permission in permissions {
            if let Some(warning) = PermissionSettings::undeclared(declared, permission) {
                self.warn(&format!("{prefix} {warning}"));
            }
        }
    }

    /// A record as the person or program that runs the command reads it.
    pub fn show(&self, view: &impl Serialize) -> String {
        output::record(&json!(view), self.json)
    }

    /// What a command did to a record: a sentence for the terminal, and the record for a program.
    pub(super) fn told(&self, view: &impl Serialize, sentence: &str) -> String {
        self.told_with(view, sentence, &[])
    }

    /// As [`Self::told`]; the terminal shows these members too.
    pub(super) fn told_with(
        &self,
        view: &impl Serialize,
        sentence: &str,
        members: &[&str],
    ) -> String {
        if self.json {
            return self.show(view);
        }
        let mut shown = json!(view);
        if let Some(all) = shown.as_object_mut() {
            all.retain(|name, _| members.contains(&name.as_str()));
        }
        self.done(sentence) + &output::record(&shown, false)
    }

    /// What a command did that leaves no record to show.
    pub(super) fn done(&self, sentence: &str) -> String {
        match self.json {
            true => String::new(),
            false => {
                let lines = sentence.lines().map(visible);
                let text = Vec::from_iter(lines).join("\n");
                match marks::shows_colours(&io::stdout()) {
                    true => marks::Mark::Good.line(&text, true),
                    false => text + "\n",
                }
            }
        }
    }

    /// Lists all records, page by page.
    ///
    /// # Errors
    /// Those of `page`.
    pub async fn list<T>(
        &self,
        page: impl AsyncFnMut(Option<&T>, u32) -> Result<Vec<T>, ManageError>,
        view: impl Fn(&T) -> Value,
    ) -> Result<String, CommandError> {
        self.list_with((&[], None), page, view).await
    }

    /// As [`Self::list`]; a table has the rare member `shown` too, and the records are in this order.
    ///
    /// # Errors
    /// Those of `page`.
    pub(super) async fn list_with<T>(
        &self,
        (shown, order): (&'static [&'static str], Option<RecordOrder>),
        mut page: impl AsyncFnMut(Option<&T>, u32) -> Result<Vec<T>, ManageError>,
        view: impl Fn(&T) -> Value,
    ) -> Result<String, CommandError> {
        /// The number of records that are read at once.
        const PAGE: u32 = 500;

        let mut listing = Listing::new(self.json, shown);
        let (mut last, mut unsorted) = (None, Vec::new());
        loop {
            let mut records = page(last.as_ref(), PAGE).await?;
            let views = records.iter().map(&view);
            match order {
                None => views.for_each(|view| listing.push(&view)),
                Some(_) => unsorted.extend(views),
            }
            match records.pop() {
                Some(record) => last = Some(record),
                None => break,
            }
        }
        if let Some(order) = order {
            unsorted.sort_by(order);
            unsorted.iter().for_each(|view| listing.push(view));
        }
        Ok(listing.finish(output::terminal_width()))
    }
}

/// The person who runs the program.
pub(super) fn actor() -> Actor {
    Actor {
        os_user: Some(os_user()),
        ..Actor::of_process(Tool::Command.name())
    }
}

/// The account that runs the program and, under sudo, the account that called it.
fn os_user() -> String {
    // An account without an entry in the user database has only a number.
    let name = whoami::username_os().map_or_else(
        |_| geteuid().as_raw().to_string(),
        |name| name.to_string_lossy().into_owned(),
    );
    match std::env::var("SUDO_USER") {
        Ok(before) if getuid().is_root() => format!("{name}, by sudo {before}"),
        _ => name,
    }
}

/// Runs a future to its end.
///
/// # Errors
/// The system gives no runtime.
pub fn block_on<T>(future: impl Future<Output = T>) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .about("cannot start the runtime")?;
    let output = runtime.block_on(future);
    // A lookup of a name may hang, and the end does not wait for it.
    runtime.shutdown_background();
    Ok(output)
}

/// Writes the output or the error of a command, and returns the exit code.
pub fn finish(result: Result<Output, CommandError>) -> ExitCode {
    let output = match result {
        Ok(output) => output,
        Err(error) => {
            say(&marks::for_standard_error(&error.report(), true));
            return ExitCode::from(error.code);
        }
    };
    let mut stdout = io::stdout().lock();
    let written = stdout
        .write_all(output.text.as_bytes())
        .and_then(|()| stdout.flush());
    let notes = output.notes.iter();
    notes.for_each(|note| say(&marks::for_standard_error(note, false)));
    match written {
        // A reader that closes the pipe has read enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            say(&format!(
                "countersign: cannot write to standard output: {error}"
            ));
            ExitCode::FAILURE
        }
        _ => ExitCode::from(output.code),
    }
}
