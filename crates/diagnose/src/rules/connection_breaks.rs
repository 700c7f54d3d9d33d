//! # What it means
//! The connection to the server breaks, perhaps again and again. The client connects again and
//! repeats its requests.
//!
//! # Why it limits
//! Without a connection no payload moves, and each new one starts slowly.
//!
//! # How it is seen
//! For at least 30 % of the flows' time a connection had broken, and the next one had not brought
//! payload yet. A server that keeps its connection but stays silent is a different case: see
//! server-stalls.
//!
//! # What to try
//! Find out who ends the connection. Look at the server's log (a crash, a limit on connections or
//! on time) and at middleboxes on the path that forget connections (see middlebox). A capture shows
//! whose RST or FIN it was.
//!
//! # When it is wrong
//! This end can't see whether the server or something before it ended the connection. A connection
//! that this client gave up because the server left a call without an answer counts too.
//!
//! # Source
//! RFC 5531 section 9 (calls are made again on a new connection); RFC 9293 section 3.5.2 (resets).

use goodput_model::{Confidence, Finding, Known, Missing, Place, Rpcs};

use crate::bounds::next_after;
use crate::finding::{Draft, percent};
use crate::parts;
use crate::rule::{Depth, Rule};
use crate::thresholds::MIN_STOPPED_TIME_SHARE;
use crate::view::View;

/// The rule.
pub const RULE: Rule = Rule {
    id: "connection-breaks",
    title: "The connection to the server breaks",
    refines: &[parts::SENDING_PROGRAM],
    depth: Depth::Root,
    is_of_discipline: false,
    check,
    witness,
    witness_name: "reconnecting_percent",
    witness_words: ("time connecting again", " %"),
    source: include_str!("connection_breaks.rs"),
};

fn check(view: &View) -> Result<Option<Finding>, Missing> {
    view.receiver.elapsed_s()?;
    let Some(rpcs) = calls(view) else { return Ok(None) };
    if rpcs.reconnects == Known::Value(0) {
        return Ok(None);
    }
    let (own, share) = (Place::Near, *rpcs.reconnecting_share.get()?);
    if share < MIN_STOPPED_TIME_SHARE {
        return Ok(None);
    }
    let summary = "the connection to the server, which breaks";
    Draft::new(RULE.id, Place::Path, Confidence::Likely, summary)
        .share(share)
        .saw(own, RULE.witness_name, share * 100.0, {
            format!("no connection brought payload {} of the time", percent(share))
        })
        .saw_if(own, "reconnects", count(&rpcs.reconnects), |times| {
            format!("{times} broken connections were replaced")
        })
        .saw_if(own, "calls_sent_again", count(&rpcs.retransmitted), |calls| {
            format!("{calls} calls were sent again")
        })
        .predicted(next_after(view, &[RULE.id, "sender-application"]))
        .advice("find out who ends the connection: the server's log, middleboxes on the path")
        .found()
}

fn calls<'a>(view: &'a View) -> Option<&'a Rpcs> {
    view.fetches()?.rpcs.as_ref()
}

fn count(known: &Known<u64>) -> Result<f64, Missing> {
    known.get().map(|count| *count as f64)
}

/// Share of the flows' time without a connection that brings payload, percent.
fn witness(view: &View) -> Result<f64, Missing> {
    let rpcs = calls(view).ok_or_else(|| Missing::because("no file was moved by calls"))?;
    Ok(*rpcs.reconnecting_share.get()? * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::testing::{Case, cannot_tell, fires, quiet};

    fn broken(times: u64, share: Known<f64>) -> Case {
        let case = Case::healthy().without_links().silent_sender(|_, _| ()).asking(0.0);
        case.calls(|rpcs| {
            (rpcs.reconnects, rpcs.reconnecting_share) = (Known::Value(times), share);
            rpcs.idle_share = Known::Value(0.0);
        })
    }

    #[test]
    fn fires_if_much_of_the_time_there_is_no_connection() {
        let finding = fires(&RULE, broken(7, Known::Value(0.6)));
        assert!(finding.evidence.iter().any(|saw| saw.text.contains("7 broken connections")));
        let diagnosis = diagnose(&broken(7, Known::Value(0.6)).evidence());
        assert_eq!(diagnosis.verdict.limit, RULE.id);
    }

    #[test]
    fn stays_quiet_if_it_holds_or_is_soon_there_again() {
        quiet(&RULE, broken(0, Known::Value(0.0)));
        quiet(&RULE, broken(2, Known::Value(0.01)));
        quiet(&RULE, Case::healthy());
    }

    #[test]
    fn an_older_record_does_not_have_it() {
        cannot_tell(&RULE, broken(2, Known::missing("not kept")));
    }
}
