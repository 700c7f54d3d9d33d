//! The history in a database of PostgreSQL, which many hosts may share.

mod connection;
mod days;
mod error;
mod link;
mod old;
mod password;
mod patience;
mod records;
mod schema;
mod search;
mod server;
mod tls;
mod values;
mod watched;

use crate::database::Database;
use crate::days::{Counted, Part};
use crate::entry::Entry;
use crate::error::StoreError;
use crate::kept::{Added, Kept};
use crate::old::Old;
use crate::room::{GiveBack, Room};
use crate::wanted::{Names, Wanted};
use crate::watched::{Series, Tested, ToldChange, Watched};
use link::Link;
use patience::{LONG_PATIENCE, PATIENCE};

pub use error::{PostgresError, Why};
pub use server::Server;

/// The history in PostgreSQL. Each action opens the connection again if it was lost.
#[derive(Debug)]
pub(crate) struct Postgres(Link);

impl Postgres {
    /// As [`crate::Store::open`] says.
    pub fn open(server: &Server) -> Result<Self, StoreError> {
        Ok(Self(Link::open(server)?))
    }
}

impl Database for Postgres {
    fn is_in_place(&self) -> bool {
        true
    }

    fn has_failed(&self) -> bool {
        false
    }

    fn add(&self, kept: &Kept, watched: Option<&Watched>) -> Result<i64, StoreError> {
        Ok(self.0.run("write to", PATIENCE, async |client| {
            let Some(watched) = watched else { return records::insert(&*client, kept).await };
            let step = client.transaction().await?;
            let id = records::insert(&step, kept).await?;
            watched::insert(&step, id, kept, watched).await?;
            step.commit().await?;
            Ok(id)
        })?)
    }

    fn add_once(&self, kept: &Kept, key: &str) -> Result<Added, StoreError> {
        let add = async |client: &mut _| records::insert_once(client, kept, key).await;
        Ok(self.0.run("write to", PATIENCE, add)?)
    }

    fn with_key(&self, key: &str) -> Result<Option<i64>, StoreError> {
        let read = async |client: &mut _| records::with_key(client, key).await;
        Ok(self.0.run("read", PATIENCE, read)?)
    }

    fn begun_at(&self, started: &str, target: &str) -> Result<Vec<i64>, StoreError> {
        let read = async |client: &mut _| records::begun_at(client, started, target).await;
        Ok(self.0.run("read", PATIENCE, read)?)
    }

    fn search(&self, wanted: &Wanted) -> Result<Vec<Entry>, StoreError> {
        Ok(self
            .0
            .run("read", LONG_PATIENCE, async |client| search::search(client, wanted).await)?)
    }

    fn targets_with(&self, text: &str, most: usize) -> Result<Vec<String>, StoreError> {
        let read = async |client: &mut _| search::targets_with(client, text, most).await;
        Ok(self.0.run("read", LONG_PATIENCE, read)?)
    }

    fn names(&self) -> Result<Names, StoreError> {
        Ok(self.0.run("read", LONG_PATIENCE, async |client| search::names(client).await)?)
    }

    fn json(&self, id: i64) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.run("read", PATIENCE, async |client| records::json(client, id).await)?)
    }

    fn outline(&self, id: i64) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.run("read", PATIENCE, async |client| records::outline(client, id).await)?)
    }

    fn first_part(&self, old: &Old, most: u32) -> Result<Option<Old>, StoreError> {
        let read = async |client: &mut _| old::first_part(client, old, most).await;
        Ok(self.0.run("read", LONG_PATIENCE, read)?)
    }

    fn delete(&self, old: &Old, deleted: &mut usize) -> Result<(), StoreError> {
        let delete = async |client: &mut _| old::delete(client, old).await;
        *deleted += counted(self.0.run("write to", LONG_PATIENCE, delete)?);
        Ok(())
    }

    fn give_back(&self, _: GiveBack) -> Result<Option<Room>, StoreError> {
        Ok(None)
    }

    fn days(&self, part: &Part) -> Result<Vec<Counted>, StoreError> {
        let read = async |client: &mut _| days::counted(client, part).await;
        Ok(self.0.run("read", LONG_PATIENCE, read)?)
    }

    fn add_days(&self, counted: &[Counted]) -> Result<(), StoreError> {
        let add = async |client: &mut _| days::add(client, counted).await;
        Ok(self.0.run("write to", LONG_PATIENCE, add)?)
    }

    fn delete_days_before(&self, day: &str) -> Result<usize, StoreError> {
        let delete = async |client: &mut _| days::delete_before(client, day).await;
        Ok(self::counted(self.0.run("write to", LONG_PATIENCE, delete)?))
    }

    fn targets_with_days(&self, most: u32) -> Result<Vec<String>, StoreError> {
        let read = async |client: &mut _| days::targets(client, most).await;
        Ok(self.0.run("read", LONG_PATIENCE, read)?)
    }

    fn tests_of(&self, series: &Series, most: usize) -> Result<Vec<Tested>, StoreError> {
        let read = async |client: &mut _| watched::tests_of(client, series, most).await;
        Ok(self.0.run("read", PATIENCE, read)?)
    }

    fn mark_change(&self, record: i64, told: &ToldChange) -> Result<(), StoreError> {
        let mark = async |client: &mut _| watched::mark_change(client, record, told).await;
        Ok(self.0.run("write to", PATIENCE, mark)?)
    }

    fn changes(&self, text: &str, most: usize) -> Result<Vec<ToldChange>, StoreError> {
        let read = async |client: &mut _| watched::told(client, watched::CHANGES, text, most).await;
        Ok(self.0.run("read", PATIENCE, read)?)
    }

    fn keep_shift(&self, record: i64, quantity: &str, told: &ToldChange) -> Result<(), StoreError> {
        let keep = async |client: &mut _| watched::keep_shift(client, record, quantity, told).await;
        Ok(self.0.run("write to", PATIENCE, keep)?)
    }

    fn shifts(&self, text: &str, most: usize) -> Result<Vec<ToldChange>, StoreError> {
        let read = async |client: &mut _| watched::told(client, watched::SHIFTS, text, most).await;
        Ok(self.0.run("read", PATIENCE, read)?)
    }

    fn gone_since(&self, series: &Series) -> Result<Option<String>, StoreError> {
        let read = async |client: &mut _| watched::gone_since(client, series).await;
        Ok(self.0.run("read", PATIENCE, read)?)
    }

    fn set_gone(&self, series: &Series, since: Option<&str>) -> Result<(), StoreError> {
        let set = async |client: &mut _| watched::set_gone(client, series, since).await;
        Ok(self.0.run("write to", PATIENCE, set)?)
    }

    fn spend(&self, target: &str, started: &str, bytes: i64) -> Result<i64, StoreError> {
        let note = async |client: &mut _| watched::spend(client, target, started, bytes).await;
        Ok(self.0.run("write to", PATIENCE, note)?)
    }

    fn settle(&self, note: i64, bytes: i64) -> Result<(), StoreError> {
        let settle = async |client: &mut _| watched::settle(client, note, bytes).await;
        Ok(self.0.run("write to", PATIENCE, settle)?)
    }

    fn spent(&self, target: &str, from: &str) -> Result<Vec<(String, i64)>, StoreError> {
        let read = async |client: &mut _| watched::spent(client, target, from).await;
        Ok(self.0.run("read", PATIENCE, read)?)
    }

    fn watched_times(&self) -> Result<Vec<(i64, String)>, StoreError> {
        Ok(self.0.run("read", LONG_PATIENCE, async |client| watched::times(client).await)?)
    }

    fn watched_among(&self, ids: &[i64]) -> Result<Vec<i64>, StoreError> {
        let read = async |client: &mut _| watched::among(client, ids).await;
        Ok(self.0.run("read", PATIENCE, read)?)
    }

    fn series(&self) -> Result<Vec<Series>, StoreError> {
        Ok(self.0.run("read", PATIENCE, async |client| watched::series(client).await)?)
    }
}

fn counted(records: u64) -> usize {
    usize::try_from(records).unwrap_or(usize::MAX)
}
