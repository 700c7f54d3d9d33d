//! Runs that are killed at every step, and what the guard and `undo` make of it.

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::journal::{Durable, JournalFile, Line};
use crate::place::Place;
use crate::testing::{Scene, guard, wait_for};
use crate::{Changes, Outcome, undo};

fn pid(text: &str) -> Pid {
    Pid::from_raw(text.parse().unwrap()).unwrap()
}

#[test]
fn killed_at_every_step_the_value_comes_back() {
    let mut killed = 0;
    for after in 0.. {
        let scene = Scene::new();
        let victim = scene.victim(&["b", "a", "b"], after);
        let survived = victim.finish();
        wait_for("the journal's end", || scene.journals().is_empty());
        assert_eq!(scene.value(), "a", "killed after {after} steps");
        if survived {
            break;
        }
        killed += 1;
    }
    // Three changes and one putting back, each read, written (before, after) and read again.
    assert!(killed >= 16, "{killed}");
}

#[test]
fn killed_from_outside_the_value_comes_back() {
    let scene = Scene::new();
    let mut victim = scene.victim(&["b", "a", "c"], -1);
    victim.wait_until_applied();
    assert_eq!(scene.value(), "c");
    victim.kill();
    wait_for("the original", || scene.value() == "a");
    wait_for("the journal's end", || scene.journals().is_empty());
}

#[test]
fn undo_leaves_a_live_run_alone_and_finishes_a_dead_one() {
    let scene = Scene::new();
    let mut victim = scene.victim(&["b"], -1);
    victim.wait_until_applied();
    assert_eq!(undo(&scene.state_dir()).unwrap(), []);
    assert_eq!(scene.value(), "b");

    victim.kill_with_guard();
    assert_eq!(scene.value(), "b", "nobody is left to put it back");
    let reports = undo(&scene.state_dir()).unwrap();
    assert!(reports[0].is_clean());
    assert_eq!(reports[0].entries[0].outcome, Outcome::PutBack { to: "a".into() });
    assert_eq!(scene.value(), "a");
    assert_eq!(undo(&scene.state_dir()).unwrap(), []);
}

#[test]
fn the_guard_outlives_the_signals_of_the_terminal() {
    let scene = Scene::new();
    let mut changes = Changes::begin(&scene.state_dir(), guard()).unwrap();
    let pid = pid(&changes.guard_pid().unwrap().to_string());
    for signal in [Signal::INT, Signal::HUP, Signal::TERM, Signal::QUIT] {
        kill_process(pid, signal).unwrap();
    }
    changes.apply(&scene.setting(), "b").unwrap();
    assert!(changes.restore().is_clean());
    wait_for("the guard's end", || test_kill_process(pid).is_err());
}

#[test]
fn the_guard_has_a_session_of_its_own_and_only_the_standard_descriptors() {
    let scene = Scene::new();
    let mut changes = Changes::begin(&scene.state_dir(), guard()).unwrap();
    changes.apply(&scene.setting(), "b").unwrap();
    let raw = changes.guard_pid().unwrap();
    assert_eq!(
        rustix::process::getsid(Some(pid(&raw.to_string()))).unwrap(),
        pid(&raw.to_string())
    );
    let descriptors = || std::fs::read_dir(format!("/proc/{raw}/fd")).unwrap().count();
    wait_for("closed descriptors", || descriptors() == 3);
    assert_eq!(std::fs::read_link(format!("/proc/{raw}/cwd")).unwrap().to_str(), Some("/"));
}

#[test]
fn a_journal_that_was_torn_or_never_begun_is_tidied_away() {
    let scene = Scene::new();
    std::fs::create_dir_all(scene.state_dir()).unwrap();
    for (name, text) in [("1", ""), ("2", "{\"line\":\"beg")] {
        std::fs::write(scene.state_dir().join(format!("{name}.journal.jsonl")), text).unwrap();
    }
    let reports = undo(&scene.state_dir()).unwrap();
    assert_eq!(reports.len(), 2);
    assert!(reports.iter().all(crate::RestoreReport::is_clean), "{reports:?}");
    assert!(scene.journals().is_empty());
}

/// Leaves a journal of a run on boot `boot_id`, in a namespace that is not this one.
fn leave_journal(scene: &Scene, boot_id: &str) {
    let change = Line::Intent {
        setting: scene.setting(),
        original: "a".into(),
        exact: "a".into(),
        to: "b".into(),
    };
    let place = Place { boot_id: boot_id.into(), netns: 1 };
    let mut journal = JournalFile::create(&scene.state_dir(), &place).unwrap();
    journal.append(&change, Durable::Yes).unwrap();
    scene.set("b");
}

#[test]
fn another_namespace_is_waited_for_but_not_beyond_a_reboot() {
    let scene = Scene::new();
    leave_journal(&scene, &Place::here().unwrap().boot_id);
    let reports = undo(&scene.state_dir()).unwrap();
    assert_eq!(reports[0].entries[0].outcome, Outcome::OtherNamespace);
    assert_eq!(scene.journals().len(), 1);

    let scene = Scene::new();
    leave_journal(&scene, "of an earlier boot");
    assert!(undo(&scene.state_dir()).unwrap()[0].is_clean());
    assert!(scene.journals().is_empty());
    assert_eq!(scene.value(), "b", "it is another namespace's value");
}

#[test]
fn a_journal_of_another_version_is_not_touched() {
    let scene = Scene::new();
    std::fs::create_dir_all(scene.state_dir()).unwrap();
    let path = scene.state_dir().join("1.journal.jsonl");
    std::fs::write(
        &path,
        "{\"line\":\"begin\",\"format\":9,\"pid\":1,\"boot_id\":\"x\",\"netns\":1}\n",
    )
    .unwrap();
    let reports = undo(&scene.state_dir()).unwrap();
    assert!(reports[0].problem.as_ref().unwrap().contains("format 9"), "{reports:?}");
    assert_eq!(scene.journals(), [path]);
}
