//! Runs that are killed at every step, and how the guard and `undo` handle them.

use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::process::CommandExt;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::holder::Holder;
use crate::journal::{self, Asker, Durable, JournalFile, Line, TakenOver};
use crate::life::{self, Life};
use crate::place::Place;
use crate::settle::{UndoRequest, settle};
use crate::testing::{Scene, guard, wait_for, when_waiting};
use crate::{Changes, Forget, Outcome, Patience, SettingError, leftovers, undo, undo_as_asked};

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
    // Three changes and one put-back, each read, written (before, after) and read again.
    assert!(killed >= 16, "{killed}");
}

#[test]
fn killed_at_every_step_of_a_change_to_a_rounded_number_the_original_comes_back() {
    for after in 0.. {
        let scene = Scene::new();
        scene.set("20");
        let victim = scene.victim(&["41", "20", "7", "41"], after);
        let survived = victim.finish();
        wait_for("the journal's end", || scene.journals().is_empty());
        assert_eq!(scene.value(), "20", "killed after {after} steps");
        if survived {
            assert!(after >= 20, "{after}");
            break;
        }
    }
}

/// What a dead run left that was killed in its first change, from 20 to 41, and `now` is there.
fn killed_while_asking_for_41(now: &str) -> (String, Outcome) {
    let scene = Scene::new();
    scene.set("20");
    note(&scene, &Place::here().unwrap(), "20", "41");
    scene.set(now);
    let reports = undo(&scene.state_dir()).unwrap();
    (scene.value(), reports[0].entries[0].outcome.clone())
}

#[test]
fn a_number_that_the_kernel_can_have_made_comes_back_and_another_one_is_left_alone() {
    let back = Outcome::PutBack { to: "20".into() };
    for made in ["41", "40", "50", "30"] {
        assert_eq!(killed_while_asking_for_41(made), ("20".into(), back.clone()), "{made}");
    }
    // Rounding makes nothing smaller of a larger number.
    for other in ["10", "b"] {
        let (value, outcome) = killed_while_asking_for_41(other);
        assert!(value == other && matches!(outcome, Outcome::ChangedByOther { .. }), "{outcome}");
    }
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
    let left = undo(&scene.state_dir()).unwrap();
    assert!(matches!(left[0].entries[0].outcome, Outcome::InUse { .. }), "{left:?}");
    assert!(!left[0].is_clean());
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
fn a_journal_without_a_change_is_tidied_away() {
    let scene = Scene::new();
    std::fs::create_dir_all(scene.state_dir()).unwrap();
    // Its writer died before the first line was on disk.
    std::fs::write(scene.state_dir().join("1.journal.new"), "{\"line\":\"beg").unwrap();
    journal::begin(&scene.state_dir(), &Place::here().unwrap(), Asker::User).unwrap();
    assert_eq!(scene.journals().len(), 1);
    assert_eq!(leftovers(&scene.state_dir()), [], "nothing was changed");
    assert_eq!(undo(&scene.state_dir()).unwrap(), []);
    assert!(scene.journals().is_empty());
}

/// Leaves a journal of a dead run at `place` that had set `b`; returns its path.
fn leave_dead_journal(scene: &Scene, place: &Place) -> std::path::PathBuf {
    leave_journal(scene, place);
    let path = scene.journals().pop().unwrap();
    let mut dead = std::process::Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let mut first: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(first).unwrap();
    first.remove("sum");
    let ours = first.insert("pid".into(), dead.id().into());
    assert_eq!(ours, Some(std::process::id().into()), "{text}");
    let first = crate::journal::seal(&first).unwrap();
    std::fs::write(&path, [&first, rest.as_bytes()].concat()).unwrap();
    path
}

#[test]
fn undo_waits_for_a_guard_at_work() {
    let scene = Scene::new();
    let path = leave_dead_journal(&scene, &Place::here().unwrap());
    let guard = JournalFile::take_over(&path).unwrap().unwrap();
    when_waiting(move || assert!(settle(guard, UndoRequest::default()).is_clean()));
    let reports = undo(&scene.state_dir()).unwrap();
    assert_eq!(reports[0].entries[0].outcome, Outcome::ByGuard { to: "a".into() });
    assert!(reports[0].is_clean() && scene.journals().is_empty());
    assert_eq!(scene.value(), "a");
}

#[test]
fn what_a_guard_leaves_is_put_back_when_it_is_gone() {
    let scene = Scene::new();
    let path = leave_dead_journal(&scene, &Place::here().unwrap());
    let guard = JournalFile::take_over(&path).unwrap().unwrap();
    when_waiting(move || drop(guard));
    let reports = undo(&scene.state_dir()).unwrap();
    assert_eq!(reports[0].entries[0].outcome, Outcome::PutBack { to: "a".into() });
    assert_eq!(scene.value(), "a");
}

#[test]
fn a_new_run_begins_only_once_the_guard_of_a_dead_one_is_done() {
    let (scene, other) = (Scene::new(), Scene::new());
    let path = leave_dead_journal(&scene, &Place::here().unwrap());
    let guard_of_it = JournalFile::take_over(&path).unwrap().unwrap();
    when_waiting(|| panic!("all clients of a server wait with it"));
    let for_a_client = Changes::begin_for(Asker::ClientElsewhere, &scene.state_dir(), guard());
    let refused = for_a_client.unwrap_err();
    let said = refused.to_string();
    assert!(matches!(&refused, SettingError::GuardAtWork { journal, .. } if *journal == path));
    assert!(said.contains(path.to_str().unwrap()) && said.contains("guard"), "{said}");
    assert_eq!(scene.value(), "b");

    // A person can wait, for whatever they want to change.
    when_waiting(move || assert!(settle(guard_of_it, UndoRequest::default()).is_clean()));
    let mut changes = scene.begin();
    assert_eq!(scene.value(), "a");
    changes.apply(&other.setting(), "c").unwrap();
    assert!(changes.restore().is_clean());
}

/// As for a server whose run could not put everything back: the run is over, and its process lives.
#[test]
fn the_guard_of_a_process_that_lives_is_waited_for() {
    let scene = Scene::new();
    leave_journal(&scene, &Place::here().unwrap());
    let path = scene.journals().pop().unwrap();
    let mut guard_of_it = JournalFile::take_over(&path).unwrap().unwrap();
    guard_of_it.append(&Line::TakenOver(TakenOver::own()), Durable::No).unwrap();
    for asker in [Asker::ClientHere, Asker::ClientElsewhere] {
        let refused = Changes::begin_for(asker, &scene.state_dir(), guard()).unwrap_err();
        let said = refused.to_string();
        let (run, by) = (std::process::id(), Some(std::process::id()));
        let expected = Holder::PuttingBack { run, run_lives: true, by };
        let holder = match refused {
            SettingError::GuardAtWork { holder, .. } => holder,
            other => panic!("{other:?}"),
        };
        assert_eq!(holder, expected);
        assert!(said.contains("could not put back all"), "{said}");
    }
    let left = crate::held::settle(&path, UndoRequest::default(), &mut { Patience::NONE });
    let left = left.unwrap().unwrap();
    assert!(left.is_held() && !left.is_in_use(), "{left}");
    when_waiting(move || assert!(settle(guard_of_it, UndoRequest::default()).is_clean()));
    let changes = scene.begin();
    assert_eq!(scene.value(), "a");
    drop(changes);
}

/// What the run itself writes down: between its end and the first step of its guard, others see who puts back.
#[test]
fn a_run_that_could_not_put_everything_back_says_so_in_its_journal() {
    let scene = Scene::new();
    let mut changes = scene.begin();
    changes.apply(&scene.setting(), "b").unwrap();
    let guard = changes.guard_pid();
    // Nothing can be written there.
    std::fs::remove_file(scene.file()).unwrap();
    std::fs::create_dir(scene.file()).unwrap();
    let path = scene.journals().pop().unwrap();
    assert!(!changes.restore().is_clean());
    let (text, _) = JournalFile::peek(&path).unwrap().unwrap();
    // The guard tries once more, and writes itself down again.
    assert_eq!(text.says.taken_over.map(|by| by.pid), guard);
    wait_for("the guard's end", || !guard.is_some_and(life::runs));
    std::fs::remove_dir(scene.file()).unwrap();
    scene.set("b");
    undo(&scene.state_dir()).unwrap();
    assert_eq!((scene.value(), scene.journals().len()), ("a".into(), 0));
}

/// Between the end of a run and the first step of its guard, nobody holds the journal.
#[test]
fn a_guard_that_has_not_begun_yet_is_at_work() {
    let scene = Scene::new();
    let path = leave_dead_journal(&scene, &Place::here().unwrap());
    let begin = || journal::begin(&scene.state_dir(), &Place::here().unwrap(), Asker::User);
    begin().unwrap().close().unwrap();
    // It waits for its input to end.
    let mut not_begun = std::process::Command::new("sh")
        .arg0("goodput")
        .args(["-c", "echo ready; read line", "guard"])
        .arg(&path)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    let said = not_begun.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(said), &mut ready).unwrap();
    assert!(matches!(begin(), Err(SettingError::GuardAtWork { .. })));
    drop(not_begun.stdin.take());
    not_begun.wait().unwrap();
    begin().unwrap().close().unwrap();
}

/// As in two containers with one state directory, in which both goodputs are process 1.
#[test]
fn a_run_of_another_container_with_the_same_number_is_not_this_run() {
    let scene = Scene::new();
    let here = Place::here().unwrap();
    let begin = || journal::begin(&scene.state_dir(), &here, Asker::User);
    let own = begin().unwrap();
    begin().unwrap().close().unwrap();
    let path = own.path().to_owned();
    let text = std::fs::read_to_string(&path).unwrap();
    let mut first: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(text.lines().next().unwrap()).unwrap();
    first.remove("sum");
    assert!(first.insert("process_namespace".into(), 1.into()).is_some(), "{text}");
    std::fs::write(&path, crate::journal::seal(&first).unwrap()).unwrap();
    let refused = begin().unwrap_err();
    assert!(matches!(refused, SettingError::BusyElsewhere { .. }), "{refused}");
    let said = refused.to_string();
    assert!(said.contains("in another container") && said.contains("end it there"), "{said}");
    // An undo waits for no live run.
    let report = crate::held::settle(&path, UndoRequest::default(), &mut { Patience::NONE });
    assert!(report.unwrap().is_some_and(|report| report.entries.is_empty()));
    drop(own);
}

#[test]
fn when_patience_is_spent_the_journal_is_held() {
    let scene = Scene::new();
    let path = leave_dead_journal(&scene, &Place::here().unwrap());
    let _guard = JournalFile::take_over(&path).unwrap().unwrap();
    let report = crate::held::settle(&path, UndoRequest::default(), &mut { Patience::NONE });
    let report = report.unwrap().unwrap();
    let held = &report.entries[0].outcome;
    assert!(matches!(held, Outcome::Held(Holder::PuttingBack { run_lives: false, .. })), "{held}");
    assert!(!report.is_clean() && report.is_held() && !report.is_in_use());
    let said = report.to_string();
    assert!(said.contains("settings undo") && said.contains(path.to_str().unwrap()), "{said}");
}

#[test]
fn a_long_wait_is_reported_with_what_is_waited_for() {
    static NOTICES: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
    let scene = Scene::new();
    let path = leave_dead_journal(&scene, &Place::here().unwrap());
    let guard_of_it = JournalFile::take_over(&path).unwrap().unwrap();
    // The guard is slow, and ends once the notice was given.
    let waiting = std::thread::spawn({
        let state = scene.state_dir();
        let notify = |awaited: &crate::Awaited| NOTICES.lock().unwrap().push(awaited.to_string());
        move || {
            undo_as_asked(&state, UndoRequest::default(), Patience::for_a_guard(notify)).unwrap()
        }
    });
    crate::testing::wait_for("the word", || !NOTICES.lock().unwrap().is_empty());
    assert!(settle(guard_of_it, UndoRequest::default()).is_clean());
    assert!(waiting.join().unwrap()[0].is_clean());
    let notices = NOTICES.lock().unwrap();
    let [said] = &notices[..] else { panic!("{notices:?}") };
    assert!(said.contains(&scene.setting().to_string()), "{said}");
    assert!(said.contains(path.to_str().unwrap()) && said.contains("guard"), "{said}");
}

#[test]
fn undo_finds_what_was_left_in_another_directory() {
    let scene = Scene::new();
    leave_journal(&scene, &Place::here().unwrap());
    let reports = undo(&scene.state_dir().with_file_name("elsewhere")).unwrap();
    assert_eq!(reports[0].entries[0].outcome, Outcome::PutBack { to: "a".into() });
    assert_eq!(scene.value(), "a");
    assert!(scene.journals().is_empty());

    // Changes of another namespace are left to those who undo in that directory.
    let other = Place { netns: 1, netns_cookie: Some(u64::MAX), ..Place::here().unwrap() };
    leave_journal(&scene, &other);
    assert_eq!(undo(&scene.state_dir().with_file_name("elsewhere")).unwrap(), []);
    assert_eq!(leftovers(&scene.state_dir().with_file_name("elsewhere")).len(), 1);
}

fn undo_forgetting(
    scene: &Scene,
    forget: Forget,
) -> Result<Vec<crate::RestoreReport>, SettingError> {
    let request = UndoRequest { forget, ..UndoRequest::default() };
    undo_as_asked(&scene.state_dir(), request, Patience::for_a_guard(|_| {}))
}

/// Leaves a journal of a run at `place`.
fn leave_journal(scene: &Scene, place: &Place) {
    note(scene, place, "a", "b");
    scene.set("b");
}

/// Leaves the note of a run at `place` that is about to make its first change.
fn note(scene: &Scene, place: &Place, original: &str, to: &str) {
    drop(begun(scene, place, original, to));
}

/// The journal of such a run, which this process holds.
fn begun(scene: &Scene, place: &Place, original: &str, to: &str) -> JournalFile {
    let change = Line::Intent {
        setting: scene.setting(),
        original: original.into(),
        exact: original.into(),
        to: to.into(),
        rounded: None,
        around: Default::default(),
        link: None,
    };
    let mut journal = journal::begin(&scene.state_dir(), place, Asker::User).unwrap();
    journal.append(&change, Durable::Yes).unwrap();
    journal
}

#[test]
fn what_a_live_run_changes_in_another_namespace_is_no_fault_of_this_one() {
    let scene = Scene::new();
    let elsewhere = Place { netns: 1, netns_cookie: Some(u64::MAX), ..Place::here().unwrap() };
    for (place, is_clean_here) in [(elsewhere, true), (Place::here().unwrap(), false)] {
        let journal = begun(&scene, &place, "a", "b");
        let report = undo(&scene.state_dir()).unwrap().swap_remove(0);
        let pid = std::process::id();
        assert!(report.to_string().contains(&format!("process {pid}")), "{report}");
        assert_eq!(report.to_string().contains("in another network namespace"), is_clean_here);
        assert_eq!((report.is_clean(), report.is_clean_here()), (false, is_clean_here), "{report}");
        journal.close().unwrap();
    }
}

#[test]
fn another_namespace_is_waited_for_but_not_beyond_a_reboot() {
    let scene = Scene::new();
    let elsewhere = Place { netns: 1, netns_cookie: Some(u64::MAX), ..Place::here().unwrap() };
    leave_journal(&scene, &elsewhere);
    let reports = undo(&scene.state_dir()).unwrap();
    let outcome = reports[0].entries[0].outcome.clone();
    // The option that helps is named at once.
    match life::of(&elsewhere) {
        Life::Unseen(why) => {
            assert_eq!(outcome, Outcome::NamespaceUnseen(why));
            assert!(outcome.to_string().contains("--forget-unseen"), "{outcome}");
        }
        _ => assert_eq!(outcome, Outcome::OtherNamespace { enter: None }),
    }
    let left = leftovers(&scene.state_dir())[0].to_string();
    assert!(left.contains("network namespace") && left.contains("--forget"), "{left}");
    assert_eq!(scene.journals().len(), 1);

    // In a container, or as another user, this can't be known.
    let gone = undo_forgetting(&scene, Forget::Gone).unwrap();
    let outcome = &gone[0].entries[0].outcome;
    match life::of(&elsewhere) {
        Life::Gone => assert_eq!(*outcome, Outcome::NamespaceGone),
        Life::Unseen(why) => {
            assert_eq!(*outcome, Outcome::NamespaceUnseen(why));
            assert!(outcome.to_string().contains("--forget-unseen"), "{outcome}");
            assert_eq!(scene.journals().len(), 1);
        }
        Life::Lives(_) => panic!("no namespace has that cookie"),
    }
    leave_journal(&scene, &elsewhere);
    let forgotten = undo_forgetting(&scene, Forget::Unseen).unwrap();
    assert_eq!(forgotten[0].entries[0].outcome, Outcome::NamespaceGone);
    assert!(forgotten[0].is_clean() && scene.journals().is_empty());
    assert_eq!(scene.value(), "b", "it is another namespace's value");
}

#[test]
fn a_namespace_that_someone_is_in_is_not_forgotten() {
    let scene = Scene::new();
    // Nothing distinguishes this namespace from a later one with the same inode number.
    let here = Place::here().unwrap();
    assert!(matches!(life::of(&here), Life::Lives(_)));
    let stale = Place { netns_cookie: Some(u64::MAX), ..here.clone() };
    leave_journal(&scene, &stale);
    let outcome = undo_forgetting(&scene, Forget::Gone).unwrap()[0].entries[0].outcome.clone();
    match here.netns_cookie {
        Some(_) => match life::of(&stale) {
            Life::Gone => assert_eq!(outcome, Outcome::NamespaceGone, "the inode was used again"),
            Life::Unseen(why) => assert_eq!(outcome, Outcome::NamespaceUnseen(why)),
            Life::Lives(file) => {
                let enter = Some(life::enter(&file));
                assert_eq!(outcome, Outcome::OtherNamespace { enter });
            }
        },
        None => assert_eq!(outcome, Outcome::PutBack { to: "a".into() }),
    }
}

#[test]
fn a_reboot_settles_everything_even_in_the_namespace_with_the_same_number() {
    let scene = Scene::new();
    let before = Place { boot_id: "of an earlier boot".into(), ..Place::here().unwrap() };
    leave_journal(&scene, &before);
    assert_eq!(leftovers(&scene.state_dir()), [], "the same judgement");
    let reports = undo(&scene.state_dir()).unwrap();
    assert_eq!(reports[0].entries[0].outcome, Outcome::Rebooted);
    assert!(reports[0].is_clean() && scene.journals().is_empty());
    assert_eq!(scene.value(), "b", "the administrator may have made it permanent");
}

#[test]
fn what_a_dead_run_left_does_not_pass_for_the_original() {
    let scene = Scene::new();
    scene.journal_of_killed(&["b"]);
    let left = leftovers(&scene.state_dir());
    assert_eq!(left[0].settings, [scene.setting()]);
    assert!(left[0].to_string().contains("settings undo"), "{}", left[0]);

    let mut changes = scene.begin();
    assert_eq!(changes.settled()[0].entries[0].outcome, Outcome::PutBack { to: "a".into() });
    changes.apply(&scene.setting(), "c").unwrap();
    assert!(changes.restore().is_clean());
    assert_eq!(scene.value(), "a");
    assert_eq!(undo(&scene.state_dir()).unwrap(), []);
    assert_eq!(leftovers(&scene.state_dir()), []);
}

#[test]
fn runs_with_different_directories_see_each_other() {
    let scene = Scene::new();
    let mut victim = scene.victim(&["b"], -1);
    victim.wait_until_applied();
    let elsewhere = scene.state_dir().with_file_name("elsewhere");
    let refused = Changes::begin(&elsewhere, guard()).unwrap_err();
    assert!(matches!(refused, SettingError::Busy { .. }), "{refused}");

    victim.kill_with_guard();
    assert_eq!(leftovers(&elsewhere).len(), 1);
    let mut changes = Changes::begin(&elsewhere, guard()).unwrap();
    let error = changes.apply(&scene.setting(), "c").unwrap_err();
    assert!(matches!(error, SettingError::LeftChanged { .. }), "{error}");
    assert_eq!(scene.value(), "b");
    assert!(undo(&scene.state_dir()).unwrap()[0].is_clean());
    changes.apply(&scene.setting(), "c").unwrap();
    assert!(changes.restore().is_clean());
    assert_eq!(scene.value(), "a");
}

#[test]
fn a_directory_that_others_can_write_to_is_refused() {
    let scene = Scene::new();
    std::fs::create_dir(scene.state_dir()).unwrap();
    let mode = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(scene.state_dir(), mode).unwrap();
    for error in [
        Changes::begin(&scene.state_dir(), guard()).unwrap_err(),
        undo(&scene.state_dir()).unwrap_err(),
    ] {
        assert!(error.to_string().contains("others can write"), "{error}");
    }
}

#[test]
fn what_is_no_directory_is_said_to_be_none() {
    for error in [
        Changes::begin("/dev/null".as_ref(), guard()).unwrap_err(),
        undo("/dev/null".as_ref()).unwrap_err(),
    ] {
        let said = error.to_string();
        assert!(said.contains("not a directory") && !said.contains("chmod"), "{said}");
    }
}

#[test]
fn what_is_no_journal_of_ours_neither_hangs_nor_steers_us() {
    let scene = Scene::new();
    let mut changes = scene.begin();
    let planted = |name: &str| scene.state_dir().join(format!("{name}.journal.jsonl"));
    rustix::fs::mkfifoat(rustix::fs::CWD, planted("0"), rustix::fs::Mode::RUSR).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", planted("1")).unwrap();
    changes.apply(&scene.setting(), "b").unwrap();
    let mut reports = undo(&scene.state_dir()).unwrap();
    // The third is the run that is at work.
    reports.retain(|report| !report.is_in_use());
    assert_eq!(reports.len(), 2);
    assert!(reports.iter().all(|report| report.problem.is_some()), "{reports:?}");
    assert!(changes.restore().is_clean());
}

#[test]
fn a_journal_of_the_first_version_is_still_put_back() {
    let scene = Scene::new();
    std::fs::DirBuilder::new().mode(0o700).create(scene.state_dir()).unwrap();
    let Place { boot_id, netns, .. } = Place::here().unwrap();
    let setting = scene.setting();
    let lines = format!(
        "{{\"line\":\"begin\",\"format\":1,\"pid\":1,\"boot_id\":\"{boot_id}\",\"netns\":{netns}}}\n\
         {{\"line\":\"intent\",\"setting\":{0},\"original\":\"a\",\"exact\":\"a\",\"to\":\"b\"}}\n\
         {{\"line\":\"effective\",\"setting\":{0},\"value\":\"b\"}}\n",
        serde_json::to_string(&setting).unwrap()
    );
    std::fs::write(scene.state_dir().join("1.journal.jsonl"), lines).unwrap();
    scene.set("b");
    let reports = undo(&scene.state_dir()).unwrap();
    assert_eq!(reports[0].entries[0].outcome, Outcome::PutBack { to: "a".into() });
    assert_eq!(scene.value(), "a");
}

#[test]
fn a_journal_of_another_version_is_not_touched() {
    let scene = Scene::new();
    std::fs::DirBuilder::new().mode(0o700).create(scene.state_dir()).unwrap();
    let path = scene.state_dir().join("1.journal.jsonl");
    std::fs::write(
        &path,
        "{\"line\":\"begin\",\"format\":9,\"pid\":1,\"boot_id\":\"x\",\"netns\":1}\n",
    )
    .unwrap();
    let reports = undo(&scene.state_dir()).unwrap();
    assert!(reports[0].problem.as_ref().unwrap().contains("format is 9"), "{reports:?}");
    assert_eq!(scene.journals(), [path]);
}
