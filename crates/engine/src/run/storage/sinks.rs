//! The directory in which a server lets its clients write files, and how much they may write in total.
//!
//! A file counts with its length from when it is written; files that were there when the server began count too. A file
//! is released when a client replaces it or someone has removed it.

use std::collections::HashMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use goodput_model::Bytes;
use goodput_mover::Allowance;
use rustix::fs::fstat;

/// What an empty file takes, bytes: its inode, and a block of the directory.
const EMPTY_BYTES: u64 = 4096;
/// After a check which files still exist, the next check waits this many times as long as the check took: with many
/// files, clients could keep this host busy.
const PAUSE_FACTOR: u32 = 20;

/// Where clients may create and replace files.
#[derive(Debug, Clone)]
pub struct Sinks {
    directory: PathBuf,
    each_bytes: u64,
    all: Arc<Mutex<All>>,
}

/// All existing files.
#[derive(Debug)]
struct All {
    most_bytes: u64,
    bytes: u64,
    files: HashMap<Id, Counted>,
    next_look: Instant,
}

/// The device and the inode of a file.
type Id = (u64, u64);

#[derive(Debug)]
struct Counted {
    path: PathBuf,
    bytes: u64,
    /// Number of flows that write to it: it takes room even if it was removed meanwhile.
    writers: u32,
}

impl Sinks {
    /// In `directory`, no file may be longer than `each_bytes`, and all files together, old ones included, take at most
    /// `all_bytes`.
    pub fn new(directory: PathBuf, each_bytes: u64, all_bytes: u64) -> Self {
        let mut all = All {
            most_bytes: all_bytes,
            bytes: 0,
            files: HashMap::new(),
            next_look: Instant::now(),
        };
        all.count_below(&directory);
        Self { directory, each_bytes, all: Arc::new(Mutex::new(all)) }
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether there is room for another file.
    pub fn check(&self) -> Result<(), String> {
        lock(&self.all).has_room_for(EMPTY_BYTES)
    }

    /// A file called `name` that was just opened and emptied. Returns the allowance for writes to it.
    pub fn opened(&self, file: &OwnedFd, name: &str) -> Result<Arc<dyn Allowance>, String> {
        let stat = fstat(file).map_err(|cause| format!("can't ask about {name:?}: {cause}"))?;
        let id = (stat.st_dev, stat.st_ino);
        let mut all = lock(&self.all);
        all.release(id);
        all.has_room_for(EMPTY_BYTES)?;
        all.bytes += EMPTY_BYTES;
        let path = self.directory.join(name);
        let counted = all.files.entry(id).or_insert(Counted { path, bytes: 0, writers: 0 });
        counted.bytes += EMPTY_BYTES;
        counted.writers += 1;
        let all = Arc::clone(&self.all);
        Ok(Arc::new(Writing { id, each_bytes: self.each_bytes, written: Mutex::new(0), all }))
    }
}

impl All {
    /// Counts the files in this directory and below. What can't be read is not counted.
    fn count_below(&mut self, directory: &Path) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            if found.is_dir() {
                self.count_below(&entry.path());
            } else if found.is_file() {
                let bytes = found.len().max(EMPTY_BYTES);
                let counted = Counted { path: entry.path(), bytes, writers: 0 };
                if self.files.insert((found.dev(), found.ino()), counted).is_none() {
                    self.bytes = self.bytes.saturating_add(bytes);
                }
            }
        }
    }

    /// Stops counting a file, unless someone writes to it: if several write, all of it counts.
    fn release(&mut self, id: Id) {
        if self.files.get(&id).is_some_and(|file| file.writers == 0)
            && let Some(file) = self.files.remove(&id)
        {
            self.bytes = self.bytes.saturating_sub(file.bytes);
        }
    }

    fn has_room_for(&mut self, bytes: u64) -> Result<(), String> {
        let lacks = |all: &Self| all.bytes.saturating_add(bytes) > all.most_bytes;
        let now = Instant::now();
        if lacks(self) && now >= self.next_look {
            self.forget_removed();
            let done = Instant::now();
            self.next_look = done + (done - now) * PAUSE_FACTOR;
        }
        if !lacks(self) {
            return Ok(());
        }
        Err(format!(
            "the files that clients write here may take {} in total (--max-sink-total), and {} are in use; replace a file, or ask the server's operator to remove some",
            Bytes(self.most_bytes),
            Bytes(self.bytes)
        ))
    }

    /// Releases files that are no longer where they were.
    fn forget_removed(&mut self) {
        let is_there = |id: &Id, file: &Counted| {
            fs::symlink_metadata(&file.path).is_ok_and(|found| (found.dev(), found.ino()) == *id)
        };
        let bytes = &mut self.bytes;
        self.files.retain(|id, file| {
            let stays = file.writers > 0 || is_there(id, file);
            if !stays {
                *bytes = bytes.saturating_sub(file.bytes);
            }
            stays
        });
    }
}

/// One flow that writes to a file.
#[derive(Debug)]
struct Writing {
    id: Id,
    each_bytes: u64,
    written: Mutex<u64>,
    all: Arc<Mutex<All>>,
}

impl Allowance for Writing {
    fn take(&self, bytes: u64) -> Result<(), String> {
        let mut written = lock(&self.written);
        if written.saturating_add(bytes) > self.each_bytes {
            let most = Bytes(self.each_bytes);
            return Err(format!("this server writes no more than {most} for a flow (--max-sink)"));
        }
        let mut all = lock(&self.all);
        all.has_room_for(bytes)?;
        all.bytes += bytes;
        if let Some(file) = all.files.get_mut(&self.id) {
            file.bytes += bytes;
        }
        *written += bytes;
        Ok(())
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(file) = lock(&self.all).files.get_mut(&self.id) {
            file.writers = file.writers.saturating_sub(1);
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const BLOCK: u64 = EMPTY_BYTES;

    struct Place(TempDir);

    impl Place {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn sinks(&self, blocks: u64) -> Sinks {
            Sinks::new(self.0.path().into(), 100 * BLOCK, blocks * BLOCK)
        }

        fn open(&self, sinks: &Sinks, name: &str) -> Result<Arc<dyn Allowance>, String> {
            let file = fs::File::create(self.0.path().join(name)).unwrap();
            sinks.opened(&file.into(), name)
        }
    }

    #[test]
    fn all_files_together_take_no_more_than_their_total() {
        let place = Place::new();
        let sinks = place.sinks(10);
        let (one, other) = (place.open(&sinks, "a").unwrap(), place.open(&sinks, "b").unwrap());
        assert_eq!(one.take(5 * BLOCK), Ok(()));
        assert_eq!(other.take(3 * BLOCK), Ok(()));
        let why = one.take(1).unwrap_err();
        assert!(why.contains("41.0 kB in total (--max-sink-total), and 41.0 kB are"), "{why}");
        assert!(sinks.check().is_err() && place.open(&sinks, "c").is_err());
    }

    #[test]
    fn what_is_replaced_or_removed_makes_room() {
        let place = Place::new();
        let sinks = place.sinks(10);
        let whole = |name| place.open(&sinks, name).and_then(|file| file.take(9 * BLOCK));
        assert_eq!(whole("a"), Ok(()));
        assert_eq!(whole("a"), Ok(()), "replaced");
        assert!(whole("b").is_err(), "it has looked");
        fs::remove_file(place.0.path().join("a")).unwrap();
        lock(&sinks.all).next_look = Instant::now();
        assert_eq!(whole("b"), Ok(()), "removed");
        assert_eq!(lock(&sinks.all).bytes, 10 * BLOCK);
    }

    #[test]
    fn what_is_removed_while_it_is_written_still_counts() {
        let place = Place::new();
        let sinks = place.sinks(10);
        let open = place.open(&sinks, "a").unwrap();
        open.take(9 * BLOCK).unwrap();
        fs::remove_file(place.0.path().join("a")).unwrap();
        assert!(sinks.check().is_err());
        drop(open);
        lock(&sinks.all).next_look = Instant::now();
        assert_eq!(sinks.check(), Ok(()));
    }

    #[test]
    fn what_was_there_before_counts_and_what_links_lead_to_does_not() {
        let (place, elsewhere) = (Place::new(), Place::new());
        fs::create_dir(place.0.path().join("below")).unwrap();
        fs::write(place.0.path().join("below/old"), vec![0; 3 * BLOCK as usize]).unwrap();
        fs::write(elsewhere.0.path().join("big"), vec![0; 30 * BLOCK as usize]).unwrap();
        std::os::unix::fs::symlink(elsewhere.0.path(), place.0.path().join("link")).unwrap();
        assert_eq!(lock(&place.sinks(10).all).bytes, 3 * BLOCK);
    }

    #[test]
    fn one_file_is_bounded_as_well() {
        let place = Place::new();
        let sinks = place.sinks(1000);
        let file = place.open(&sinks, "a").unwrap();
        assert_eq!(file.take(100 * BLOCK), Ok(()));
        let why = file.take(1).unwrap_err();
        assert!(why.ends_with("for a flow (--max-sink)"), "{why}");
    }
}
