//! What is stored at file servers and on mounts: noted on disk before the first byte leaves, for a later run to find.
//!
//! One file for each run, to which lines are only appended: how the server was contacted, the URLs, and those that are
//! gone. No file has a password. Its owner holds a lock (flock(2)) on it while alive. If it is gone, nothing is left to
//! remove.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use goodput_files::{Place, schemes};
use goodput_settings::make_own_folder;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::control::target::FileTarget;

/// Most bytes of a note that are read: it has two lines for each flow.
const MAX_NOTE_BYTES: u64 = 64 << 20;
/// Prefix of the line that says how the server was contacted.
const MET: &str = "met ";
/// Prefix of a line for a file that is gone again.
const GONE: &str = "gone ";

/// How a server was contacted, as far as a later run needs that to remove what was stored there. Has no secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meeting {
    /// File of certificates (PEM) that are trusted instead of the system's.
    pub authorities: Option<PathBuf>,
    /// Whether any certificate will do.
    pub insecure: bool,
    /// Host and port of the proxy.
    pub proxy: Option<String>,
    /// Addresses from the user, instead of the resolver's.
    pub addresses: Vec<IpAddr>,
    /// Which of the name's addresses was reached; `None` if a proxy was asked.
    pub reached: Option<IpAddr>,
}

impl Meeting {
    /// How to contact the server of a target. A later run may start in another folder, so the path is made absolute.
    pub fn of(target: &FileTarget) -> io::Result<Self> {
        let FileTarget { options, resolved, .. } = target;
        Ok(Self {
            authorities: options.authorities.as_ref().map(std::path::absolute).transpose()?,
            insecure: options.insecure,
            proxy: options.proxy.as_ref().map(ToString::to_string),
            addresses: resolved.clone(),
            reached: None,
        })
    }

    /// Whether a host is the same machine by both, as far as the user says where it is.
    pub fn leads_where(&self, other: &Self) -> bool {
        (&self.proxy, &self.addresses) == (&other.proxy, &other.addresses)
    }
}

/// Where something is stored.
pub trait Noted: PartialEq + Sized {
    /// Suffix of the names of notes that have such lines.
    const SUFFIX: &'static str;

    /// The place as a line.
    fn line(&self) -> String;

    /// The place that a line names; `None` if the line is of no use.
    fn of_line(line: &str) -> Option<Self>;
}

impl Noted for Place {
    const SUFFIX: &'static str = ".upload";

    fn line(&self) -> String {
        self.to_string()
    }

    fn of_line(line: &str) -> Option<Self> {
        schemes::parse(line).ok()
    }
}

/// A note, which nobody else settles while this lives.
#[derive(Debug)]
pub struct StorageNote<P = Place> {
    /// Locked.
    file: File,
    path: PathBuf,
    /// How the server was contacted.
    pub met: Meeting,
    /// What is stored, or was about to be.
    pub places: Vec<P>,
}

impl<P: Noted> StorageNote<P> {
    /// Writes a note to disk, in a folder that only this user can write to.
    pub fn write(folder: &Path, id: &str, met: Meeting, places: Vec<P>) -> io::Result<Self> {
        make_own_folder(folder)?;
        let (draft, path) =
            (folder.join(format!("{id}.new")), folder.join(format!("{id}{}", P::SUFFIX)));
        let mut file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&draft)?;
        let mut text = format!("{MET}{}\n", serde_json::to_string(&met)?);
        text.extend(places.iter().map(|place| place.line() + "\n"));
        let written = file
            .write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
            // Locked before anyone can see the file by its name.
            .and_then(|()| Ok(flock(&file, FlockOperation::LockExclusive)?))
            .and_then(|()| fs::rename(&draft, &path))
            .and_then(|()| File::open(folder)?.sync_all());
        if let Err(cause) = written {
            // The first error is the one to report.
            let _ = fs::remove_file(&draft).or_else(|_| fs::remove_file(&path));
            return Err(cause);
        }
        Ok(Self { file, path, met, places })
    }

    /// A file is no longer at the server. A later run need not ask for it again; after the last one, the note goes.
    pub fn is_gone(&mut self, place: &P) -> io::Result<()> {
        self.places.retain(|noted| noted != place);
        match self.places.is_empty() {
            true => self.forget(),
            false => self.file.write_all(format!("{GONE}{}\n", place.line()).as_bytes()),
        }
    }

    /// Removes the note.
    pub fn forget(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }

    /// The notes of runs that are dead.
    pub fn left(folder: &Path) -> io::Result<Vec<Self>> {
        let entries = match fs::read_dir(folder) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        make_own_folder(folder)?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let notes = paths.filter(|path| path.to_string_lossy().ends_with(P::SUFFIX));
        Ok(notes.filter_map(|path| Self::open_left(path).ok().flatten()).collect())
    }

    /// Opens a note, unless its owner lives or it is settled.
    fn open_left(path: PathBuf) -> io::Result<Option<Self>> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = OpenOptions::new().read(true).append(true).custom_flags(flags).open(&path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Ok(None),
            locked => locked?,
        }
        let status = file.metadata()?;
        let own = status.uid() == rustix::process::geteuid().as_raw();
        if status.nlink() == 0 || !status.is_file() || !own {
            return Ok(None);
        }
        let mut text = String::new();
        (&file).take(MAX_NOTE_BYTES).read_to_string(&mut text)?;
        if !text.is_empty() && !text.ends_with('\n') {
            // The next entry must not continue a line that was cut short.
            (&file).write_all(b"\n")?;
        }
        let (met, places) = read(&text);
        Ok(Some(Self { file, path, met, places }))
    }
}

/// How a server was contacted, and what may still be there. A last line without an end was cut short, and may be the
/// beginning of another one.
fn read<P: Noted>(text: &str) -> (Meeting, Vec<P>) {
    let text = text.rfind('\n').map_or("", |end| &text[..end]);
    let met = text.lines().find_map(|line| serde_json::from_str(line.strip_prefix(MET)?).ok());
    let gone: HashSet<_> = text.lines().filter_map(|line| line.strip_prefix(GONE)).collect();
    let stored = text.lines().filter(|line| !gone.contains(line));
    let places = stored.filter_map(P::of_line).collect();
    (met.unwrap_or_default(), places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: u32) -> Place {
        schemes::parse(&format!("http://me@nas/a/.goodput-write-1-{number}")).unwrap()
    }

    #[test]
    fn a_note_is_found_once_its_owner_is_dead_and_gone_once_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("uploads");
        assert!(StorageNote::<Place>::left(&folder).unwrap().is_empty(), "no folder is no note");
        let met = Meeting {
            authorities: Some("/a b/ca.pem".into()),
            insecure: true,
            proxy: Some("cache:3128".into()),
            addresses: vec!["2001:db8::1".parse().unwrap()],
            reached: Some("2001:db8::1".parse().unwrap()),
        };
        let note = StorageNote::write(&folder, "1", met.clone(), vec![place(0)]).unwrap();
        assert!(StorageNote::<Place>::left(&folder).unwrap().is_empty(), "its owner lives");
        drop(note);
        let mode = fs::metadata(folder.join("1.upload")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        let left = StorageNote::<Place>::left(&folder).unwrap();
        assert_eq!((&left[0].places, &left[0].met), (&vec![place(0)], &met));
        left.into_iter().for_each(|note| note.forget().unwrap());
        assert!(StorageNote::<Place>::left(&folder).unwrap().is_empty());
    }

    #[test]
    fn another_proxy_or_address_may_lead_to_another_machine() {
        let met = Meeting::default();
        let proxy = Meeting { proxy: Some("cache:3128".into()), ..Meeting::default() };
        let address =
            Meeting { addresses: vec!["192.0.2.1".parse().unwrap()], ..Meeting::default() };
        let insecure = Meeting { insecure: true, ..Meeting::default() };
        assert!(met.leads_where(&insecure) && proxy.leads_where(&proxy));
        assert!(!met.leads_where(&proxy) && !address.leads_where(&met));
    }

    #[test]
    fn what_is_gone_is_not_asked_for_again_by_a_later_run() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("uploads");
        let all = (0..3).map(place).collect();
        let mut note = StorageNote::write(&folder, "1", Meeting::default(), all).unwrap();
        note.is_gone(&place(1)).unwrap();
        drop(note);
        let mut left = StorageNote::<Place>::left(&folder).unwrap();
        assert_eq!(left[0].places, [place(0), place(2)]);
        left[0].is_gone(&place(0)).unwrap();
        left[0].is_gone(&place(2)).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing is left to note");
    }

    #[test]
    fn a_note_of_urls_alone_or_one_that_was_cut_short_is_read() {
        let text = format!("{}\n{}\ngone http://me@nas/a/.good", place(0), place(1));
        assert_eq!(read(&text), (Meeting::default(), vec![place(0), place(1)]));
        let text = format!("{}\n{}\ngone {}", place(1), place(10), place(1));
        assert_eq!(read::<Place>(&text).1, [place(1), place(10)], "it may be of the other one");
    }

    #[test]
    fn what_is_noted_after_a_line_that_was_cut_short_is_a_line_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("uploads");
        let all = (0..3).map(place).collect();
        let note = StorageNote::write(&folder, "1", Meeting::default(), all).unwrap();
        (&note.file).write_all(b"gone http://me@n").unwrap();
        drop(note);
        StorageNote::left(&folder).unwrap()[0].is_gone(&place(1)).unwrap();
        assert_eq!(StorageNote::<Place>::left(&folder).unwrap()[0].places, [place(0), place(2)]);
    }
}
