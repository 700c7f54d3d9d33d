//! Files that dead runs have left at servers: found by their notes and removed.

use std::path::Path;

use goodput_files::Place;
use goodput_model::SocketOptions;

use super::asker::Asker;
use super::dialler::Addresses;
use super::removal::{self, Removal, RemovalTime};
use crate::control::target::Target;
use crate::error::EngineError;
use crate::near::mounted;
use crate::near::storage_notes::{Meeting, StorageNote};

/// A file that a dead run has left at a server or on a mount, and what became of it.
#[derive(Debug)]
pub struct LeftUpload {
    /// Where it is, or was: a URL or a path.
    pub place: String,
    /// Whether it was still there, and is removed now; or why it could not be removed.
    pub removed: Result<bool, String>,
}

/// Removes what dead runs have left at the server of `place`, if the server allows. Returns in words what was done. A
/// run that reached the server by another way may have reached another machine: this one's word means nothing then.
pub fn settle(asker: &Asker, place: &Place, notes: &Path) -> Vec<String> {
    let met = asker.target.file.as_ref().and_then(|file| Meeting::of(file).ok());
    let (Ok(left), Some(met)) = (StorageNote::<Place>::left(notes), met) else { return Vec::new() };
    let is_here = |note: &StorageNote<Place>| {
        note.met.leads_where(&met) && note.places.iter().any(|noted| is_same(noted, place))
    };
    let mut words = Vec::new();
    for mut note in left.into_iter().filter(is_here) {
        let removal = match asker.at(note.met.reached) {
            Ok(asker) => removal::remove(&asker, &mut note, RemovalTime::BESIDE_A_RUN),
            Err(why) => Removal::failed(&note, &why),
        };
        words.extend(removal.removed().map(|place| {
            format!("removed {place}, which an interrupted run had left at the server")
        }));
        words.extend(removal.trouble());
    }
    words
}

/// Removes what dead runs have left at any server or on any mount; `meet` makes a target from how each server was
/// contacted. With `forget`, a file that can't be removed is no longer noted. Blocks for as long as the servers take.
pub fn undo_uploads(
    notes: &Path,
    meet: impl Fn(&Place, &Meeting) -> Result<Target, EngineError>,
    forget: bool,
) -> Result<Vec<LeftUpload>, EngineError> {
    let operation = format!("read the notes in {}", notes.display());
    let read = |cause| EngineError::Io { operation: operation.clone(), cause };
    let mut all = Vec::new();
    for (path, removed) in mounted::undo(notes, forget).map_err(&read)? {
        all.push(LeftUpload { place: path.display().to_string(), removed });
    }
    for mut note in StorageNote::<Place>::left(notes).map_err(&read)? {
        let removal = undo(&mut note, &meet);
        let files = removal.files.into_iter();
        all.extend(files.map(|(place, removed)| LeftUpload { place: place.to_string(), removed }));
        let is_noted = !note.places.is_empty();
        let forgotten = if is_noted && forget { note.forget() } else { removal.noted };
        forgotten.map_err(EngineError::io("change the note of an upload"))?;
    }
    Ok(all)
}

/// Removes what one note names.
fn undo(
    note: &mut StorageNote,
    meet: &impl Fn(&Place, &Meeting) -> Result<Target, EngineError>,
) -> Removal {
    let Some(first) = note.places.first() else {
        // The run died before it had named anything.
        return Removal { files: Vec::new(), noted: note.forget() };
    };
    let asker = meet(first, &note.met).and_then(|target| {
        let addresses = Addresses::new(target.addresses(None)?);
        let options = (*target.file()?.options).clone();
        let asker = Asker::new(target, addresses, SocketOptions::default(), options)?;
        asker.at(note.met.reached).map_err(EngineError::Target)
    });
    match asker {
        Ok(asker) => removal::remove(&asker, note, RemovalTime::ON_REQUEST),
        Err(why) => Removal::failed(note, &why.to_string()),
    }
}

/// Whether two places are of one server.
fn is_same(one: &Place, other: &Place) -> bool {
    let server = |place: &Place| (place.scheme().id, place.port());
    server(one) == server(other) && one.address().eq_ignore_ascii_case(&other.address())
}
