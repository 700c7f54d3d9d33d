//! What happens if the connection goes, or a change cuts it.

use super::*;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn the_host_puts_back_by_itself_when_the_connection_goes() {
    in_scene(|folder| {
        let parts = "ethtool -k v0 | grep -e segmentation -e checksum";
        let before = (value(PARAMETER), sh(parts));
        let mut changes = begin(&folder);
        changes.apply(&setting(PARAMETER), OURS).unwrap();
        changes.apply(&setting("offload.tx-checksum@v0"), "off").unwrap();
        changes.host.session.cut();
        wait_for("the host to put back", || (value(PARAMETER), sh(parts)) == before);
        assert_eq!(journals(&folder).len(), 1, "the run does not know yet");
        assert_eq!(crate::leftovers(folder.path()), [], "it lives");
        let report = changes.restore();
        assert!(report.report.is_clean() && journals(&folder).is_empty(), "{report}");
        let logged = goodput_settings::log_part(folder.path(), None, usize::MAX).unwrap().changes;
        let back = logged.iter().find(|one| one.setting == PARAMETER).unwrap();
        assert_eq!((&*back.from, back.what), (OURS, ChangeKind::PutBack), "the host itself did it");
    });
}

/// A host at which whoever logs in again reads no parameter before there is a file `open` in the folder `gate`. A file `looks`
/// there says that somebody is about to.
fn gated(gate: &std::path::Path) -> Host {
    let (sysctl, folder) = (sh("command -v sysctl"), gate.display().to_string());
    let waits = format!(
        "#!/bin/sh\n: >'{folder}/looks'\nuntil [ -e '{folder}/open' ]; do sleep 0.05; done\nexec {sysctl} \"$@\"\n"
    );
    goodput_testing::write_script(&gate.join("sysctl"), &waits);
    let logins = AtomicU32::new(0);
    let login = move || {
        let path = match logins.fetch_add(1, Ordering::Relaxed) {
            0 => String::new(),
            _ => format!("PATH='{folder}':$PATH; export PATH; "),
        };
        let script = format!("mount -t sysfs none /sys; {path}exec sh");
        Session::with_shell(["unshare", "--mount", "sh", "-c", &script])
    };
    Host::through(Box::new(login), &"ssh://here".parse().unwrap(), &Access::default()).unwrap()
}

#[test]
fn while_a_run_looks_at_what_the_host_put_back_nobody_else_begins() {
    in_scene(|folder| {
        for is_cut in [true, false] {
            let (gate, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let before = value(PARAMETER);
            let host_there = gated(gate.path());
            let mut changes = RemoteChanges::at(host_there, folder.path(), Vec::new()).unwrap();
            changes.apply(&setting(PARAMETER), OURS).unwrap();
            match is_cut {
                true => changes.host.session.cut(),
                // The session may go on without the process that keeps others away.
                false => kill(changes.dead_man().unwrap().pid),
            }
            std::thread::scope(|scope| {
                let restoring = scope.spawn(|| changes.restore());
                wait_for("the look", || gate.path().join("looks").exists());
                let other = RemoteChanges::at(host(), elsewhere.path(), Vec::new()).err();
                std::fs::write(gate.path().join("open"), "").unwrap();
                assert!(matches!(other, Some(RemoteError::Busy { .. })), "{other:?}");
                let report = restoring.join().unwrap();
                assert!(report.report.is_clean(), "{report}");
            });
            assert_eq!(value(PARAMETER), before);
        }
        assert!(journals(&folder).is_empty());
    });
}

#[test]
fn until_what_was_released_is_kept_or_put_back_nobody_else_begins() {
    in_scene(|folder| {
        let elsewhere = tempfile::tempdir().unwrap();
        let before = value(PARAMETER);
        let released = || {
            let mut changes = begin(&folder);
            changes.apply(&setting(PARAMETER), OURS).unwrap();
            changes.release().unwrap();
            changes
        };
        let mut changes = released();
        let other = RemoteChanges::at(host(), elsewhere.path(), Vec::new()).err();
        assert!(matches!(other, Some(RemoteError::Busy { .. })), "{other:?}");
        assert!(changes.restore().report.is_clean());
        assert_eq!(value(PARAMETER), before);

        let mut changes = released();
        changes.host.session.cut();
        let other = begin(&elsewhere);
        let report = changes.restore();
        let said = report.to_string();
        assert!(said.contains("goodput settings undo") && !said.contains("by itself"), "{said}");
        assert_eq!(value(PARAMETER), OURS, "the host itself does nothing after a release");
        drop(other);
        assert!(undo_at(folder.path(), &mut host())[0].report.is_clean());
        assert_eq!(value(PARAMETER), before);
    });
}

/// Another run has begun since the host put everything back.
#[test]
fn what_the_host_put_back_is_not_looked_at_while_another_run_changes_it() {
    in_scene(|folder| {
        let elsewhere = tempfile::tempdir().unwrap();
        let before = value(PARAMETER);
        let mut changes = begin(&folder);
        changes.apply(&setting(PARAMETER), OURS).unwrap();
        changes.host.session.cut();
        wait_for("the host to put back", || value(PARAMETER) == before);
        let mut other = begin(&elsewhere);
        other.apply(&setting(PARAMETER), OURS).unwrap();
        let report = changes.restore();
        assert!(report.to_string().contains("another goodput"), "{report}");
        assert_eq!((value(PARAMETER), journals(&folder).len()), (OURS.into(), 1));
        assert!(other.restore().report.is_clean());
        let settled = undo_at(folder.path(), &mut host());
        assert!(settled[0].report.is_clean() && journals(&folder).is_empty(), "{settled:?}");
    });
}

#[test]
fn a_change_after_which_nobody_gets_in_is_put_back_and_said() {
    in_scene(|folder| {
        let logins = AtomicU32::new(0);
        let once = move || match logins.fetch_add(1, Ordering::Relaxed) {
            0 => Session::with_shell(["sh"]),
            _ => {
                Err(RemoteError::Unreachable { host: "ssh://here".into(), said: "no route".into() })
            }
        };
        let address = "ssh://here".parse().unwrap();
        let host = Host::through(Box::new(once), &address, &Access::default()).unwrap();
        let mut changes = RemoteChanges::at(host, folder.path(), Vec::new()).unwrap();
        let cut = changes.apply(&setting("link.mtu@v0"), "1400").unwrap_err();
        assert!(matches!(cut, RemoteError::CutOff { .. }), "{cut}");
        let said = cut.to_string();
        for words in [
            "link.mtu@v0: the connection was lost right after the change",
            "no route",
            "puts it back",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert_eq!(value("link.mtu@v0"), "1500");
        assert!(changes.restore().report.is_clean());
    });
}

#[test]
fn a_change_that_cuts_the_session_is_put_back_by_the_host_in_time() {
    in_scene(|folder| {
        let mut changes = begin(&folder);
        let parameter = setting(PARAMETER);
        changes.apply(&parameter, OURS).unwrap();
        let standby = changes.standby.as_ref().unwrap();
        // What a change that could cut announces, and then no word gets through, though the connection stands.
        standby.dead_man.expect(&mut changes.host.session, 1, 1).unwrap();
        wait_for("the host to put back", || value(PARAMETER) != OURS);
        assert!(changes.restore().report.is_clean());
    });
}

/// Someone ends the session while goodput confirms a change: the change did nothing to the connection.
#[test]
fn a_session_that_is_ended_while_a_change_is_confirmed_is_lost_and_not_cut() {
    in_scene(|folder| {
        let mut changes = begin(&folder);
        changes.apply(&setting(PARAMETER), OURS).unwrap();
        let RemoteChanges { host, standby, noted, .. } = &mut changes;
        host.session.cut();
        let lost = standby.as_ref().unwrap().confirm(host, &noted.entries, 0).unwrap_err();
        assert!(matches!(lost, RemoteError::Lost { .. }), "{lost}");
        let said = lost.to_string();
        assert!(said.contains("send full packets there and back"), "{said}");
        assert!(said.len() < 500 && !said.contains("xxxx"), "{} bytes: {said}", said.len());
        assert!(!said.contains("the change cut"), "{said}");
        assert!(changes.restore().report.is_clean());
    });
}
