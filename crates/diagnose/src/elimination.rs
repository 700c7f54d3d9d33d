//! What the two hosts are cleared of, so that only the path between them remains.

use goodput_model::{Confidence, Missing};

use crate::ceiling::link_ceiling;
use crate::cpu_bound::{cpu_bound, is_throttled, stopped_share};
use crate::shaper::Shaper;
use crate::short_queue::ShortQueue;
use crate::small_bucket::SmallBucket;
use crate::thresholds::{
    LONG_PATH_S, MAX_WAIT_SHARE_OF_LIMITING_THREAD, MAX_WAIT_SHARE_OF_SLOW_THREAD,
    MIN_CPU_SHARE_OF_WALL_TIME, MIN_SHARE_OF_CEILING, MIN_STOPPED_TIME_SHARE,
};
use crate::view::{Side, View};

/// CPU share of either thread above which the hosts may set the pace, if no round number shows a
/// rate, and round trips are short enough to be stretched by scheduling.
const MIN_CPU_SHARE: f64 = 0.5;
/// Share of the time for which the receive window may stop the sender without holding it back.
const MAX_STOPPED_BY_WINDOW_SHARE: f64 = 0.02;
/// CPU share of a reader up to which no common quota stops it.
const MAX_IDLE_CPU_SHARE: f64 = 0.05;

/// Whether a limit at one of the hosts is reached, or the local shaper or queue falls short.
pub fn is_local(view: &View) -> Result<bool, Missing> {
    let goodput = view.goodput()?;
    let shaper = Shaper::of(view).ok().flatten();
    let burst = SmallBucket::of(view).ok().flatten().map(|bucket| bucket.confidence);
    let queue = ShortQueue::of(view).ok().flatten().map(|queue| queue.confidence);
    let short = burst.max(queue) > Some(Confidence::Possible);
    if short || shaper.is_some_and(|shaper| shapes(view, &shaper)) {
        return Ok(true);
    }
    let links = view.sides().map(|side| link_ceiling(view, side).ok());
    Ok(links.into_iter().flatten().any(|ceiling| goodput >= MIN_SHARE_OF_CEILING * ceiling))
}

/// Whether packets wait in the local shaper, so that the shaper sets the rate: it gives nearly its
/// configured rate, or falls short by no more than late timers explain.
fn shapes(view: &View, shaper: &Shaper) -> bool {
    let late = || shaper.lateness_explains(shaper.passed(view)).unwrap_or(false);
    shaper.gives(view) || shaper.makes_wait(view).unwrap_or(false) && late()
}

/// Whether a thread gets too little CPU, a quota throttles or the reader is behind.
pub fn host_is_short(view: &View) -> bool {
    lacks_cpu(&view.sender) || receiver_is_short(view)
}

/// Whether a reader that shares its CPU with other threads still reads in time: on a path longer than
/// its wait, the window never stopped the sender. Of a sender that reports nothing, the reader's own end shows it: the reader
/// waited for data, and its window would have allowed more than came.
pub fn reads_in_time(view: &View) -> bool {
    let open =
        view.sender.rwnd_limited_share().is_ok_and(|share| share < MAX_STOPPED_BY_WINDOW_SHARE);
    let long = view.sender.min_rtt_s().is_ok_and(|rtt| rtt >= LONG_PATH_S);
    let waits =
        view.receiver.blocked_share().is_ok_and(|waits| waits >= MAX_WAIT_SHARE_OF_SLOW_THREAD);
    let shared = cpu_bound(&view.receiver).is_ok_and(|bound| bound.is_some_and(|b| b.shared));
    let has_room = || view.is_sender_silent() && view.receiver_has_room().unwrap_or(false);
    view.is_tcp() && shared && (open && long && waits || has_room())
}

/// The same for the receiver alone, which is all that counts for datagrams.
pub fn receiver_is_short(view: &View) -> bool {
    lacks_cpu(&view.receiver) && !reads_in_time(view)
        || view
            .receiver
            .blocked_share()
            .is_ok_and(|waits| waits < MAX_WAIT_SHARE_OF_LIMITING_THREAD)
}

fn lacks_cpu(side: &Side) -> bool {
    is_throttled(side)
        || side.thread_cpu_share().is_ok_and(|share| share >= MIN_CPU_SHARE_OF_WALL_TIME)
        || stopped_share(side).is_ok_and(|share| share >= MIN_STOPPED_TIME_SHARE)
        || cpu_bound(side).is_ok_and(|bound| bound.is_some())
}

/// Whether the receiver is known to be no bottleneck: nothing throttles it, or it waits for data
/// nearly all the time and needs almost no CPU. Waiting alone does not prove this: a process that a
/// quota stops while data comes in counts this time as waiting too.
pub fn reader_keeps_up(view: &View) -> bool {
    let side = &view.receiver;
    let idle = side.thread_cpu_share().is_ok_and(|share| share <= MAX_IDLE_CPU_SHARE);
    let waits =
        side.blocked_share().is_ok_and(|share| share >= 1.0 - MAX_WAIT_SHARE_OF_LIMITING_THREAD);
    side.throttled_share().is_ok() || (idle && waits)
}

/// Whether neither thread uses much of a CPU.
pub fn hosts_have_time(view: &View) -> bool {
    let shares = view.sides().map(|side| side.thread_cpu_share());
    shares.into_iter().flatten().all(|share| share < MIN_CPU_SHARE)
}
