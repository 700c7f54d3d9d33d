//! Flows that are no longer waited for. Only the kernel can end a call to a file. On a mount whose server is gone, it never
//! does.

use std::time::Duration;

use goodput_model::Role;
use goodput_mover::RunningFlow;

use crate::run::flow_events::Failure;

/// How long a call may go on after its flow was to end.
const CALL_TIME: Duration = Duration::from_secs(5);
/// How fast a slow server takes what is still in the page cache of this host, bytes per second.
const FLUSH_BYTES_PER_S: u64 = 1_000_000;
/// The longest time for that.
const MAX_FLUSH_TIME: Duration = Duration::from_secs(120);

/// The failure of a flow that reads or writes a file and should have ended `overdue` ago; `None`: each may still end.
pub fn given_up(flows: &[RunningFlow], overdue: Duration) -> Option<Failure> {
    let late = flows.iter().filter(|flow| !flow.is_finished() && overdue > patience(flow));
    let name = late.filter_map(|flow| flow.config().file.as_ref()).map(|file| &file.name).next()?;
    let why = format!(
        "{name}: a call has not returned {} s after the flow was to end: the server or the disk does not answer; see \
         `dmesg`",
        overdue.as_secs()
    );
    Some(Failure { why, by_peer: false, not_permitted: false })
}

/// How long a flow may take to end.
fn patience(flow: &RunningFlow) -> Duration {
    let confirmed = flow.config().file.as_ref().map_or(0, |file| file.confirmed_bytes());
    let unflushed = match flow.config().role {
        Role::Sender => flow.counters().bytes().saturating_sub(confirmed),
        Role::Receiver => 0,
    };
    CALL_TIME + Duration::from_secs(unflushed / FLUSH_BYTES_PER_S).min(MAX_FLUSH_TIME)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;
    use std::time::Instant;

    use goodput_model::Transport;
    use goodput_mover::{Flow, FlowConfig, Gate, MountedFile, MoveError, Mover, PassLog, Stop};

    use super::*;

    /// Reads as from a dead mount.
    struct Dead;

    impl Mover for Dead {
        fn id(&self) -> &'static str {
            "dead"
        }

        fn summary(&self) -> &'static str {
            "never returns"
        }

        fn receive(&self, _flow: &Flow) -> Result<(), MoveError> {
            loop {
                std::thread::park();
            }
        }
    }

    #[derive(Debug)]
    struct NoLog;

    impl PassLog for NoLog {
        fn began(&self, _flow: u16, _began: Instant, _first: Duration) {}
        fn ended(&self, _: u16, _: Instant, _: Duration, _: Option<Duration>) {}
    }

    fn running(file: Option<MountedFile>) -> RunningFlow {
        let gate = Arc::new(Gate::default());
        gate.open();
        let stop = Arc::new(Stop::new().unwrap());
        let config = FlowConfig { file, ..FlowConfig::new(Role::Receiver, Transport::Tcp, 1000) };
        let null = File::open("/dev/null").unwrap();
        goodput_mover::start(&Dead, config, null.into(), gate, stop).unwrap()
    }

    #[test]
    fn a_call_that_never_returns_is_given_up_and_a_socket_is_not() {
        let file = MountedFile {
            name: "/mnt/nas/file".into(),
            direct: true,
            part: 0..1000,
            passes: None,
            log: Arc::new(NoLog),
            confirmed: Arc::default(),
        };
        let (soon, late) = (CALL_TIME, CALL_TIME + Duration::from_secs(1));
        let flows = [running(Some(file))];
        assert!(given_up(&flows, soon).is_none());
        let failure = given_up(&flows, late).unwrap();
        assert!(failure.why.contains("/mnt/nas/file") && failure.why.contains("6 s"));
        assert!(given_up(&[running(None)], late).is_none());
    }
}
