//! Shrinks a token bucket without jamming it.
//!
//! sch_tbf segments a packet longer than its burst when it is queued (`tbf_segment` in
//! net/sched/sch_tbf.c), never when it leaves. If the burst becomes smaller than a queued packet
//! of segmentation offload, that packet waits for ever, and so does everything
//! behind it.

use std::thread;
use std::time::{Duration, Instant};

use goodput_netlink::{Netlink, NetlinkError, Qdisc, QdiscOptions, Tbf};

/// A queue with this limit accepts no packet, bytes.
const CLOSED_LIMIT_BYTES: u32 = 1;
/// How late a wake-up may be, beyond the time that the tokens of one packet take.
const WAKEUP_LATENESS: Duration = Duration::from_millis(20);
/// How long the queue is kept closed; a shaper that takes longer has no packets of segmentation offload.
const MAX_DRAIN_TIME: Duration = Duration::from_secs(5);

/// Changes a bucket `from` one set of parameters `to` another. Before the burst shrinks, the queue is closed and empties
/// under the large burst, so that no long packet is left in it. It opens after the burst has shrunk. Returns whether the
/// change was made: `false` if nothing leaves the queue, and everything stays as it was.
pub(super) fn change(
    netlink: &mut Netlink,
    qdisc: &Qdisc,
    from: &Tbf,
    to: &Tbf,
) -> Result<bool, NetlinkError> {
    let with = |tbf: &Tbf| Qdisc { options: QdiscOptions::Tbf(tbf.clone()), ..qdisc.clone() };
    if to.burst_bytes >= from.burst_bytes {
        return netlink.replace_qdisc(&with(to)).map(|()| true);
    }
    let mut closed = from.clone();
    closed.limit_bytes = CLOSED_LIMIT_BYTES;
    netlink.replace_qdisc(&with(&closed))?;
    #[cfg(test)]
    crate::testing::step();
    let drains = drains(netlink, qdisc, from);
    let next = if matches!(drains, Ok(true)) { to } else { from };
    // The kernel sets the limit before the burst (`tbf_change`), and a long packet could slip in between. So everything
    // else changes while the queue is still closed.
    closed.clone_from(next);
    closed.limit_bytes = CLOSED_LIMIT_BYTES;
    netlink.replace_qdisc(&with(&closed))?;
    #[cfg(test)]
    crate::testing::step();
    netlink.replace_qdisc(&with(next))?;
    drains
}

/// Waits until everything queued has left, while nothing is added. `false` if the queue does not move.
fn drains(netlink: &mut Netlink, qdisc: &Qdisc, tbf: &Tbf) -> Result<bool, NetlinkError> {
    let bucket_s = f64::from(tbf.burst_bytes) / (tbf.rate_bytes_per_s.max(1) as f64);
    let patience = Duration::from_secs_f64(bucket_s) + WAKEUP_LATENESS;
    let (mut last_bytes, mut moved, began) = (None, Instant::now(), Instant::now());
    while began.elapsed() < MAX_DRAIN_TIME {
        let Some((bytes, backlog)) = stats(netlink, qdisc)? else { return Ok(true) };
        if backlog == 0 {
            return Ok(true);
        }
        if last_bytes != Some(bytes) {
            (last_bytes, moved) = (Some(bytes), Instant::now());
        } else if moved.elapsed() > patience {
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(true)
}

/// Bytes sent and bytes waiting; `None` if the qdisc is gone.
fn stats(netlink: &mut Netlink, qdisc: &Qdisc) -> Result<Option<(u64, u64)>, NetlinkError> {
    let all = netlink.qdiscs(qdisc.index)?;
    let same = all.iter().find(|other| other.handle == qdisc.handle);
    Ok(same.map(|found| (found.stats.bytes, found.stats.backlog_bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;
    use std::sync::atomic::{AtomicBool, Ordering};

    use goodput_model::SettingRef;

    use crate::Changes;
    use crate::testing::{guard, in_scene, wait_for};

    /// Ends the flood, even when an assertion fails.
    struct Over<'a>(&'a AtomicBool);

    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// Sends packets of segmentation offload as fast as it can (`UDP_SEGMENT` of udp(7)).
    #[expect(unsafe_code, reason = "neither std nor rustix can set this option")]
    fn flood(is_over: &AtomicBool) {
        static SEGMENT_BYTES: i32 = 1400;
        let socket = UdpSocket::bind("192.0.2.1:0").unwrap();
        // SAFETY: the option's value is an int that lives as long as the call.
        let set = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_UDP,
                libc::UDP_SEGMENT,
                (&raw const SEGMENT_BYTES).cast(),
                size_of::<i32>() as libc::socklen_t,
            )
        };
        assert_eq!(set, 0);
        while !is_over.load(Ordering::Relaxed) {
            // A full queue is intended.
            let _ = socket.send_to(&[0; 56_000], "192.0.2.9:9");
        }
    }

    fn sent_bytes() -> u64 {
        let mut netlink = Netlink::open().unwrap();
        let index = netlink.link("eth0").unwrap().index;
        netlink.qdiscs(index).unwrap().iter().find(|q| q.kind == "tbf").unwrap().stats.bytes
    }

    #[test]
    fn long_packets_that_keep_coming_do_not_jam_a_bucket_that_shrinks() {
        in_scene(|state_dir| {
            let burst: SettingRef = "qdisc.tbf.burst@eth0".parse().unwrap();
            let mut changes = Changes::begin(state_dir, guard()).unwrap();
            changes.apply(&burst, "70000").unwrap();
            let is_over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let _over = Over(&is_over);
                for _ in 0..4 {
                    scope.spawn(|| flood(&is_over));
                }
                for _ in 0..5 {
                    for bytes in ["9200", "70000"] {
                        changes.apply(&burst, bytes).unwrap();
                        let before = sent_bytes();
                        wait_for("packets to leave", || sent_bytes() > before + 100_000);
                    }
                }
                assert!(changes.restore().is_clean());
                let before = sent_bytes();
                wait_for("packets to leave", || sent_bytes() > before + 100_000);
            });
        });
    }
}
