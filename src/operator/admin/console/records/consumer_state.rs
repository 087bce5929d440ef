//! The state of a consumer: whether it is enabled, its grace, the link of its developer, and its removal.

use super::change::PlannedChange;
use crate::{
    operator::admin::console::{
        ConsoleRequest, Result,
        parts::{counted, listed, time},
    },
    provider::respond::OwnResponse,
    records::values::{record::Consumer, use_cases::TokenFilter},
};

impl ConsoleRequest<'_> {
    pub(crate) async fn disable_consumer(&self) -> Result<OwnResponse> {
        let asked = self.change_of_consumer().await?;
        let Consumer { key, name, .. } = &asked.record;
        if asked.is_confirmed {
            self.operator()
                .set_consumer_enabled(key, asked.guard(), false)
                .await?;
            return Ok(asked.done());
        }
        let tokens = self.live_tokens(&asked.record).await?;
        let enforces = self.admin.shared.live.load().authorizer.enforces();
        let calls = match enforces || asked.record.enforce {
            true => "All its calls get 401 within a second, on every replica.",
            false => {
                "Signatures are only observed: its calls to the API still pass, without the headers of an identity. To reject them, let \
                 “Enforce” be set for it. Its token calls get 401 within a second, on every replica."
            }
        };
        let effects = vec![
            calls.to_owned(),
            match &*tokens {
                "1 access token" => "Its access token works again once you enable it.".to_owned(),
                tokens => format!("Its {tokens} work again once you enable it."),
            },
        ];
        let title = format!("Disable {name}?");
        Ok(self.confirm(&asked.destructive(title, effects, "Disable")))
    }

    pub(crate) async fn enable_consumer(&self) -> Result<OwnResponse> {
        let asked = self.change_of_consumer().await?;
        let Consumer { key, name, .. } = &asked.record;
        if asked.is_confirmed {
            self.operator()
                .set_consumer_enabled(key, asked.guard(), true)
                .await?;
            return Ok(asked.done());
        }
        let tokens = self.live_tokens(&asked.record).await?;
        let effects = vec![format!("Its calls are accepted again, with its {tokens}.")];
        let title = format!("Enable {name}?");
        Ok(self.confirm(&asked.planned(title, effects, "Enable")))
    }

    /// Approves what a user has asked for.
    pub(crate) async fn approve_consumer(&self) -> Result<OwnResponse> {
        let asked = self.change_of_consumer().await?;
        let Consumer { key, name, .. } = &asked.record;
        if asked.is_confirmed {
            self.operator()
                .approve_consumer(key, asked.guard(), None)
                .await?;
            return Ok(asked.done());
        }
        let mut effects = match asked.record.is_unapproved() {
            true => vec!["Its calls are accepted within a second, on every replica.".to_owned()],
            false if !asked.record.enabled => {
                vec!["It stays disabled. Enable it afterwards to accept its calls.".to_owned()]
            }
            false => Vec::new(),
        };
        let callbacks = match &asked.record.asked_callbacks[..] {
            [] => &asked.record.callbacks[..],
            asked => asked,
        };
        effects.push(format!("Its callbacks: {}.", listed(callbacks)));
        effects.push(format!(
            "Its permissions: {}.",
            listed(&asked.record.permissions)
        ));
        let title = format!("Approve {name}?");
        Ok(self.confirm(&asked.planned(title, effects, "Approve")))
    }

    /// Declines what a user has asked for, with a sentence for the user.
    pub(crate) async fn decline_consumer(&self) -> Result<OwnResponse> {
        let asked = self.change_of_consumer().await?;
        let Consumer { key, name, .. } = &asked.record;
        let reason = self.field("typed").trim();
        if asked.is_confirmed && !reason.is_empty() {
            self.operator()
                .decline_consumer(key, asked.guard(), reason)
                .await?;
            return Ok(asked.done());
        }
        let title = format!("Decline {name}?");
        let effects = vec!["The user who asked reads the sentence that you write here.".to_owned()];
        let change = asked.destructive(title, effects, "Decline");
        Ok(self.confirm(&PlannedChange {
            has_sentence: true,
            ..change
        }))
    }

    /// Ends the grace of the previous secret.
    pub(crate) async fn end_grace(&self) -> Result<OwnResponse> {
        let asked = self.change_of_consumer().await?;
        let Consumer { key, name, .. } = &asked.record;
        if asked.is_confirmed {
            self.operator().end_grace(key, asked.guard()).await?;
            return Ok(asked.done());
        }
        let used = match self.admin.shared.previous_secrets.uses_by(key.as_str()) {
            None => format!(
                "No call with it was seen since this process started at {}.",
                time(self.admin.shared.rejections.since)
            ),
            Some((count, last)) => format!(
                "This process has seen {} with it, the last at {}.",
                counted(count, "call"),
                time(last)
            ),
        };
        let effects = vec![
            "Calls that are signed with the old secret get 401 at once.".to_owned(),
            used,
        ];
        let title = format!("Stop accepting the old secret of {name}?");
        Ok(self.confirm(&asked.destructive(title, effects, "Stop accepting it")))
    }

    /// Makes the link of its developer, and shows it this once.
    pub(crate) async fn make_developer_link(&self) -> Result<OwnResponse> {
        let asked = self.change_of_consumer().await?;
        let Consumer { key, name, .. } = &asked.record;
        if asked.is_confirmed {
            let link = self.operator().make_developer_link(key).await?;
            let url = link.url(&self.backend.base_url, &self.backend.rules.flow);
            return Ok(self.hand_over_link(&asked.record, url, link.until));
        }
        let effects = vec![
            "Whoever has the link sees, for 24 hours, which calls of this consumer were rejected and why, and can have a request \
             checked. It shows no secret, no user and nothing of other consumers."
                .to_owned(),
            "A link that was made before ends.".to_owned(),
        ];
        let title = format!("A link for the developer of {name}?");
        Ok(self.confirm(&asked.planned(title, effects, "Make the link")))
    }

    /// Ends the link of its developer.
    pub(crate) async fn end_developer_link(&self) -> Result<OwnResponse> {
        let asked = self.change_of_consumer().await?;
        let Consumer { key, name, .. } = &asked.record;
        if asked.is_confirmed {
            self.operator().revoke_developer_link(key).await?;
            return Ok(asked.done());
        }
        let effects = vec!["The page of its developer ends at once, on every replica.".to_owned()];
        let title = format!("End the developer’s link of {name}?");
        Ok(self.confirm(&asked.destructive(title, effects, "End the link")))
    }

    /// Removes a consumer. If it has live tokens, its key has to be typed.
    pub(crate) async fn remove_consumer(&self) -> Result<OwnResponse> {
        let asked = self.change_of_consumer().await?;
        let Consumer { key, name, .. } = &asked.record;
        let manage = &self.backend.manage;
        let filter = TokenFilter::for_consumer(key);
        let has_tokens = manage.store.count_access_tokens(&filter, 1).await? > 0;
        let is_typed = !has_tokens || self.field("typed") == key.as_str();
        if asked.is_confirmed && is_typed {
            self.operator().remove_consumer(key, asked.guard()).await?;
            return Ok(OwnResponse::see_other("/consumers".to_owned()));
        }
        let tokens = self.live_tokens(&asked.record).await?;
        let effects = vec![
            format!("It ends {tokens}, and every authorization that has begun."),
            "Nothing brings it back: its key is never used again. To stop it for a while, disable it.".to_owned(),
        ];
        let (title, typed) = (format!("Remove {name}?"), key.to_string());
        Ok(self.confirm(&PlannedChange {
            typed: has_tokens.then_some(typed),
            ..asked.destructive(title, effects, "Remove for good")
        }))
    }

    pub(crate) async fn live_tokens(&self, consumer: &Consumer) -> Result<String> {
        self.counted_tokens(&TokenFilter::for_consumer(&consumer.key))
            .await
    }
}
