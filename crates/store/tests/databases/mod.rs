//! A history in each database, for one test of all.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use goodput_store::{Place, Store};
use goodput_testing::servers::{Postgres, postgres};

/// A history that nobody has opened yet.
pub struct History {
    /// Its file or URL.
    pub name: PathBuf,
    database: Database,
}

enum Database {
    Sqlite {
        /// The file is there as long as this.
        _folder: tempfile::TempDir,
    },
    Postgres(Arc<Postgres>, String),
}

impl History {
    /// Opens it.
    pub fn open(&self) -> Store {
        open(&self.name)
    }

    /// Says this to its database.
    pub fn sql(&self, text: &str) {
        match &self.database {
            Database::Sqlite { .. } => {
                let db = rusqlite::Connection::open(&self.name).expect("it can be opened");
                db.execute_batch(text).expect("it is SQL");
            }
            Database::Postgres(server, database) => {
                server.sql(database, &format!("SET search_path = goodput; {text}"));
            }
        }
    }
}

/// Opens the history with this name.
pub fn open(name: &Path) -> Store {
    let place = Place::named(name).expect("it names a history");
    Store::open(place).expect("it can be opened")
}

/// Runs a test with a new history in each database.
pub fn in_each(test: impl Fn(&History)) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    // Its directories are made with it.
    let name = folder.path().join("new/goodput/history.db");
    test(&History { name, database: Database::Sqlite { _folder: folder } });
    if let Some(server) = postgres() {
        let database = server.new_database();
        let name = server.url(&database).into();
        test(&History { name, database: Database::Postgres(server, database) });
    }
}
