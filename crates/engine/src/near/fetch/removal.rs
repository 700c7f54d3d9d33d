//! Removes what is noted as stored at a server, over one connection, within bounds.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use goodput_files::{Conversation, FileError, Place, Ready, Wait};

use super::asker::Asker;
use super::warm_up::wait_at_most;
use crate::near::storage_notes::StorageNote;

/// When a server says that files are not there, it is asked again after this time: it may not have carried out yet what
/// a closed connection had requested.
const RETRY_DELAY: Duration = Duration::from_millis(250);
/// How long a refusing server is asked again: it may still hold a file open whose upload was just cut off.
const HELD_TIME: Duration = Duration::from_secs(3);
/// Why a file that the server did not find may still be there.
const UNSEEN: &str =
    "the server shows no such file, but another user stored it: use that user's login (~/.netrc)";

/// How long a removal may take.
#[derive(Debug, Clone, Copy)]
pub struct RemovalTime {
    /// All files together, including the login before the first.
    all: Duration,
    /// One file.
    one: Duration,
}

impl RemovalTime {
    /// The person who ended a measurement, or begins one, waits for something else.
    pub const BESIDE_A_RUN: Self =
        Self { all: Duration::from_secs(10), one: Duration::from_secs(5) };
    /// For a user who asked for nothing else.
    pub const ON_REQUEST: Self =
        Self { all: Duration::from_secs(120), one: Duration::from_secs(30) };
}

/// The outcome of a removal.
#[derive(Debug)]
pub struct Removal {
    /// Each file: whether it was there, or why it may still be there.
    pub files: Vec<(Place, Result<bool, String>)>,
    /// Whether the note was updated accordingly.
    pub noted: io::Result<()>,
}

impl Removal {
    /// No noted file could be removed.
    pub fn failed(note: &StorageNote, why: &str) -> Self {
        let files = note.places.iter().map(|place| (place.clone(), Err(why.to_owned())));
        Self { files: files.collect(), noted: Ok(()) }
    }

    /// Records the outcome for one file. A file that is gone is no longer noted.
    fn concludes(&mut self, note: &mut StorageNote, place: Place, outcome: Result<bool, String>) {
        if outcome.is_ok()
            && let Err(cause) = note.is_gone(&place)
        {
            self.noted = Err(cause);
        }
        self.files.push((place, outcome));
    }

    /// The files that were there and are gone now.
    pub fn removed(&self) -> impl Iterator<Item = &Place> {
        self.files.iter().filter(|(_, outcome)| *outcome == Ok(true)).map(|(place, _)| place)
    }

    /// What went wrong, in words.
    pub fn trouble(&self) -> impl Iterator<Item = String> {
        let kept = self.files.iter().filter_map(|(place, outcome)| {
            let why = outcome.as_ref().err()?;
            Some(format!(
                "{place} may be left there: {why}; the next test of this server removes it, and so does goodput settings undo"
            ))
        });
        let noted = self.noted.as_ref().err().map(|cause| {
            format!("the note of what was stored at the server can't be changed: {cause}")
        });
        kept.chain(noted)
    }
}

/// Removes the files of a note, which forgets each file that is gone. Files that the server does not find are requested
/// once more after all others; without the time for that they stay noted.
pub fn remove(asker: &Asker, note: &mut StorageNote, patience: RemovalTime) -> Removal {
    let until = Instant::now() + patience.all;
    let mut removal = Removal { files: Vec::new(), noted: Ok(()) };
    let Some(first) = note.places.first() else { return removal };
    let mut conversation = asker.converse(first);
    if let Err(why) = conversation.connect(&Within(until)) {
        return Removal::failed(note, &why.to_string());
    }
    let mut ask = |place: &Place| {
        if !conversation.turn_to(place) {
            conversation = asker.converse(place);
        }
        remove_one(conversation.as_mut(), until, patience.one)
    };
    let mut missing = Vec::new();
    for place in note.places.clone() {
        match ask(&place) {
            Ok(false) => missing.push(place),
            outcome => removal.concludes(note, place, outcome.map_err(|why| why.to_string())),
        }
    }
    if !missing.is_empty() {
        std::thread::sleep(RETRY_DELAY);
    }
    for place in missing {
        let outcome = match ask(&place) {
            Ok(false) if asker.own(place.clone()) != place => Err(UNSEEN.to_owned()),
            outcome => outcome.map_err(|why| why.to_string()),
        };
        removal.concludes(note, place, outcome);
    }
    removal
}

/// Asks for the removal of one file until the server gives an answer that counts. Returns whether the file was found.
fn remove_one(
    conversation: &mut dyn Conversation,
    all_until: Instant,
    patience: Duration,
) -> Result<bool, FileError> {
    let begun = Instant::now();
    let until = all_until.min(begun + patience);
    loop {
        if Instant::now() >= all_until {
            let why = "there was no time left to ask for its removal";
            return Err(FileError::TimedOut(why.into()));
        }
        let outcome = conversation.remove(&Within(until));
        let is_over = match &outcome {
            Ok(_) => true,
            Err(FileError::Refused(_)) => begun.elapsed() >= HELD_TIME,
            Err(why) => {
                if !why.is_refusal() {
                    // A late answer must not be taken for the answer to the next request.
                    conversation.hang_up();
                }
                why.is_refusal()
            }
        };
        if is_over || Instant::now() + RETRY_DELAY >= until {
            return outcome;
        }
        std::thread::sleep(RETRY_DELAY);
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

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::path::Path;
    use std::sync::mpsc::{Receiver, channel};

    use goodput_files::{Options, schemes};
    use goodput_model::SocketOptions;

    use super::super::dialler::Addresses;
    use super::*;
    use crate::control::target::Target;
    use crate::near::storage_notes::Meeting;

    /// An FTP server that answers requests to delete as `delete` says. Returns what it received, and who asks it.
    fn serve(delete: fn(&str) -> &'static str) -> (Asker, Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (say, said) = channel();
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let lines = BufReader::new(client.try_clone().unwrap()).lines();
                let mut reply = |words: &str| client.write_all(format!("{words}\r\n").as_bytes());
                let _ = reply("220 hello");
                for line in lines.map_while(Result::ok) {
                    let _ = say.send(line.clone());
                    let _ = reply(match line.split(' ').next() {
                        Some("DELE") => delete(&line),
                        Some("USER") => "230 in",
                        Some("SIZE") if delete(&line).ends_with("No such file.") => delete(&line),
                        Some("SIZE") => "213 1",
                        _ => "200 fine",
                    });
                }
            }
        });
        let target: Target = format!("ftp://{address}/in/").parse().unwrap();
        let addresses = Addresses::new(vec![address]);
        let options = Options::default();
        (Asker::new(target, addresses, SocketOptions::default(), options).unwrap(), said)
    }

    fn noted(asker: &Asker, folder: &Path) -> StorageNote {
        let place =
            |number| asker.own(schemes::parse(&format!("{}{number}", asker.target.text)).unwrap());
        StorageNote::write(folder, "1", Meeting::default(), (0..3).map(place).collect()).unwrap()
    }

    #[test]
    fn all_files_are_removed_with_one_login() {
        let (asker, said) = serve(|_| "250 gone");
        let folder = tempfile::tempdir().unwrap();
        let mut note = noted(&asker, folder.path());
        let removal = remove(&asker, &mut note, RemovalTime::ON_REQUEST);
        assert_eq!((removal.removed().count(), removal.trouble().count()), (3, 0));
        let said: Vec<_> = said.try_iter().collect();
        let count = |word: &str| said.iter().filter(|line| line.starts_with(word)).count();
        assert_eq!((count("USER"), count("DELE")), (1, 3), "{said:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is noted");
    }

    #[test]
    fn what_the_server_keeps_is_all_that_stays_noted() {
        let delete = |line: &str| match line.ends_with("/0") {
            true => "550 Permission denied.",
            false => "250 gone",
        };
        let (asker, _said) = serve(delete);
        let folder = tempfile::tempdir().unwrap();
        let mut note = noted(&asker, folder.path());
        let removal = remove(&asker, &mut note, RemovalTime::ON_REQUEST);
        let trouble: Vec<_> = removal.trouble().collect();
        assert!(trouble.len() == 1 && trouble[0].contains("550"), "{trouble:?}");
        drop(note);
        let left = StorageNote::<Place>::left(folder.path()).unwrap();
        assert_eq!(left[0].places.len(), 1, "{left:?}");
        assert!(left[0].places[0].to_string().ends_with("/in/0"), "{left:?}");
    }

    #[test]
    fn what_is_missing_is_asked_for_once_more_after_all_others() {
        let (asker, said) = serve(|_| "550 No such file.");
        let folder = tempfile::tempdir().unwrap();
        let mut note = noted(&asker, folder.path());
        remove(&asker, &mut note, RemovalTime::ON_REQUEST);
        let said: Vec<_> = said.try_iter().filter(|line| line.starts_with("DELE")).collect();
        assert!(said.len() == 6 && said[..3] == said[3..], "{said:?}");
    }

    #[test]
    fn what_was_missing_once_stays_noted_if_there_is_no_time_to_ask_again() {
        let (asker, _said) = serve(|_| "550 No such file.");
        let folder = tempfile::tempdir().unwrap();
        let mut note = noted(&asker, folder.path());
        let short = RemovalTime { all: RETRY_DELAY, one: RETRY_DELAY };
        assert_eq!(remove(&asker, &mut note, short).trouble().count(), 3);
        drop(note);
        assert_eq!(StorageNote::<Place>::left(folder.path()).unwrap()[0].places.len(), 3);
    }
}
