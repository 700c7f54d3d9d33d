//! Shrinking a token bucket without jamming it.
//!
//! sch_tbf segments a packet longer than its burst when it is queued (`tbf_segment` in
//! net/sched/sch_tbf.c), never when it leaves: a packet of segmentation offload that was queued
//! under a large burst waits for ever after the burst has become smaller than it, and everything
//! behind it too.

use std::thread;
use std::time::{Duration, Instant};

use goodput_netlink::{Netlink, NetlinkError, Qdisc, QdiscOptions, Tbf};

/// How often the large burst is given back to let a jam out, before this is given up.
const MAX_DRAIN_ATTEMPTS: u32 = 20;
/// How long the jam may take to leave under the large burst.
const DRAIN_TIME: Duration = Duration::from_millis(20);
/// What a wake-up may be late, beyond the time that the tokens of one packet take.
const WAKEUP_LATENESS: Duration = Duration::from_millis(20);
/// How long the queue is watched; a shaper that slow has no packets of segmentation offload.
const WATCH_TIME: Duration = Duration::from_secs(5);

/// Changes a bucket `from` one set of parameters `to` another, so that whatever is queued can
/// leave. Returns whether it can: `false` where a stream of long packets jams it repeatedly.
pub(super) fn change(
    netlink: &mut Netlink,
    qdisc: &Qdisc,
    from: &Tbf,
    to: &Tbf,
) -> Result<bool, NetlinkError> {
    let with = |tbf: &Tbf| Qdisc { options: QdiscOptions::Tbf(tbf.clone()), ..qdisc.clone() };
    for _ in 0..MAX_DRAIN_ATTEMPTS {
        netlink.replace_qdisc(&with(to))?;
        if to.burst_bytes >= from.burst_bytes || drains(netlink, qdisc, to)? {
            return Ok(true);
        }
        netlink.replace_qdisc(&with(from))?;
        thread::sleep(DRAIN_TIME);
    }
    netlink.replace_qdisc(&with(to))?;
    Ok(false)
}

/// Whether everything that is queued now leaves. What is queued from now on fits.
fn drains(netlink: &mut Netlink, qdisc: &Qdisc, tbf: &Tbf) -> Result<bool, NetlinkError> {
    let Some(first) = stats(netlink, qdisc)? else { return Ok(true) };
    let patience =
        Duration::from_secs_f64(f64::from(tbf.burst_bytes) / (tbf.rate_bytes_per_s.max(1) as f64))
            + WAKEUP_LATENESS;
    let (mut last_bytes, mut moved) = (first.0, Instant::now());
    let began = moved;
    while began.elapsed() < WATCH_TIME {
        let Some((bytes, backlog)) = stats(netlink, qdisc)? else { return Ok(true) };
        if backlog == 0 || bytes.wrapping_sub(first.0) >= first.1 {
            return Ok(true);
        }
        if bytes != last_bytes {
            (last_bytes, moved) = (bytes, Instant::now());
        } else if moved.elapsed() > patience {
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(true)
}

/// Bytes that left and bytes that wait; `None` if the qdisc is gone.
fn stats(netlink: &mut Netlink, qdisc: &Qdisc) -> Result<Option<(u64, u64)>, NetlinkError> {
    let all = netlink.qdiscs(qdisc.index)?;
    let same = all.iter().find(|other| other.handle == qdisc.handle);
    Ok(same.map(|found| (found.stats.bytes, found.stats.backlog_bytes)))
}
