//! Tests with a shell of this machine in its own network namespace.

mod connection;
mod dead_runs;
mod kept;
mod someone_else;
mod what_comes_back;
mod which_host;

use super::*;
use crate::ssh::Session;
use goodput_testing::{in_namespace, wait_for};
use std::path::PathBuf;
use std::process;

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

fn kill(pid: u32) {
    sh(&format!("kill -9 {pid}"));
    let line = format!("/proc/{pid}/cmdline");
    wait_for("the process to be gone", || std::fs::read(&line).unwrap_or_default().is_empty());
}

/// Ends a run and the dead-man such that neither puts anything back.
fn die(mut changes: RemoteChanges) {
    kill(changes.standby.as_ref().unwrap().dead_man.id.pid);
    changes.standby = None;
    changes.host.session.cut();
}

fn outcomes(reports: &[RemoteReport]) -> Vec<Outcome> {
    let entries = reports.iter().flat_map(|report| &report.report.entries);
    entries.map(|entry| entry.outcome.clone()).collect()
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
        let logged = goodput_settings::log_part(folder.path(), None, usize::MAX).unwrap().changes;
        assert!(logged.iter().all(|one| one.host.as_deref() == here && one.netns.is_none()));
        let of_mtu = logged.iter().filter(|one| one.setting == "link.mtu@v0");
        let seen: Vec<_> = of_mtu.map(|one| (&*one.from, &*one.to, one.what)).collect();
        let [set, back] = [ChangeKind::Set, ChangeKind::PutBack];
        assert_eq!(seen, [("1400", &*before.2, back), (&*before.2, "1400", set)]);
    });
}

#[test]
fn facts_of_a_host_have_its_cpus_and_what_its_device_spreads_packets_over() {
    in_scene(|_| {
        sh("ip addr add 10.9.0.1/24 dev v0");
        let facts = host().facts(Some(IpAddr::from([10, 9, 0, 2]))).unwrap();
        let online: u64 = sh("getconf _NPROCESSORS_ONLN").parse().unwrap();
        assert_eq!(facts.count("cpu.count"), Ok(online));
        assert_eq!(facts.text("steering.rps_mask"), Ok("0"));
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
        assert!(changes.noted.entries.is_empty(), "nothing was about to change");
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
        let under_way = changes.noted.entries[0].main.under_way.clone().unwrap();
        sh(&under_way.command().to_string());
        assert_eq!(value(&name), rounded);
        assert!(changes.restore().report.is_clean());
        assert_eq!(value(&name), before);
    });
}
