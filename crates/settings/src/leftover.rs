//! What dead runs left changed, and how it can be put back.

use std::path::{Path, PathBuf};

use goodput_model::SettingRef;

use crate::journal::{Contents, JournalFile, Text, left, missing};
use crate::life::{self, Life};
use crate::lookup::machine;
use crate::place::Place;

/// A journal of a dead run: some settings may still be as that run had set them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Where the journal is.
    pub journal: PathBuf,
    /// The settings that it would put back, as far as it can be read.
    pub settings: Vec<SettingRef>,
    /// Where they can be put back.
    pub place: Whereabouts,
}

/// Where a leftover setting is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whereabouts {
    /// Here.
    Here,
    /// In another network namespace.
    Namespace {
        /// Its inode number.
        number: u64,
        /// The prefix that makes a command run there.
        enter: String,
    },
    /// In a network namespace that is gone, and the change with it.
    Gone {
        /// Its inode number.
        number: u64,
    },
    /// In another network namespace that may still exist.
    Unseen {
        /// Its inode number.
        number: u64,
        /// Why it is unknown whether it does.
        why: &'static str,
    },
    /// Unknown: the journal is damaged.
    Damaged,
    /// Unknown: the directory of the journal is missing since a reboot.
    NoFolder,
}

impl std::fmt::Display for Leftover {
    /// What is left, where, and the command that puts it back.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let settings: Vec<_> = self.settings.iter().map(ToString::to_string).collect();
        let what = if settings.is_empty() { "something".into() } else { settings.join(", ") };
        let folder = self.journal.parent().unwrap_or(&self.journal).display();
        let undo = format!("goodput --state-dir {folder} settings undo");
        if self.place == Whereabouts::NoFolder {
            return write!(
                f,
                "a run before the last reboot may have left something changed: the directory {folder} of its journal {} is \
                 missing; mount it, or make it there again, and run `{undo}`; if that is not possible, `goodput settings undo \
                 --forget-unseen` forgets it",
                self.journal.display()
            );
        }
        write!(f, "an interrupted run left {what} changed")?;
        match &self.place {
            Whereabouts::NoFolder => Ok(()),
            Whereabouts::Here => write!(f, "; `{undo}` puts it back"),
            Whereabouts::Namespace { number, enter } => write!(
                f,
                " in another network namespace (net:[{number}]); `{enter} {undo}` puts it back"
            ),
            Whereabouts::Gone { number } => write!(
                f,
                " in a network namespace that is gone (net:[{number}]); `{undo} --forget` forgets it"
            ),
            Whereabouts::Unseen { number, why } => write!(
                f,
                " in another network namespace (net:[{number}]), which may still exist ({why}); run \
                 `{undo}` in it, or `{undo} --forget-unseen` if you know that it is gone"
            ),
            Whereabouts::Damaged => write!(
                f,
                ", and its journal {} is damaged; `{undo}` shows what is known of it, and changes nothing",
                self.journal.display()
            ),
        }
    }
}

/// What dead runs left changed, according to the journals in `state_dir` and in every other directory that
/// this user's runs used. Changes nothing. What a reboot has undone is no
/// leftover, nor is a journal without a change.
pub fn leftovers(state_dir: &Path) -> Vec<Leftover> {
    let here = Place::here().ok();
    let found = left(state_dir).into_iter().flat_map(|found| {
        let leftover = |settings, place| Leftover { journal: found.path.clone(), settings, place };
        match (&found.text, &here) {
            (Ok(text), Some(here)) => of(text, here)
                .into_iter()
                .map(|(settings, place)| leftover(settings, place))
                .collect(),
            _ => vec![leftover(Vec::new(), Whereabouts::Here)],
        }
    });
    let missing = missing(state_dir).into_iter().map(|journal| Leftover {
        journal,
        settings: Vec::new(),
        place: Whereabouts::NoFolder,
    });
    found.chain(missing).collect()
}

/// The settings that a journal would put back, by place.
fn of(text: &Text, here: &Place) -> Vec<(Vec<SettingRef>, Whereabouts)> {
    let contents = &text.says;
    let all = contents.entries.iter().map(|entry| entry.setting.clone());
    let owner = match &contents.owner {
        // A reboot has undone what damaged lines say, too, except files.
        Some(owner) if !owner.place.same_boot(here) => {
            let files = (!contents.written.is_empty()).then(|| (Vec::new(), Whereabouts::Here));
            return files.into_iter().collect();
        }
        Some(owner) if text.damage().is_none() => owner,
        None if text.damage().is_none() => return Vec::new(),
        _ => return vec![(all.collect(), Whereabouts::Damaged)],
    };
    let elsewhere = elsewhere(contents, here);
    let ours: Vec<_> = all.filter(|setting| !elsewhere.contains(setting)).collect();
    let mut left = Vec::new();
    if !ours.is_empty() || !contents.written.is_empty() {
        left.push((ours, Whereabouts::Here));
    }
    if !elsewhere.is_empty() {
        left.push((elsewhere, whereabouts(&owner.place)));
    }
    left
}

fn whereabouts(place: &Place) -> Whereabouts {
    let number = place.netns;
    match life::of(place) {
        Life::Lives(file) => Whereabouts::Namespace { number, enter: life::enter(&file) },
        Life::Gone => Whereabouts::Gone { number },
        Life::Unseen(why) => Whereabouts::Unseen { number, why },
    }
}

/// The settings of a journal that belong to another network namespace than this one. After a reboot there are
/// none.
pub(crate) fn elsewhere(contents: &Contents, here: &Place) -> Vec<SettingRef> {
    let place = contents.owner.as_ref().map(|owner| &owner.place);
    if !place.is_some_and(|place| place.same_boot(here) && !place.same_namespace(here)) {
        return Vec::new();
    }
    let settings = contents.entries.iter().map(|entry| &entry.setting);
    let namespaced =
        settings.filter(|setting| machine(setting).is_ok_and(|m| m.namespaced(setting)));
    namespaced.cloned().collect()
}

/// The contents of a journal that can be read and is not closed.
pub(crate) fn read(path: &Path) -> Option<Text> {
    JournalFile::peek(path).ok().flatten().map(|(text, _)| text)
}
