//! The use cases with the store as a whole: export, import, and its secrets under another key.

pub(crate) mod export_line;
pub(crate) mod member_names;

use std::io;

use super::{ManageError, Management, Operator};
use crate::{
    records::values::{
        transfer::{Exported, Import, ImportList, TransferError},
        use_cases::{Change, ResealFrom, Resealed},
    },
    telemetry::audit::CommandRecord,
};

impl Operator<'_> {
    /// Reads the contents of an export, as of one moment, and gives them to `write` in parts. The export is recorded once
    /// `write` has received something, however it ends: secrets may have been read.
    ///
    /// # Errors
    /// The store's, or that of `write`.
    pub async fn export(
        &self,
        mut write: impl FnMut(Exported) -> io::Result<()>,
    ) -> Result<(), TransferError> {
        let mut has_begun = false;
        let mut write = |part| {
            has_begun = true;
            write(part)
        };
        let exported = self.manage.store.export(&mut write).await;
        if has_begun {
            let about = CommandRecord::counting("store_exported", []);
            self.audit(about).await;
        }
        exported
    }

    /// Imports all of the records or none, as [`Import`] describes.
    ///
    /// # Errors
    /// The store's, or that of the records.
    pub async fn import(&self, list: ImportList<'_>) -> Result<Import, TransferError> {
        let is_dry_run = list.dry_run;
        let import = self.manage.store.import(list).await?;
        if let Import::Imported(imported) = import
            && !is_dry_run
        {
            let about = CommandRecord::counting("records_imported", imported.counts());
            self.audit(about).await;
        }
        Ok(import)
    }

    /// Seals every secret with the first key of `store.encryption_key_file`. `progress` receives the number of secrets that
    /// were looked at.
    ///
    /// # Errors
    /// The store fails. It can be repeated.
    pub async fn rekey(&self, mut progress: impl FnMut(u64)) -> Result<Resealed, ManageError> {
        let mut all = Resealed::default();
        let mut next = Some(ResealFrom::default());
        while let Some(from) = next.take() {
            next = all.add(self.manage.store.reseal(from, false).await?);
            progress(all.seen);
        }
        let unopened = all.unopened_count();
        let counts = [("rekeyed", all.older - unopened), ("unopened", unopened)];
        let about = CommandRecord::counting("store_rekeyed", counts);
        self.audit(about).await;
        Ok(all)
    }
}

impl Management {
    /// Forgets what was read about a record of the application, here at once and in every other process within a second. It is
    /// not an act of an operator, so there is no audit record.
    ///
    /// # Errors
    /// The store fails, so that others may not learn of it.
    pub async fn forget_external(&self, change: Change) -> Result<(), ManageError> {
        self.store.report_external_change(change).await?;
        if let Some(feed) = &self.feed {
            feed.follow().await?;
        }
        Ok(())
    }
}
