//! Whose CPU time is judged, and whether it can be known. Of a host that is read by SSH it is all that the host does. Of the
//! other ends, goodput there reports its own.

use goodput_model::{EndName, Plan, Response};
use goodput_remote::Hosts;

use super::CompareRequest;
use super::appliers::Appliers;
use super::taking::{is_file, reads_far_cpu};
use crate::control::target::Target;
use crate::error::EngineError;

/// Refuses to judge CPU time that nobody reports, before anything is measured.
///
/// # Errors
/// With what would make it known.
pub fn check_cpu(target: &Target, plan: &Plan, hosts: &Hosts) -> Result<(), EngineError> {
    let (far_end, id) = (&target.protocol.far_end, target.protocol.id);
    let receives = |end| plan.flow_plans().iter().any(|flow| flow.sender != end);
    let why = match () {
        // Of a server of files and of a mount, only this end's CPU time counts.
        () if is_file(target) => return Ok(()),
        () if !far_end.reports && hosts.far.is_none() => format!(
            "an {id} server reports no CPU time; run `goodput serve` there, or name its host with --far ssh://HOST"
        ),
        () if !far_end.counts && receives(EndName::Far) => format!(
            "CPU time is judged for each byte, and an {id} server does not report what it received; run `goodput serve` \
             there, or let it send (--reverse)"
        ),
        () => return Ok(()),
    };
    let why = format!("CPU time can't be judged: {why}");
    Err(EngineError::Incomplete { why, not_permitted: false })
}

/// Makes sure that the CPU time of a far end that reports none is read, if it is judged: although no arm may change its
/// host. Returns what a reader must know of each host that is read so.
pub(super) async fn watch_far(
    request: &CompareRequest,
    appliers: &mut Appliers,
) -> Result<Vec<String>, EngineError> {
    if !request.responses.contains(&Response::Cpu) {
        return Ok(Vec::new());
    }
    if reads_far_cpu(request) {
        match appliers.reach(EndName::Far).await {
            // Only what the comparison is about can't do without it.
            Err(why) if request.responses.first() != Some(&Response::Cpu) => {
                return Ok(vec![format!("the CPU time of the far host is unknown: {why}")]);
            }
            reached => reached?,
        }
    }
    let said = appliers.reached().into_iter().map(|host| {
        format!(
            "the CPU time of {host} is that of the whole host during each run: other work there counts as well"
        )
    });
    Ok(said.collect())
}

#[cfg(test)]
mod tests {
    use goodput_model::Direction;

    use super::*;

    fn refused(target: &str, plan: &Plan, far: Option<&str>) -> Option<String> {
        let hosts = Hosts::new(None, far.map(|host| host.parse().unwrap()), Default::default());
        check_cpu(&target.parse().unwrap(), plan, &hosts).err().map(|why| why.to_string())
    }

    #[test]
    fn cpu_time_that_nobody_reports_is_refused_unless_the_host_is_read_by_ssh() {
        let plan = Plan::standard();
        assert_eq!(refused("b", &plan, None), None);
        assert_eq!(refused("iperf3://b", &plan, Some("ssh://b")), None);
        let why = refused("iperf3://b", &plan, None).unwrap();
        for words in ["iperf3", "reports no CPU time", "--far ssh://HOST"] {
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn without_a_count_of_what_was_received_cpu_time_is_no_number() {
        let send = Plan::standard();
        let why = refused("ttcp://b", &send, Some("ssh://b")).unwrap();
        assert!(why.contains("does not report what it received"), "{why}");
        let receive = Plan { direction: Direction::Reverse, ..send };
        assert_eq!(refused("ttcp://b", &receive, Some("ssh://b")), None);
    }
}
