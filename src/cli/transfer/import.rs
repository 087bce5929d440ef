//! Runs `import`.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    io::{self, BufWriter, Seek as _, Write as _},
    time::Instant,
};

use serde_json::{Map, json};

use super::{
    ImportArgs,
    contents::{Contents, ImportWarnings, SHOWN_ALIKE},
    differences::Differences,
    input::Input,
    next_high_water_mark,
};
use crate::{
    base::text::names::ConsumerKey,
    cli::{
        context::{About as _, CommandError, Context, Output, RecordArgs, new_name},
        terminal::progress::took,
    },
    operator::manage::transfer::export_line::Defaults,
    provider::{issue::callback, login::password},
    records::{
        store::{self, Backend},
        values::{
            OpenProblem, Opening,
            transfer::{
                Alike, Existing, Import, ImportList, ImportProblem, Imported, MAX_PROBLEMS,
                TransferError, name,
            },
        },
    },
    run::app::{
        files::paths::directory,
        services::{self, StoreServiceError},
    },
};

impl ImportArgs {
    /// Runs the command.
    pub fn run(self) -> Result<Output, CommandError> {
        let RecordArgs { store, json } = &self.store;
        store.run(*json, Opening::Command, async |context| {
            self.import(context).await
        })
    }

    async fn import(&self, context: &Context) -> Result<String, CommandError> {
        let begun = Instant::now();
        let store_file = context.config.store.file();
        let temporary = std::env::temp_dir();
        let beside = store_file.as_deref().map_or(&*temporary, directory);
        let input = Input::open(&self.file, beside)?;
        let declared = context.config.permission.iter();
        let defaults = Defaults {
            now: context.now,
            token_user: new_name("--token-user", self.token_user.clone())?,
            accepted_until: next_high_water_mark(context),
            updates: self.update,
            skips_invalid: self.skip_invalid,
        };
        let warnings = ImportWarnings::new(declared.map(|entry| entry.name.clone()));
        let contents = Contents::check(&input, self.csv.format(), defaults, warnings)
            .about(format!("{}: cannot be read", input.name))?;
        let is_broken = contents.problems.count > 0;
        if self.prune && !is_broken && !contents.has_consumers() {
            return Err(CommandError::failed(format!(
                "{}: has no consumer, and --prune would remove all; nothing was imported",
                input.name
            )));
        }
        let plan = Plan {
            args: self,
            context,
            input: &input,
            contents: &contents,
            begun,
        };
        let shows = self.replace || self.update;
        let mut announced = None;
        if is_broken || self.dry_run || shows {
            // What is there may be changed: first find out what, and show it.
            let mut shown = tempfile::tempfile_in(beside)
                .or_else(|_| tempfile::tempfile())
                .about("the list of changes cannot be written")?;
            let mut differences = Differences::new(BufWriter::new(&shown), self.store.json);
            let imported = match plan.run(true, &mut differences, None).await {
                // The problems of the file can be reported without the store.
                Err(_) if is_broken => None,
                imported => Some(imported?),
            };
            let imported = match imported {
                Some(imported) => plan.accepted(imported)?,
                None => return Err(plan.rejected(Vec::new(), 0, &Alike::default())),
            };
            let removed = differences.removed;
            announced = Some(
                differences
                    .finish()
                    .about("the list of changes cannot be written")?,
            );
            if shows {
                shown.rewind()?;
                let mut stdout = io::stdout().lock();
                io::copy(&mut shown, &mut stdout)?;
                stdout.flush()?;
            }
            if self.dry_run {
                plan.warn();
                return Ok(plan.show(imported));
            }
            if removed > 0 {
                let question = format!("Remove {removed} consumers with all their tokens?");
                self.confirmation.ask(&question)?;
            }
        }
        let mut differences = Differences::new(io::sink(), self.store.json);
        let imported = plan.run(false, &mut differences, announced).await?;
        let imported = plan.accepted(imported)?;
        plan.warn();
        let until = context.store()?.imported_nonces_until().await?;
        if let Some(until) = until.filter(|until| *until >= context.now) {
            context.warn(&format!(
                "the store of an import may have accepted requests with timestamps up to {until}, and they could \
                 be replayed: until then signed requests get 503; nonce.on_lost = \"accept\" waives this"
            ));
        }
        Ok(plan.show(imported))
    }
}

/// An import into a store.
struct Plan<'a> {
    args: &'a ImportArgs,
    context: &'a Context,
    input: &'a Input,
    contents: &'a Contents,
    begun: Instant,
}

impl Plan<'_> {
    /// Imports, or finds out what an import would do. With `announced` the changes have to be those of this hash.
    async fn run(
        &self,
        dry_run: bool,
        differences: &mut Differences<impl io::Write>,
        announced: Option<u64>,
    ) -> Result<Import, CommandError> {
        let Self { args, contents, .. } = self;
        let records = contents.records(self.input, args.csv.format());
        let differences = RefCell::new(differences);
        let listed = |key: &ConsumerKey| contents.index.contains(&name("consumer", key.as_str()));
        let list = ImportList {
            origin: contents.origin.clone(),
            dry_run: dry_run || contents.problems.count > 0,
            existing: match (args.replace, args.update) {
                (true, _) => Existing::Replace,
                (_, true) => Existing::Update,
                _ => Existing::Reject,
            },
            keeps: args.prune.then(|| Box::new(listed) as _),
            has_problem: Box::new(|name| contents.problems.may_have(name)),
            differences: Box::new(|one| differences.borrow_mut().write(one)),
            is_expected: Box::new(|| {
                announced.is_none_or(|announced| differences.borrow().hash() == announced)
            }),
            ..ImportList::new(records, self.context.now, password::milliseconds)
        };
        import(self.context, &self.input.name, list).await
    }

    /// The numbers of an import that took all records.
    fn accepted(&self, imported: Import) -> Result<Imported, CommandError> {
        match imported {
            Import::Imported(imported) if self.contents.problems.count == 0 => Ok(imported),
            Import::Imported(_) => Err(self.rejected(Vec::new(), 0, &Alike::default())),
            Import::Rejected(found, count, alike) => Err(self.rejected(found, count, &alike)),
            Import::Unexpected => Err(CommandError::failed(
                "the store was changed after the changes were shown; nothing was imported, run the command again",
            )),
        }
    }

    /// The problems of a file and of its records in the store: a line for each of the first ones of a kind, the number of
    /// the others, and the number of all.
    fn rejected(
        &self,
        found: Vec<ImportProblem>,
        found_count: u64,
        found_alike: &Alike,
    ) -> CommandError {
        let problems = &self.contents.problems;
        let of_file = problems.first();
        let of_file = of_file.map(|(line, problem)| (line, problem.to_owned()));
        let found = found
            .into_iter()
            .map(|found| (found.line, format!("{} {}", found.record, found.conflict)));
        let mut first: Vec<_> = of_file.chain(found).collect();
        first.sort();
        let count = problems.count + found_count;
        let (lines, shown) = self.lines(first, problems.alike.with(found_alike));
        let lines = lines.join("\ncountersign: ");
        CommandError::failed_lines(match count {
            1 => format!("{lines}; nothing was imported"),
            _ if count == shown => {
                format!("{lines}\ncountersign: {count} problems; nothing was imported")
            }
            _ => format!(
                "{lines}\ncountersign: {count} problems, of which the first {shown} are shown; nothing was imported"
            ),
        })
    }

    /// A line for each of the first problems of a kind and for the number of the others, and how many problems they are.
    fn lines(
        &self,
        first: Vec<(usize, String)>,
        mut others: BTreeMap<String, u64>,
    ) -> (Vec<String>, u64) {
        let format = self.args.csv.format();
        let (mut shown, mut seen) = (0, Alike::default());
        let mut lines = Vec::new();
        for (number, problem) in first {
            if lines.len() < MAX_PROBLEMS && seen.add(&problem) <= SHOWN_ALIKE {
                if let Some(others) = others.get_mut(&Alike::kind(&problem)) {
                    *others -= 1;
                }
                shown += 1;
                let place = format.place(&self.input.name, number);
                lines.push(format!("{place}: {problem}"));
            }
        }
        others.retain(|_, count| *count > 0);
        for (kind, count) in &others {
            shown += count;
            lines.push(format!("{}: {count} more: {kind}", self.input.name));
        }
        (lines, shown)
    }

    fn warn(&self) {
        let (warnings, context) = (&self.contents.warnings, self.context);
        let skipped = &self.contents.skipped;
        let first = skipped
            .first()
            .map(|(line, problem)| (line, problem.to_owned()));
        let (lines, _) = self.lines(first.collect(), skipped.alike.with(&Alike::default()));
        for line in lines {
            context.warn(&format!("skipped: {line}"));
        }
        if self.contents.is_empty() {
            context.warn(&format!("{} has no record in it", self.input.name));
        }
        context.warn_of_undeclared("permission", &warnings.permissions);
        if warnings.unprotected > 0 {
            context.warn(&format!(
                "{} of the consumers have a callback that is http on another host: the verifier travels unprotected",
                warnings.unprotected
            ));
        }
        if warnings.asterisks > 0 {
            context.warn(&format!(
                "{} of the consumers have a callback with an asterisk: {}",
                warnings.asterisks,
                callback::ASTERISK
            ));
        }
    }

    fn show(&self, imported: Imported) -> String {
        let counts = imported
            .counts()
            .map(|(name, count)| (name.to_owned(), json!(count)));
        let skipped = self.args.skip_invalid;
        let skipped = skipped.then(|| ("skipped".to_owned(), json!(self.contents.skipped.count)));
        let dry_run = self.args.dry_run;
        let dry_run = dry_run.then(|| ("dry_run".to_owned(), json!(true)));
        let members = counts.into_iter().chain(skipped).chain(dry_run);
        let members = Map::from_iter(members);
        let counts = members.iter().filter_map(|(name, value)| {
            let is_shown = ["added", "unchanged"].contains(&&**name) || value.as_u64() > Some(0);
            let count = value.as_u64().filter(|_| is_shown)?;
            Some(format!("{count} {}", name.replace('_', " ")))
        });
        let counts = Vec::from_iter(counts).join(", ");
        let (file, took) = (&self.input.name, took(self.begun));
        let text = match self.args.dry_run {
            true => {
                format!("Nothing was imported. An import of {file} would give: {counts} ({took}).")
            }
            false => format!("Imported {file} in {took}: {counts}."),
        };
        self.context.told(&members, &text)
    }
}

/// Imports into the store. A dry run does not create one.
async fn import(
    context: &Context,
    input: &str,
    list: ImportList<'_>,
) -> Result<Import, CommandError> {
    let failed = |error| match error {
        TransferError::File(error) => CommandError::from(error).about(input),
        TransferError::Store(error) => error.into(),
    };
    if !list.dry_run {
        let import = context.operator()?.import(list).await;
        return import.map_err(failed);
    }
    let opened = match services::open_store(&context.config, Opening::Existing) {
        Err(StoreServiceError::Missing(_)) => None,
        Err(StoreServiceError::Open(error)) if matches!(error.problem, OpenProblem::Missing) => {
            None
        }
        opened => Some(opened?),
    };
    if let Some(store) = opened {
        return store.import(list).await.map_err(failed);
    }
    let directory = tempfile::tempdir()?;
    let store = store::open_store(store::StoreParams {
        backend: Backend::Sqlite(directory.path().join("store")),
        keys: Vec::new(),
        opening: Opening::Serve,
        external: None,
    })?;
    store.import(list).await.map_err(failed)
}
