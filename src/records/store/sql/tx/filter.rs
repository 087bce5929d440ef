//! Conditions of lists.

use crate::records::values::{
    use_cases::RecordFilter,
    value::{Value, escaped},
};

/// What a statement asks of rows, with its parameters.
pub(crate) struct Condition {
    pub(crate) sql: String,
    pub(crate) params: Vec<Value>,
}

impl Condition {
    /// A condition on these parameters.
    pub(crate) fn new(sql: &str, params: Vec<Value>) -> Self {
        let sql = sql.to_owned();
        Self { sql, params }
    }

    /// Asks one thing more, of a value whose place is `?`.
    pub(crate) fn and(&mut self, sql: &str, value: impl Into<Value>) {
        self.params.push(value.into());
        let place = format!("${}", self.params.len());
        self.sql += " AND ";
        self.sql += &sql.replace('?', &place);
    }

    /// The statement that lists the rows of `table` in this order, at most `limit`, and its parameters.
    pub(crate) fn list(mut self, table: &str, order: &str, limit: u32) -> (String, Vec<Value>) {
        self.params.push(i64::from(limit).into());
        let list = format!(
            "SELECT * FROM countersign.{table} WHERE {} ORDER BY {order} LIMIT ${}",
            self.sql,
            self.params.len()
        );
        (list, self.params)
    }
}

/// The condition of a filter on records that follow `after` by the column `key`.
pub(crate) fn condition(filter: &RecordFilter, key: &str, after: &str) -> Condition {
    let mut condition = Condition::new(&format!("{key} > $1"), vec![after.into()]);
    if let Some(enabled) = filter.enabled {
        condition.and("enabled = ?", enabled);
    }
    // The tables have collations by which `lower` folds ASCII letters alone.
    let pattern = |text: &str| {
        let pattern = text.to_ascii_lowercase().replace('!', "!!");
        let pattern = pattern.replace('%', "!%").replace('_', "!_");
        escaped(&format!("%{pattern}%"))
    };
    if let Some(contact) = &filter.contact {
        condition.and("lower(contact) LIKE ? ESCAPE '!'", pattern(contact));
    }
    if let Some(q) = &filter.q {
        let texts = match key {
            "id" => &["id", "name", "display_name"][..],
            _ => &["key", "name", "description", "contact"],
        };
        let texts = texts
            .iter()
            .map(|text| format!("lower({text}) LIKE ? ESCAPE '!'"));
        let any = format!("({})", Vec::from_iter(texts).join(" OR "));
        condition.and(&any, pattern(q));
    }
    condition
}
