//! Who may not log in at present, after failed logins.

use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
};

use serde::Serialize;

use super::{ManageError, Management};
use crate::{
    base::{clock::UnixTime, names::UserId},
    provider::login::{Throttle, throttle::Pause},
    records::store::{port::RecordFilter, record::User},
};

/// Users that are read at once, to find those who are paused.
const AT_ONCE: u32 = 1_000;

/// The most users that are read for it.
const MOST: usize = 20_000;

/// What is paused after failed logins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PauseKind {
    /// An account at one address.
    Account,
    /// An address for all accounts, since it failed with many.
    Address,
}

/// A pause after failed logins. Serde writes the members of `/v1/login-pauses`.
#[derive(Debug, Clone, Serialize)]
pub struct LoginPause {
    /// What is paused.
    pub kind: PauseKind,
    /// The id of the user of the account; `None`: none of the first 20,000 users has the name that was typed, or the pause is one of an address.
    pub user: Option<UserId>,
    /// The login name of that user.
    pub name: Option<String>,
    /// The address; of IPv6 the first one of its /64. `None`: other processes counted the failures, and report hashes alone.
    pub address: Option<IpAddr>,
    /// The end of the pause.
    pub until: UnixTime,
}

impl Management {
    /// The pauses after failed logins, the last to end first. Names are kept as hashes, so the users are found by the names of
    /// the first 20,000.
    ///
    /// # Errors
    /// The store fails.
    pub async fn login_pauses(&self, throttle: &Throttle) -> Result<Vec<LoginPause>, ManageError> {
        let pauses = throttle.pauses(self.clock.now());
        let users = self.paused_users(throttle, &pauses).await?;
        let shown = pauses.into_iter().map(|pause| {
            let user = pause.account.and_then(|account| users.get(&account));
            LoginPause {
                kind: match pause.account {
                    Some(_) => PauseKind::Account,
                    None => PauseKind::Address,
                },
                user: user.map(|user| user.id.clone()),
                name: user.map(|user| user.name.clone()),
                address: pause.address,
                until: pause.until,
            }
        });
        Ok(shown.collect())
    }

    async fn paused_users(
        &self,
        throttle: &Throttle,
        pauses: &[Pause],
    ) -> Result<HashMap<u64, User>, ManageError> {
        let wanted: HashSet<u64> = pauses.iter().filter_map(|pause| pause.account).collect();
        let (mut users, mut after, mut seen) = (HashMap::new(), None, 0);
        while users.len() < wanted.len() && seen < MOST {
            let all = RecordFilter::default();
            let found = self.users(&all, after.as_ref(), AT_ONCE).await?;
            let is_last = found.len() < AT_ONCE as usize;
            seen += found.len();
            after = found.last().map(|user| user.id.clone());
            for user in found {
                let account = throttle.paused_account(&user.name);
                if wanted.contains(&account) {
                    users.entry(account).or_insert(user);
                }
            }
            if is_last {
                break;
            }
        }
        Ok(users)
    }
}
