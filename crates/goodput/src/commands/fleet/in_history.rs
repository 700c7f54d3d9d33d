//! The matrix of this host's history, for the terminal and for the page of `goodput web`.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Result;
use goodput_fleet::{Mesh, Observation, Question, Survey, Surveyed, Unusable};
use goodput_store::{Entry, Store, StoreError, Wanted};
use jiff::Timestamp;

use super::mesh_file;

/// How the history names a single test.
const TEST: &str = "test";

/// What is asked of the history.
pub(in crate::commands) struct Asked<'a> {
    /// The mesh file; none: all hosts are sites.
    pub mesh: Option<&'a Path>,
    /// When the tests began, or later: RFC 3339, UTC, or its beginning.
    pub since: &'a str,
    /// How much slower than typical a slow pair is, percent.
    pub slow_percent: f64,
}

/// What records said when they were read. A month of a dozen sites is a gigabyte of them, so a page that is looked at again
/// reads only what is new.
#[derive(Default)]
pub(in crate::commands) struct Memory {
    mesh: Option<Mesh>,
    said: HashMap<Identity, Result<Observation, Unusable>>,
}

/// Tells records apart also if the history was replaced by another one: number, start and target.
type Identity = (i64, String, String);

/// Reads each test that the history has and that is not in memory.
pub(in crate::commands) fn survey(
    history: &Store,
    asked: &Asked,
    memory: &mut Memory,
) -> Result<Surveyed> {
    let mesh = asked.mesh.map(mesh_file::read).transpose()?;
    if memory.mesh != mesh {
        *memory = Memory { mesh, ..Memory::default() };
    }
    let Memory { mesh, said } = memory;
    let mesh = mesh.as_ref();
    let [kind, from] = [TEST, asked.since].map(|text| Some(text.into()));
    let mut survey = Survey::of(mesh);
    let before = std::mem::take(said);
    for entry in history.search(&Wanted { kind, from, ..Wanted::default() })? {
        let Entry { id, started, target, .. } = entry;
        let identity = (id, started, target);
        let known = match before.get(&identity) {
            Some(known) => known.clone(),
            None => match history.get(id) {
                // Another process may have deleted it meanwhile.
                Err(StoreError::UnknownId { .. }) => continue,
                Err(why) => {
                    survey.add_unreadable(why.to_string());
                    continue;
                }
                Ok(record) => goodput_fleet::seen(&record, id, mesh),
            },
        };
        survey.add(known.clone());
        said.insert(identity, known);
    }
    let now_s = Timestamp::now().as_second() as f64;
    Ok(survey.matrix(Question { now_s, slow_percent: asked.slow_percent }))
}
