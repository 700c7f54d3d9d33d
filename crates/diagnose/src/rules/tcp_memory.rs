//! # What it means
//! The TCP sockets of one host together use all the memory they may, and the kernel keeps every one
//! of them short.
//!
//! # Why it limits
//! Under memory pressure buffers stop growing and windows shrink, whatever the limits of a single
//! socket are.
//!
//! # How it is seen
//! The host's TCP was under memory pressure at least 5 % of the time, or holds more than the
//! pressure mark of `tcp_mem` after the measurement. And a window or buffer stops the sender.
//!
//! # What to try
//! A higher `tcp_mem`, or fewer sockets that hold unread data.
//!
//! # When it is wrong
//! A cgroup's memory limit also acts on sockets, and is not counted here.
//!
//! # Source
//! Documentation/networking/ip-sysctl.rst (`tcp_mem`); net/ipv4/tcp.c (`tcp_enter_memory_pressure`,
//! `tcp_leave_memory_pressure`).

use goodput_model::{Confidence, Finding, Missing};

use crate::account::held_share;
use crate::bounds::next_after;
use crate::finding::{Draft, percent};
use crate::names::{
    TCP_MEMORY_PAGES, TCP_MEMORY_PRESSURE_MS, TCP_MEMORY_PRESSURE_PAGES, TCP_MEMORY_PRESSURES,
};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::view::{Side, View};

/// The rule.
pub const RULE: Rule = Rule {
    id: "tcp-memory",
    title: "The host's TCP is short of memory",
    refines: &[parts::RECEIVE_WINDOW, parts::SEND_BUFFER],
    depth: Depth::Reason,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "memory_pressure_percent",
    witness_words: ("time under memory pressure", " %"),
    source: include_str!("tcp_memory.rs"),
};

/// Share of the time under pressure from which it counts.
const MIN_PRESSURE_TIME_SHARE: f64 = 0.05;
/// Share of the flows' time that windows and buffers must hold.
const STOPPED_SHARE: f64 = 0.25;

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    let (side, share) = most_pressed(view)?;
    if !view.is_tcp() || share < MIN_PRESSURE_TIME_SHARE {
        return Ok(None);
    }
    if held_share(view, RULE.refines)? < STOPPED_SHARE {
        return Ok(None);
    }
    let place = side.place();
    let text = format!("TCP was under memory pressure {} of the time", percent(share));
    let summary = format!("the total memory of the {} end's TCP sockets", side.name);
    let draft = Draft::new(RULE.id, place, Confidence::Likely, summary)
        .share(share.min(1.0))
        .saw(place, RULE.witness_name, share * 100.0, text)
        .saw_if(place, TCP_MEMORY_PAGES, held(side), |pages| {
            format!("the host's TCP sockets hold {pages:.0} pages in total (/proc/net/sockstat)")
        })
        .saw_if(place, TCP_MEMORY_PRESSURE_PAGES, side.count(TCP_MEMORY_PRESSURE_PAGES), |pages| {
            format!("pressure begins at {pages:.0} pages (net.ipv4.tcp_mem)")
        })
        .predicted(next_after(view, &[RULE.id, "receive-window", "send-buffer"]));
    match doubled(side) {
        Ok(pages) => draft
            // All programs share it, and too much of it starves the host: a person decides.
            .command(
                place,
                format!("goodput settings set sysctl.net.ipv4.tcp_mem='{pages}'"),
                "twice as many pages",
            )
            .permanent("/etc/sysctl.d/90-goodput.conf", format!("net.ipv4.tcp_mem = {pages}")),
        Err(_) => draft.advice("double the three numbers of net.ipv4.tcp_mem"),
    }
    .found()
}

/// Twice the pages at which pressure begins, between a low and a high mark in the kernel's own proportions
/// (net/ipv4/tcp.c, `tcp_init_mem`).
fn doubled(side: &Side) -> Result<String, Missing> {
    let pressure = 2.0 * side.count(TCP_MEMORY_PRESSURE_PAGES)?;
    Ok(format!("{:.0} {pressure:.0} {:.0}", 0.75 * pressure, 1.5 * pressure))
}

fn held(side: &Side) -> Result<f64, Missing> {
    Ok(side.end()?.after.count(TCP_MEMORY_PAGES)? as f64)
}

/// The side under pressure for longer, of those that know it.
fn most_pressed<'v, 'a>(view: &'v View<'a>) -> Result<(&'v Side<'a>, f64), Missing> {
    let shares = view.sides().map(|side| Ok((side, pressed(side)?)));
    let why = shares.iter().find_map(|share| share.as_ref().err().cloned());
    let most = shares.into_iter().flatten().max_by(|a, b| a.1.total_cmp(&b.1));
    most.ok_or_else(|| why.unwrap_or_else(|| Missing::because("neither end reports")))
}

/// Share of the time under pressure. The kernel counts it when it ends, so that all of it is what is
/// known of a host that is still above the mark.
fn pressed(side: &Side) -> Result<f64, Missing> {
    let began = side.grown(TCP_MEMORY_PRESSURES)?;
    let mark = side.count(TCP_MEMORY_PRESSURE_PAGES).ok().filter(|mark| *mark > 0.0);
    if mark.is_some_and(|mark| held(side).is_ok_and(|held| held >= mark)) {
        return Ok(1.0);
    }
    if began == 0 {
        return Ok(0.0);
    }
    Ok(side.grown(TCP_MEMORY_PRESSURE_MS)? as f64 / 1e3 / side.elapsed_s()?)
}

/// Share of the time in which the TCP of the end that is worse off was under memory pressure, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    Ok(most_pressed(view)?.1 * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Case, cannot_tell, fires, quiet};
    use goodput_model::EndName::Far;
    use goodput_model::Place;

    fn under_pressure() -> Case {
        let case = Case::receive_window().grows(Far, TCP_MEMORY_PRESSURES, 3);
        case.grows(Far, TCP_MEMORY_PRESSURE_MS, 2000)
    }

    #[test]
    fn fires_under_pressure_where_a_window_stops_the_sender() {
        assert_eq!(fires(&RULE, under_pressure()).end, Place::Far);
    }

    #[test]
    fn fires_while_it_lasts() {
        let case = Case::receive_window().fact(Far, TCP_MEMORY_PAGES, 9000u64).fact(
            Far,
            TCP_MEMORY_PRESSURE_PAGES,
            8000u64,
        );
        let finding = fires(&RULE, case);
        assert_eq!(finding.share_percent.value(), Some(&100.0));
        assert!(finding.advice[0].contains("tcp_mem='12000 16000 24000'"), "{finding:?}");
    }

    #[test]
    fn pressure_that_stops_nobody_is_quiet() {
        quiet(
            &RULE,
            Case::path_rate().grows(Far, TCP_MEMORY_PRESSURES, 3).grows(
                Far,
                TCP_MEMORY_PRESSURE_MS,
                2000,
            ),
        );
        quiet(&RULE, under_pressure().grows(Far, TCP_MEMORY_PRESSURE_MS, 50));
    }

    #[test]
    fn cannot_tell_without_the_counters() {
        cannot_tell(&RULE, Case::empty());
    }
}
