//! The peer's window, where it is what limits.

use goodput_model::{Confidence, Missing, Place};

use crate::account::{HeldShare, held};
use crate::bounds::{is_tuned, next_after};
use crate::finding::{Draft, bytes, percent, rate, time};
use crate::names::TCP_RMEM;
use crate::parts;
use crate::rule::Rule;
use crate::thresholds::{LONG_PATH_S, MAX_WAIT_SHARE_OF_SLOW_THREAD, MIN_LIMITING_TIME_SHARE};
use crate::view::{TcpOption, View};

/// Name of the share as evidence.
pub const WITNESS_NAME: &str = "rwnd_limited_percent";
/// The largest window that 16 bits can say, bytes.
pub const MAX_UNSCALED_WINDOW_BYTES: f64 = 65_535.0;
/// Segments that the receiver may round its window down by (net/ipv4/tcp_output.c,
/// `__tcp_select_window`).
const MAX_ROUNDING_SEGMENTS: f64 = 2.0;
/// How near window / round-trip time must come to the goodput to be the whole explanation.
const WINDOW_EXPLAINS_RATIOS: std::ops::Range<f64> = 0.7..1.4;

/// How much, and how surely, the peer's window holds the sender.
pub struct ClosedWindow {
    /// Share of the time.
    pub held: HeldShare,
    /// How sure it is that the window is too small, rather than the reader slow.
    pub confidence: Confidence,
}

impl ClosedWindow {
    /// Whether the peer's window is what limits, whatever keeps it small.
    pub fn of(view: &View) -> Result<Option<Self>, Missing> {
        view.needs_tcp()?;
        let held = held(view, &[parts::RECEIVE_WINDOW])?;
        let share = held.share();
        if share < MIN_LIMITING_TIME_SHARE && !contributes(view, held)? {
            return Ok(None);
        }
        let confidence = match view.receiver.blocked_share() {
            Ok(waits) if waits < MAX_WAIT_SHARE_OF_SLOW_THREAD => return Ok(None),
            Ok(_) if share < MIN_LIMITING_TIME_SHARE => Confidence::Possible,
            Ok(_) if is_held_by_it(view)? => Confidence::Certain,
            Ok(_) => Confidence::Likely,
            Err(_) if view.sender.peer_window_is_steady()? => Confidence::Possible,
            Err(why) => return Err(why),
        };
        Ok(Some(Self { held, confidence }))
    }

    /// Whether the window limits for lack of scaling, whoever is to blame.
    pub fn unscaled(view: &View) -> Result<Option<Self>, Missing> {
        let Some(limited) = Self::of(view)? else { return Ok(None) };
        let (window, mss) = (view.sender.peer_window_bytes()?, view.sender.mss_bytes()?);
        let as_high_as_can_be = (MAX_UNSCALED_WINDOW_BYTES - MAX_ROUNDING_SEGMENTS * mss
            ..=MAX_UNSCALED_WINDOW_BYTES)
            .contains(&window);
        let unscaled = as_high_as_can_be && !view.sender.has_option(TcpOption::WindowScale)?;
        Ok(unscaled.then_some(limited))
    }

    /// What shows that the window limits, for any rule that knows why it is small.
    pub fn draft(
        &self,
        view: &View,
        rule: &Rule,
        end: Place,
        summary: &str,
    ) -> Result<Draft, Missing> {
        let (sender, receiver) = (view.sender.place(), view.receiver.place());
        let (window, rtt) = (view.sender.peer_window_bytes()?, view.sender.rtt_s()?);
        let counted = match view.sender.rwnd_limited_share() {
            Ok(counted) if counted < self.held.share() => format!(
                "the peer's window stopped the sender {} of the time (tcp_info rwnd_limited); {}",
                percent(counted),
                match is_held_by_it(view)? {
                    true => "one window in each round trip is the whole goodput",
                    false => "most samples found it full",
                }
            ),
            _ => format!(
                "the peer's window stopped the sender {} of the time (tcp_info rwnd_limited)",
                self.held
            ),
        };
        let product = format!(
            "window {} (tcp_info snd_wnd) / round trip {} = {}",
            bytes(window),
            time(rtt),
            rate(window * 8.0 / rtt)
        );
        Ok(Draft::new(rule.id, end, self.confidence, summary)
            .share(self.held.share())
            .share_between(self.held.between_percent())
            .saw(sender, WITNESS_NAME, self.held.share() * 100.0, counted)
            .saw(sender, "tcp_info.snd_wnd_bytes", window, product)
            .saw_if(receiver, "reader_blocked_share", view.receiver.blocked_share(), |waits| {
                format!("{}: it is not slow", view.receiver.waits_text(waits))
            })
            .saw_if(receiver, "socket.rcvbuf_bytes", view.receiver.receive_buffer_bytes(), |room| {
                format!("the socket's receive buffer is {}{}", bytes(room), set_by(view))
            })
            .predicted(next_after(view, &["receive-window"])))
    }
}

/// Whether the window holds the sender beside something else. What it would allow in each round trip is not asked: a window
/// that something else keeps shut for part of the time allows more than went through.
fn contributes(view: &View, held: HeldShare) -> Result<bool, Missing> {
    let long = view.sender.min_rtt_s()? >= LONG_PATH_S;
    Ok(!held.is_nothing() && long)
}

/// Goodput that the window allows in each round trip, over all flows.
fn allowed(view: &View) -> Result<f64, Missing> {
    let side = &view.sender;
    Ok(side.peer_window_bytes()? * 8.0 / side.rtt_s()? * side.flow_count()?)
}

fn is_held_by_it(view: &View) -> Result<bool, Missing> {
    Ok(WINDOW_EXPLAINS_RATIOS.contains(&(allowed(view)? / view.goodput()?)))
}

/// What set the size of the receive buffer, to follow it.
pub fn set_by(view: &View) -> String {
    match view.plan().socket.rcvbuf_bytes {
        Some(asked) => format!(", set by SO_RCVBUF ({})", asked.0),
        None if !is_tuned(&view.receiver) => "; tcp_moderate_rcvbuf 0: it never grows".into(),
        None => view
            .receiver
            .words(TCP_RMEM)
            .map(|rmem| format!("; tcp_rmem {rmem}"))
            .unwrap_or_default(),
    }
}
