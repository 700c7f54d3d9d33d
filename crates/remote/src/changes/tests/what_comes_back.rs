//! However a run ends, everything that its changes drag along comes back.

use super::*;
use crate::command::Command;

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
        let attached = changes.noted.entries[0].around.iter_mut();
        let attached =
            attached.filter(|cell| cell.setting.name == "qdisc.attached").last().unwrap();
        // As if the kernel's default had been different at that time.
        attached.is_original = crate::Condition::line(Command::new("echo", ["x"]), "other");
        attached.original = "other".into();
        let report = changes.restore();
        assert!(report.to_string().contains("qdisc.attached@v0: the kernel made it"), "{report}");
    });
}

/// Two buckets whose parameters tc(8) prints rounded, and what they count beside a packet.
const BUCKETS: [&str; 2] = [
    "rate 123456789bit burst 12347 limit 100001 overhead 4",
    "rate 1gbit burst 15000 limit 300001 mpu 64 overhead 10 linklayer atm",
];

#[test]
fn a_token_bucket_comes_back_exactly_with_all_that_it_counts() {
    in_scene(|_| {
        for bucket in BUCKETS {
            sh(&format!("tc qdisc replace dev v0 root handle 7: tbf {bucket}"));
            for changed in [
                &[("qdisc.tbf.rate@v0", "77777777bit")][..],
                &[("qdisc.tbf.limit@v0", "1M"), ("qdisc.tbf.rate@v0", "300mbit")],
                &[("qdisc.tbf.burst@v0", "1600"), ("qdisc.tbf.limit@v0", "4000")],
            ] {
                comes_back_after_each_end("tc -r -d qdisc show dev v0", changed);
            }
        }
        sh("tc qdisc replace dev v0 root handle 8: bfifo limit 100000");
        comes_back_after_each_end("tc qdisc show dev v0", &[("qdisc.fifo.limit@v0", "64K")]);
    });
}

#[test]
fn what_someone_else_changes_of_a_bucket_is_left_alone() {
    in_scene(|folder| {
        let bucket = |rate: &str, limit: &str| {
            format!(
                "tc qdisc replace dev v0 root handle 7: tbf rate {rate} burst 16k limit {limit}"
            )
        };
        sh(&bucket("100mbit", "200k"));
        let before = value("qdisc.tbf.burst@v0");
        let mut changes = begin(&folder);
        assert_eq!(changes.apply(&setting("qdisc.tbf.rate@v0"), "50mbit").unwrap(), "50mbit");
        sh(&bucket("50mbit", "100k"));
        assert!(changes.restore().report.is_clean());
        let now = ["rate", "burst", "limit"].map(|word| value(&format!("qdisc.tbf.{word}@v0")));
        assert_eq!(now, ["100mbit", &*before, "102400"]);
    });
}

#[test]
fn a_bucket_that_is_gone_takes_its_change_along() {
    in_scene(|folder| {
        sh("tc qdisc replace dev v0 root handle 7: tbf rate 100mbit burst 16k limit 100k");
        let mut changes = begin(&folder);
        changes.apply(&setting("qdisc.tbf.limit@v0"), "200K").unwrap();
        sh("tc qdisc replace dev v0 root handle 8: pfifo limit 9");
        let report = changes.restore().to_string();
        assert!(report.contains("the token bucket of v0 is gone"), "{report}");
        assert_eq!(value("qdisc.fifo.limit@v0"), "9");
    });
}

/// The kind of a discipline makes its parameters: whatever order they are changed in, both are one change.
#[test]
fn a_kind_and_its_parameters_come_back_together() {
    in_scene(|_| {
        let kind = |kind| ("qdisc.kind@v0", kind);
        let limit = |limit| ("qdisc.fifo.limit@v0", limit);
        for changed in [
            &[kind("pfifo"), limit("9")][..],
            // The limit is one of bytes after that.
            &[kind("pfifo"), limit("9"), kind("bfifo"), limit("64K")],
            // And here, this run has removed it.
            &[kind("pfifo"), limit("9"), kind("pfifo_head_drop")],
            &[kind("bfifo"), limit("64K"), kind("default"), kind("pfifo")],
        ] {
            comes_back_after_each_end("tc qdisc show dev v0", changed);
        }
    });
}

#[test]
fn a_kind_that_someone_else_put_in_place_of_ours_stays_and_took_our_parameter_along() {
    in_scene(|folder| {
        let mut changes = begin(&folder);
        changes.apply(&setting("qdisc.kind@v0"), "pfifo").unwrap();
        changes.apply(&setting("qdisc.fifo.limit@v0"), "9").unwrap();
        sh("tc qdisc replace dev v0 root handle 9: pfifo_head_drop limit 7");
        let report = changes.restore().to_string();
        assert!(report.contains("the fifo of v0 is gone"), "{report}");
        assert!(report.contains("now pfifo_head_drop"), "{report}");
        let now = sh("tc qdisc show dev v0");
        assert!(now.contains("limit 7p"), "{now}");
    });
}
