//! Consumers and users as people name them: by key or id, or by a name that one alone has.

use crate::{
    cli::context::{CommandError, Context},
    operator::manage::ManageError,
    records::values::{
        record::{Consumer, User},
        use_cases::RecordFilter,
    },
};

/// The records that an error names.
const NAMED: usize = 5;

/// A consumer by its key or its name.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ConsumerArg {
    /// Its key, or its name if no other consumer has it
    #[arg(value_name = "KEY", allow_hyphen_values = true)]
    pub(in crate::cli) consumer: String,
}

/// A user by name or id.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct UserArg {
    /// The name to log in with, or the id
    #[arg(value_name = "NAME", allow_hyphen_values = true)]
    pub(in crate::cli) user: String,
}

impl Context {
    /// Finds a consumer by its key, else by its name.
    ///
    /// # Errors
    /// None or several have it; then those that match are named. The store fails.
    pub(in crate::cli) async fn consumer(&self, text: &str) -> Result<Consumer, CommandError> {
        let manage = self.manage()?;
        let unknown = match text.parse() {
            Ok(key) => match manage.consumer(&key).await {
                Err(error @ ManageError::ConsumerUnknown(_)) => CommandError::from(error),
                found => return Ok(found?),
            },
            Err(_) => CommandError::failed(format!(
                "no consumer has the name {text:?}; list the consumers to find it"
            )),
        };
        let (filter, mut similar) = (RecordFilter::containing(text), Vec::<Consumer>::new());
        loop {
            let last = similar.last().map(|last| last.key.clone());
            let next = manage.store.consumers(&filter, last.as_ref(), 500);
            match next.await? {
                next if next.is_empty() => break,
                next => similar.extend(next),
            }
        }
        let names = similar
            .iter()
            .map(|one| (one.name.clone(), one.key.to_string()));
        match chosen(text, &Vec::from_iter(names))? {
            Some(index) => Ok(similar.swap_remove(index)),
            None => Err(unknown),
        }
    }

    /// Finds a user by name or id.
    ///
    /// # Errors
    /// None or two have it; those of which it is a part are named. The store fails.
    pub(in crate::cli) async fn user(&self, text: &str) -> Result<User, CommandError> {
        let manage = self.manage()?;
        let unknown = match manage.user(text).await {
            Err(error @ ManageError::UserUnknown(_)) => error,
            found => return Ok(found?),
        };
        let filter = RecordFilter::containing(text);
        let similar = manage.store.users(&filter, None, 500).await?;
        if similar.is_empty() {
            return Err(unknown.into());
        }
        let similar = similar
            .into_iter()
            .map(|user| (user.name, user.id.to_string()));
        Err(CommandError::failed(format!(
            "no user has the name or id {text:?}; it is a part of {}",
            listed(similar)
        )))
    }
}

/// The place of the consumer with this name among those that have it in name, key or description, each with its name and
/// key; `None` if there are none.
///
/// # Errors
/// None of them, or several, have the name.
pub(in crate::cli) fn chosen(
    text: &str,
    similar: &[(String, String)],
) -> Result<Option<usize>, CommandError> {
    let same =
        |(_, (name, _)): &(usize, &(String, String))| name.to_lowercase() == text.to_lowercase();
    let same = Vec::from_iter(similar.iter().enumerate().filter(same));
    let all = |of: &mut dyn Iterator<Item = &(String, String)>| listed(of.cloned());
    match &same[..] {
        [(index, _)] => Ok(Some(*index)),
        [] if similar.is_empty() => Ok(None),
        [] => Err(CommandError::failed(format!(
            "no consumer has the key or name {text:?}; it is a part of {}",
            all(&mut similar.iter())
        ))),
        several => Err(CommandError::failed(format!(
            "several consumers have the name {text:?}; give the key: {}",
            all(&mut several.iter().map(|(_, one)| *one))
        ))),
    }
}

/// The first of these names and keys, and how many more there are.
fn listed(all: impl Iterator<Item = (String, String)>) -> String {
    let mut all = all.map(|(name, key)| format!("{name} ({key})"));
    let shown = Vec::from_iter(all.by_ref().take(NAMED)).join(", ");
    match all.count() {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
