//! Frames past the IP stack (`--mover xdp`): all arrive, and a killed run leaves nothing at the near host.

use std::cell::RefCell;
use std::fs::File;
use std::process::Stdio;

use goodput_netlink::Netlink;
use goodput_testing::skip;
use libtest_mimic::Failed;
use serde_json::Value;

use crate::namespace::{difference, look};
use crate::neighbours::Test;
use crate::stage::{Stage, look_until};
use crate::turns::lines;

/// Frames that a run sends before it is killed.
const FRAMES: u64 = 300;

/// Every test of this file.
pub fn all() -> Vec<Test> {
    vec![Test::of_facts("raw_frames::a_killed_run_leaves_nothing", a_killed_run_leaves_nothing)]
}

fn a_killed_run_leaves_nothing() -> Result<(), Failed> {
    let stage = Stage::set(&[])?;
    let device = stage.lab.near().device().to_owned();
    look_until("the addresses to settle", || {
        Ok(!lines(&stage, "ip -o addr")?.iter().any(|line| line.contains("tentative")))
    })?;
    let look = look(&[&device]);
    let before = lines(&stage, &look)?;
    if !arrives(&stage)? {
        return Ok(());
    }
    let log = stage.file("run.log")?;
    for _ in 0..3 {
        let from = sent_packets(&stage)?;
        let mut run = stage
            .goodput(&["test", stage.target(), "-u", "--mover", "xdp", "--no-store"])?
            .args(["--rate", "10M", "-t", "60"])
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()?;
        let running = RefCell::new(&mut run);
        look_until("frames to be sent", || {
            if running.borrow_mut().try_wait()?.is_some() {
                return Err(std::fs::read_to_string(&log)?.into());
            }
            Ok(sent_packets(&stage)? > from + FRAMES)
        })?;
        run.kill()?;
        run.wait()?;
        let after = lines(&stage, &look)?;
        if after != before {
            return Err(format!("{:#?}", difference(&before, &after)).into());
        }
    }
    // The device's only queue is free again.
    arrives(&stage).map(drop)
}

/// Sends some datagrams, of which the receiver must have all; `false` if this kernel can't.
fn arrives(stage: &Stage) -> Result<bool, Failed> {
    let words = ["test", stage.target(), "-u", "--mover", "xdp", "--no-store", "--json"];
    let output = stage.goodput(&words)?.args(["--rate", "10M", "-n", "200K"]).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("CONFIG_XDP_SOCKETS") {
        skip("a kernel with AF_XDP");
        return Ok(false);
    }
    let record: Value =
        serde_json::from_slice(&output.stdout).map_err(|why| format!("{why}: {said}"))?;
    let (sent, lost) = (largest(&record, "sent"), largest(&record, "lost"));
    let all_came = sent > 100 && lost == 0;
    if output.status.success() && all_came {
        Ok(true)
    } else {
        Err(format!("{said} {record}").into())
    }
}

/// The largest number with this name anywhere in a record; 0 if there is none.
fn largest(record: &Value, name: &str) -> u64 {
    let own = record.get(name).and_then(Value::as_u64);
    let fields = record.as_object().into_iter().flat_map(|object| object.values());
    let all = fields.chain(record.as_array().into_iter().flatten());
    all.map(|inner| largest(inner, name)).chain(own).max().unwrap_or(0)
}

/// Packets that the near host's device has sent.
fn sent_packets(stage: &Stage) -> Result<u64, Failed> {
    let near = stage.lab.near();
    let link = near.within(|| Netlink::open()?.link(near.device()))??;
    Ok(link.stats.map_or(0, |stats| stats.tx_packets))
}
