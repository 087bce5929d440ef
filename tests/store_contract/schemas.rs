//! Both engines have the same tables, which are written out for each.
//!
//! Promise (Storage and operation): SQLite and PostgreSQL have the same tables, columns and indexes.

use std::collections::BTreeSet;

use rusqlite::Connection;

use crate::store_contract::{postgres::Postgres, sqlite::Sqlite, suite::Backend as _};

/// The columns of all tables with the types of SQLite, and the names of indexes.
const SQLITE: &str = r#"
    SELECT m.name || '.' || c.name || ' ' || c.type || CASE WHEN c."notnull" THEN ' NOT NULL' ELSE '' END
    FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%'
    UNION SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"#;

/// As [`SQLITE`].
const POSTGRES: &str = "
    SELECT table_name || '.' || column_name || ' '
        || CASE data_type WHEN 'bigint' THEN 'INTEGER' WHEN 'boolean' THEN 'INT' WHEN 'bytea' THEN 'BLOB' WHEN 'text' THEN 'TEXT' END
        || CASE is_nullable WHEN 'NO' THEN ' NOT NULL' ELSE '' END
        || CASE WHEN data_type = 'text' AND collation_name IS NULL THEN ' of any collation' ELSE '' END
    FROM information_schema.columns WHERE table_schema = 'countersign'
    UNION SELECT indexname FROM pg_indexes WHERE schemaname = 'countersign' AND indexname !~ '_(pkey|key)$'";

#[tokio::test]
async fn both_engines_have_the_same_columns_and_indexes() {
    let (file, database) = (
        Sqlite::<false>::fresh().await,
        Postgres::<false>::fresh().await,
    );
    drop((file.open().await, database.open().await));
    let sql = Connection::open(file.path()).unwrap();
    let mut columns = sql.prepare(SQLITE).unwrap();
    let columns = columns
        .query_map([], |row| row.get::<_, String>(0))
        .unwrap();
    let sqlite: BTreeSet<_> = columns.map(Result::unwrap).collect();
    let columns = database.sql(POSTGRES);
    let postgres: BTreeSet<_> = columns.lines().map(str::to_owned).collect();
    assert_eq!(sqlite.difference(&postgres).next(), None);
    let others = postgres.difference(&sqlite).map(String::as_str);
    assert_eq!(
        Vec::from_iter(others),
        [
            "feed.position INTEGER NOT NULL",
            "meta.version INTEGER NOT NULL",
            "nonce_state.floor INTEGER NOT NULL",
            "nonce_state.lost INTEGER NOT NULL",
            "nonce_state.server TEXT of any collation",
            "nonces.digest BLOB NOT NULL",
            "nonces.second INTEGER NOT NULL",
        ]
    );
}
