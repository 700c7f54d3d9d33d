//! `qdisc.kind` over queueing disciplines with parameters of their own: each comes back as it was, handle and
//! parameters, or is refused beforehand. And one parameter at a time, all others as they were.

use std::process::Command;

use goodput_model::SettingRef;
use goodput_netlink::{Netlink, namespace};
use goodput_settings::{Changes, SettingError, read};
use libtest_mimic::{Failed, Trial};

use crate::victim::guard;

/// As tc(8) makes them, with parameters that nobody has by default.
const COMES_BACK: [&str; 8] = [
    "fq limit 5000 flow_limit 50 quantum 3000 initial_quantum 9000 maxrate 100mbit",
    "fq_codel limit 777 flows 64 target 7ms interval 70ms quantum 600 noecn",
    "codel limit 555 target 4ms interval 40ms ecn",
    "pie limit 333 target 20ms tupdate 30ms alpha 3 beta 21 ecn",
    "pfifo limit 33",
    "bfifo limit 33333",
    "pfifo_head_drop limit 44",
    "tbf rate 10mbit burst 10000 limit 30000",
];
/// Their dumps lack what it takes to make them again, or they have classes.
const REFUSED: [&str; 5] =
    ["cake bandwidth 10mbit", "sfq perturb 10", "netem delay 1ms", "htb default 10", "ets bands 3"];
/// What they are changed to, one after the other. Some of these would not come back themselves, and need not.
const OTHERS: [&str; 6] = ["cake", "fq", "sfq", "pie", "fq_codel", "default"];
/// A queueing discipline as tc(8) makes it, a setting of one of its parameters, two values, and what tc(8) prints for
/// the second.
const PARAMETERS: [(&str, &str, [&str; 2], &str); 32] = [
    (FQ_CODEL, "qdisc.fq_codel.limit", ["10240", "1000"], "limit 1000p"),
    (FQ_CODEL, "qdisc.fq_codel.target", ["5000", "20000"], "target 20ms"),
    (FQ_CODEL, "qdisc.fq_codel.interval", ["90000", "300000"], "interval 300ms"),
    (FQ_CODEL, "qdisc.fq_codel.quantum", ["1514", "300"], "quantum 300"),
    (FQ_CODEL, "qdisc.fq_codel.ecn", ["off", "on"], "ecn"),
    (FQ, "qdisc.fq.limit", ["10000", "1000"], "limit 1000p"),
    (FQ, "qdisc.fq.flow_limit", ["100", "1000"], "flow_limit 1000p"),
    (FQ, "qdisc.fq.quantum", ["3028", "30280"], "quantum 30280b"),
    (FQ, "qdisc.fq.maxrate", ["none", "90mbit"], "maxrate 90Mbit"),
    (CAKE, "qdisc.cake.bandwidth", ["none", "90mbit"], "bandwidth 90Mbit"),
    (CAKE, "qdisc.cake.rtt", ["100000", "20000"], "rtt 20ms"),
    (CAKE, "qdisc.cake.ack_filter", ["aggressive", "on"], "ack-filter"),
    (FQ_CODEL, "qdisc.fq_codel.memory_limit", ["32M", "4M"], "memory_limit 4Mb"),
    (FQ, "qdisc.fq.initial_quantum", ["15140", "30280"], "initial_quantum 30280b"),
    (FQ, "qdisc.fq.pacing", ["on", "off"], "nopacing"),
    (FQ, "qdisc.fq.refill_delay", ["40000", "100000"], "refill_delay 100ms"),
    (FQ, "qdisc.fq.orphan_mask", ["1023", "65535"], "orphan_mask 65535"),
    (FQ, "qdisc.fq.low_rate_threshold", ["550kbit", "1mbit"], "low_rate_threshold 1Mbit"),
    (FQ, "qdisc.fq.ce_threshold", ["4294967295", "5000"], "ce_threshold 5ms"),
    (FQ, "qdisc.fq.timer_slack", ["10000", "50000"], "timer_slack 50us"),
    (FQ, "qdisc.fq.horizon", ["10000000", "2000000"], "horizon 2s"),
    (FQ, "qdisc.fq.horizon_drop", ["on", "off"], "horizon_cap"),
    (CAKE, "qdisc.cake.diffserv", ["diffserv3", "diffserv4"], "diffserv4"),
    (CAKE, "qdisc.cake.flowmode", ["triple-isolate", "flows"], " flows "),
    (CAKE, "qdisc.cake.nat", ["off", "on"], " nat "),
    (CAKE, "qdisc.cake.wash", ["off", "on"], " wash "),
    (CAKE, "qdisc.cake.ingress", ["off", "on"], "ingress"),
    (CAKE, "qdisc.cake.split_gso", ["on", "off"], "no-split-gso"),
    (CAKE, "qdisc.cake.atm", ["noatm", "ptm"], "ptm"),
    (CAKE, "qdisc.cake.overhead", ["raw", "44"], "overhead 44"),
    (CAKE, "qdisc.cake.mpu", ["0", "64"], "mpu 64"),
    (CAKE, "qdisc.cake.memlimit", ["0", "8388608"], "memlimit 8Mb"),
];
const FQ_CODEL: &str = "fq_codel limit 777 flows 64 target 7ms interval 70ms quantum 600 noecn";
const FQ: &str = "fq limit 5000 flow_limit 50 quantum 3000 initial_quantum 9000 maxrate 100mbit";
const CAKE: &str = "cake bandwidth 10mbit rtt 50ms besteffort";
const DEVICE: &str = "queue0";

/// Every test of this file.
pub fn all() -> Vec<Trial> {
    let kind = |qdisc: &str| qdisc.split(' ').next().unwrap_or_default().to_owned();
    let back = COMES_BACK.into_iter().map(move |qdisc| {
        Trial::test(format!("queues::{}_comes_back", kind(qdisc)), move || {
            with_root(qdisc, comes_back)
        })
    });
    let refused = REFUSED.into_iter().map(move |qdisc| {
        Trial::test(format!("queues::{}_is_refused", kind(qdisc)), move || {
            with_root(qdisc, is_refused)
        })
    });
    let parameters = PARAMETERS.into_iter().map(|(qdisc, setting, values, shown)| {
        Trial::test(format!("queues::{setting}"), move || {
            with_root(qdisc, || parameter(setting, values, shown))
        })
    });
    back.chain(refused).chain(parameters).collect()
}

/// Runs `test` in a network namespace with a device that has this discipline at its root.
fn with_root(qdisc: &str, test: impl FnOnce() -> Result<(), Failed> + Send) -> Result<(), Failed> {
    namespace::in_new_namespace(|| {
        let mut netlink = Netlink::open()?;
        netlink.create_veth(DEVICE, "peer0")?;
        for name in [DEVICE, "peer0"] {
            let index = netlink.link(name)?.index;
            netlink.set_up(index)?;
        }
        tc(&format!("qdisc replace dev {DEVICE} root handle 7: {qdisc}"))?;
        test()
    })?
}

fn tc(words: &str) -> Result<String, Failed> {
    let output = Command::new("tc").args(words.split(' ')).output()?;
    if !output.status.success() {
        return Err(format!("tc {words}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn setting() -> Result<SettingRef, Failed> {
    Ok(format!("qdisc.kind@{DEVICE}").parse()?)
}

fn comes_back() -> Result<(), Failed> {
    let show = || tc(&format!("-details qdisc show dev {DEVICE}"));
    let (before, setting) = (show()?, setting()?);
    let state = tempfile::tempdir_in("/dev/shm")?;
    let mut changes = Changes::begin(state.path(), guard())?;
    for kind in OTHERS {
        let effective = changes.apply(&setting, kind)?;
        if effective != kind || (kind != "default" && !show()?.contains(kind)) {
            return Err(format!("{kind}: {effective}, {}", show()?).into());
        }
    }
    let report = changes.restore();
    let after = show()?;
    match report.is_clean() && after == before {
        true => Ok(()),
        false => Err(format!("{report}: {before} → {after}").into()),
    }
}

fn is_refused() -> Result<(), Failed> {
    // Kind and handle: some show beside their parameters what they have counted.
    let show = || -> Result<String, Failed> {
        let text = tc(&format!("qdisc show dev {DEVICE}"))?;
        Ok(text.split(' ').take(3).collect::<Vec<_>>().join(" "))
    };
    let before = show()?;
    let state = tempfile::tempdir_in("/dev/shm")?;
    let mut changes = Changes::begin(state.path(), guard())?;
    let answer = changes.apply(&setting()?, "fq_codel");
    match answer {
        Err(SettingError::Irreversible { .. }) if show()? == before => Ok(()),
        other => Err(format!("{other:?}: {before} → {}", show()?).into()),
    }
}

fn parameter(name: &str, values: [&str; 2], shown: &str) -> Result<(), Failed> {
    let show = || tc(&format!("-details qdisc show dev {DEVICE}"));
    let (before, setting) = (show()?, format!("{name}@{DEVICE}").parse::<SettingRef>()?);
    let state = tempfile::tempdir_in("/dev/shm")?;
    let mut changes = Changes::begin(state.path(), guard())?;
    for value in values {
        let effective = changes.apply(&setting, value)?;
        if read(&setting)? != effective {
            return Err(format!("{setting}={value}: {effective}, {}", read(&setting)?).into());
        }
    }
    if !show()?.contains(shown) {
        return Err(format!("{setting}: not {shown} but {}", show()?).into());
    }
    let report = changes.restore();
    let after = show()?;
    match report.is_clean() && after == before {
        true => Ok(()),
        false => Err(format!("{report}: {before} → {after}").into()),
    }
}
