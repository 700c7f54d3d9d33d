//! Where journals are that are not in the user's usual directory: links in a place that outlasts a reboot, unlike the list of
//! open journals. A run with another `--state-dir` may have left files that keep values, or changed a host by SSH, and the
//! next run need not name that directory.
//!
//! The links of each boot are in a folder of its own. Nothing but a link is ever removed there. A journal whose whole directory
//! is missing after a reboot may be on a disk that is not mounted, so its link stays until a person forgets it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::own_folder::{check_folder, make_own_folder, sync_folder};
use crate::place::{Place, default_state_dir};

/// Name of the folder in the usual directory.
const FOLDER: &str = "elsewhere";

/// The links of a user.
#[derive(Debug)]
pub struct Elsewhere {
    /// The user's usual directory of journals.
    usual: PathBuf,
    /// Random for each boot.
    boot: String,
}

/// One of the links.
struct Link {
    path: PathBuf,
    journal: PathBuf,
    is_of_this_boot: bool,
}

impl Link {
    /// Whether there is nothing at its end.
    fn is_dangling(&self) -> bool {
        let status = fs::symlink_metadata(&self.journal);
        status.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// Whether the directory of the journal is there.
    fn has_folder(&self) -> bool {
        self.journal.parent().is_some_and(Path::is_dir)
    }

    fn remove(&self) {
        // What can't be removed is looked at again.
        let _ = fs::remove_file(&self.path);
        for folder in self.path.ancestors().skip(1).take(2) {
            // Only the last link leaves it empty.
            let _ = fs::remove_dir(folder);
        }
    }
}

impl Elsewhere {
    /// Those of this user. `None` if this user has no usual directory.
    pub fn here() -> Option<Self> {
        Self::beside(default_state_dir().ok()?)
    }

    /// Those of a user whose usual directory is `usual`.
    pub fn beside(usual: PathBuf) -> Option<Self> {
        Some(Self { usual, boot: Place::here().ok()?.boot_id })
    }

    /// The same for a journal in `state_dir`: tests have a usual directory of their own beside it, or none.
    pub(super) fn of(state_dir: &Path) -> Option<Self> {
        match cfg!(test) {
            true => {
                Self::beside(state_dir.parent()?.join("usual")).filter(|own| own.usual.is_dir())
            }
            false => Self::here(),
        }
    }

    /// Makes a link to a journal that has begun, unless it is in the usual directory. Where no link can be made, the journal is
    /// found until the next reboot only, or by whoever names its directory.
    pub fn remember(&self, journal: &Path) {
        let Some(state_dir) = journal.parent().filter(|folder| !self.is_usual(folder)) else {
            return;
        };
        let (Some(name), true) = (journal.file_name(), state_dir.is_absolute()) else { return };
        let closed =
            |link: &Link| link.is_dangling() && (link.is_of_this_boot || link.has_folder());
        self.links().iter().filter(|link| closed(link)).for_each(Link::remove);
        let folder = self.usual.join(FOLDER).join(&self.boot);
        let _ = make_own_folder(&folder)
            .and_then(|()| std::os::unix::fs::symlink(journal, folder.join(name)))
            .and_then(|()| sync_folder(&folder));
    }

    /// Removes the links to a journal that is closed, or that a person gives up.
    pub fn forget(&self, journal: &Path) {
        self.links().iter().filter(|link| link.journal == journal).for_each(Link::remove);
    }

    /// The journals whose names end with `suffix` and that a goodput with this `state_dir` has to look at as well, oldest
    /// first. After a reboot those are all of them. Before, other runs with a directory of their own see to it alone.
    pub fn journals(&self, state_dir: &Path, suffix: &str) -> Vec<PathBuf> {
        let is_usual = self.is_usual(state_dir);
        let mut links = self.links();
        links.retain(|link| is_usual || !link.is_of_this_boot);
        let ours = |path: &PathBuf| path.to_str().is_some_and(|path| path.ends_with(suffix));
        let mut journals: Vec<_> =
            links.into_iter().map(|link| link.journal).filter(ours).collect();
        journals.retain(|journal| journal.parent() != Some(state_dir));
        journals.sort_by(|one, other| one.file_name().cmp(&other.file_name()));
        journals
    }

    /// The journals of earlier boots whose whole directory is not there.
    pub fn missing(&self) -> Vec<PathBuf> {
        let mut links = self.links();
        links.retain(|link| !link.is_of_this_boot && link.is_dangling() && !link.has_folder());
        links.into_iter().map(|link| link.journal).collect()
    }

    fn is_usual(&self, state_dir: &Path) -> bool {
        let found = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.into());
        found(state_dir) == found(&self.usual)
    }

    fn links(&self) -> Vec<Link> {
        let all = self.usual.join(FOLDER);
        // Others must not say which journals are used.
        let boots = check_folder(&all).and_then(|()| fs::read_dir(&all));
        let boots = boots.into_iter().flatten().flatten().map(|entry| entry.path());
        let links = boots.filter(|boot| check_folder(boot).is_ok()).flat_map(|boot| {
            let is_of_this_boot = boot.file_name().is_some_and(|name| *name == *self.boot);
            let links = fs::read_dir(boot).into_iter().flatten().flatten();
            links.filter_map(move |entry| {
                let journal = fs::read_link(entry.path()).ok()?;
                Some(Link { path: entry.path(), journal, is_of_this_boot })
            })
        });
        links.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene {
        folder: tempfile::TempDir,
        links: Elsewhere,
    }

    impl Scene {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let usual = folder.path().join("usual");
            make_own_folder(&usual).unwrap();
            make_own_folder(&folder.path().join("other")).unwrap();
            Self { links: Elsewhere::beside(usual).unwrap(), folder }
        }

        fn journal(&self, of: &str) -> PathBuf {
            let journal = self.folder.path().join(of).join("1-1.journal.jsonl");
            fs::write(&journal, "").unwrap();
            self.links.remember(&journal);
            journal
        }

        /// As after a reboot.
        fn rebooted(mut self) -> Self {
            self.links.boot = "another".into();
            self
        }

        fn found(&self, from: &str, suffix: &str) -> usize {
            self.links.journals(&self.folder.path().join(from), suffix).len()
        }
    }

    #[test]
    fn a_journal_in_another_directory_is_found_after_a_reboot_and_from_the_usual_one_before() {
        let scene = Scene::new();
        scene.journal("usual");
        assert!(scene.links.links().is_empty(), "it is found anyway");
        let journal = scene.journal("other");
        let found = |scene: &Scene| {
            ["usual", "third", "other"].map(|from| scene.found(from, ".journal.jsonl"))
        };
        assert_eq!(found(&scene), [1, 0, 0]);
        assert_eq!(scene.found("usual", ".remote.jsonl"), 0);
        let scene = scene.rebooted();
        assert_eq!(found(&scene), [1, 1, 0], "whatever the directory of the next run");
        scene.links.forget(&journal);
        assert_eq!(found(&scene), [0; 3]);
        assert!(!scene.links.usual.join(FOLDER).exists() && journal.exists());
    }

    #[test]
    fn a_closed_journal_is_forgotten_and_one_whose_directory_is_missing_is_not() {
        let scene = Scene::new();
        let (other, away) = (scene.folder.path().join("other"), scene.folder.path().join("away"));
        let journal = scene.journal("other");
        let scene = scene.rebooted();
        fs::rename(&other, &away).unwrap();
        make_own_folder(&scene.folder.path().join("third")).unwrap();
        scene.journal("third");
        assert_eq!(
            scene.links.missing(),
            std::slice::from_ref(&journal),
            "its disk may not be mounted"
        );
        fs::rename(&away, &other).unwrap();
        assert_eq!(scene.links.missing(), [] as [PathBuf; 0]);
        fs::remove_file(&journal).unwrap();
        scene.journal("third");
        assert!(scene.links.links().iter().all(|link| link.journal != journal), "it is closed");
    }
}
