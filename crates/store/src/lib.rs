//! Records on disk and their history: one SQLite file in the user's data directory.
//!
//! Several goodput processes may read and write it at once.
#![forbid(unsafe_code)]
// A library returns its messages. The print macros would also panic if nobody reads.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod compat;
pub mod error;
pub mod path;
mod read_only;
mod schema;
mod search;
pub mod store;
mod watched;

pub use compat::read_record;
pub use error::{RecordError, StoreError};
pub use path::default_path;
pub use search::{MAX_NAMES, Names, Wanted};
pub use store::{Entry, Newest, Store, Traffic};
pub use watched::{Series, Tested, Watched};
