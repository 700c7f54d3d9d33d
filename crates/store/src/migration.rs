//! How a schema goes from one number to the next, whatever the database.
//!
//! A database has two numbers: its schema, and the schema that a goodput must know to use it, which additions leave as it
//! is.

/// A step from one schema to the next. Steps are added, never changed: databases of each schema exist.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Migration {
    pub sql: &'static str,
    /// Whether a goodput that knows only the schema before can use the database afterwards, and this one what that
    /// goodput writes: everything that it reads is still there, and what is new has a default.
    pub is_addition: bool,
}

impl Migration {
    /// A step after which a goodput that doesn't know it must not use the database.
    pub const fn change(sql: &'static str) -> Self {
        Self { sql, is_addition: false }
    }

    /// A step that a goodput which doesn't know it need not know.
    pub const fn addition(sql: &'static str) -> Self {
        Self { sql, is_addition: true }
    }
}

/// The schema that a goodput must know to use a database to which these steps led: the last one that was no addition.
pub(crate) fn needed(migrations: &[Migration]) -> usize {
    migrations.iter().rposition(|migration| !migration.is_addition).map_or(0, |last| last + 1)
}
