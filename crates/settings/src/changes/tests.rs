//! Changes that end as they should, without a process being killed.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::testing::{Scene, guard, in_scene, when_noted};
use crate::{Changes, GuardProgram, Outcome, SettingError};

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
fn a_value_that_did_not_take_effect_is_put_back_and_told() {
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

    // The same of a setting that we have changed before.
    let mut changes = scene.begin();
    changes.apply(&scene.setting(), "b").unwrap();
    let file = scene.file();
    when_noted(move || std::fs::write(file, "c").unwrap());
    assert!(changes.apply(&scene.setting(), "c").is_err());
    let theirs = Outcome::ChangedByOther { now: "c".into(), ours: "b".into() };
    assert_eq!(changes.restore().entries[0].outcome, theirs);
    assert_eq!(scene.value(), "c");
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
