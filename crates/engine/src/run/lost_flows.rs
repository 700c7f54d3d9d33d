//! Whether a measurement stands without the flows that it lost.

use std::time::Instant;

use goodput_model::{Length, LostFlow, Plan, Role, Transport};
use goodput_mover::{MoveError, Phase, RunningFlow, Stop};

use crate::run::flow_events::Failure;

/// How a flow's thread ended.
pub struct Joined {
    flow: u16,
    role: Role,
    at_s: f64,
    failure: Option<MoveError>,
}

impl Joined {
    /// Waits for the end of a flow whose payload `began` then.
    pub fn of(flow: RunningFlow, began: Instant) -> Self {
        let (id, role) = (flow.config().id, flow.config().role);
        let over = flow.finished_at().unwrap_or_else(Instant::now);
        let at_s = over.saturating_duration_since(began).as_secs_f64();
        Self { flow: id, role, at_s, failure: flow.join().err() }
    }
}

/// Whether a measurement by this plan says something if some of its streams end early: nobody waits for their part of a
/// file or of a number of bytes.
pub fn may_lose_flows(plan: &Plan) -> bool {
    let is_timed = matches!(plan.length, Length::Seconds(_) | Length::Auto { .. });
    let has_files = plan.storage.source.is_some() || plan.storage.sink.is_some();
    plan.transport == Transport::Tcp && is_timed && !has_files
}

/// Ends all flows if those in one role have all failed: then [`lost`] is an error, and the other direction is moved for
/// nobody.
pub fn end_without_a_direction(flows: &[RunningFlow], stop: &Stop) {
    let mut roles = [Role::Sender, Role::Receiver].into_iter();
    let has_failed = |role| {
        let mut of_role = flows.iter().filter(|flow| flow.config().role == role).peekable();
        of_role.peek().is_some() && of_role.all(RunningFlow::has_failed)
    };
    if stop.phase() != Phase::Abort && roles.any(has_failed) {
        stop.abort();
    }
}

/// The flows that were lost on their own, if others in the same role ended well.
///
/// # Errors
/// What ended the flows otherwise.
pub fn lost(joined: Vec<Joined>, may_lose: bool) -> Result<Vec<LostFlow>, Failure> {
    let failures = || joined.iter().filter_map(|one| one.failure.as_ref());
    // A flow that another flow's failure ended says nothing about the cause.
    let first = failures().find(|failure| !failure.is_abort()).or(failures().next());
    let Some(first) = first else { return Ok(Vec::new()) };
    let has_failed =
        |role| joined.iter().filter(|one| one.role == role).all(|one| one.failure.is_some());
    let no_role_is_left = joined.iter().any(|one| has_failed(one.role));
    if !may_lose || no_role_is_left || !failures().all(MoveError::is_of_one_connection) {
        return Err(first.into());
    }
    let lost = joined.into_iter().filter_map(|one| {
        let why = one.failure?.to_string();
        Some(LostFlow { flow: one.flow, role: one.role, at_s: one.at_s, why })
    });
    Ok(lost.collect())
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use goodput_model::Bytes;

    use super::*;

    fn system(code: Errno) -> MoveError {
        MoveError::System { flow: 0, operation: "send", cause: code.into() }
    }

    fn joined(flow: u16, role: Role, failure: Option<MoveError>) -> Joined {
        Joined { flow, role, at_s: 8.0, failure }
    }

    fn sent(failures: [Option<MoveError>; 2]) -> Vec<Joined> {
        (0..).zip(failures).map(|(flow, failure)| joined(flow, Role::Sender, failure)).collect()
    }

    fn why(of: Result<Vec<LostFlow>, Failure>) -> String {
        of.err().map(|failure| failure.why).unwrap_or_default()
    }

    #[test]
    fn a_measurement_goes_on_without_a_connection_that_was_lost() {
        let lost_one = lost(sent([Some(system(Errno::TIMEDOUT)), None]), true).ok().unwrap();
        assert_eq!((lost_one[0].flow, lost_one[0].at_s, lost_one.len()), (0, 8.0, 1));
        assert!(lost_one[0].why.contains("can't send"), "{lost_one:?}");
        assert!(lost(sent([None, None]), false).is_ok_and(|lost| lost.is_empty()));
    }

    #[test]
    fn what_ends_all_flows_or_this_host_s_part_is_an_error() {
        let timed_out = || Some(system(Errno::TIMEDOUT));
        assert!(why(lost(sent([timed_out(), timed_out()]), true)).contains("can't send"));
        assert!(why(lost(sent([timed_out(), None]), false)).contains("can't send"), "a file");
        let no_memory = sent([timed_out(), Some(system(Errno::NOMEM))]);
        assert!(!why(lost(no_memory, true)).is_empty());
        let aborted = sent([Some(MoveError::Aborted { flow: 0 }), timed_out()]);
        assert!(why(lost(aborted, true)).contains("can't send"), "not that it was aborted");
        let mut one_way = sent([None, None]);
        one_way.push(joined(2, Role::Receiver, timed_out()));
        assert!(!why(lost(one_way, true)).is_empty(), "nothing comes from the far end any more");
    }

    #[test]
    fn nobody_misses_a_part_of_what_has_no_end() {
        assert!(may_lose_flows(&Plan::standard()));
        let bytes = Plan { length: Length::Bytes(Bytes(10)), ..Plan::standard() };
        assert!(!may_lose_flows(&bytes));
        assert!(!may_lose_flows(&Plan { transport: Transport::Udp, ..Plan::standard() }));
    }
}
