//! The options of `add` and `update`, one for each field of a record, checked before the store is opened.

use std::{marker::PhantomData, path::PathBuf};

use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches,
    builder::{PossibleValuesParser, ValueParser},
    value_parser,
};
use serde_json::{Map, Value};

use crate::{
    cli::{arguments::signing_secrets::read_pem, context::CommandError},
    operator::manage::{CONSUMER_FIELDS, FieldKind, RecordField, USER_FIELDS},
};

/// The fields of a kind of record.
pub(in crate::cli) trait RecordKind {
    /// The name of its command.
    const COMMAND: &'static str;
    /// All fields.
    const FIELDS: &'static [RecordField];
    /// Those that are options of `add`.
    const OF_ADD: &'static [RecordField] = Self::FIELDS;
}

#[derive(Debug)]
pub(in crate::cli) enum ConsumerRecord {}

impl RecordKind for ConsumerRecord {
    const COMMAND: &'static str = "consumer";
    const FIELDS: &'static [RecordField] = CONSUMER_FIELDS;
}

#[derive(Debug)]
pub(in crate::cli) enum UserRecord {}

impl RecordKind for UserRecord {
    const COMMAND: &'static str = "user";
    const FIELDS: &'static [RecordField] = USER_FIELDS;
    // The name is an argument, and --permanent says whether the password stays.
    const OF_ADD: &'static [RecordField] = USER_FIELDS.split_at(2).0.split_at(1).1;
}

/// The fields that are given, and with `!IS_NEW` those that are removed.
#[derive(Debug)]
pub(in crate::cli) struct FieldArgs<R, const IS_NEW: bool> {
    members: Map<String, Value>,
    /// The files that hold the values of fields.
    files: Vec<(&'static RecordField, PathBuf)>,
    record: PhantomData<R>,
}

impl<R: RecordKind, const IS_NEW: bool> FieldArgs<R, IS_NEW> {
    const FIELDS: &'static [RecordField] = if IS_NEW { R::OF_ADD } else { R::FIELDS };
}

impl<R: RecordKind, const IS_NEW: bool> Args for FieldArgs<R, IS_NEW> {
    fn augment_args(command: Command) -> Command {
        Self::FIELDS.iter().fold(command, |command, field| {
            let command = command.arg(option(field).required(IS_NEW && field.is_needed));
            match IS_NEW || field.is_needed {
                true => command,
                false => command.arg(removal(field)),
            }
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn option(field: &'static RecordField) -> Arg {
    let name = field.option();
    let option = Arg::new(field.name).long(&name).help(field.help);
    let with = |option: Arg, parser: ValueParser| {
        let option = option.value_name(name.to_uppercase());
        option.value_parser(parser)
    };
    match field.kind {
        FieldKind::Flag => option.action(ArgAction::SetTrue),
        FieldKind::File => with(option, value_parser!(PathBuf)).value_name("FILE"),
        FieldKind::List(_) => with(option, ValueParser::new(field.check))
            .help(format!("{}; may be repeated", field.help))
            .action(ArgAction::Append),
        FieldKind::Choice(words) => with(option, PossibleValuesParser::new(words).into()),
        FieldKind::Text => with(option, ValueParser::new(field.check)),
    }
}

fn removal_option(field: &RecordField) -> String {
    format!("no-{}", field.name.replace('_', "-"))
}

fn removal(field: &'static RecordField) -> Arg {
    let help = match field.kind {
        FieldKind::Flag => format!("Take --{} back", field.option()),
        _ => format!("Take the {} away", field.name.replace('_', " ")),
    };
    Arg::new(removal_option(field))
        .long(removal_option(field))
        .help(help)
        .action(ArgAction::SetTrue)
        .conflicts_with(field.name)
}

impl<R: RecordKind, const IS_NEW: bool> FromArgMatches for FieldArgs<R, IS_NEW> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = |field: &RecordField| match field.kind {
            FieldKind::Flag => matches.get_flag(field.name).then_some(Value::Bool(true)),
            FieldKind::File => None,
            FieldKind::List(_) => {
                let items = matches.get_many::<String>(field.name)?;
                Some(items.cloned().collect())
            }
            FieldKind::Text | FieldKind::Choice(_) => {
                let text = matches.get_one::<String>(field.name)?;
                Some(text.clone().into())
            }
        };
        let is_removed = |field: &RecordField| {
            !IS_NEW && !field.is_needed && matches.get_flag(&removal_option(field))
        };
        let members = Self::FIELDS.iter().filter_map(|field| {
            let value = given(field).or_else(|| is_removed(field).then_some(Value::Null));
            Some((field.name.to_owned(), value?))
        });
        let files = Self::FIELDS.iter();
        let files = files.filter(|field| matches!(field.kind, FieldKind::File));
        let files = files.filter_map(|field| Some((field, matches.get_one(field.name).cloned()?)));
        Ok(Self {
            members: members.collect(),
            files: files.collect(),
            record: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<R: RecordKind, const IS_NEW: bool> FieldArgs<R, IS_NEW> {
    /// The given fields, as a JSON Merge Patch (RFC 7396), with files read and checked.
    pub(in crate::cli) fn members(&self) -> Result<Map<String, Value>, CommandError> {
        let mut members = self.members.clone();
        for (field, path) in &self.files {
            let option = format!("--{} {}", field.option(), path.display());
            let text = (field.check)(&read_pem(path, &option)?);
            let text = text
                .map_err(CommandError::failed)
                .map_err(|error| error.about(option))?;
            members.insert(field.name.to_owned(), text.into());
        }
        match members.is_empty() && !IS_NEW {
            true => Err(CommandError::usage(format!(
                "nothing to change is given; see countersign {} update --help",
                R::COMMAND
            ))),
            false => Ok(members),
        }
    }
}
