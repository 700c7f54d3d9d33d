//! What someone else changes stays.

use super::*;

#[test]
fn what_someone_else_changed_is_left_alone() {
    in_scene(|folder| {
        let mut changes = begin(&folder);
        changes.apply(&setting(PARAMETER), OURS).unwrap();
        sh("sysctl -w net.ipv4.tcp_rmem='1000 2000 3000'");
        let refused = changes.apply(&setting(PARAMETER), "4096 4096 4096").unwrap_err();
        assert!(refused.to_string().contains("someone else"), "{refused}");
        let report = changes.restore();
        assert!(report.to_string().contains("someone else"), "{report}");
        assert_eq!(value(PARAMETER), "1000 2000 3000");
        let mut changes = begin(&folder);
        changes.apply(&setting(PARAMETER), OURS).unwrap();
        sh("sysctl -w net.ipv4.tcp_rmem='1000 2000 4000'");
        changes.host.session.end();
        assert_eq!(value(PARAMETER), "1000 2000 4000", "nor does the host touch it");
    });
}

#[test]
fn a_preset_that_was_cut_short_is_put_back_and_what_someone_else_made_of_it_is_not() {
    in_scene(|folder| {
        let sysfs = |script: &str| {
            sh(&format!(
                "unshare --mount sh -c 'mount -t sysfs none /sys; cd /sys/class/net/v0; {script}'"
            ))
        };
        for (half, is_ours) in [("2", true), ("5", false)] {
            let mut changes = begin(&folder);
            let index =
                changes.noted.find_around(&mut changes.host, &setting("polling@v0")).unwrap();
            changes.note(index, "deferred").unwrap();
            sysfs(&format!("echo {half} >napi_defer_hard_irqs"));
            changes.host.session.end();
            let now = sysfs("cat napi_defer_hard_irqs");
            assert_eq!(now, if is_ours { "0" } else { half }, "by the host itself");
            changes.restore();
            assert_eq!(sysfs("cat napi_defer_hard_irqs"), now);
            sysfs("echo 0 >napi_defer_hard_irqs");
        }
    });
}

#[test]
fn what_someone_else_sets_while_a_change_is_under_way_stays() {
    in_scene(|folder| {
        let theirs = "1000 2000 3000";
        let change_it = || sh(&format!("sysctl -w net.ipv4.tcp_rmem='{theirs}'"));
        let mut changes = begin(&folder);
        changes.apply(&setting(PARAMETER), OURS).unwrap();
        changes.note(0, "4096 4096 4096").unwrap();
        change_it();
        changes.host.session.end();
        assert_eq!(value(PARAMETER), theirs, "the host leaves it alone");
        let report = changes.restore();
        assert!(report.to_string().contains("someone else"), "{report}");
        sh(&format!("sysctl -w net.ipv4.tcp_rmem='{OURS}'"));
        let mut changes = begin(&folder);
        changes.apply(&setting(PARAMETER), "4096 4096 4096").unwrap();
        changes.note(0, "4096 8192 8192").unwrap();
        change_it();
        die(changes);
        let reports = undo_at(folder.path(), &mut host());
        assert!(matches!(outcomes(&reports)[..], [Outcome::ChangedByOther { .. }]), "{reports:?}");
        assert_eq!(value(PARAMETER), theirs, "and so does the journal");
        // An intended value is ours, however, whether or not it took effect.
        sh(&format!("sysctl -w net.ipv4.tcp_rmem='{OURS}'"));
        let mut changes = begin(&folder);
        changes.apply(&setting(PARAMETER), "4096 4096 4096").unwrap();
        changes.note(0, "4096 8192 8192").unwrap();
        sh("sysctl -w net.ipv4.tcp_rmem='4096 8192 8192'");
        changes.host.session.end();
        assert_eq!(value(PARAMETER), OURS);
    });
}

#[test]
fn killed_in_a_change_to_a_number_whatever_the_kernel_can_have_made_of_it_comes_back() {
    in_scene(|folder| {
        let before = value(PARAMETER);
        for (made, is_back) in [("4096 8192 16384", true), ("1000 8192 16384", false)] {
            let mut changes = begin(&folder);
            changes.noted.find_around(&mut changes.host, &setting(PARAMETER)).unwrap();
            changes.note(0, "8000 8190 16380").unwrap();
            // The kernel does not round this parameter.
            sh(&format!("sysctl -w net.ipv4.tcp_rmem='{made}'"));
            die(changes);
            let reports = undo_at(folder.path(), &mut host());
            assert_eq!(reports[0].report.is_clean(), is_back, "{reports:?}");
            assert_eq!(value(PARAMETER), if is_back { &before } else { made }, "{reports:?}");
        }
    });
}

#[test]
fn what_someone_else_sets_around_a_setting_between_two_changes_stays() {
    in_scene(|folder| {
        let mut changes = begin(&folder);
        changes.apply(&setting("link.txqueuelen@v0"), "500").unwrap();
        sh("ip link set v0 mtu 1450");
        changes.note(0, "600").unwrap();
        die(changes);
        let reports = undo_at(folder.path(), &mut host());
        assert!(reports[0].report.is_clean(), "{reports:?}");
        assert_eq!(
            (value("link.txqueuelen@v0"), value("link.mtu@v0")),
            ("1000".into(), "1450".into())
        );
    });
}
