//! Why calls are rejected: the mistake in words, the advice for the developer, and what the calls prove.

use super::{
    ConsoleRequest, Result,
    parts::{Moment, Named, Number, Tag, path},
};
use crate::{operator::reasons, request::rejections::ReasonCount};

/// The calls of one consumer that were rejected for one reason, as a row shows them.
pub(super) struct Reason {
    pub(super) consumer: Option<Named>,
    /// The mistake in words.
    pub(super) mistake: String,
    /// Its fixed word, and the link to its rejections.
    pub(super) word: &'static str,
    pub(super) href: String,
    pub(super) is_observed: bool,
    pub(super) advice: String,
    pub(super) count: Number,
    pub(super) first: Moment,
    pub(super) last: Moment,
    pub(super) proof: Tag,
    /// The last call is signed with the previous secret.
    pub(super) previous_secret: bool,
}

impl ConsoleRequest<'_> {
    /// The reasons for which calls of registered consumers were rejected.
    pub(super) fn reasons_of_consumers(&self) -> Vec<ReasonCount> {
        self.admin.shared.rejections.reasons(None)
    }

    /// The rows of these reasons.
    pub(super) async fn reasons(&self, groups: &[ReasonCount]) -> Result<Vec<Reason>> {
        let keys = groups.iter().filter_map(|it| it.newest.consumer.as_deref());
        let names = self.names(keys, std::iter::empty()).await?;
        let row = |group: &ReasonCount| {
            let newest = &*group.newest;
            let (word, consumer) = (newest.mistake(), newest.consumer.as_deref());
            let parameters = [("consumer", consumer.unwrap_or_default()), ("reason", word)];
            Reason {
                consumer: consumer.map(|key| names.consumer(key)),
                mistake: reasons::mistake(newest),
                word,
                href: path("/rejections", &parameters),
                is_observed: group.is_observed(),
                advice: reasons::advice(newest),
                count: Number(group.count),
                first: self.moment(group.first),
                last: self.moment(newest.time),
                proof: proof(group),
                previous_secret: newest.previous_secret,
            }
        };
        Ok(groups.iter().map(row).collect())
    }
}

/// What the calls of a group prove about their sender.
fn proof(group: &ReasonCount) -> Tag {
    let [verified, secrets, _] = group.proofs;
    let class = match group.newest.consumer {
        None => "",
        // A signature that is right, or nothing that is: one made with the secrets is still a mistake.
        Some(_) if verified > 0 && secrets == 0 => "good",
        Some(_) => "warn",
    };
    Tag::new(reasons::proof(group), class)
}
