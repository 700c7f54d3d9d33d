//! `goodput shaping` through what the build machine's kernel may lack: the action `police`, cake, fq_codel, netem. It must
//! say which kind each is, nothing wrong of its queue, and what cake is set to. How exact its rates are is no matter of an
//! emulated processor, and whether a queue shows what it is depends on that processor, too.

use std::sync::Mutex;

use goodput_lab::{Lab, Scenario};
use goodput_model::{
    FlowSharing, Known, LocalShaper, QueueDiscipline, ShapingKind, ShapingQueue, ShapingTest,
};
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
    queue: Queue,
    /// Bytes that cake counts for a frame of the train.
    counted: Option<u64>,
}

/// A queue, as far as a test may say something wrong of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Queue {
    /// There is none.
    None,
    /// One for all flows, which drops at its tail.
    Fifo,
    /// A turn for each flow, and CoDel.
    Managed,
}

const ROWS: [Row; 6] = [
    Row {
        name: "police",
        host: "far",
        commands: &[
            "qdisc add dev DEVICE clsact",
            "filter add dev DEVICE ingress matchall action police rate 10mbit burst 30k conform-exceed drop",
        ],
        kind: ShapingKind::Policer,
        queue: Queue::None,
        counted: None,
    },
    Row {
        name: "cake",
        host: "near",
        commands: &["qdisc replace dev DEVICE root cake bandwidth 10mbit besteffort"],
        kind: ShapingKind::Shaper,
        queue: Queue::Managed,
        counted: Some(1514),
    },
    Row {
        name: "cake_on_ethernet",
        host: "near",
        commands: &["qdisc replace dev DEVICE root cake bandwidth 10mbit besteffort ethernet"],
        kind: ShapingKind::Shaper,
        queue: Queue::Managed,
        counted: Some(1538),
    },
    Row {
        name: "cake_on_atm",
        host: "near",
        commands: &["qdisc replace dev DEVICE root cake bandwidth 10mbit overhead 40 mpu 96 atm"],
        kind: ShapingKind::Shaper,
        queue: Queue::Managed,
        // 1540 bytes in 33 cells.
        counted: Some(33 * 53),
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
        queue: Queue::Managed,
        counted: None,
    },
    Row {
        name: "netem",
        host: "near",
        commands: &["qdisc replace dev DEVICE root netem rate 10mbit limit 100"],
        kind: ShapingKind::Shaper,
        queue: Queue::Fifo,
        counted: None,
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
    let is_right = train.kind == row.kind
        && train.queue.value().is_none_or(|queue| fits(queue, row.queue))
        && row.counted.is_none_or(|bytes| is_read(&test, bytes));
    match is_right {
        true => Ok(()),
        false => Err(format!("{}: {train:?} {:?}", row.name, test.shaper).into()),
    }
}

/// Whether nothing wrong is said of a queue.
fn fits(seen: &ShapingQueue, queue: Queue) -> bool {
    use QueueDiscipline::{ActiveManagement, DropHead, DropTail, Unfilled};
    let (discipline, shared) = (seen.discipline.value(), seen.between_flows.value());
    match queue {
        Queue::None => false,
        Queue::Fifo => {
            matches!(discipline, None | Some(Unfilled | DropTail))
                && shared != Some(&FlowSharing::FairQueue)
        }
        Queue::Managed => {
            matches!(discipline, None | Some(Unfilled | DropHead | ActiveManagement))
                && shared != Some(&FlowSharing::OneQueue)
        }
    }
}

/// Whether the rate and what counts are those that cake is set to.
fn is_read(test: &ShapingTest, bytes: u64) -> bool {
    let Known::Value(LocalShaper { kind, rate_bits_per_s, counted_frame_bytes, .. }) = &test.shaper
    else {
        return false;
    };
    kind == "cake" && rate_bits_per_s.0 == 10e6 && counted_frame_bytes.0 == bytes
}
