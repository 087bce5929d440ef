//! The options of `consumer add` and `consumer update`, one for each field of a consumer, checked before the store is opened.

use std::path::PathBuf;

use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches,
    builder::{PossibleValuesParser, ValueParser},
    value_parser,
};
use serde_json::{Map, Value};

use super::super::context::{CommandError, Context};
use crate::{
    cli::secrets::read_rsa_public_key,
    operator::manage::{Field, Kind, fields},
    provider::issue::{callback, registration},
};

/// The fields that are given, and with `!IS_NEW` those that are taken away.
#[derive(Debug)]
pub(in crate::cli) struct Details<const IS_NEW: bool> {
    members: Map<String, Value>,
    rsa_public_key: Option<PathBuf>,
}

impl<const IS_NEW: bool> Args for Details<IS_NEW> {
    fn augment_args(command: Command) -> Command {
        fields().iter().fold(command, |command, field| {
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

fn option(field: &'static Field) -> Arg {
    let option = Arg::new(&*field.name).long(&*field.option);
    let with = |parser: ValueParser| {
        let option = option.clone().help(&*field.help);
        option.value_name(&*field.value_name).value_parser(parser)
    };
    let checked = || ValueParser::new(|text: &str| field.checked(text));
    match &field.kind {
        Kind::Flag => option.help(&*field.help).action(ArgAction::SetTrue),
        Kind::File => with(value_parser!(PathBuf)),
        Kind::List => with(checked())
            .help(format!("{}; may be repeated", field.help))
            .action(ArgAction::Append),
        Kind::Choice(words) => {
            with(PossibleValuesParser::new(words.iter().map(|word| &**word)).into())
        }
        Kind::Text => with(checked()),
    }
}

fn removal(field: &'static Field) -> Arg {
    let help = match field.kind {
        Kind::Flag => format!("Take --{} back", field.option),
        _ => format!("Take the {} away", field.name.replace('_', " ")),
    };
    Arg::new(&*field.removal)
        .long(&*field.removal)
        .help(help)
        .action(ArgAction::SetTrue)
        .conflicts_with(&*field.name)
}

impl<const IS_NEW: bool> FromArgMatches for Details<IS_NEW> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = |field: &Field| match field.kind {
            Kind::Flag => matches.get_flag(&field.name).then_some(Value::Bool(true)),
            Kind::File => None,
            Kind::List => {
                let items = matches.get_many::<String>(&field.name)?;
                Some(items.cloned().collect())
            }
            Kind::Text | Kind::Choice(_) => {
                let text = matches.get_one::<String>(&field.name)?;
                Some(text.clone().into())
            }
        };
        let is_removed =
            |field: &Field| !IS_NEW && !field.is_needed && matches.get_flag(&field.removal);
        let members = fields().iter().filter_map(|field| {
            let value = given(field).or_else(|| is_removed(field).then_some(Value::Null));
            Some((field.name.clone(), value?))
        });
        Ok(Self {
            members: members.collect(),
            rsa_public_key: matches.get_one::<PathBuf>("rsa_public_key").cloned(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<const IS_NEW: bool> Details<IS_NEW> {
    /// The given fields, as a JSON Merge Patch (RFC 7396), with the key file read and checked.
    pub(super) fn members(mut self) -> Result<Map<String, Value>, CommandError> {
        let path = self.rsa_public_key.as_deref();
        if let Some(pem) = read_rsa_public_key(path, registration::rsa_public_key)? {
            self.members.insert("rsa_public_key".to_owned(), pem.into());
        }
        Ok(self.members)
    }

    /// Warns of what is valid and unwise.
    pub(super) fn warn(&self, context: &Context) {
        let items = |name| {
            let items = self.members.get(name).and_then(Value::as_array);
            items.into_iter().flatten().filter_map(Value::as_str)
        };
        for callback in items("callbacks") {
            if let Ok(Some(warning)) = callback::check_registration(callback) {
                context.warn(&format!("--callback {callback}: {warning}"));
            }
        }
        let permissions = items("permissions").filter_map(|name| name.parse().ok());
        context.warn_of_undeclared("--permission", &Vec::from_iter(permissions));
    }
}
