//! The files that a measurement stores at a server: their names, the trial whether they can be stored and removed, and
//! their removal after every kind of end.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use goodput_files::{Conversation, FileError, Place, Ready, Wait};
use goodput_mover::Awaited;

use super::asker::Asker;
use super::notes::Note;
use super::warm_up::{Patient, wait_at_most};
use crate::error::EngineError;

/// How long the removal of all files of a measurement may take: whoever ended it waits.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long it is tried for one file. A server may still hold one open whose upload was just cut off.
const FILE_REMOVAL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long after a server said that a file is not there it is asked once more: it may not have carried out yet what was
/// asked for on a connection that is closed by now.
const RETRY_DELAY: Duration = Duration::from_millis(250);
/// How long a write of the trial waits for room.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a file may be there all the same that the server did not find.
const UNSEEN: &str =
    "the server shows no such file, but another user stored it: use that user's login (~/.netrc)";

/// Files that are stored at a server; dropping it removes them.
pub struct Scratch {
    asker: Asker,
    note: Option<Note>,
}

/// What became of the removal of files.
#[derive(Debug, Default)]
pub struct Removal {
    /// Those that were there.
    pub removed: Vec<Place>,
    /// Those that may still be there, and why.
    pub left: Vec<(Place, String)>,
}

impl Scratch {
    /// Notes on disk what `flows` flows are about to store beside `place`, and tries with one byte whether the server
    /// takes and removes it.
    pub fn begin(
        asker: Asker,
        place: &Place,
        flows: u16,
        notes: Option<&Path>,
        awaited: &Awaited,
    ) -> Result<Self, EngineError> {
        let failed = |why: FileError| EngineError::File { target: asker.target.text.clone(), why };
        let folder = notes.ok_or_else(|| {
            EngineError::Flow("there is no place for the note of what is stored at the server: name one by --state-dir".into())
        })?;
        let id = format!("{:016x}", rand::random::<u64>());
        // The note names who stores, since the server may show a file to nobody else.
        let own = asker.own(place.clone());
        let beside = |flow| own.beside(&format!(".goodput-write-{id}-{flow}"));
        let places: Vec<_> = (0..flows).map(beside).collect::<Result<_, _>>().map_err(failed)?;
        let first = places.first().cloned();
        let note = Note::write(folder, &id, places).map_err(EngineError::io(format!(
            "note in {} what is about to be stored at the server",
            folder.display()
        )))?;
        let scratch = Self { asker, note: Some(note) };
        if let Some(first) = first {
            let mut conversation = scratch.asker.converse(&first);
            let tried = attempt(conversation.as_mut(), &first, &Patient(awaited));
            let target = scratch.asker.target.text.clone();
            tried.map_err(|why| EngineError::File { target, why })?;
        }
        Ok(scratch)
    }

    /// The file of each flow.
    pub fn places(&self) -> &[Place] {
        self.note.as_ref().map_or(&[], |note| &note.places)
    }

    /// Removes the files. What could not be removed, in words.
    pub fn remove(mut self) -> Vec<String> {
        self.clean_up()
    }

    fn clean_up(&mut self) -> Vec<String> {
        let Some(note) = self.note.take() else { return Vec::new() };
        let removal = remove(&self.asker, &note.places);
        let mut words: Vec<_> = removal.left.iter().map(|(place, why)| kept(place, why)).collect();
        if words.is_empty()
            && let Err(cause) = note.settle()
        {
            words.push(format!(
                "the note of what was stored at the server can't be removed: {cause}"
            ));
        }
        words
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for words in self.clean_up() {
            tracing::warn!("{words}");
        }
    }
}

/// Says that a file may be left.
pub fn kept(place: &Place, why: &str) -> String {
    format!(
        "{place} may be left there: {why}; the next test of this server removes it, and so does goodput settings undo"
    )
}

/// Removes files, each as long as it takes within bounds.
pub fn remove(asker: &Asker, places: &[Place]) -> Removal {
    let until = Instant::now() + REMOVAL_TIMEOUT;
    let mut removal = Removal::default();
    for place in places {
        match remove_one(asker.converse(place).as_mut(), until) {
            Ok(true) => removal.removed.push(place.clone()),
            Ok(false) if asker.own(place.clone()) == *place => {}
            Ok(false) => removal.left.push((place.clone(), UNSEEN.to_owned())),
            Err(why) => removal.left.push((place.clone(), why.to_string())),
        }
    }
    removal
}

fn remove_one(conversation: &mut dyn Conversation, until: Instant) -> Result<bool, FileError> {
    let until = until.min(Instant::now() + FILE_REMOVAL_TIMEOUT);
    let mut was_missing = false;
    loop {
        let outcome = conversation.remove(&Within(until));
        let pause = match &outcome {
            Ok(false) if !was_missing => {
                was_missing = true;
                RETRY_DELAY
            }
            Err(why) if !why.not_permitted() && !matches!(why, FileError::Place(_)) => {
                conversation.hang_up();
                RETRY_DELAY
            }
            _ => return outcome,
        };
        if Instant::now() + pause >= until {
            return outcome;
        }
        std::thread::sleep(pause);
    }
}

/// Waits until an instant.
struct Within(Instant);

impl Wait for Within {
    fn wait(&self, socket: BorrowedFd<'_>, ready: Ready, until: Instant) -> Result<(), FileError> {
        if Instant::now() >= self.0 {
            return Err(FileError::TimedOut("the server did not answer in time".into()));
        }
        wait_at_most(socket, ready, until.min(self.0))
    }

    fn rest(&self, until: Instant) -> Result<(), FileError> {
        std::thread::sleep(until.min(self.0).saturating_duration_since(Instant::now()));
        Ok(())
    }
}

/// Stores a byte and removes it.
fn attempt(
    conversation: &mut dyn Conversation,
    place: &Place,
    wait: &dyn Wait,
) -> Result<(), FileError> {
    conversation.store(Some(1), wait)?;
    let until = Instant::now() + WRITE_TIMEOUT;
    while let Err(cause) = conversation.write(&[0]) {
        match (cause.kind(), conversation.socket()) {
            (std::io::ErrorKind::WouldBlock, Some(socket)) if Instant::now() < until => {
                wait.wait(socket.as_fd(), Ready::Write, until)?;
            }
            (std::io::ErrorKind::Interrupted, _) => {}
            _ => return Err(FileError::Io { operation: format!("store {place}"), cause }),
        }
    }
    conversation.stored(wait)?;
    let stays = |why: &str| {
        format!(
            "{place} of 1 byte, which the server took, can't be removed: {why}; nothing is uploaded to a server where it would stay"
        )
    };
    match conversation.remove(wait) {
        Ok(true) => Ok(()),
        Ok(false) => Err(FileError::Protocol(stays("the server says that it is not there"))),
        Err(FileError::NotPermitted(why)) => Err(FileError::NotPermitted(stays(&why))),
        Err(FileError::Stopped) => Err(FileError::Stopped),
        Err(why) => Err(FileError::Refused(stays(&why.to_string()))),
    }
}
