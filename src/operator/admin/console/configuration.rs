//! The effective configuration.

use super::{
    ConsoleRequest, PageParts, Result,
    page::Section,
    parts::{Line, Table, line},
};
use crate::operator::manage::setting::EffectiveSetting;

impl ConsoleRequest<'_> {
    pub(super) fn configuration(&self) -> Result<PageParts> {
        let settings = self.admin.control.console.settings.load();
        let q = self.field("q");
        let wanted = settings.iter().filter(|setting| match q {
            "" => true,
            q => setting.key.contains(q) || setting.source.contains(q),
        });
        let row = |setting: &EffectiveSetting| -> Vec<Line> {
            vec![
                line(&*setting.key),
                line(&*setting.value),
                line(&*setting.source),
            ]
        };
        let text = "What this process runs with, and where each value is from. Passwords are left out; files of secrets are \
                    named, not shown. A setting that needs a restart shows the value of the last start.";
        let sections = vec![
            Section::Text(line(text)),
            Section::Table(Table {
                caption: "Settings in the order of config.example.toml".to_owned(),
                head: vec!["key", "value", "from"],
                rows: wanted.map(row).collect(),
                empty: "No setting matches.",
                next: None,
            }),
        ];
        Ok(("Configuration".to_owned(), sections))
    }
}
