//! A bucket of the sender's shaper that is too small for its rate, and what it causes: full windows, and busy CPUs.

use goodput_model::{Confidence, Missing};

use crate::account::{held_share, path_share};
use crate::models::rate_at_loss;
use crate::names::{OFFLOAD_GSO, OFFLOAD_TSO, QDISC_LIMIT};
use crate::parts;
use crate::shaper::{BATCH_BYTES, Shaper};
use crate::thresholds::{
    MAX_WAIT_SHARE_OF_LIMITING_THREAD, MIN_COSTLY_SHARE, MIN_CPU_SHARE_OF_OWN_TURN,
    MIN_HEAVY_LOSS_SHARE, MIN_LIMITING_TIME_SHARE, MIN_SHARE_OF_SHAPER_RATE,
};
use crate::view::View;

/// Loss explains the rate if its model allows less than this multiple of it.
const MAX_LOSS_MODEL_RATIO: f64 = 2.0;

/// A token bucket of the sender's device that is too small for its rate.
pub struct SmallBucket<'a> {
    /// Whose bucket it is.
    pub shaper: Shaper<'a>,
    /// What it holds, bytes.
    pub burst: f64,
    /// How sure it is that the bucket costs goodput.
    pub confidence: Confidence,
    /// Share of the time that it held the sender, if more than the path's share is its doing.
    pub share: Option<f64>,
}

impl<'a> SmallBucket<'a> {
    /// The bucket, if it costs goodput.
    ///
    /// # Errors
    /// If the sender does not report its queueing discipline.
    pub fn of(view: &View<'a>) -> Result<Option<Self>, Missing> {
        let Some(shaper) = Shaper::of(view)? else { return Ok(None) };
        // A bucket that no frame fits in lets nothing at all through, and is still the cause.
        let goodput = view.goodput_or_zero();
        let burst = shaper.burst.clone()?;
        if shaper.passed(view) >= MIN_SHARE_OF_SHAPER_RATE * shaper.ceiling
            || burst >= shaper.needed_burst()
        {
            return Ok(None);
        }
        if burst < shaper.frame && view.sender.queue_drops()? > 0.0 {
            let confidence = Confidence::Certain;
            return Ok(Some(Self { shaper, burst, confidence, share: None }));
        }
        if shaper.bridges_wakeups()? || !shaper.makes_wait(view)? {
            return Ok(None);
        }
        let by_effects = something_else_holds(view, path_share, is_behind)?;
        let with_effects = |view: &View| share_with_effects(view, &shaper);
        let anyway = |view: &View| is_behind_anyway(view, &shaper);
        if by_effects && something_else_holds(view, with_effects, anyway)? {
            return Ok(None);
        }
        let Some(confidence) = how_sure(view, &shaper, goodput)? else { return Ok(None) };
        // What else seems to hold the sender may be the shaper's doing, and it may be not.
        let most = if by_effects { Confidence::Likely } else { Confidence::Certain };
        let share = share_with_effects(view, &shaper).ok().filter(|_| by_effects);
        let share = share.map(|share| share.min(1.0));
        Ok(Some(Self { confidence: confidence.min(most), shaper, burst, share }))
    }
}

/// How sure it is that late timers at a small bucket, and not losses, explain the goodput; `None` if neither does.
fn how_sure(view: &View, shaper: &Shaper, goodput: f64) -> Result<Option<Confidence>, Missing> {
    let late = !shaper.lateness_explains(goodput)?;
    let lost =
        view.sender.queue_drop_share()? >= MIN_HEAVY_LOSS_SHARE || loss_explains(view, goodput);
    let lost = lost && !queue_outlasts_a_cut(view, shaper).unwrap_or(false);
    Ok(match (late, lost) {
        (true, true) => None,
        (false, false) => Some(Confidence::Certain),
        (false, true) if shaper.usual_lateness_explains(goodput)? => Some(Confidence::Certain),
        _ => Some(Confidence::Possible),
    })
}

/// Whether the sender waited for its application or a window, or the reader was behind: the path and its shaper held it
/// for this share of the time.
fn something_else_holds(
    view: &View,
    share: impl Fn(&View) -> Result<f64, Missing>,
    is_behind: impl Fn(&View) -> bool,
) -> Result<bool, Missing> {
    // The time in which a quota stops the sender is not the shaper's to answer for.
    let free = 1.0 - view.sender.throttled_share().unwrap_or(0.0);
    let least = (MIN_LIMITING_TIME_SHARE * free).max(MIN_COSTLY_SHARE);
    Ok(is_behind(view) || view.is_tcp() && share(view)? < least)
}

fn is_behind(view: &View) -> bool {
    view.receiver.blocked_share().is_ok_and(|share| share < MAX_WAIT_SHARE_OF_LIMITING_THREAD)
}

/// Whether the reader is behind for another reason than the CPU time that packets cost which the shaper cut up.
fn is_behind_anyway(view: &View, shaper: &Shaper) -> bool {
    is_behind(view) && !busies_the_receiver(view, shaper)
}

/// Whether the receiving host's CPU time may be the shaper's: the shaper cuts up what would have arrived in
/// super-packets. On hardware packets arrive one by one in any case.
fn busies_the_receiver(view: &View, shaper: &Shaper) -> bool {
    let side = &view.receiver;
    let virtual_path = view.sides().iter().all(|side| side.on_hardware() == Ok(false));
    let single = side.arrived_packet_bytes().and_then(|bytes| side.are_single(bytes));
    let on_cpu = || -> Result<bool, Missing> {
        let ran = side.cpu_wanted_share().or_else(|_| side.thread_cpu_share())?;
        Ok(ran >= MIN_CPU_SHARE_OF_OWN_TURN * (1.0 - side.blocked_share()?))
    };
    let batches = [OFFLOAD_TSO, OFFLOAD_GSO].iter().any(|name| view.sender.text(name) == Ok("on"));
    virtual_path
        && batches
        && shaper.cuts_up()
        && shaper.is_found_empty(view).unwrap_or(false)
        && single.unwrap_or(false)
        && on_cpu().unwrap_or(false)
}

/// Share of the time that the path, its shaper and what a shaper causes held the sender. Packets that wait for tokens fill
/// the windows, so a window that would carry the shaper's rate without that wait is not what limits. And each bucketful
/// costs the CPU a timer and a softirq: while the bucket is found empty, the CPU's time may be the shaper's.
fn share_with_effects(view: &View, shaper: &Shaper) -> Result<f64, Missing> {
    let side = &view.sender;
    let carries = |bytes: Result<f64, Missing>| {
        let rate = || Ok::<_, Missing>(bytes? * side.flow_count()? * 8.0 / side.min_rtt_s()?);
        rate().is_ok_and(|rate| rate >= shaper.ceiling)
    };
    let effects = [
        (parts::RECEIVE_WINDOW, carries(side.peer_window_bytes())),
        (parts::SEND_BUFFER, carries(side.send_buffer_bytes())),
        (parts::SENDING_HOST, shaper.is_found_empty(view)?),
        (parts::RECEIVING_HOST, busies_the_receiver(view, shaper)),
    ];
    let effects: Vec<_> = effects.into_iter().filter(|of| of.1).map(|of| of.0).collect();
    Ok(path_share(view)? + held_share(view, &effects)?)
}

/// Whether a congestion control that backs off at loss could go no faster at the loss it met.
fn loss_explains(view: &View, goodput: f64) -> bool {
    let modelled = rate_at_loss(view).ok().flatten();
    view.backs_off_at_loss().unwrap_or(true)
        && modelled.is_some_and(|rate| rate < MAX_LOSS_MODEL_RATIO * goodput)
}

/// Whether the shaper's queue holds enough to keep it busy while a window that was cut grows again: what is in flight
/// without a queue (Appenzeller, Keslassy, McKeown, "Sizing Router Buffers", SIGCOMM 2004), and a super-packet of each
/// flow. Then what the full queue drops costs nothing.
fn queue_outlasts_a_cut(view: &View, shaper: &Shaper) -> Result<bool, Missing> {
    let side = &view.sender;
    let in_flight = shaper.rate / 8.0 * side.min_rtt_s()?;
    let limit = side.count(QDISC_LIMIT)?;
    Ok(shaper.class.is_none() && limit >= in_flight + BATCH_BYTES * side.flow_count()?)
}
