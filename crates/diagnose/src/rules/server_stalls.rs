//! # What it means
//! The server stops sending again and again, although this host is ready for more and nothing is
//! lost on the path.
//!
//! # Why it limits
//! While the server sends nothing, nothing arrives.
//!
//! # How it is seen
//! Only by this host's kernel (tcp_info last_data_recv, rcv_rtt, rcv_wnd, rcv_ooopack). For at
//! least 30 % of the time nothing arrived for longer than two round trips and a delayed
//! acknowledgement. Within that time, a sender with data and open windows learns that everything
//! arrived, and continues to send. The receive window was open, nothing waited for the reader, and
//! payload came in order. The time between two files does not count (see waiting-for-answers), nor
//! does time without a connection (see connection-breaks).
//!
//! # What to try
//! Look at the server: its disk, its CPU, a rate limit of its program. Fetch the file again: if later fetches are faster
//! than the first, see server-storage. `goodput serve` on that host separates its network from its disk.
//!
//! # When it is wrong
//! What the server does meanwhile can't be seen: a slow disk, a busy program and a rate limit look alike. A path that is dead
//! for moments, such as a radio link, looks the same. So does the loss of all packets in flight: the server then
//! waits for a time-out. Pauses shorter than two round trips and 40 ms look like a slow network: see server-or-path.
//!
//! # Source
//! net/ipv4/tcp_input.c (`tcp_event_data_recv`, `tcp_rcv_rtt_update`); RFC 9293 section 3.8.6; RFC 6298 (time-outs).

use goodput_model::{Confidence, Finding, Missing};

use crate::bounds::next_after;
use crate::finding::{Draft, percent, rate, time};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::{MIN_HEAVY_LOSS_SHARE, MIN_STOPPED_TIME_SHARE};
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "server-stalls",
    title: "The server stops sending",
    refines: &[parts::SENDING_PROGRAM],
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "server_silent_percent",
    witness_words: ("time in which the server was silent", " %"),
    source: include_str!("server_stalls.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.receiver.elapsed_s()?;
    if !view.is_sender_silent() {
        return Ok(None);
    }
    let share = silent(view)?;
    if share < MIN_STOPPED_TIME_SHARE || !view.receiver_has_room()? {
        return Ok(None);
    }
    let (own, side) = (view.receiver.place(), &view.receiver);
    let early = side.out_of_order_share()?;
    if early >= MIN_HEAVY_LOSS_SHARE {
        return Err(Missing::because(format!(
            "nothing arrived {} of the time, but {} of the segments came out of order: the server may have waited to send \
             lost segments again",
            percent(share),
            percent(early)
        )));
    }
    let beyond = side.long_silence_s()?;
    let silence = format!(
        "nothing arrived {} of the time, in silences longer than {} (tcp_info last_data_recv)",
        percent(share),
        time(beyond)
    );
    Draft::new(RULE.id, view.sender.place(), Confidence::Likely, "the server, which stops sending")
        .share(share)
        .saw(own, RULE.witness_name, share * 100.0, silence)
        .saw_if(own, "own_window_bits_per_s", side.own_window_rate(), |allowed| {
            format!("this host's receive window was open: it would allow {}", rate(allowed))
        })
        .saw_if(own, "reader_blocked_percent", side.blocked_share(), |waits| side.waits_text(waits))
        .saw(own, "out_of_order_percent", early * 100.0, in_order(early))
        .predicted(next_after(view, &[RULE.id, "sender-application"]))
        .advice("look at the server's disk, CPU and the rate limits of its program: from here, these look alike")
        .found()
}

fn in_order(early: f64) -> String {
    match early {
        0.0 => "all payload came in order: nothing was lost before it".into(),
        early => format!("{} of the segments came out of order", percent(early)),
    }
}

/// Share of the time that the server is known to have been silent within a file, over a connection that held.
fn silent(view: &View) -> Result<f64, Missing> {
    let silent = view.receiver.silent_share(view.receiver.long_silence_s()?)?;
    let asking = view.fetches().and_then(|fetches| fetches.asking_share.value().copied());
    let broken = view.fetches().and_then(|fetches| fetches.rpcs.as_ref());
    let broken = broken.and_then(|rpcs| rpcs.reconnecting_share.value().copied());
    Ok((silent - asking.unwrap_or(0.0) - broken.unwrap_or(0.0)).max(0.0))
}

/// Share of the time in which nothing came within a file, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    Ok(silent(view)? * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::testing::{Case, cannot_tell, fires, quiet};

    /// A server on a path of 1 ms that is silent for `silent_ms` of each 100 ms.
    fn stalls(silent_ms: u64) -> Case {
        Case::healthy().without_links().silent_sender(move |tcp, _| {
            (tcp.min_rtt_us, tcp.rcv_rtt_us) = (Some(900), Some(1000));
            tcp.last_data_recv_ms = Some(silent_ms);
        })
    }

    #[test]
    fn fires_on_a_server_that_pauses_and_says_what_it_saw() {
        let finding = fires(&RULE, stalls(90));
        assert_eq!(finding.confidence, Confidence::Likely);
        assert!(finding.evidence.iter().any(|w| w.text.contains("window was open")), "{finding:?}");
        assert_eq!(diagnose(&stalls(90).evidence()).verdict.limit, RULE.id);
    }

    #[test]
    fn stays_quiet_on_payload_that_keeps_coming_and_on_short_pauses() {
        quiet(&RULE, stalls(0));
        quiet(&RULE, stalls(30));
        // A queue or a window: as long as round trips take.
        quiet(&RULE, stalls(90).arriving(|tcp, _| tcp.rcv_rtt_us = Some(90_000)));
        // Between files.
        quiet(&RULE, stalls(90).asking(0.7));
        // Without a connection.
        let broken = |rpcs: &mut goodput_model::Rpcs| {
            rpcs.reconnecting_share = goodput_model::Known::Value(0.7);
        };
        quiet(&RULE, stalls(90).asking(0.0).calls(broken));
        quiet(&RULE, Case::healthy());
    }

    #[test]
    fn stays_quiet_if_this_host_is_not_ready() {
        quiet(&RULE, stalls(90).reader(0.05, 0.0, 0.9));
        quiet(&RULE, stalls(90).arriving(|tcp, _| tcp.rcv_wnd_bytes = Some(80_000)));
    }

    #[test]
    fn after_losses_a_silence_may_be_a_time_out() {
        let lossy = stalls(90).arriving(|tcp, number| tcp.rcv_ooo_segments = Some(number * 1000));
        assert!(cannot_tell(&RULE, lossy).contains("out of order"));
    }
}
