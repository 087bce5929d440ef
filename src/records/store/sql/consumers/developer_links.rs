//! Links by which the developer of a consumer sees its rejected calls. Each is a random value, of which the store has the
//! SHA-256.

use crate::{
    base::{clock::UnixTime, text::names::ConsumerKey},
    records::{
        store::sql::{READ, Store, WRITE, consumers::END_LINK, tx::rows},
        values::{Result, seal::Seal, value::Row},
    },
};

impl Store {
    /// Keeps the link of a consumer, which replaces the one before it.
    pub async fn put_developer_link(
        &self,
        consumer: &ConsumerKey,
        id_hash: &[u8; 32],
        expires_at: UnixTime,
    ) -> Result<()> {
        let put = "INSERT INTO countersign.developer_links (consumer, id_hash, expires_at) VALUES ($1, $2, $3)
            ON CONFLICT (consumer) DO UPDATE SET id_hash = excluded.id_hash, expires_at = excluded.expires_at";
        self.run("put_developer_link", WRITE, async |tx| {
            let params = [
                consumer.as_str().into(),
                id_hash.to_vec().into(),
                expires_at.into(),
            ];
            tx.execute(put, &params).await.map(drop)
        })
        .await
    }

    /// Ends the link of a consumer; `false`: it has none that is not ended at `now`.
    pub async fn remove_developer_link(
        &self,
        consumer: &ConsumerKey,
        now: UnixTime,
    ) -> Result<bool> {
        let find =
            "SELECT 1 FROM countersign.developer_links WHERE consumer = $1 AND expires_at > $2";
        self.run("remove_developer_link", WRITE, async |tx| {
            let key = consumer.as_str();
            let is_open = tx.has_row(find, &[key.into(), now.into()]).await?;
            tx.execute(END_LINK, &[key.into()]).await?;
            Ok(is_open)
        })
        .await
    }

    /// The consumer of the link with this hash, and the end of the link; `None`: there is none, or it is ended at `now`.
    pub async fn developer_link(
        &self,
        id_hash: &[u8; 32],
        now: UnixTime,
    ) -> Result<Option<(ConsumerKey, UnixTime)>> {
        let find =
            "SELECT * FROM countersign.developer_links WHERE id_hash = $1 AND expires_at > $2";
        let params = [id_hash.to_vec().into(), now.into()];
        self.row("developer_link", READ, find, &params, rows::developer_link)
            .await
    }

    /// The end of the link of a consumer; `None`: it has none that is not ended at `now`.
    pub async fn developer_link_of(
        &self,
        consumer: &ConsumerKey,
        now: UnixTime,
    ) -> Result<Option<UnixTime>> {
        let find =
            "SELECT * FROM countersign.developer_links WHERE consumer = $1 AND expires_at > $2";
        let params = [consumer.as_str().into(), now.into()];
        let read = |row: &Row, _: &Seal| row.get("expires_at");
        self.row("developer_link_of", READ, find, &params, read)
            .await
    }
}
