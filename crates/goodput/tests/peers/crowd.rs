//! Many clients of every program at the same time.

use goodput_testing::{as_test, not_judged};
use libtest_mimic::Failed;
use rustix::process::Signal;

use crate::matrix::Test;
use crate::space::{Space, exe};

const MIXTURE: &str = "crowd/clients_of_all_programs_are_served_at_once";

/// The tests.
pub fn all() -> Vec<(&'static str, Test)> {
    vec![(MIXTURE, mixture)]
}

/// Clients of each kind. Slow ones, so that they are all there at the same time.
const EACH: usize = 6;

/// What they call. Nobody here listens where nuttcp's receiving client would.
const KINDS: &[&[&str]] = &[
    &["iperf3", "-c", "127.0.0.1", "-t", "2", "-b", "1M"],
    &["iperf3", "-c", "::1", "-t", "2", "-b", "1M", "-u", "-R", "-P", "2"],
    &["iperf3", "-c", "127.0.0.1", "-t", "2", "-b", "1M", "--bidir"],
    &["iperf", "-c", "127.0.0.1", "-t", "2", "-b", "1M"],
    &["iperf", "-c", "127.0.0.1", "-t", "2", "-b", "1M", "-u", "-P", "2"],
    &["iperf", "-c", "127.0.0.1", "-t", "2", "-b", "1M", "-R"],
    &["nuttcp", "-T1", "-R1m", "127.0.0.1"],
    &["nuttcp", "-T1", "-R1m", "-u", "127.0.0.1"],
    &["goodput", "test", "127.0.0.1", "-t", "2", "--rate", "1M", "--both", "--no-store"],
];

fn mixture() -> Result<(), Failed> {
    let space = Space::new()?;
    let server = space.serve(&[])?;
    let start = |kind: &&[&str]| {
        let program = if kind[0] == "goodput" { exe() } else { kind[0] };
        space.start(program, &kind[1..])
    };
    let clients = (0..EACH).flat_map(|_| KINDS).map(|kind| Ok((kind, start(kind)?)));
    let mut unanswered = Vec::new();
    for (kind, client) in clients.collect::<Result<Vec<_>, Failed>>()? {
        let ended = client.finish()?;
        if !ended.status.success() {
            let said = ended.stdout + &ended.stderr;
            return Err(format!("{kind:?}: {}: {said}", ended.status).into());
        }
        // iperf ends well even if nobody has heard it. It waits for 2.5 s, in which a busy machine may not answer.
        if ended.stderr.contains("WARNING") {
            unanswered.push(format!("{kind:?}: {}", ended.stderr));
        }
    }
    if unanswered.len() > EACH / 2 {
        return Err(unanswered.join("\n").into());
    }
    unanswered.iter().for_each(|why| as_test(MIXTURE, || not_judged(why)));
    server.signal(Signal::INT)?;
    let ended = server.finish()?;
    if !ended.status.success() || ended.stderr.contains("refused") {
        return Err(format!("{}: {}", ended.status, ended.stderr).into());
    }
    Ok(())
}
