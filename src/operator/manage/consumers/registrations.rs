//! Decisions on consumers that users ask for.

use std::collections::BTreeSet;

use crate::{
    base::text::names::ConsumerKey,
    operator::manage::{InvalidInput, ManageError, Operator},
    provider::issue::registration,
    records::values::{
        record::{Consumer, Registration},
        use_cases::Guard,
    },
};

impl Operator<'_> {
    /// Enables a consumer that waits or was declined, or gives it the callbacks that the user asks for. One that an operator has
    /// disabled stays so. `seen` are the callbacks
    /// that the operator approves, in any order; `None`: `guard` knows the record that the operator saw.
    ///
    /// # Errors
    /// [`ManageError::Invalid`] if the consumer would get other callbacks, [`ManageError::NothingAsked`], and those of
    /// [`Self::patch_consumer`].
    pub async fn approve_consumer(
        &self,
        key: &ConsumerKey,
        guard: Guard<'_, Consumer>,
        seen: Option<&[String]>,
    ) -> Result<Consumer, ManageError> {
        let approve = |consumer: &mut Consumer| {
            let asked = std::mem::take(&mut consumer.asked_callbacks);
            match consumer.registration {
                None => return Err(ManageError::NothingAsked(key.clone())),
                Some(Registration::Approved) if asked.is_empty() => {
                    return Err(ManageError::NothingAsked(key.clone()));
                }
                Some(Registration::Waiting | Registration::Declined) => consumer.enabled = true,
                Some(Registration::Approved | Registration::Unchecked) => {}
            }
            if !asked.is_empty() {
                consumer.callbacks = asked;
            }
            // The user may have asked for others since they were listed.
            let wanted = BTreeSet::from_iter(&consumer.callbacks);
            if seen.is_some_and(|seen| BTreeSet::from_iter(seen) != wanted) {
                let wanted = match &consumer.callbacks[..] {
                    [] => "no callbacks".to_owned(),
                    wanted => format!("the callbacks {}", wanted.join(" ")),
                };
                let detail = format!("it would have {wanted}: name exactly these to approve them");
                return Err(InvalidInput::member("callbacks", detail).into());
            }
            consumer.registration = Some(Registration::Approved);
            consumer.decision = None;
            Ok(())
        };
        self.change_consumer(key, Some("consumer_approved"), guard, &approve)
            .await
    }

    /// Declines what a user has asked for, with a sentence for the user: the consumer, or its other callbacks.
    ///
    /// # Errors
    /// [`ManageError::NothingAsked`], [`ManageError::Invalid`], and those of [`Self::patch_consumer`].
    pub async fn decline_consumer(
        &self,
        key: &ConsumerKey,
        guard: Guard<'_, Consumer>,
        reason: &str,
    ) -> Result<Consumer, ManageError> {
        let reason = registration::shown_name(reason)
            .map_err(|problem| InvalidInput::member("reason", problem))?;
        let decline = |consumer: &mut Consumer| {
            let asked = std::mem::take(&mut consumer.asked_callbacks);
            match consumer.registration {
                Some(Registration::Waiting) => consumer.registration = Some(Registration::Declined),
                _ if asked.is_empty() => return Err(ManageError::NothingAsked(key.clone())),
                _ => {}
            }
            consumer.decision = Some(reason.clone());
            Ok(())
        };
        self.change_consumer(key, Some("consumer_declined"), guard, &decline)
            .await
    }
}
