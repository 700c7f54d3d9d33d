//! # What it means
//! The kernel's NFS client holds calls back: they wait on this host before they are sent.
//!
//! # Why it limits
//! A connection has a number of slots, and a session of NFS 4.1 and later has its own. A call
//! without a free slot waits. So does a call whose connection is busy with other calls or is being
//! set up again.
//!
//! # How it is seen
//! By the kernel's own times of each call (/proc/self/mountstats): for at least 30 % of the time of
//! READs, or of WRITEs, the call was not sent yet. The sum of the backlog shows whether all slots
//! of the connection were in use.
//!
//! # What to try
//! More connections (`nfs.nconnect`), which have slots of their own. For the slots: `sunrpc.tcp_slot_table_entries` and
//! `sunrpc.tcp_max_slot_table_entries`, and `nfs.max_session_slots` of NFS 4.1 and later. Calls that were sent again point to a
//! connection that broke: see `dmesg`.
//!
//! # When it is wrong
//! The counts are for the whole mount, so they include calls of other programs. A large chunk is
//! split into many calls, which are queued together on purpose. With one flow, a queue of less than
//! a chunk costs nothing if the path is full.
//!
//! # Source
//! net/sunrpc/stats.c (`rpc_count_iostats_metrics`, `_print_rpc_iostats`); net/sunrpc/xprt.c (`xprt_reserve`); nfs(5), nconnect.

use goodput_model::{Confidence, EndName, Finding, Missing, Place};

use crate::bounds::next_after;
use crate::change::of_plan;
use crate::finding::{Draft, percent, time};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::MIN_STOPPED_TIME_SHARE;
use crate::view::{Side, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "rpc-queue",
    title: "NFS calls wait on this host before they are sent",
    refines: &[parts::RECEIVING_PROGRAM],
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "calls_queued_percent",
    witness_words: ("calls that waited in the queue", " %"),
    source: include_str!("rpc_queue.rs"),
};

/// Connections to try: what most guides begin with, far below the kernel's most (16).
const TRIED_CONNECTIONS: u64 = 4;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let near = view.side(EndName::Near);
    near.elapsed_s()?;
    let Some(queued) = queued(view)? else { return Ok(None) };
    if queued.share < MIN_STOPPED_TIME_SHARE {
        return Ok(None);
    }
    let (own, kind) = (Place::Near, queued.kind.to_uppercase());
    let mut draft = Draft::new(RULE.id, own, Confidence::Possible, "this host's queue of NFS calls")
        .saw(own, RULE.witness_name, queued.share * 100.0, {
            format!("{kind}s waited {} of their time before they were sent", percent(queued.share))
        })
        .saw(own, "queue_us", queued.mean_s * 1e6, {
            format!("each waited {} (mean)", time(queued.mean_s))
        })
        .saw_if(own, "mean_backlog", backlog(near), |calls| match calls {
            0.0 => "no call waited for a slot of the connection: the connection was busy, or the slots of the session".into(),
            calls => format!("{calls:.1} calls waited for a slot of the connection (mean)"),
        })
        .saw_if(own, "calls_sent_again", sent_again(near, queued.kind), |calls| match calls {
            0.0 => "no call was sent again".into(),
            calls => format!("{calls} calls were sent again: the connection broke, or the server was silent (dmesg)"),
        })
        .predicted(next_after(view, &[RULE.id]));
    if let Ok(connections) = near.number("mount.connections")
        && connections < TRIED_CONNECTIONS as f64
    {
        let (from, to) = (format!("{connections}"), TRIED_CONNECTIONS.to_string());
        let why = "each connection has slots of its own";
        draft = draft.changes([of_plan("nfs.nconnect", Some(from), &to, why)]);
    }
    draft
        .advice("the kernel's limits are sunrpc.tcp_slot_table_entries and, for NFS 4.1, nfs.max_session_slots")
        .found()
}

/// How long the calls of one kind waited.
struct Queued {
    kind: &'static str,
    /// Of their time, 0 to 1.
    share: f64,
    /// Each, seconds.
    mean_s: f64,
}

/// Of the calls that carried the payload of this run: others of the mount may read while it writes. `None`: no file on an NFS
/// mount was moved.
fn queued(view: &View) -> Result<Option<Queued>, Missing> {
    let side = view.side(EndName::Near);
    if !side.text("mount.type").is_ok_and(|kind| kind.starts_with("nfs")) {
        return Ok(None);
    }
    let kind = if view.sender.name == EndName::Near { "write" } else { "read" };
    let grown = |what: &str| side.grown(&format!("mount.{kind}.{what}"));
    let (calls, queue_ms, all_ms) = (grown("calls")?, grown("queue_ms")?, grown("execute_ms")?);
    if calls == 0 || all_ms == 0 {
        return Ok(None);
    }
    let (share, mean_s) = (queue_ms as f64 / all_ms as f64, queue_ms as f64 / 1e3 / calls as f64);
    Ok(Some(Queued { kind, share, mean_s }))
}

/// Calls that waited for a slot when another was sent, mean.
fn backlog(side: &Side) -> Result<f64, Missing> {
    let (sum, sends) = (side.grown("mount.backlog_sum")?, side.grown("mount.sends")?);
    Ok(sum as f64 / sends.max(1) as f64)
}

fn sent_again(side: &Side, kind: &str) -> Result<f64, Missing> {
    let grown = |what: &str| side.grown(&format!("mount.{kind}.{what}"));
    Ok(grown("transmissions")?.saturating_sub(grown("calls")?) as f64)
}

/// Share of the calls' time before they were sent, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    let queued = queued(view)?;
    Ok(queued.ok_or_else(|| Missing::because("no file on an NFS mount was moved"))?.share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, fires, quiet};

    /// This end reads by 1000 READs of 20 ms each, which waited this long to be sent.
    fn reads(queue_ms: u64, connections: u64) -> Case {
        let near = EndName::Near;
        let case = Case::healthy().sent_by(EndName::Far).fact(near, "mount.type", "nfs4");
        case.fact(near, "mount.connections", connections)
            .grows(near, "mount.read.calls", 1000)
            .grows(near, "mount.read.queue_ms", queue_ms * 1000)
            .grows(near, "mount.read.execute_ms", 20_000)
            .grows(near, "mount.read.transmissions", 1003)
            .grows(near, "mount.backlog_sum", 7000)
            .grows(near, "mount.sends", 1003)
    }

    #[test]
    fn fires_if_calls_wait_here_and_says_for_what() {
        let finding = fires(&RULE, reads(12, 1));
        assert_eq!(finding.changes[0].as_argument(), "nfs.nconnect=1,4");
        for words in ["60 %", "12 ms", "7.0 calls waited for a slot", "3 calls were sent again"] {
            assert!(finding.evidence.iter().any(|saw| saw.text.contains(words)), "{finding:?}");
        }
        assert!(fires(&RULE, reads(12, 8)).changes.is_empty());
    }

    #[test]
    fn a_run_that_writes_is_judged_by_its_writes() {
        let near = EndName::Near;
        let writes = |queue_ms: u64| {
            let case = reads(12, 1).sent_by(near);
            case.grows(near, "mount.write.calls", 1000)
                .grows(near, "mount.write.queue_ms", queue_ms * 1000)
                .grows(near, "mount.write.execute_ms", 20_000)
                .grows(near, "mount.write.transmissions", 1000)
        };
        quiet(&RULE, writes(1));
        let finding = fires(&RULE, writes(15));
        let waited = |text: &str| text.contains("WRITEs waited 75 %");
        assert!(finding.evidence.iter().any(|saw| waited(&saw.text)), "{finding:?}");
    }

    #[test]
    fn stays_quiet_if_calls_leave_at_once_and_elsewhere() {
        quiet(&RULE, reads(1, 1));
        quiet(&RULE, reads(12, 1).fact(EndName::Near, "mount.type", "ext4"));
        quiet(&RULE, Case::healthy());
    }
}
