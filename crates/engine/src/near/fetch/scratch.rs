//! The files that a measurement stores at a server: their names, a trial whether they can be stored and removed, and
//! their removal after every kind of end.

use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use goodput_files::{Conversation, FileError, Place, Ready, Wait};
use goodput_mover::Awaited;

use super::asker::Asker;
use super::removal::{self, RemovalTime};
use super::warm_up::Patient;
use crate::control::target::FileTarget;
use crate::error::EngineError;
use crate::near::storage_notes::{Meeting, StorageNote};

/// How long a write in the trial waits for room.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Files that are stored at a server; dropping it removes them.
pub struct Scratch {
    asker: Asker,
    note: Option<StorageNote>,
}

impl Scratch {
    /// Notes on disk what `flows` flows are about to store beside the file of `target`, and tests with one byte whether
    /// the server accepts and removes it.
    pub fn begin(
        asker: Asker,
        target: &FileTarget,
        flows: u16,
        awaited: &Awaited,
    ) -> Result<Self, EngineError> {
        let failed = |why: FileError| EngineError::File { target: asker.target.text.clone(), why };
        let (id, places) = names(&asker, &target.place, flows).map_err(failed)?;
        let first = places.first().unwrap_or(&target.place).clone();
        let mut conversation = asker.converse(&first);
        // A server that admits nobody stores nothing, so there is nothing to note.
        conversation.connect(&Patient(awaited)).map_err(failed)?;
        let reached = asker.addresses.last_reached();
        let note = write_note(target, reached, &id, places)?;
        // Each address of a name may be another machine without these files.
        let asker = asker.at(reached).map_err(EngineError::Target)?;
        let failed = |why: FileError| EngineError::File { target: asker.target.text.clone(), why };
        match attempt(conversation.as_mut(), &first, &Patient(awaited)) {
            Ok(()) => Ok(Self { asker, note: Some(note) }),
            // The server does not have what it refused to store.
            Err(Unfit { why, is_refused: true }) => match note.forget() {
                Ok(()) => Err(failed(why)),
                Err(cause) => Err(EngineError::io("remove the note of an upload")(cause)),
            },
            Err(Unfit { why, is_refused: false }) => {
                let why = failed(why);
                drop(Self { asker, note: Some(note) });
                Err(why)
            }
        }
    }

    /// Asks the machine that has the files.
    pub fn asker(&self) -> &Asker {
        &self.asker
    }

    /// The file of each flow.
    pub fn places(&self) -> &[Place] {
        self.note.as_ref().map_or(&[], |note| &note.places)
    }

    /// Removes the files. Returns in words what could not be removed.
    pub fn remove(mut self) -> Vec<String> {
        self.clean_up()
    }

    fn clean_up(&mut self) -> Vec<String> {
        let Some(mut note) = self.note.take() else { return Vec::new() };
        removal::remove(&self.asker, &mut note, RemovalTime::BESIDE_A_RUN).trouble().collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for words in self.clean_up() {
            tracing::warn!("{words}");
        }
    }
}

/// What a run stores: its id, and the file of each flow. The place names the user who stores it, since the server may
/// show the file to nobody else.
fn names(asker: &Asker, place: &Place, flows: u16) -> Result<(String, Vec<Place>), FileError> {
    let id = format!("{:016x}", rand::random::<u64>());
    let own = asker.own(place.clone());
    let beside = |flow| own.beside(&format!(".goodput-write-{id}-{flow}"));
    let places = (0..flows).map(beside).collect::<Result<_, _>>()?;
    Ok((id, places))
}

fn write_note(
    target: &FileTarget,
    reached: Option<IpAddr>,
    id: &str,
    places: Vec<Place>,
) -> Result<StorageNote, EngineError> {
    let folder: &Path = target.notes.as_deref().ok_or_else(|| {
        EngineError::Flow("there is no place for the note of what is stored at the server: name one by --state-dir".into())
    })?;
    let met = Meeting::of(target).map(|met| Meeting { reached, ..met });
    let written = met.and_then(|met| StorageNote::write(folder, id, met, places));
    let folder = folder.display();
    written.map_err(EngineError::io(format!(
        "note in {folder} what is about to be stored at the server"
    )))
}

/// Why a server is not fit for uploads.
struct Unfit {
    why: FileError,
    /// Whether it stored nothing, so that nothing can be left there.
    is_refused: bool,
}

/// Stores a byte and removes it.
fn attempt(
    conversation: &mut dyn Conversation,
    place: &Place,
    wait: &dyn Wait,
) -> Result<(), Unfit> {
    let unfit = |why: FileError| Unfit { is_refused: why.is_refusal(), why };
    conversation.store(Some(1), wait).map_err(unfit)?;
    write_byte(conversation, place, wait).map_err(unfit)?;
    conversation.stored(wait).map_err(unfit)?;
    let stays = |why: &str| {
        format!(
            "{place} of 1 byte, which the server took, can't be removed: {why}; nothing is uploaded to a server where it would stay"
        )
    };
    let why = match conversation.remove(wait) {
        Ok(true) => return Ok(()),
        Ok(false) => FileError::Protocol(stays("the server says that it is not there")),
        Err(FileError::NotPermitted(why)) => FileError::NotPermitted(stays(&why)),
        Err(FileError::Stopped) => FileError::Stopped,
        Err(why) => FileError::Refused(stays(&why.to_string())),
    };
    Err(Unfit { why, is_refused: false })
}

fn write_byte(
    conversation: &mut dyn Conversation,
    place: &Place,
    wait: &dyn Wait,
) -> Result<(), FileError> {
    let until = Instant::now() + WRITE_TIMEOUT;
    while let Err(cause) = conversation.write(&[0]) {
        match (cause.kind(), conversation.socket()) {
            (std::io::ErrorKind::WouldBlock, Some(socket)) if Instant::now() < until => {
                wait.wait(socket.as_fd(), Ready::Write, until)?;
            }
            (std::io::ErrorKind::Interrupted, _) => {}
            _ => {
                let failed = FileError::Io { operation: format!("store {place}"), cause };
                return Err(conversation.refusal(wait).unwrap_or(failed));
            }
        }
    }
    Ok(())
}
