//! Where a history is kept.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::postgres::Server;

/// How the URLs of databases begin.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Where a history is. Shown without a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In a file of SQLite.
    File(PathBuf),
    /// In a database of PostgreSQL.
    Postgres(Box<Server>),
}

impl Place {
    /// The place that a user names: a file, or `postgres://USER@HOST/DATABASE`. Nothing is opened.
    ///
    /// Errors: a URL that names no database of PostgreSQL.
    pub fn named(name: &Path) -> Result<Self, StoreError> {
        let Some(url) = name.to_str().filter(|_| is_url(name)) else {
            return Ok(Self::File(name.into()));
        };
        let server = match SCHEMES.iter().any(|scheme| url.starts_with(scheme)) {
            true => Server::parse(url),
            false => Err("goodput knows files and postgres://".into()),
        };
        server
            .map(|server| Self::Postgres(server.into()))
            .map_err(|why| StoreError::NoPlace { why })
    }

    /// Whether a history can be there: in a database, or in a file unless it surely does not exist.
    pub fn exists(&self) -> bool {
        match self {
            Self::File(path) => path.try_exists().unwrap_or(true),
            Self::Postgres(_) => true,
        }
    }
}

/// Whether a place is named by a URL, and not a file.
fn is_url(name: &Path) -> bool {
    name.to_str().is_some_and(|name| name.contains("://"))
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Postgres(server) => write!(f, "{server}"),
        }
    }
}

impl From<&Path> for Place {
    fn from(path: &Path) -> Self {
        Self::File(path.into())
    }
}

impl From<&PathBuf> for Place {
    fn from(path: &PathBuf) -> Self {
        Self::File(path.clone())
    }
}

impl From<&Place> for Place {
    fn from(place: &Place) -> Self {
        place.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_file_or_a_database_and_an_error_has_no_password() {
        let named = |name: &str| Place::named(Path::new(name));
        assert_eq!(named("a/history.db").unwrap(), Place::File("a/history.db".into()));
        let database = named("postgres://ada:secret@db/net").unwrap();
        assert_eq!(database.to_string(), "postgres://ada@db/net");
        for name in ["mysql://ada:secret@db/net", "postgres://ada:secret@db:x/net"] {
            let why = named(name).unwrap_err().to_string();
            assert!(why.contains("postgres://USER@HOST/DATABASE"), "{why}");
            assert!(!why.contains("secret"), "{why}");
        }
    }
}
