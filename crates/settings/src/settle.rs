//! Settles the journal of a dead run. What a damaged journal says is shown, and nothing is changed by it until a person
//! asks for that.

use crate::journal::{Contents, Durable, JournalContents, JournalFile, Line, TakenOver};
use crate::place::Place;
use crate::restore::{Forget, Outcome, RestoreReport, Restored, last, settle_contents};
use crate::written::FileOutcome;

/// What a person allows when the changes of dead runs are undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UndoRequest {
    /// Which changes of other network namespaces are given up.
    pub forget: Forget,
    /// Whether what the whole lines of a damaged journal say is put back, and the journal then set aside.
    pub use_damaged: bool,
}

/// Puts everything in `journal` back and removes the journal, unless something is left to do.
pub(crate) fn settle(mut journal: JournalFile, request: UndoRequest) -> RestoreReport {
    let text = journal.text().clone();
    if let Some(problem) = text.foreign() {
        return RestoreReport::unusable(journal.path().into(), problem);
    }
    match text.damaged(journal.path()).filter(|_| !is_over(&text.says)) {
        Some(damage) if !request.use_damaged => shown(&journal, &text.says, damage),
        _ => use_whole_lines(&mut journal, &text.says, request.forget),
    }
}

/// Whether a reboot has undone all settings that a journal is about, in its damaged lines too. Files that damaged lines named
/// are not known; the journal is set aside.
fn is_over(contents: &Contents) -> bool {
    let here = Place::here().ok();
    let owner = contents.owner.as_ref();
    owner.zip(here).is_some_and(|(owner, here)| !owner.place.same_boot(&here))
}

/// What is known of a damaged journal, and what a person can do.
fn shown(journal: &JournalFile, contents: &Contents, damage: String) -> RestoreReport {
    RestoreReport {
        entries: untouched(contents),
        files: contents.files(|_| FileOutcome::Untouched),
        notes: journal.note_of_end().into_iter().collect(),
        ..RestoreReport::unusable(journal.path().into(), damage)
    }
}

/// Puts back what can be read, and keeps a damaged journal under another name.
fn use_whole_lines(
    journal: &mut JournalFile,
    contents: &Contents,
    forget: Forget,
) -> RestoreReport {
    note_take_over(journal, contents);
    // Without its first line it is unknown where the settings belong. Only a value that the run itself set is put back.
    let mut report = settle_contents(journal, contents, forget);
    report.notes.extend(journal.notes());
    report
}

/// Lets others know who puts back, if there is something to put back here. If that can't be written, they know less; putting
/// back goes on.
fn note_take_over(journal: &mut JournalFile, contents: &Contents) {
    let owner = contents.owner.as_ref().filter(|owner| owner.notes_take_overs());
    let place = owner.map(|owner| &owner.place);
    let is_here = Place::here().is_ok_and(|here| place.is_some_and(|p| p.same_namespace(&here)));
    if is_here && !contents.is_empty() && journal.text().damage().is_none() {
        let _ = journal.append(&Line::TakenOver(TakenOver::own()), Durable::No);
    }
}

/// One outcome per change that can be read, the last change first.
fn untouched(contents: &Contents) -> Vec<Restored> {
    let entries = contents.entries.iter().rev().map(|entry| Restored {
        setting: entry.setting.clone(),
        outcome: Outcome::Untouched { original: entry.original.clone(), ours: last(entry) },
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::testing::Scene;
    use crate::{Patience, SettingError, Whereabouts, leftovers, undo, undo_as_asked};

    fn undo_with_damage(scene: &Scene) -> RestoreReport {
        let request = UndoRequest { use_damaged: true, ..UndoRequest::default() };
        undo_as_asked(&scene.state_dir(), request, Patience::NONE).unwrap().swap_remove(0)
    }

    /// Every way to change nothing beside a journal that was `damaged`.
    fn nothing_is_changed(scene: &Scene, journal: &Path, damaged: &[u8]) {
        let error = scene.try_to_begin().unwrap_err();
        assert!(matches!(error, SettingError::Unreadable { .. }), "{error}");
        // `goodput settings undo` alone would be no help, so the first message names what would.
        let said = error.to_string();
        assert!(said.contains(journal.to_str().unwrap()) && said.contains("--damaged"), "{said}");
        let left = leftovers(&scene.state_dir()).swap_remove(0);
        assert!(left.place == Whereabouts::Damaged && left.to_string().contains("shows"), "{left}");
        let report = undo(&scene.state_dir()).unwrap().swap_remove(0);
        assert!(!report.is_clean() && !report.is_clean_here());
        let said = report.to_string();
        assert!(said.contains("nothing was changed") && said.contains("--damaged"), "{said}");
        assert_eq!(fs::read(journal).unwrap(), damaged, "it stays as it is");
        assert_eq!(scene.value(), "c");
    }

    #[test]
    fn of_a_damaged_journal_all_that_is_known_is_shown_and_nothing_is_changed() {
        let scene = Scene::new();
        let path = scene.journal_of_killed(&["b", "c"]);
        let whole = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        for damaged in 1..lines.len() {
            let mut lines = lines.clone();
            lines[damaged] = "{\"line\": garbage";
            let text = lines.join("\n") + "\n";
            fs::write(&path, &text).unwrap();
            nothing_is_changed(&scene, &path, text.as_bytes());
            let said = undo(&scene.state_dir()).unwrap()[0].to_string();
            let line = format!("line {} of {} is not valid", damaged + 1, lines.len());
            assert!(said.contains(&line) && said.contains("before the run it was a"), "{said}");
        }
        fs::write(&path, whole.replacen("\"line\"", "\"lime\"", 3)).unwrap();
        let said = undo(&scene.state_dir()).unwrap()[0].to_string();
        assert!(
            said.contains("its first line is not valid") && said.contains("in which"),
            "{said}"
        );
    }

    #[test]
    fn the_end_of_a_journal_may_be_damaged_as_well() {
        let scene = Scene::new();
        let path = scene.journal_of_killed(&["b", "c"]);
        let mut text = fs::read(&path).unwrap();
        *text.last_mut().unwrap() = b'x';
        fs::write(&path, &text).unwrap();
        nothing_is_changed(&scene, &path, &text);
        let zeros = [fs::read(&path).unwrap(), vec![0; 40]].concat();
        fs::write(&path, &zeros).unwrap();
        nothing_is_changed(&scene, &path, &zeros);
    }

    #[test]
    fn the_beginning_of_a_line_at_the_end_is_no_damage_and_is_said() {
        let scene = Scene::new();
        let path = scene.journal_of_killed(&["b"]);
        let text = fs::read(&path).unwrap();
        fs::write(&path, [&text[..], b"{\"line\":\"intent\",\"set"].concat()).unwrap();
        let report = undo(&scene.state_dir()).unwrap().swap_remove(0);
        assert!(report.is_clean() && report.to_string().contains("incomplete"), "{report}");
        assert_eq!((scene.value(), scene.journals().len()), ("a".into(), 0));
    }

    #[test]
    fn a_last_line_that_lacks_only_its_end_counts() {
        let scene = Scene::new();
        let path = scene.journal_of_killed(&["b"]);
        let text = fs::read(&path).unwrap();
        // Without its last line, nobody would know that the change was made.
        fs::write(&path, text.strip_suffix(b"\n").unwrap()).unwrap();
        let report = undo(&scene.state_dir()).unwrap().swap_remove(0);
        assert!(report.is_clean() && report.notes.is_empty(), "{report}");
        assert_eq!(scene.value(), "a");
    }

    #[test]
    fn at_the_users_word_the_whole_lines_of_a_damaged_journal_are_put_back() {
        let scene = Scene::new();
        let path = scene.journal_of_killed(&["b"]);
        let text = fs::read_to_string(&path).unwrap() + "garbage\n";
        fs::write(&path, &text).unwrap();
        nothing_is_changed_but(&scene, "b");
        let report = undo_with_damage(&scene);
        assert!(report.is_clean(), "{report}");
        assert_eq!((scene.value(), scene.journals().len()), ("a".into(), 0));
        let aside = path.with_extension("jsonl.damaged");
        assert!(report.to_string().contains(aside.to_str().unwrap()), "{report}");
        assert!(fs::read_to_string(&aside).unwrap().starts_with(&text), "it can still be read");
        assert_eq!(undo(&scene.state_dir()).unwrap(), []);
        scene.try_to_begin().unwrap();
    }

    fn nothing_is_changed_but(scene: &Scene, value: &str) {
        assert!(!undo(&scene.state_dir()).unwrap()[0].is_clean());
        assert_eq!(scene.value(), value);
    }

    #[test]
    fn a_journal_that_names_no_place_puts_back_what_its_run_has_set_and_nothing_else() {
        let scene = Scene::new();
        let path = scene.journal_of_killed(&["b"]);
        let whole = fs::read_to_string(&path).unwrap();
        let without_first_line = whole.replacen("begin", "?", 1);
        for damaged in [without_first_line.clone(), String::new(), "\n".into(), whole[..60].into()]
        {
            fs::write(&path, &damaged).unwrap();
            scene.set("c");
            nothing_is_changed(&scene, &path, damaged.as_bytes());
            let report = undo_with_damage(&scene);
            assert!(report.to_string().contains("set aside as"), "{report}");
            assert_eq!((scene.value(), scene.journals().len()), ("c".into(), 0));
        }
        fs::write(&path, &without_first_line).unwrap();
        scene.set("b");
        nothing_is_changed_but(&scene, "b");
        let report = undo_with_damage(&scene);
        assert!(report.is_clean() && report.to_string().contains("put back to a"), "{report}");
        assert_eq!((scene.value(), scene.journals().len()), ("a".into(), 0));
        assert_eq!(undo(&scene.state_dir()).unwrap(), [], "and nothing is left to undo");
    }
}
