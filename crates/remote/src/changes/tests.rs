//! Tests with a shell of this machine in its own network namespace.

use super::*;
use goodput_testing::{FreeBsd, in_namespace, wait_for};
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

const PARAMETER: &str = "sysctl.net.ipv4.tcp_rmem";
const OURS: &str = "4096 65536 262144";

fn sh(script: &str) -> String {
    let output = process::Command::new("sh").args(["-c", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A host whose shell runs in this thread's network namespace.
fn host() -> Host {
    host_called("ssh://here")
}

fn host_called(name: &str) -> Host {
    // A view of /sys belongs to the namespace in which it was mounted.
    let login = || {
        Session::with_shell(["unshare", "--mount", "sh", "-c", "mount -t sysfs none /sys; exec sh"])
    };
    Host::through(Box::new(login), &name.parse().unwrap(), &Access::default()).unwrap()
}

fn setting(name: &str) -> SettingRef {
    name.parse().unwrap()
}

fn begin(folder: &tempfile::TempDir) -> RemoteChanges {
    RemoteChanges::at(host(), folder.path(), Vec::new()).unwrap()
}

fn value(name: &str) -> String {
    host().read(&setting(name)).unwrap()
}

/// Runs a test in a network namespace with the devices v0 and v1, if this machine can.
fn in_scene(test: impl FnOnce(tempfile::TempDir) + Send + 'static) {
    in_namespace(|| {
        sh("ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up");
        test(tempfile::tempdir().unwrap());
    });
}

fn journals(folder: &tempfile::TempDir) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.to_string_lossy().ends_with(".remote.jsonl")).collect()
}

#[test]
fn what_is_changed_comes_back_with_all_around_it() {
    in_scene(|folder| {
        let parts = "ethtool -k v0 | grep -e segmentation -e checksum";
        sh("ethtool -K v0 tx-tcp6-segmentation off");
        let before = (value(PARAMETER), sh(parts), value("link.mtu@v0"));
        let mut changes = begin(&folder);
        assert_eq!(changes.apply(&setting(PARAMETER), OURS).unwrap(), OURS);
        assert_eq!(changes.apply(&setting("offload.tx-checksum@v0"), "off").unwrap(), "off");
        assert_eq!(changes.apply(&setting("far:link.mtu@v0"), "1400").unwrap(), "1400");
        assert_eq!(value("feature.tx-tcp-segmentation@v0"), "off", "it needs checksums");
        assert_eq!(value("link.mtu@v0"), "1400");
        let report = changes.restore();
        assert!(report.report.is_clean(), "{report}");
        assert_eq!((value(PARAMETER), sh(parts), value("link.mtu@v0")), before);
        assert!(journals(&folder).is_empty());
        let here = Some("ssh://here");
        let logged = goodput_settings::logged_changes(folder.path()).unwrap();
        assert!(logged.iter().all(|one| one.host.as_deref() == here && one.netns.is_none()));
        let of_mtu = logged.iter().filter(|one| one.setting == "link.mtu@v0");
        let seen: Vec<_> = of_mtu.map(|one| (&*one.from, &*one.to, one.what)).collect();
        let [set, back] = [ChangeKind::Set, ChangeKind::PutBack];
        assert_eq!(seen, [("1400", &*before.2, back), (&*before.2, "1400", set)]);
    });
}

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
        let logged = goodput_settings::logged_changes(folder.path()).unwrap();
        let back = logged.iter().find(|one| one.setting == PARAMETER).unwrap();
        assert_eq!((&*back.from, back.what), (OURS, ChangeKind::PutBack), "the host itself did it");
    });
}

#[test]
fn what_neither_could_put_back_is_put_back_by_the_journal() {
    in_scene(|folder| {
        let before = value(PARAMETER);
        let mut changes = begin(&folder);
        changes.apply(&setting(PARAMETER), OURS).unwrap();
        let dead_man = changes.open.as_ref().unwrap().dead_man.pid;
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
fn a_second_goodput_is_refused() {
    in_scene(|folder| {
        let first = begin(&folder);
        let second = RemoteChanges::at(host(), folder.path(), Vec::new()).err().unwrap();
        assert!(matches!(second, RemoteError::Busy { .. }), "{second}");
        drop(first);
        begin(&folder);
    });
}

/// The login of another host: in a network namespace of its own.
fn another_host(name: &str) -> Host {
    let login = || {
        let script = "mount -t sysfs none /sys; exec sh";
        Session::with_shell(["unshare", "--net", "--mount", "sh", "-c", script])
    };
    Host::through(Box::new(login), &name.parse().unwrap(), &Access::default()).unwrap()
}

#[test]
fn two_names_of_one_host_are_refused_for_two_ends() {
    in_scene(|folder| {
        let mut near = begin(&folder);
        let refused = one_host::refuse(&mut near.host, &mut host_called("ssh://alias"));
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("both ends: ssh://here is ssh://alias; leave out --near"), "{said}");
        // The same place, from which the process of the first login can't be seen.
        let contained = || {
            Session::with_shell([
                "unshare",
                "--pid",
                "--fork",
                "--mount-proc",
                "sh",
                "-c",
                "exec sh",
            ])
        };
        let address = "ssh://contained".parse().unwrap();
        let host = Host::through(Box::new(contained), &address, &Access::default());
        let refused = one_host::refuse(&mut near.host, &mut host.unwrap()).unwrap_err();
        assert!(refused.to_string().contains("perhaps ssh://here is ssh://contained"), "{refused}");
    });
}

#[test]
fn two_hosts_that_look_alike_are_both_changed() {
    in_scene(|folder| {
        let mut near = begin(&folder);
        let before = value(PARAMETER);
        near.apply(&setting(PARAMETER), OURS).unwrap();
        let mut far = another_host("ssh://far");
        one_host::refuse(&mut near.host, &mut far).unwrap();
        // As jails without an id of their own, or machines that were resumed from one snapshot.
        far.identity.clone_from(&near.host.identity);
        one_host::refuse(&mut near.host, &mut far).unwrap();
        let mut far = RemoteChanges::after_dead_runs(far, folder.path()).unwrap();
        assert_eq!(value(PARAMETER), OURS, "the other one is not undone for it");
        assert_eq!(far.apply(&setting(PARAMETER), OURS).unwrap(), OURS);
        assert!(far.restore().report.is_clean());
        assert_eq!(value(PARAMETER), OURS);
        assert!(near.restore().report.is_clean());
        assert_eq!((value(PARAMETER), journals(&folder).len()), (before, 0));
    });
}

/// A login at a simulated FreeBSD.
fn freebsd(name: &str, userland: &FreeBsd) -> Host {
    let words = userland.environment().map(|(name, value)| format!("{name}={}", value.display()));
    let login = move || Session::with_shell(["env", &words[0], &words[1], "/bin/sh"]);
    Host::through(Box::new(login), &name.parse().unwrap(), &Access::default()).unwrap()
}

#[test]
fn two_jails_that_report_the_same_are_two_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let jails = ["a", "b"].map(|name| {
        let own = folder.path().join(name);
        std::fs::create_dir(&own).unwrap();
        FreeBsd::in_folder(&own).jail(34)
    });
    let near = freebsd("ssh://a", &jails[0]);
    let mut near = RemoteChanges::at(near, &folder.path().join("state"), Vec::new()).unwrap();
    let mut far = freebsd("ssh://b", &jails[1]);
    assert_eq!((&far.identity, &far.machine), (&near.host.identity, &None));
    one_host::refuse(&mut near.host, &mut far).unwrap();
    let refused = one_host::refuse(&mut near.host, &mut freebsd("ssh://alias", &jails[0]));
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("ssh://a is ssh://alias"), "{said}");
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
fn between_two_changes_of_a_run_that_holds_the_host_nobody_else_begins() {
    in_scene(|folder| {
        let elsewhere = tempfile::tempdir().unwrap();
        let refuses_others = || {
            let other = RemoteChanges::at(host(), elsewhere.path(), Vec::new());
            matches!(other, Err(RemoteError::Busy { .. }))
        };
        let holder = begin(&folder);
        assert!(refuses_others());
        let mut held = host();
        held.held_by = holder.dead_man();
        let mut changes = RemoteChanges::after_dead_runs(held, folder.path()).unwrap();
        changes.apply(&setting(PARAMETER), OURS).unwrap();
        assert!(changes.restore().report.is_clean());
        assert!(refuses_others());
        let mut late = host();
        late.held_by = holder.dead_man();
        drop(holder);
        assert!(!refuses_others() && journals(&folder).is_empty());
        let late = RemoteChanges::after_dead_runs(late, folder.path());
        assert!(matches!(late, Err(RemoteError::Lost { .. })), "somebody else may have changed it");
    });
}

#[test]
fn what_is_kept_stays() {
    in_scene(|folder| {
        let mut changes = begin(&folder);
        changes.apply(&setting(PARAMETER), OURS).unwrap();
        changes.keep().unwrap();
        assert_eq!(value(PARAMETER), OURS);
        assert!(journals(&folder).is_empty());
    });
}

#[test]
fn what_the_kernel_refuses_is_as_before() {
    in_scene(|folder| {
        let mut changes = begin(&folder);
        let congestion = setting("sysctl.net.ipv4.tcp_congestion_control");
        let before = value(&congestion.to_string());
        assert!(changes.apply(&congestion, "no_such_one").is_err());
        let reordering = setting("sysctl.net.ipv4.tcp_reordering");
        let early = changes.check(&[(reordering.clone(), "301".into())]).unwrap_err().to_string();
        assert!(early.contains("takes 1 to 300"), "{early}");
        assert_eq!(changes.apply(&reordering, "301").unwrap_err().to_string(), early);
        assert!(changes.check(&[(reordering.clone(), "299".into())]).is_ok());
        let absent = (setting("route.mtu@192.0.2.0/24"), "1400".into());
        assert!(changes.check(&[absent]).is_ok(), "not there yet");
        assert!(changes.entries.is_empty(), "nothing was about to change");
        assert!(changes.apply(&setting("link.mtu@nosuch"), "1400").is_err());
        assert!(changes.apply(&setting("qdisc.htb.rate@v0:1:1"), "1mbit").is_err());
        assert_eq!(value(&congestion.to_string()), before);
        assert!(changes.restore().report.is_clean());
    });
}

#[test]
fn what_the_kernel_rounds_is_in_effect_and_comes_back() {
    in_scene(|folder| {
        // Milliseconds, in steps of a tick of the kernel's clock, which may be one millisecond.
        let ratelimit = setting("sysctl.net.ipv4.icmp_ratelimit");
        let name = ratelimit.to_string();
        let before = value(&name);
        let mut changes = begin(&folder);
        for _ in 0..2 {
            assert_eq!(changes.apply(&ratelimit, "1001").unwrap(), value(&name));
            assert_eq!(changes.apply(&ratelimit, "2000").unwrap(), "2000");
        }
        let rounded = changes.apply(&ratelimit, "1001").unwrap();
        let under_way = changes.entries[0].main.under_way.clone().unwrap();
        sh(&under_way.command().to_string());
        assert_eq!(value(&name), rounded);
        assert!(changes.restore().report.is_clean());
        assert_eq!(value(&name), before);
    });
}

fn kill(pid: u32) {
    sh(&format!("kill -9 {pid}"));
    let line = format!("/proc/{pid}/cmdline");
    wait_for("the process to be gone", || std::fs::read(&line).unwrap_or_default().is_empty());
}

/// Ends a run and the dead-man such that neither puts anything back.
fn die(mut changes: RemoteChanges) {
    kill(changes.open.as_ref().unwrap().dead_man.pid);
    changes.open = None;
    changes.host.session.cut();
}

fn outcomes(reports: &[RemoteReport]) -> Vec<Outcome> {
    let entries = reports.iter().flat_map(|report| &report.report.entries);
    entries.map(|entry| entry.outcome.clone()).collect()
}

const IPV6_MTU: &str = "sysctl.net/ipv6/conf/v0/mtu";

/// However a change of `settings` ends, everything must be as it was.
fn comes_back_after_each_end(look: &str, changed: &[(&str, &str)]) {
    let before = sh(look);
    let apply = |folder: &tempfile::TempDir| {
        let mut changes = begin(folder);
        for (name, value) in changed {
            changes.apply(&setting(name), value).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        assert_ne!(sh(look), before, "{changed:?}");
        changes
    };
    let folder = tempfile::tempdir().unwrap();
    let report = apply(&folder).restore();
    assert!(report.report.is_clean(), "{report}");
    assert_eq!(sh(look), before, "restored: {changed:?}");
    let mut changes = apply(&folder);
    changes.host.session.end();
    assert_eq!(sh(look), before, "by the host itself: {changed:?}");
    assert!(changes.restore().report.is_clean());
    die(apply(&folder));
    let mut host = host();
    let reports = undo_at(folder.path(), &mut host);
    assert!(reports.iter().all(|report| report.report.is_clean()), "{reports:?}");
    assert_eq!(sh(look), before, "by the journal: {changed:?}");
}

#[test]
fn what_is_dragged_along_only_by_putting_back_comes_back() {
    in_scene(|_| {
        sh(&format!("sysctl -w {}=1300", &IPV6_MTU[7..]));
        let look = "ip link show v0; sysctl net/ipv6/conf/v0/mtu";
        // With the MTU the kernel also sets IPv6's, even when the MTU comes back.
        comes_back_after_each_end(look, &[("link.mtu@v0", "1400")]);
        comes_back_after_each_end(look, &[(IPV6_MTU, "1290"), ("link.mtu@v0", "1400")]);
        comes_back_after_each_end(look, &[("link.mtu@v0", "1400"), (IPV6_MTU, "1290")]);
        // Here the change itself drags nothing along.
        sh(&format!("sysctl -w {}=1400", &IPV6_MTU[7..]));
        comes_back_after_each_end(look, &[("link.mtu@v0", "1400")]);
    });
}

#[test]
fn two_settings_that_drag_each_other_along_are_both_ours() {
    in_scene(|folder| {
        let look = "ip link show v0; sysctl net/ipv6/conf/v0/mtu";
        let before = sh(look);
        let mut changes = begin(&folder);
        for (mtu, ipv6) in [("1400", "1290"), ("1500", "1300"), ("1450", "1290")] {
            changes.apply(&setting(IPV6_MTU), ipv6).unwrap();
            changes.apply(&setting("link.mtu@v0"), mtu).unwrap();
        }
        die(changes);
        let mut host = host();
        let reports = undo_at(folder.path(), &mut host);
        assert!(reports.iter().all(|report| report.report.is_clean()), "{reports:?}");
        assert_eq!(sh(look), before);
    });
}

#[test]
fn devices_on_top_of_one_come_back_with_it() {
    in_scene(|_| {
        sh(
            "ip link add link v0 name m0 type macvlan && ip link add name top type bridge && ip link set v1 master top && \
            ip link set m0 up && ip link set top up",
        );
        let look = "ip -o link show | sed -e 's/ state.*//' -e 's/<.*>//'; sysctl -a -r 'net.ipv6.conf.*.mtu$'; ethtool -k m0; ethtool -k top; ethtool -k v1";
        comes_back_after_each_end(look, &[("link.mtu@v0", "1400")]);
        comes_back_after_each_end(look, &[("link.mtu@v1", "1400")]);
        comes_back_after_each_end(look, &[("offload.tx-checksum@v1", "off")]);
    });
}

#[test]
fn what_queues_are_spread_over_comes_back_with_the_channels() {
    in_namespace(|| {
        sh(
            "ip link add v0 numtxqueues 4 numrxqueues 4 type veth peer name v1 && ip link set v0 up && \
            ip link set v1 up && ethtool -L v0 rx 4 tx 4",
        );
        let sysfs = |script: &str| {
            format!(
                "unshare --mount sh -c 'mount -t sysfs none /sys; cd /sys/class/net/v0/queues; {script}'"
            )
        };
        sh(&sysfs(
            "for q in rx-*; do echo 2 >$q/rps_cpus; echo 32 >$q/rps_flow_cnt; done; \
                   for q in tx-*; do echo 1 >$q/xps_cpus; done",
        ));
        let look = sysfs("grep . */rps_cpus */rps_flow_cnt */xps_cpus; ethtool -l v0");
        comes_back_after_each_end(&look, &[("channels.rx@v0", "1")]);
        comes_back_after_each_end(&look, &[("channels.tx@v0", "2"), ("channels.rx@v0", "2")]);
    });
}

#[test]
fn files_of_a_device_come_back_after_each_end() {
    in_namespace(|| {
        sh(
            "ip link add v0 numtxqueues 4 numrxqueues 4 type veth peer name v1 && ip link set v0 up && \
            ip link set v1 up && ethtool -L v0 rx 3 tx 3 && ethtool -K v0 gro on",
        );
        let look = "unshare --mount sh -c 'mount -t sysfs none /sys; cd /sys/class/net/v0; \
            grep . napi_defer_hard_irqs gro_flush_timeout threaded; \
            grep -s . queues/*/rps_cpus queues/*/rps_flow_cnt queues/*/xps_cpus queues/*/xps_rxqs'; :";
        for changed in [
            &[("polling@v0", "deferred"), ("napi.defer_hard_irqs@v0", "7")][..],
            &[("napi.gro_flush_timeout@v0", "9000"), ("polling@v0", "threaded")],
            &[("napi.threaded@v0", "on"), ("polling@v0", "deferred"), ("polling@v0", "threaded")],
            &[("rps.cpus@v0", "1"), ("rps.flow_cnt@v0", "100")],
            &[("xps.cpus@v0", "1"), ("rps.cpus@v0", "1"), ("xps.rxqs@v0", "2")],
            &[("rps.cpus@v0", "1"), ("channels.rx@v0", "2")],
            &[("channels.rx@v0", "1"), ("rps.cpus@v0", "1")],
        ] {
            comes_back_after_each_end(look, changed);
        }
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
            let index = changes.find_around(&setting("polling@v0")).unwrap();
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

/// The parameter belongs to the whole machine, so this test only looks at it.
#[test]
fn a_discipline_that_the_kernel_chose_is_recognised_by_its_kind() {
    in_namespace(|| {
        sh("ip tuntap add v0 mode tap && ip link set v0 up");
        let look = "tc qdisc show dev v0 | cut -d ' ' -f 2,3";
        comes_back_after_each_end(look, &[("qdisc.kind@v0", "pfifo")]);
        let folder = tempfile::tempdir().unwrap();
        let mut changes = begin(&folder);
        changes.apply(&setting("qdisc.kind@v0"), "pfifo").unwrap();
        let attached = changes.entries[0].around.iter_mut();
        let attached =
            attached.filter(|cell| cell.setting.name == "qdisc.attached").last().unwrap();
        // As if the kernel's default had been different at that time.
        attached.is_original = crate::Condition::line(Command::new("echo", ["x"]), "other");
        attached.original = "other".into();
        let report = changes.restore();
        assert!(report.to_string().contains("qdisc.attached@v0: the kernel made it"), "{report}");
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
            changes.find_around(&setting(PARAMETER)).unwrap();
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
            whole.replace("\"format\":2", "\"format\":99"),
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

#[test]
fn a_host_that_answers_slowly_has_longer_to_confirm() {
    assert_eq!(confirm_s(Duration::from_millis(300)), 10);
    assert_eq!(confirm_s(Duration::from_secs(6)), 30);
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
        for words in ["link.mtu@v0: the change cut the connection", "no route", "puts it back"] {
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
        let open = changes.open.as_ref().unwrap();
        // What a change that could cut announces, and then no word gets through, though the connection stands.
        open.dead_man.expect(&mut changes.host.session, 1, 1).unwrap();
        wait_for("the host to put back", || value(PARAMETER) != OURS);
        assert!(changes.restore().report.is_clean());
    });
}
