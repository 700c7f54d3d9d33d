//! Files that dead runs have left at servers: found by their notes, and removed.

use std::path::Path;

use goodput_files::Place;
use goodput_model::SocketOptions;

use super::asker::Asker;
use super::notes::Note;
use super::scratch::{self, Removal};
use crate::control::target::Target;
use crate::error::EngineError;

/// A file that a dead run has left at a server, and what became of it.
#[derive(Debug)]
pub struct LeftUpload {
    /// Where it is, or was.
    pub place: Place,
    /// Why it could not be removed; `None`: it is gone.
    pub failure: Option<String>,
}

/// Removes what dead runs have left at the server of `place`, as far as it lets go of it. What was done, in words.
pub fn settle(asker: &Asker, place: &Place, notes: &Path) -> Vec<String> {
    let Ok(left) = Note::left(notes) else { return Vec::new() };
    let mut words = Vec::new();
    for note in left.into_iter().filter(|note| note.places.iter().any(|p| is_same(p, place))) {
        let Removal { removed, left } = scratch::remove(asker, &note.places);
        words.extend(removed.iter().map(|place| {
            format!("removed {place}, which an interrupted run had left at the server")
        }));
        words.extend(left.iter().map(|(place, why)| scratch::kept(place, why)));
        if left.is_empty()
            && let Err(cause) = note.settle()
        {
            words.push(format!(
                "the note of what an interrupted run had stored can't be removed: {cause}"
            ));
        }
    }
    words
}

/// Removes what dead runs have left at any server; `meet` says how each is to be met. With `forget`, what can't be
/// removed is no more noted. Blocks for as long as the servers take.
pub fn undo_uploads(
    notes: &Path,
    meet: impl Fn(&Place) -> Result<Target, EngineError>,
    forget: bool,
) -> Result<Vec<LeftUpload>, EngineError> {
    let read = EngineError::io(format!("read the notes in {}", notes.display()));
    let mut all = Vec::new();
    for note in Note::left(notes).map_err(read)? {
        let mut is_gone = true;
        for place in &note.places {
            let failure = undo_one(place, &meet).err();
            is_gone &= failure.is_none();
            all.push(LeftUpload { place: place.clone(), failure });
        }
        if is_gone || forget {
            note.settle().map_err(EngineError::io("remove the note of an upload"))?;
        }
    }
    Ok(all)
}

fn undo_one(
    place: &Place,
    meet: &impl Fn(&Place) -> Result<Target, EngineError>,
) -> Result<(), String> {
    let asker = meet(place).and_then(|target| {
        let (addresses, socket) = (target.addresses(None)?, SocketOptions::default());
        let options = target.file.as_ref().map(|file| file.options.clone()).unwrap_or_default();
        Ok(Asker { target, addresses, socket, options })
    });
    let asker = asker.map_err(|why| why.to_string())?;
    let removal = scratch::remove(&asker, std::slice::from_ref(place));
    removal.left.into_iter().next().map_or(Ok(()), |(_, why)| Err(why))
}

/// Whether two places are of one server.
fn is_same(one: &Place, other: &Place) -> bool {
    let server = |place: &Place| (place.scheme().id, place.port());
    server(one) == server(other) && one.host().eq_ignore_ascii_case(other.host())
}
