//! A fleet that loses what NATS keeps for it, or its coordinator: it goes on, and says what there is.

use std::io::{BufRead, BufReader};
use std::process::Child;

use goodput_testing::wait_for;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Home, stderr, stdout};
use crate::fleet_stage::{Agent, Fleet, PAIR};

/// Reads lines until one has these words. Returns the lines up to it.
fn until(words: &str, lines: &mut impl Iterator<Item = std::io::Result<String>>) -> Vec<String> {
    let mut read = Vec::new();
    for line in lines.map_while(Result::ok) {
        let is_it = line.contains(words);
        read.push(line);
        if is_it {
            return read;
        }
    }
    panic!("it has ended without {words:?}: {read:?}")
}

fn end(mut child: Child) {
    child.kill().expect("it runs");
    child.wait().expect("it is ours");
}

#[test]
fn a_fleet_whose_nats_server_was_set_up_anew_goes_on() {
    let Some(mut fleet) = Fleet::new() else { return };
    let (a, b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    let mesh = fleet.mesh(&PAIR.replace("[test]", "[test]\nevery = \"1h\""));
    let home = Home::new();
    let mut run = fleet.coordinate(&home, &["run", &mesh]);
    let mut lines = BufReader::new(run.stdout.take().expect("stdout is piped")).lines();
    until("2/2  b → a", &mut lines);
    fleet.nats.kill();
    fleet.nats.lose_storage();
    fleet.nats.start();
    // What was done is lost with it, so the mesh is tested again.
    until("2/2  b → a", &mut lines);
    assert_eq!(b.records().len(), 4, "{}", b.log());
    for agent in [a, b] {
        assert!(agent.log().contains("NATS no longer has the stream"), "{}", agent.log());
    }
    end(run);
}

#[test]
fn a_stream_that_someone_removes_is_made_again() {
    let Some(fleet) = Fleet::new() else { return };
    let (_a, b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    fleet.nats.publish("$JS.API.STREAM.DELETE.GOODPUT_TASKS", "");
    wait_for("the agent to find that its tasks are gone", || {
        b.log().contains("NATS no longer has the stream GOODPUT_TASKS")
    });
    let output = fleet.run_to_the_end(&Home::new(), &fleet.mesh(PAIR));
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn ctrl_c_shows_what_there_is_and_the_next_run_prints_only_what_is_new() {
    let Some(fleet) = Fleet::new() else { return };
    let (_a, _b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    // It then waits between the two tests.
    let mesh = fleet.mesh(&PAIR.replace("pause = \"0s\"", "pause = \"1h\""));
    let home = Home::new();
    let mut run = fleet.run(&home, &mesh);
    let mut lines = BufReader::new(run.stdout.take().expect("stdout is piped")).lines();
    until("1/2  a → b", &mut lines);
    kill_process(Pid::from_child(&run), Signal::INT).expect("it is ours");
    let rest: Vec<_> = lines.map_while(Result::ok).collect();
    let output = run.wait_with_output().expect("it ends");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("ended after 1 of 2 tests. Not made: b → a. "), "{said}");
    assert!(rest.iter().any(|line| line.contains("1 of 2 pairs tested")), "{rest:?}");
    let other = Home::new();
    let mut again = fleet.run(&other, &mesh);
    let mut lines = BufReader::new(again.stdout.take().expect("stdout is piped")).lines();
    let printed = until("2/2  b → a", &mut lines);
    assert_eq!(printed.len(), 1, "{printed:?}");
    end(again);
}
