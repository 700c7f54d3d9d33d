//! What dead runs left is put back by their journals, at the host that they are about.

use super::*;

#[test]
fn what_neither_could_put_back_is_put_back_by_the_journal() {
    in_scene(|folder| {
        let before = value(PARAMETER);
        let mut changes = begin(&folder);
        changes.apply(&setting(PARAMETER), OURS).unwrap();
        let dead_man = changes.standby.as_ref().unwrap().dead_man.id.pid;
        sh(&format!("kill -9 {dead_man}"));
        changes.host.session.cut();
        let line = format!("/proc/{dead_man}/cmdline");
        wait_for("the dead-man to be gone", || std::fs::read(&line).unwrap_or_default().is_empty());
        assert_eq!(value(PARAMETER), OURS, "nobody is left to put it back");
        let report = changes.restore();
        assert_eq!(report.report.entries[0].outcome, Outcome::PutBack { to: before.clone() });
        assert_eq!(value(PARAMETER), before);
    });
}

#[test]
fn what_was_changed_in_another_jail_is_not_here() {
    in_scene(|folder| {
        let jail = |root: &[&str]| {
            let mut jail = host();
            jail.identity.truncate(1);
            jail.identity.extend(root.iter().map(ToString::to_string));
            // As it reports itself without an id of its own.
            jail.machine = None;
            jail
        };
        let first = jail(&["no id", "94 34"]);
        let mut changes = RemoteChanges::at(first, folder.path(), Vec::new()).unwrap();
        changes.apply(&setting(PARAMETER), OURS).unwrap();
        die(changes);
        assert_eq!(undo_at(folder.path(), &mut jail(&["no id", "94 35"])), []);
        assert_eq!((value(PARAMETER), journals(&folder).len()), (OURS.into(), 1));
        let settled = undo_at(folder.path(), &mut jail(&["no id", "94 34"]));
        assert!(settled.len() == 1 && settled[0].report.is_clean(), "{settled:?}");
        assert!(journals(&folder).is_empty());
    });
}

#[test]
fn a_journal_of_an_earlier_version_that_noted_less_of_its_host_counts() {
    in_scene(|folder| {
        let mut earlier = host();
        earlier.identity.truncate(1);
        let mut changes = RemoteChanges::at(earlier, folder.path(), Vec::new()).unwrap();
        changes.apply(&setting(PARAMETER), OURS).unwrap();
        die(changes);
        let settled = undo_at(folder.path(), &mut host());
        assert!(settled[0].report.is_clean() && journals(&folder).is_empty(), "{settled:?}");
    });
}

#[test]
fn a_damaged_journal_is_reported_and_nothing_is_changed() {
    in_scene(|folder| {
        let mut changes = begin(&folder);
        changes.apply(&setting(PARAMETER), OURS).unwrap();
        die(changes);
        let path = journals(&folder).pop().unwrap();
        let whole = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = whole.lines().collect();
        for damage in [
            format!("{}\nbroken\n{}\n", lines[0], lines[2]),
            format!("broken\n{}\n", lines[1..].join("\n")),
            whole.replace("\"format\":3", "\"format\":99"),
        ] {
            std::fs::write(&path, &damage).unwrap();
            let refused = RemoteChanges::after_dead_runs(host(), folder.path()).err().unwrap();
            assert!(matches!(refused, RemoteError::Damaged { .. }), "{refused}");
            assert!(refused.to_string().contains(path.to_str().unwrap()), "{refused}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), damage);
            assert_eq!(value(PARAMETER), OURS);
        }
    });
}

#[test]
fn a_host_is_known_under_every_name() {
    in_scene(|folder| {
        let before = value(PARAMETER);
        let mut changes =
            RemoteChanges::at(host_called("ssh://alias"), folder.path(), Vec::new()).unwrap();
        changes.apply(&setting(PARAMETER), OURS).unwrap();
        die(changes);
        let changes = RemoteChanges::after_dead_runs(host(), folder.path()).unwrap();
        let back = [Outcome::PutBack { to: before.clone() }];
        assert_eq!(outcomes(changes.settled()), back);
        assert_eq!(value(PARAMETER), before);
    });
}

#[test]
fn another_machine_behind_a_name_is_no_reboot() {
    in_scene(|folder| {
        let mut first = host();
        (first.identity[0], first.machine) = ("its boot".into(), Some("its id".into()));
        let mut changes = RemoteChanges::at(first, folder.path(), Vec::new()).unwrap();
        changes.apply(&setting(PARAMETER), OURS).unwrap();
        die(changes);
        let settled = |machine: Option<&str>| {
            let mut now = host();
            now.machine = machine.map(Into::into);
            undo_at(folder.path(), &mut now)
        };
        assert!(settled(Some("another")).is_empty(), "what was changed there is not here");
        assert_eq!(journals(&folder).len(), 1);
        let unknown = settled(None);
        assert!(unknown[0].objection().is_some(), "{unknown:?}");
        assert_eq!(outcomes(&settled(Some("its id"))), [Outcome::Rebooted]);
        assert!(journals(&folder).is_empty());
    });
}

#[test]
fn a_device_that_is_gone_blocks_nothing() {
    in_scene(|folder| {
        let mut changes = begin(&folder);
        changes.apply(&setting("link.mtu@v0"), "1400").unwrap();
        die(changes);
        sh("ip link del v0");
        let changes = RemoteChanges::after_dead_runs(host(), folder.path()).unwrap();
        let said = changes.settled()[0].to_string();
        assert!(said.contains("the device v0 is gone"), "{said}");
        drop(changes);
        assert!(journals(&folder).is_empty());
    });
}
