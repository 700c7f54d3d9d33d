//! Records and their history: in a file of SQLite in the user's data directory, or in a database of PostgreSQL.
//!
//! Several goodput processes may read and write it at once.
#![forbid(unsafe_code)]
// A library returns its messages. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod compat;
mod database;
mod day_counts;
mod days;
mod entry;
pub mod error;
mod figures;
mod kept;
mod lock_holder;
mod malformed;
mod migration;
mod old;
pub mod outline;
pub mod path;
mod place;
mod postgres;
mod room;
mod sqlite;
pub mod store;
mod summary;
mod wanted;
mod watched;

pub use compat::read_record;
pub use day_counts::DayCounts;
pub use days::{Day, DayPosition, Spread};
pub use entry::{Entry, Newest, Traffic};
pub use error::{NoRoom, RecordError, StoreError};
pub use figures::Figures;
pub use kept::Added;
pub use lock_holder::LockHolder;
pub use old::Old;
pub use path::default_path;
pub use place::Place;
pub use postgres::{PostgresError, Server, Why};
pub use room::{GiveBack, Room};
pub use store::Store;
pub use summary::Summary;
pub use wanted::{MAX_NAMES, Names, Position, WATCH, Wanted};
pub use watched::{Series, Tested, ToldChange, Watched};
