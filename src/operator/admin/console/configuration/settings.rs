//! The effective configuration.

use askama::Template;

use crate::{
    operator::{
        admin::console::{
            ConsoleRequest,
            page::{ConsoleFrame, InputField, show},
        },
        manage::setting::EffectiveSetting,
    },
    provider::respond::OwnResponse,
};

/// The settings to show; those that differ from their defaults come first.
const WHICH: &[(&str, &str)] = &[("", "changed ones"), ("all", "all")];

#[derive(Template)]
#[template(path = "console/configuration.html")]
struct ConfigurationPage<'a> {
    frame: ConsoleFrame<'a>,
    fields: [InputField; 2],
    q: &'a str,
    is_only_changed: bool,
    /// What `countersign check` warns of, unless a search asks for something else.
    warnings: Vec<String>,
    /// The sections, each with its settings.
    groups: Vec<(&'a str, Vec<&'a EffectiveSetting>)>,
}

impl ConsoleRequest<'_> {
    pub(crate) fn configuration(&self) -> OwnResponse {
        let settings = self.admin.control.console.settings.load();
        let (q, which) = (self.field("q"), self.field("which"));
        let is_only_changed = which != "all";
        let wanted = settings.iter().filter(|setting| match q {
            // A search is through all.
            "" => !is_only_changed || setting.source != "default",
            q => setting.key.contains(q) || setting.source.contains(q),
        });
        let mut groups: Vec<(&str, Vec<&EffectiveSetting>)> = Vec::new();
        for setting in wanted {
            let group = setting.key.split('.').next().unwrap_or_default();
            let group = group.trim_matches(['[', ']']);
            match groups.iter_mut().find(|(known, _)| *known == group) {
                Some((_, settings)) => settings.push(setting),
                None => groups.push((group, vec![setting])),
            }
        }
        let page = ConfigurationPage {
            frame: self.shell.frame("Configuration"),
            fields: [
                InputField::line("q", "Part of a key, or where it is from", q),
                InputField::choice("which", "Settings", WHICH, which),
            ],
            q,
            is_only_changed,
            warnings: match q {
                "" => self.admin.control.console.warnings.load().to_vec(),
                _ => Vec::new(),
            },
            groups,
        };
        show(200, &page)
    }
}
