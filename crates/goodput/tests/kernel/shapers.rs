//! `goodput shaping` through what the build machine's kernel may lack: the action `police`, cake, fq_codel, netem. It must
//! say which kind each is. How exact its rates are is no matter of an emulated processor.

use std::sync::Mutex;

use goodput_lab::{Lab, Scenario};
use goodput_model::{Known, ShapingKind};
use libtest_mimic::{Failed, Trial};

use crate::in_turn;
use crate::program::record;

/// What limits a path, and what a test must say of it.
struct Row {
    name: &'static str,
    /// The host whose device has it.
    host: &'static str,
    /// Commands of tc(8).
    commands: &'static [&'static str],
    kind: ShapingKind,
}

const ROWS: [Row; 4] = [
    Row {
        name: "police",
        host: "far",
        commands: &[
            "qdisc add dev DEVICE clsact",
            "filter add dev DEVICE ingress matchall action police rate 10mbit burst 30k conform-exceed drop",
        ],
        kind: ShapingKind::Policer,
    },
    Row {
        name: "cake",
        host: "near",
        commands: &["qdisc replace dev DEVICE root cake bandwidth 10mbit besteffort"],
        kind: ShapingKind::Shaper,
    },
    Row {
        name: "fq_codel",
        host: "near",
        commands: &[
            "qdisc replace dev DEVICE root handle 1: htb default 1",
            "class add dev DEVICE parent 1: classid 1:1 htb rate 10mbit burst 30k cburst 30k",
            "qdisc add dev DEVICE parent 1:1 fq_codel",
        ],
        kind: ShapingKind::Shaper,
    },
    Row {
        name: "netem",
        host: "near",
        commands: &["qdisc replace dev DEVICE root netem rate 10mbit limit 100"],
        kind: ShapingKind::Shaper,
    },
];

/// One after the other: each needs the guest's CPUs for its times.
static TURN: Mutex<()> = Mutex::new(());

/// Every test of this file.
pub fn all() -> Vec<Trial> {
    let test = |row: &'static Row| {
        in_turn(&TURN, format!("shapers::{}_is_known", row.name), move || is_known(row))
    };
    ROWS.iter().map(test).collect()
}

fn is_known(row: &Row) -> Result<(), Failed> {
    let scenario: Scenario = format!(
        "name = \"x\"\ntitle = \"X.\"\n[[fault]]\nkind = \"tc\"\nhost = \"{}\"\ncommands = {:?}\n",
        row.host, row.commands
    )
    .parse()?;
    let lab = Lab::up(&scenario)?;
    let record = record(&lab, &scenario, "shaping", &["--rate", "10mbit"])?;
    let test = record.shaping.ok_or("the record has no shaping")?;
    let Known::Value(train) = &test.train else { return Err(format!("{:?}", test.train).into()) };
    match train.kind == row.kind {
        true => Ok(()),
        false => Err(format!("{}: {train:?}", row.name).into()),
    }
}
