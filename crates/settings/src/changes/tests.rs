//! Changes that end normally, without a killed process.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use goodput_model::SettingRef;
use goodput_netlink::{namespace, scripted};

use crate::journal::JournalFile;
use crate::testing::{Scene, Tmpfs, Victim, build, guard, in_scene, wait_for, when_noted};
use crate::{Changes, GuardProgram, Outcome, SettingError};

#[test]
fn every_change_and_what_is_put_back_is_logged() {
    let scene = Scene::new();
    let mut changes = scene.begin();
    for value in ["b", "b", "c"] {
        changes.apply(&scene.setting(), value).unwrap();
    }
    changes.restore();
    let logged = crate::log_part(&scene.state_dir(), None, usize::MAX).unwrap().changes;
    let seen: Vec<_> = logged.iter().map(|one| (&*one.from, &*one.to, one.what)).collect();
    let (set, put_back) = (crate::ChangeKind::Set, crate::ChangeKind::PutBack);
    assert_eq!(seen, [("c", "a", put_back), ("b", "c", set), ("a", "b", set)]);
    assert!(logged.iter().all(|one| one.setting == scene.setting().to_string()));
}

#[test]
fn many_applies_are_put_back_to_the_first_original() {
    let scene = Scene::new();
    let mut changes = scene.begin();
    for value in ["b", "a", "b", "c"] {
        assert_eq!(changes.apply(&scene.setting(), value).unwrap(), value);
        assert_eq!(scene.value(), value);
    }
    let report = changes.restore();
    assert!(report.is_clean());
    assert_eq!(report.entries[0].outcome, Outcome::PutBack { to: "a".into() });
    assert_eq!(scene.value(), "a");
    assert!(scene.journals().is_empty(), "the journal is closed");
    assert!(changes.restore().entries.is_empty(), "there is nothing left to do");
    let error = changes.apply(&scene.setting(), "b").unwrap_err();
    assert!(matches!(error, SettingError::Closed(_)), "{error}");
}

#[test]
fn dropping_puts_back_and_keeping_does_not() {
    let scene = Scene::new();
    let mut changes = scene.begin();
    changes.apply(&scene.setting(), "b").unwrap();
    drop(changes);
    assert_eq!(scene.value(), "a");

    let mut changes = scene.begin();
    changes.apply(&scene.setting(), "b").unwrap();
    changes.keep().unwrap();
    assert_eq!(scene.value(), "b");
    assert!(scene.journals().is_empty());
    assert_eq!(crate::undo(&scene.state_dir()).unwrap(), []);
}

#[test]
fn what_someone_else_changed_is_left_alone_and_said() {
    let scene = Scene::new();
    let mut changes = scene.begin();
    changes.apply(&scene.setting(), "b").unwrap();
    scene.set("theirs");
    let error = changes.apply(&scene.setting(), "c").unwrap_err();
    assert!(matches!(error, SettingError::ChangedByOther { .. }), "{error}");
    let report = changes.restore();
    assert!(!report.is_clean());
    let theirs = Outcome::ChangedByOther { now: "theirs".into(), ours: "b".into() };
    assert_eq!(report.entries[0].outcome, theirs);
    assert_eq!(scene.value(), "theirs");
}

#[test]
fn what_someone_else_put_back_is_already_back() {
    let scene = Scene::new();
    let mut changes = scene.begin();
    changes.apply(&scene.setting(), "b").unwrap();
    scene.set("a");
    assert_eq!(changes.restore().entries[0].outcome, Outcome::AlreadyBack);
}

#[test]
fn a_value_that_did_not_take_effect_is_put_back_and_reported() {
    let scene = Scene::new();
    let mut changes = scene.begin();
    let error = changes.apply(&scene.setting(), "clamp").unwrap_err();
    let text = error.to_string();
    assert!(text.contains("\"clamped\"") && text.contains("put back"), "{text}");
    assert_eq!(scene.value(), "a");
    let error = changes.apply(&scene.setting(), "spoil").unwrap_err();
    assert!(matches!(error, SettingError::Refused { .. }), "{error}");
    assert_eq!(scene.value(), "a", "a change that failed half way is put back too");
    assert!(changes.restore().is_clean());
}

#[test]
fn what_failed_stays_in_the_journal_for_later() {
    let scene = Scene::new();
    let mut changes = scene.begin();
    changes.apply(&scene.setting(), "b").unwrap();
    std::fs::remove_file(scene.file()).unwrap();
    std::fs::create_dir(scene.file()).unwrap();
    let report = changes.restore();
    assert!(matches!(report.entries[0].outcome, Outcome::Failed(_)), "{report:?}");
    assert_eq!(scene.journals(), [report.journal]);
}

#[test]
fn without_a_guard_nothing_is_changed() {
    let scene = Scene::new();
    let none = GuardProgram { exe: "/bin/true".into(), args: Vec::new() };
    assert!(matches!(Changes::begin(&scene.state_dir(), none), Err(SettingError::Guard(_))));
    assert!(scene.journals().is_empty());

    let mut changes = scene.begin();
    let pid = i32::try_from(changes.guard_pid().unwrap()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let noticed = (0..).find_map(|_| changes.apply(&scene.setting(), "a").err());
    assert!(matches!(noticed, Some(SettingError::Guard(_))), "{noticed:?}");
    assert!(matches!(changes.apply(&scene.setting(), "b"), Err(SettingError::Guard(_))));
    assert_eq!(scene.value(), "a");
}

#[test]
fn without_a_journal_nothing_is_changed() {
    let scene = Scene::new();
    let error = Changes::begin(Path::new("/proc/no/journal"), guard()).unwrap_err();
    assert!(error.to_string().contains("goodput changes nothing"), "{error}");
    assert_eq!(scene.value(), "a");
}

#[test]
fn a_directory_without_write_permission_is_a_clear_error() {
    let scene = Scene::new();
    std::fs::create_dir(scene.state_dir()).unwrap();
    let mode = std::fs::Permissions::from_mode(0o500);
    std::fs::set_permissions(scene.state_dir(), mode).unwrap();
    match Changes::begin(&scene.state_dir(), guard()) {
        // Root may write everywhere.
        Ok(_) => assert!(rustix::process::geteuid().is_root()),
        Err(error) => assert!(error.not_permitted(), "{error}"),
    }
}

#[test]
fn two_runs_at_once_do_not_disturb_each_other() {
    let (one, other) = (Scene::new(), Scene::new());
    let mut first = Changes::begin(&one.state_dir(), guard()).unwrap();
    let mut second = Changes::begin(&one.state_dir(), guard()).unwrap();
    first.apply(&one.setting(), "b").unwrap();
    second.apply(&other.setting(), "c").unwrap();
    let error = second.apply(&one.setting(), "d").unwrap_err();
    assert!(matches!(error, SettingError::InUse { .. }), "{error}");
    let undone = crate::undo(&one.state_dir()).unwrap();
    let outcomes: Vec<_> = undone.iter().flat_map(|report| &report.entries).collect();
    let alive = |one: &&crate::restore::Restored| matches!(one.outcome, Outcome::InUse { .. });
    assert!(outcomes.len() == 2 && outcomes.iter().all(alive), "both are alive: {outcomes:?}");
    assert!(first.restore().is_clean());
    assert_eq!((one.value(), other.value()), ("a".into(), "c".into()));
    second.apply(&one.setting(), "d").unwrap();
    assert!(second.restore().is_clean());
    assert_eq!((one.value(), other.value()), ("a".into(), "a".into()));
}

#[test]
fn a_value_that_somebody_changes_while_the_intent_is_noted_is_theirs() {
    let scene = Scene::new();
    let mut changes = scene.begin();
    let file = scene.file();
    when_noted(move || std::fs::write(file, "theirs").unwrap());
    let error = changes.apply(&scene.setting(), "b").unwrap_err();
    assert!(matches!(error, SettingError::ChangedByOther { .. }), "{error}");
    assert_eq!(changes.restore().entries, []);
    assert_eq!(scene.value(), "theirs");

    // The same for a setting that we have changed before.
    let mut changes = scene.begin();
    changes.apply(&scene.setting(), "b").unwrap();
    let file = scene.file();
    when_noted(move || std::fs::write(file, "c").unwrap());
    assert!(changes.apply(&scene.setting(), "c").is_err());
    let theirs = Outcome::ChangedByOther { now: "c".into(), ours: "b".into() };
    assert_eq!(changes.restore().entries[0].outcome, theirs);
    assert_eq!(scene.value(), "c");
}

#[test]
fn a_full_disk_leaves_nothing_changed() {
    let scene = Scene::new();
    let mut changes = scene.begin();
    changes.apply(&scene.setting(), "b").unwrap();
    changes.open.as_mut().unwrap().journal.fill_disk();
    let error = changes.apply(&scene.setting(), "c").unwrap_err();
    assert!(matches!(error, SettingError::Journal { .. }), "{error}");
    let report = changes.restore();
    assert!(report.is_clean(), "{report}");
    assert_eq!(scene.value(), "a");
    assert!(scene.journals().is_empty());
}

#[test]
fn a_line_that_was_torn_does_not_spoil_the_next_one() {
    let (scene, other) = (Scene::new(), Scene::new());
    let mut victim = Victim::start(
        &scene.state_dir(),
        &[format!("{}=b", scene.setting()), format!("{}=b", other.setting())],
        -1,
    );
    victim.wait_until_applied();
    victim.kill_with_guard();
    let path = scene.journals().pop().unwrap();
    let mut journal = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    journal.write_all(b"{\"line\":\"inte").unwrap();
    // One of them can't be put back yet, so the journal stays.
    std::fs::remove_file(other.file()).unwrap();
    std::fs::create_dir(other.file()).unwrap();
    assert!(!crate::undo(&scene.state_dir()).unwrap()[0].is_clean());
    assert_eq!(scene.value(), "a");
    let (text, _) = JournalFile::peek(&path).unwrap().unwrap();
    assert_eq!(text.damage(), None);
    assert_eq!(text.says.entries.len(), 1, "the other one is settled");
}

#[test]
fn two_who_look_at_a_journal_do_not_take_each_other_for_its_owner() {
    let scene = Scene::new();
    let looking = std::fs::File::open(scene.journal_of_killed(&["b"])).unwrap();
    rustix::fs::flock(&looking, rustix::fs::FlockOperation::LockShared).unwrap();
    assert_eq!(crate::leftovers(&scene.state_dir()).len(), 1);
    drop(looking);
    assert!(crate::undo(&scene.state_dir()).unwrap()[0].is_clean());
}

#[test]
fn a_damaged_journal_of_another_directory_is_refused_in_the_same_words() {
    let scene = Scene::new();
    let path = scene.journal_of_killed(&["b"]);
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, whole.replacen("begin", "?", 1)).unwrap();
    let mut changes = Changes::begin(&scene.state_dir().with_file_name("other"), guard()).unwrap();
    let here = scene.try_to_begin().unwrap_err().to_string();
    let there = changes.apply(&scene.setting(), "c").unwrap_err().to_string();
    for said in [&here, &there] {
        assert!(said.contains(path.to_str().unwrap()) && said.contains("first line"), "{said}");
    }
    // Whichever lines are damaged, nobody knows what they said.
    for damaged in [String::new(), "\0".repeat(300), whole + "garbage\n"] {
        std::fs::write(&path, &damaged).unwrap();
        let there = changes.apply(&scene.setting(), "c").unwrap_err().to_string();
        assert!(there.contains(path.to_str().unwrap()) && there.contains("--damaged"), "{there}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), damaged);
    }
    assert_eq!(scene.value(), "b");
}

#[test]
fn what_a_writer_left_before_its_first_line_is_removed_once_the_writer_is_gone() {
    let scene = Scene::new();
    drop(scene.begin());
    let [left, held] =
        ["1-1", "2-2"].map(|name| scene.state_dir().join(format!("{name}.journal.new")));
    [&left, &held].into_iter().for_each(|path| std::fs::write(path, "{").unwrap());
    let writer = std::fs::File::open(&held).unwrap();
    rustix::fs::flock(&writer, rustix::fs::FlockOperation::LockExclusive).unwrap();
    drop(scene.begin());
    assert!(!left.exists() && held.exists());
    // Closing is not enough: a process that another test starts at this moment may still have the file open.
    rustix::fs::flock(&writer, rustix::fs::FlockOperation::Unlock).unwrap();
    assert_eq!(crate::undo(&scene.state_dir()).unwrap(), []);
    assert!(!held.exists());
}

/// Whether everything that other processes, guards included, had left to do in a directory is done.
fn all_is_undone(state_dir: &Path) -> bool {
    crate::undo(state_dir).is_ok_and(|reports| reports.iter().all(|report| report.is_clean()))
}

#[test]
fn a_card_that_starts_anew_is_not_gone() {
    in_scene(|state_dir| {
        let card = scripted::install("eth0", scripted::Card::with_queues(4));
        let setting: SettingRef = "ring.rx@eth0".parse().unwrap();
        let mut changes = Changes::begin(state_dir, guard()).unwrap();
        changes.apply(&setting, "1024").unwrap();
        card.change(|card| card.is_detached = true);
        let outcome = changes.restore().entries.swap_remove(0).outcome;
        assert!(matches!(&outcome, Outcome::Failed(why) if why.contains("not ready")), "{outcome}");
        card.change(|card| card.is_detached = false);
        wait_for("the original", || all_is_undone(state_dir));
        assert_eq!(crate::read(&setting).unwrap(), "512");
    });
}

#[test]
fn a_device_that_was_renamed_keeps_its_original_until_it_has_its_name_again() {
    in_scene(|state_dir| {
        let ip = |words: &str| {
            let ran = std::process::Command::new("ip").args(words.split(' ')).status();
            assert!(ran.is_ok_and(|status| status.success()), "ip {words}");
        };
        for (name, value) in
            [("link.txqueuelen@eth1", "77"), ("sysctl.net.ipv4.conf.eth1.rp_filter", "2")]
        {
            let setting: SettingRef = name.parse().unwrap();
            let before = crate::read(&setting).unwrap();
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            changes.apply(&setting, value).unwrap();
            ip("link set eth1 down");
            ip("link set eth1 name lan1");
            let outcome = changes.restore().entries.swap_remove(0).outcome;
            assert!(matches!(&outcome, Outcome::Failed(why) if why.contains("lan1")), "{outcome}");
            ip("link set lan1 name eth1");
            wait_for("the original", || all_is_undone(state_dir));
            assert_eq!(crate::read(&setting).unwrap(), before, "{setting}");
            ip("link set eth1 up");
        }
    });
}

#[test]
fn what_is_put_back_in_another_namespace_is_left_to_the_guard() {
    in_scene(|state_dir| {
        let setting: SettingRef = "link.txqueuelen@eth0".parse().unwrap();
        let before = crate::read(&setting).unwrap();
        let mut changes = Changes::begin(state_dir, guard()).unwrap();
        changes.apply(&setting, "77").unwrap();
        let elsewhere = namespace::in_new_namespace(|| {
            build();
            // Its own device with this name happens to have the same value.
            crate::lookup::machine(&setting).unwrap().write(&setting, "77").unwrap();
            let outcome = changes.restore().entries.swap_remove(0).outcome;
            (outcome, crate::read(&setting).unwrap())
        });
        let (outcome, value) = elsewhere.unwrap();
        assert!(matches!(outcome, Outcome::OtherNamespace { .. }), "{outcome}");
        assert_eq!(value, "77");
        wait_for("the guard", || crate::read(&setting).unwrap() == before);
    });
}

/// A parameter of the test's namespace.
fn parameter(name: &str) -> String {
    std::fs::read_to_string(format!("/proc/sys/{name}")).unwrap().trim().into()
}

fn set_parameter(name: &'static str, value: &'static str) {
    std::fs::write(format!("/proc/sys/{name}"), value).unwrap();
}

#[test]
fn what_others_change_while_the_intent_is_noted_stays() {
    in_scene(|state_dir| {
        for (setting, value, beside) in [
            ("sysctl.net.ipv4.tcp_rmem", "4096 8192 65536", "net/ipv4/tcp_min_rtt_wlen"),
            ("link.txqueuelen@eth0", "77", "net/ipv6/conf/eth0/hop_limit"),
        ] {
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            when_noted(move || set_parameter(beside, "99"));
            changes.apply(&setting.parse().unwrap(), value).unwrap();
            let report = changes.restore();
            assert!(report.is_clean(), "{report}");
            assert_eq!(parameter(beside), "99", "{setting}");
        }
    });
}

#[test]
fn what_another_run_has_changed_is_not_taken_for_an_original() {
    in_scene(|state_dir| {
        let (mut one, mut other) = (
            Changes::begin(state_dir, guard()).unwrap(),
            Changes::begin(state_dir, guard()).unwrap(),
        );
        one.apply(&"sysctl.net.ipv6.conf.eth0.hop_limit".parse().unwrap(), "77").unwrap();
        other.apply(&"link.txqueuelen@eth0".parse().unwrap(), "77").unwrap();
        let kept = &other.contents.entries[0].before;
        assert!(kept.contains_key("sysctl/net/ipv6/conf/eth0/mtu"));
        assert!(!kept.contains_key("sysctl/net/ipv6/conf/eth0/hop_limit"));
        assert!(one.restore().is_clean() && other.restore().is_clean());
        assert_eq!(parameter("net/ipv6/conf/eth0/hop_limit"), "64");
    });
}

#[test]
fn parameters_that_alter_each_other_are_not_changed_by_two_runs() {
    in_scene(|state_dir| {
        let begin = || Changes::begin(state_dir, guard()).unwrap();
        let (mut one, mut other) = (begin(), begin());
        let [seconds, milliseconds] =
            ["", "_ms"].map(|unit| format!("net/ipv4/neigh/eth0/base_reachable_time{unit}"));
        let setting = |file: &str| format!("sysctl.{}", file.replace('/', ".")).parse().unwrap();
        one.apply(&setting(&seconds), "17").unwrap();
        assert_eq!(parameter(&milliseconds), "17000");
        let error = other.apply(&setting(&milliseconds), "20000").unwrap_err();
        assert!(matches!(error, SettingError::InUse { .. }), "{error}");
        assert!(one.restore().is_clean());
        assert_eq!(parameter(&milliseconds), "30000");
        other.apply(&setting(&milliseconds), "18000").unwrap();
        assert!(other.restore().is_clean());
        assert_eq!(parameter(&milliseconds), "30000");
    });
}

#[test]
fn what_a_card_rounds_is_in_effect_and_put_back() {
    in_scene(|state_dir| {
        let card = scripted::install("eth0", scripted::Card::with_queues(4));
        let before = card.card();
        let mut changes = Changes::begin(state_dir, guard()).unwrap();
        let ring: SettingRef = "ring.rx@eth0".parse().unwrap();
        for _ in 0..2 {
            assert_eq!(changes.apply(&ring, "1001").unwrap(), "1024");
            assert_eq!(changes.apply(&ring, "512").unwrap(), "512");
        }
        assert!(changes.restore().is_clean());
        assert_eq!(card.card().bytes(), before.bytes());
    });
}

/// The names of journals contain the time of day, which may be any.
#[test]
fn a_clock_that_jumps_hides_no_journal_and_stops_no_run() {
    for time in ["1", "99999999999999999999"] {
        let scene = Scene::new();
        let path = scene.journal_of_killed(&["b"]);
        let (_, of_process) = path.to_str().unwrap().rsplit_once('-').unwrap();
        let dated = scene.state_dir().join(format!("{time}-{of_process}"));
        std::fs::rename(path, dated).unwrap();
        assert_eq!(crate::leftovers(&scene.state_dir()).len(), 1);
        let mut changes = scene.begin();
        assert!(changes.settled()[0].is_clean());
        assert_eq!(scene.value(), "a");
        changes.apply(&scene.setting(), "c").unwrap();
        assert!(changes.restore().is_clean());
        assert!(scene.journals().is_empty());
    }
}

#[test]
fn on_a_read_only_disk_nothing_is_changed() {
    let scene = Scene::new();
    std::fs::create_dir(scene.state_dir()).unwrap();
    let state_dir = scene.state_dir();
    let Some(disk) = Tmpfs::mount(&state_dir) else {
        return goodput_testing::skip("the right to mount");
    };
    disk.make_read_only();
    let refused = Changes::begin(&state_dir, guard()).unwrap_err();
    let said = refused.to_string();
    assert!(said.contains("Read-only") && said.contains("goodput changes nothing"), "{said}");
}

/// A run that has changed a value and saved another one below `root`: the file, and what its journal says.
fn saved(scene: &Scene, root: &Path) -> (Changes, PathBuf, PathBuf, String) {
    let mut changes = scene.begin();
    changes.apply(&scene.setting(), "b").unwrap();
    let keeps = [("sysctl.net.ipv4.tcp_sack".parse().unwrap(), "1".to_owned())];
    let files = changes.save_below(root, &keeps, Path::new("/bin/sh")).unwrap();
    let [file] = &files[..] else { panic!("{files:?}") };
    assert!(file.path.exists());
    let journal = scene.journals().pop().unwrap();
    let text = std::fs::read_to_string(&journal).unwrap();
    (changes, file.path.clone(), journal, text)
}

#[test]
fn a_file_that_is_not_kept_goes_with_the_values() {
    let (scene, root) = (Scene::new(), tempfile::tempdir().unwrap());
    let (mut changes, file, ..) = saved(&scene, root.path());
    let report = changes.restore();
    assert!(report.is_clean() && !report.files.is_empty(), "{report}");
    assert!(!file.exists() && scene.journals().is_empty());
    let (changes, file, ..) = saved(&scene, root.path());
    changes.keep().unwrap();
    assert!(file.exists() && scene.journals().is_empty());
}

/// The power failed after a file was written and before the run had kept it.
#[test]
fn the_journal_names_a_file_before_it_is_written_and_removes_it_also_after_a_reboot() {
    for is_rebooted in [false, true] {
        let (scene, root) = (Scene::new(), tempfile::tempdir().unwrap());
        let (changes, file, journal, text) = saved(&scene, root.path());
        changes.keep().unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        let of_another_boot =
            "{\"line\":\"begin\",\"format\":5,\"pid\":1,\"boot_id\":\"x\",\"netns\":1}";
        let first = if is_rebooted { of_another_boot } else { first };
        std::fs::write(&journal, format!("{first}\n{rest}")).unwrap();
        assert_eq!(crate::leftovers(&scene.state_dir()).len(), 1);
        let report = crate::undo(&scene.state_dir()).unwrap().swap_remove(0);
        assert!(report.is_clean(), "{report}");
        assert!(report.to_string().contains(file.to_str().unwrap()), "{report}");
        assert!(!file.exists() && scene.journals().is_empty());
        assert_eq!(scene.value(), if is_rebooted { "b" } else { "a" });
    }
}

#[test]
fn a_damaged_journal_names_its_files_and_leaves_them() {
    let (scene, root) = (Scene::new(), tempfile::tempdir().unwrap());
    let (changes, file, journal, text) = saved(&scene, root.path());
    changes.keep().unwrap();
    std::fs::write(&journal, text + "garbage\n").unwrap();
    let report = crate::undo(&scene.state_dir()).unwrap().swap_remove(0);
    let said = report.to_string();
    assert!(!report.is_clean() && file.exists(), "{said}");
    assert!(said.contains(&format!("{}: left alone", file.display())), "{said}");
}

#[test]
fn a_file_that_someone_else_has_changed_since_is_left_alone_and_said() {
    let (scene, root) = (Scene::new(), tempfile::tempdir().unwrap());
    let (mut changes, file, ..) = saved(&scene, root.path());
    std::fs::write(&file, "theirs").unwrap();
    let report = changes.restore();
    assert!(!report.is_clean() && report.not_back().contains("someone else"), "{report}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "theirs");
    assert!(scene.journals().is_empty(), "nothing is left to do");
}
