//! The files of one end of a measurement: which files it may use, opening them, and making them warm or cold.

mod open;
mod ready;
mod sinks;

use std::path::PathBuf;
use std::sync::Arc;

use goodput_model::{Bytes, EndName, Fact, Known, Length, Plan, Role, Snapshot, Source, Storage};
use goodput_mover::{Awaited, FileSink, FileSource, FlowStorage, Waiter};

use crate::error::{EngineError, StorageError};
use crate::run::observe::forget_peak_memory;
use crate::threads::blocking;

pub use sinks::Sinks;

/// Which files an end may use.
#[derive(Debug, Clone)]
pub enum FileAccess {
    /// The user's own files: all that the system lets the user access.
    User,
    /// Files that a server offers to its clients.
    Served(ServedFiles),
}

/// Files that a server lets its clients read and write.
#[derive(Debug, Clone, Default)]
pub struct ServedFiles {
    /// Directory whose files, and those beneath it, clients may receive.
    pub files: Option<PathBuf>,
    /// Where clients may create and replace files.
    pub sinks: Option<Sinks>,
}

/// The open files of one end.
#[derive(Debug, Default)]
pub struct OpenFiles {
    source: Option<Arc<FileSource>>,
    sinks: Vec<(u16, Arc<FileSink>)>,
    facts: Vec<(String, Known<Fact>)>,
    /// What the user should know about the files.
    pub doubts: Vec<String>,
}

impl OpenFiles {
    /// Opens and prepares what `end` reads and writes by `plan`, beside the conversations. Reading a large file takes
    /// long; dropping the future ends it soon.
    pub async fn prepare(plan: Plan, end: EndName, reach: FileAccess) -> Result<Self, EngineError> {
        let waiter = Waiter::default();
        let awaited = waiter.awaited();
        let prepared = blocking(move || {
            let mut stores = Self::open(&plan, end, &reach, &awaited)?;
            stores.make_ready(&plan, end, &reach, &awaited).map(|()| stores)
        });
        Ok(prepared.await??)
    }

    /// Opens what `end` reads and writes by `plan`.
    fn open(
        plan: &Plan,
        end: EndName,
        reach: &FileAccess,
        awaited: &Awaited,
    ) -> Result<Self, StorageError> {
        let mut stores = Self::default();
        let roles = roles(plan, end);
        if let (true, Some(source)) = (roles.contains(&Role::Sender), &plan.storage.source) {
            let again = plan.length != Length::Source;
            stores.source = Some(Arc::new(open::source(source, again, reach, awaited)?));
        }
        if let (true, Some(sink)) = (roles.contains(&Role::Receiver), &plan.storage.sink) {
            stores.sinks = open::sinks(sink, plan, end, reach)?;
        }
        Ok(stores)
    }

    /// Brings the source into the state that the plan asks for, and reads it alone. This takes time.
    fn make_ready(
        &mut self,
        plan: &Plan,
        end: EndName,
        reach: &FileAccess,
        awaited: &Awaited,
    ) -> Result<(), StorageError> {
        if let (Some(file), Some(source)) = (&self.source, &plan.storage.source) {
            let chunk = plan.chunk_bytes.0 as usize;
            let ready = ready::make_ready(file, source, chunk, reach, awaited)?;
            (self.facts, self.doubts) = (ready.facts, ready.doubts);
        }
        self.write_sink_alone(plan, end, reach, awaited)?;
        forget_peak_memory();
        Ok(())
    }

    /// Writes the first sink alone, if the plan asks for it, then empties it and reopens all: its data is not theirs.
    fn write_sink_alone(
        &mut self,
        plan: &Plan,
        end: EndName,
        reach: &FileAccess,
        awaited: &Awaited,
    ) -> Result<(), StorageError> {
        let sink = plan.storage.sink.as_ref().filter(|_| plan.storage.sink_alone);
        let (Some(sink), Some((_, first))) = (sink, self.sinks.first()) else { return Ok(()) };
        self.facts.push(ready::write_sink_alone(first, plan, awaited)?);
        first.empty().map_err(|cause| {
            StorageError::of(format!("can't empty {}: {cause}", first.name), &cause)
        })?;
        self.sinks.clear();
        self.sinks = open::sinks(sink, plan, end, reach)?;
        Ok(())
    }

    /// The storage of one flow.
    pub fn of(&self, plan: &Plan, flow: u16, role: Role) -> FlowStorage {
        let sink = self.sinks.iter().find(|(id, _)| *id == flow).map(|(_, sink)| Arc::clone(sink));
        FlowStorage {
            source: self.source.clone().filter(|_| role == Role::Sender),
            sink: sink.filter(|_| role == Role::Receiver),
            header_bytes: plan.storage.header_bytes as usize,
            header_more: plan.storage.header_more,
            cork: plan.socket.cork,
        }
    }

    /// Adds what is known of the files to the facts before the measurement.
    pub fn note(&self, before: &mut Snapshot) {
        for (name, fact) in &self.facts {
            match fact {
                Known::Value(fact) => before.put(name.clone(), fact.clone()),
                Known::Missing(why) => before.lacks(name.clone(), why.missing.to_string()),
            }
        }
    }

    /// Bytes of the source, if known.
    fn source_bytes(&self) -> Option<u64> {
        self.source.as_ref()?.bytes
    }
}

fn roles(plan: &Plan, end: EndName) -> Vec<Role> {
    let role = |sender: &EndName| if *sender == end { Role::Sender } else { Role::Receiver };
    plan.direction.senders().iter().map(role).collect()
}

/// Refuses files of this end that can't be read or written. Nothing is created, and no pipe notices.
pub fn check_own(plan: &Plan) -> Result<(), StorageError> {
    let roles = roles(plan, EndName::Near);
    let Storage { source, sink, .. } = &plan.storage;
    source.iter().filter(|_| roles.contains(&Role::Sender)).try_for_each(open::check_source)?;
    sink.iter()
        .filter(|_| roles.contains(&Role::Receiver))
        .try_for_each(|sink| open::check_sinks(sink, plan))
}

/// The plan for a far end without files: this end's files mean nothing to it, but it must know how much will come.
pub fn for_memory_only(plan: &Plan, near: &OpenFiles) -> Result<Plan, EngineError> {
    let far = roles(plan, EndName::Far);
    let storage = &plan.storage;
    let far_source = far.contains(&Role::Sender) && storage.source.is_some();
    let far_sink = far.contains(&Role::Receiver) && storage.sink.is_some();
    if far_source || far_sink {
        let words =
            "only a goodput server reads and writes files; this one speaks another protocol";
        return Err(EngineError::Flow(words.into()));
    }
    // This end counts the number of fetches.
    if plan.length != Length::Source || plan.fetches.is_some() {
        return Ok(plan.clone());
    }
    let whole = near.source_bytes().map(|bytes| bytes.saturating_mul(u64::from(plan.flows)));
    let whole = whole.ok_or_else(|| {
        let words = "the source's length is unknown, and the far end's protocol needs it in advance; add -n or -t";
        EngineError::Flow(words.into())
    })?;
    Ok(Plan { length: Length::Bytes(Bytes(whole)), ..plan.clone() })
}

/// The plan as the far end needs to know it: the names of the near end's files are private to this end.
pub fn for_peer(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    let near = roles(&plan, EndName::Near);
    if let (true, Some(Source::File { name, .. })) =
        (near.contains(&Role::Sender), &mut plan.storage.source)
    {
        *name = "near".into();
    }
    if let (true, Some(sink)) = (near.contains(&Role::Receiver), &mut plan.storage.sink) {
        sink.name = "near".into();
    }
    plan
}

#[cfg(test)]
mod tests;
