//! What every source must satisfy, checked for the whole list.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::*;
use crate::mounts::tests::listed_in;
use crate::{FileMount, Root};

/// Every file that a source reads on a healthy host, with its content.
const FILES: &[(&str, &str)] = &[
    ("proc/stat", "cpu  3 0 2 9 1 0 5 7 0 0\ncpu0 3 0 2 9 1 0 5 7 0 0\nctxt 42\n"),
    ("proc/meminfo", "MemTotal: 8 kB\n"),
    ("proc/self/cgroup", "1:cpu:/a\n"),
    (
        "proc/self/mountinfo",
        "2 2 0:4 / /m rw - nfs4 n:/e rw,vers=4.2,rsize=4096\n1 2 0:3 / /cg rw - cgroup cgroup rw,cpu\n",
    ),
    (
        "proc/self/mountstats",
        "device n:/e mounted on /m with fstype nfs4 statvers=1.1\n\tbytes:\t1 0 3 0 5 6 7 8\n\
         \txprt:\ttcp 700 1 1 0 0 9 9 0 99 3 64 1 1\n\
         \t        READ: 8 9 0 800 80000 3 30 40 0\n\t       WRITE: 0 0 0 0 0 0 0 0 0\n\
         \t      GETATTR: 5 5 0 5 5 5 5 5 0\n\n",
    ),
    ("sys/class/bdi/0:4/read_ahead_kb", "128\n"),
    ("cg/a/cpu.cfs_quota_us", "50000\n"),
    ("cg/a/cpu.cfs_period_us", "100000\n"),
    ("cg/a/cpu.stat", "nr_periods 3\nnr_throttled 2\nthrottled_time 9000\n"),
    ("proc/thread-self/net/netstat", "TcpExt: A B\nTcpExt: 1 2\nIpExt: C\nIpExt: 3\n"),
    ("proc/thread-self/net/snmp", "Ip: A\nIp: 1\nTcp: B\nTcp: 2\nUdp: C\nUdp: 3\n"),
    ("proc/thread-self/net/softnet_stat", "0000000d 00000001 00000002\n"),
    ("proc/thread-self/net/sockstat", "TCP: inuse 1 mem 37\nUDP: inuse 1 mem 5\n"),
    ("proc/sys/net/ipv4/udp_mem", "100\t200\t300\n"),
    ("sys/devices/system/node/online", "0\n"),
    ("sys/devices/system/node/node0/cpulist", "0-1023\n"),
    ("proc/softirqs", "     CPU0  CPU1\n NET_TX: 3 4\n NET_RX: 50 60\n"),
    ("proc/pressure/cpu", "some avg10=1.00 total=5\n"),
    ("proc/pressure/memory", "some avg10=1.00 total=6\nfull avg10=1.00 total=7\n"),
    ("proc/pressure/io", "some avg10=1.00 total=8\nfull avg10=1.00 total=9\n"),
    ("proc/sys/net/netfilter/nf_conntrack_count", "4\n"),
    ("proc/sys/net/netfilter/nf_conntrack_max", "262144\n"),
    ("proc/thread-self/net/stat/nf_conntrack", "entries drop early_drop\n0004 0002 0003\n"),
    ("proc/sys/net/ipv4/tcp_mem", "100\t200\t300\n"),
    ("sys/devices/system/cpu/online", "0\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1200000\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
    ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
];

fn fake_host(change: impl Fn(&str, &str) -> Option<String>) -> (tempfile::TempDir, Context) {
    let directory = tempfile::tempdir().unwrap();
    for (file, text) in FILES {
        let Some(text) = change(file, text) else { continue };
        let path = directory.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let mounts = listed_in(&directory.path().join("proc/self")).ok();
    let mount = mounts.and_then(|mounts| FileMount::with(2, mounts).ok());
    let context = Context { root: Root::at(directory.path()), mount, ..Context::default() };
    (directory, context)
}

/// Sources about our own process, which ask the kernel regardless of the root: their facts differ each time.
const OURS: [&str; 2] = ["process", "schedule"];

fn facts(snapshot: &Snapshot) -> BTreeSet<String> {
    let ours = |name: &String| OURS.contains(&name.split('.').next().unwrap_or_default());
    snapshot.facts.keys().filter(|name| !ours(name)).cloned().collect()
}

#[test]
fn ids_are_unique_kebab_case_file_names_and_the_folder_is_the_list() {
    let listed: BTreeSet<String> = ALL.iter().map(|source| source.id().to_owned()).collect();
    assert_eq!(listed.len(), ALL.len(), "an id occurs twice");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sources");
    let files: BTreeSet<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .filter(|name| !["mod", "conformance", "live"].contains(&name.as_str()))
        .collect();
    assert_eq!(files, listed);
    for source in ALL {
        let kebab = source.id().chars().all(|c| c.is_ascii_lowercase() || c == '-');
        assert!(kebab && !source.summary().is_empty(), "{}", source.id());
    }
}

#[test]
fn a_source_names_its_facts_after_itself() {
    let (_directory, context) = fake_host(|_, text| Some(text.into()));
    for source in ALL {
        let mut snapshot = Snapshot::default();
        let _ = source.snapshot(&context, &mut snapshot);
        for name in snapshot.facts.keys().chain(snapshot.missing.keys()) {
            assert!(name.starts_with(&format!("{}.", source.id())), "{name}");
        }
    }
}

#[test]
fn settings_and_states_last_and_counters_do_not() {
    let lasting = [
        "link.mtu_bytes",
        "qdisc.rate_bits_per_s",
        "filters.ingress_policers",
        "nftables.rules",
        "cgroup.quota",
        "route.device",
        "sysctl.net.ipv4.tcp_rmem",
    ];
    assert!(lasting.into_iter().all(lasts));
    let passing = [
        "link.rx_crc_errors",
        "link.carrier_changes",
        "qdisc.drops",
        "filters.ingress_drops",
        "nftables.dropped_packets",
        "cgroup.nr_throttled",
        "netstat.TcpExt.TCPTimeouts",
        "novel.setting",
        "link",
    ];
    assert!(!passing.into_iter().any(lasts));
}

#[test]
fn a_host_without_files_gives_reasons_and_no_facts() {
    let (_directory, context) = fake_host(|_, _| None);
    let snapshot = snapshot(&context);
    assert_eq!(facts(&snapshot), BTreeSet::new());
    for source in ALL.iter().filter(|source| !OURS.contains(&source.id())) {
        assert!(!snapshot.missing[source.id()].is_empty(), "{}", source.id());
    }
}

#[test]
fn empty_files_give_reasons_and_no_facts() {
    let (_directory, context) = fake_host(|_, _| Some(String::new()));
    assert_eq!(facts(&snapshot(&context)), BTreeSet::new());
}

#[test]
fn a_file_cut_anywhere_changes_no_fact_it_still_gives() {
    let (directory, context) = fake_host(|_, text| Some(text.into()));
    let whole = snapshot(&context);
    for (victim, text) in FILES {
        let path = directory.path().join(victim);
        for length in 0..text.len() {
            fs::write(&path, &text[..length]).unwrap();
            let cut = snapshot(&context);
            for name in facts(&cut) {
                assert_eq!(cut.facts[&name], whole.facts[&name], "{name}, {victim} at {length}");
            }
        }
        fs::write(&path, text).unwrap();
    }
}

#[test]
fn unknown_fields_change_nothing() {
    let (_directory, context) = fake_host(|_, text| Some(text.into()));
    let (_directory, newer) = fake_host(|file, text| {
        Some(match file {
            "proc/stat" | "proc/meminfo" | "cg/a/cpu.stat" => format!("{text}brand_new 7 8\n"),
            "proc/thread-self/net/netstat" | "proc/thread-self/net/snmp" => {
                format!("{text}New: X\nNew: 1\n")
            }
            "proc/thread-self/net/softnet_stat" => text.replace('\n', " 00000009 00000009\n"),
            "proc/thread-self/net/sockstat" => text.replace(" mem", " novel 3 mem"),
            "proc/softirqs" => format!("{text}NEW: 1 2\n"),
            "proc/pressure/cpu" => format!("{text}novel total=3\n"),
            "proc/thread-self/net/stat/nf_conntrack" => text.replace('\n', " 00000009\n"),
            "proc/self/cgroup" => format!("{text}9:novel:/x\n"),
            _ => text.into(),
        })
    });
    let (known, newer) = (snapshot(&context), snapshot(&newer));
    assert_eq!(facts(&known), facts(&newer));
    for name in facts(&known) {
        assert_eq!(known.facts[&name], newer.facts[&name], "{name}");
    }
}
