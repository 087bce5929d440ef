//! The Prometheus text format, version 0.0.4.

use std::fmt::{Display, Write as _};

use super::histogram::{Snapshot, seconds};

/// A label and its value. A value comes from the program or from the configuration, so no caller can make the set grow.
pub(super) type Label<'l> = (&'static str, &'l str);

/// Writes metrics one family after the other.
#[derive(Debug, Default)]
pub struct Text(String);

// Writing to a `String` never fails, so results are dropped here.
impl Text {
    /// Starts a family; `kind` is `counter`, `gauge` or `histogram`.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Adds a sample to the family of that name.
    pub fn sample(&mut self, name: &str, labels: &[Label<'_>], value: impl Display) {
        self.0.push_str(name);
        self.labels(labels, None);
        let _ = writeln!(self.0, " {value}");
    }

    /// Writes a family of one gauge without labels.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }

    pub(super) fn histogram(&mut self, name: &str, labels: &[Label<'_>], snapshot: &Snapshot) {
        let mut cumulative = 0;
        let bounds = snapshot.bounds.iter();
        let bounds = bounds.map(|bound| seconds(*bound as f64).to_string());
        let bounds = bounds.chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(&snapshot.buckets) {
            cumulative += count;
            let _ = write!(self.0, "{name}_bucket");
            self.labels(labels, Some(&bound));
            let _ = writeln!(self.0, " {cumulative}");
        }
        self.sample(&format!("{name}_sum"), labels, snapshot.sum_seconds);
        self.sample(&format!("{name}_count"), labels, cumulative);
    }

    pub(super) fn finish(self) -> String {
        self.0
    }

    fn labels(&mut self, labels: &[Label<'_>], bound: Option<&str>) {
        let bound = bound.map(|bound| ("le", bound));
        let all = labels.iter().copied().chain(bound);
        let mut separator = '{';
        for (name, value) in all {
            let _ = write!(self.0, "{separator}{name}=\"");
            for character in value.chars() {
                match character {
                    '\n' => self.0.push_str("\\n"),
                    '\\' | '"' => self.0.extend(['\\', character]),
                    _ => self.0.push(character),
                }
            }
            self.0.push('"');
            separator = ',';
        }
        if separator == ',' {
            self.0.push('}');
        }
    }
}
