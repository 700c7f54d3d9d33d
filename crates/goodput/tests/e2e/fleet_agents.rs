//! `goodput fleet agent` and `goodput fleet run`, with a nats-server of their own on loopback.

use goodput_model::Direction;
use goodput_testing::wait_for;

use crate::common::{Home, records, stderr, stdout};
use crate::fleet_stage::{Agent, Fleet, PAIR};

#[test]
fn a_pair_is_tested_in_both_directions_by_the_side_that_can_call() {
    let Some(fleet) = Fleet::new() else { return };
    // What version 1 has left at the server.
    let old = r#"{"name":"GOODPUT_OUTCOMES","subjects":["goodput.outcome.*"]}"#;
    fleet.nats.publish("$JS.API.STREAM.CREATE.GOODPUT_OUTCOMES", old);
    let (a, b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    fleet.nats.publish("goodput.task.b", "poison");
    fleet.nats.publish("goodput.call.a.b", "{\"open\":7}");
    let home = Home::new();
    let output = fleet.run_to_the_end(&home, &fleet.mesh(PAIR));
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}", stderr(&output));
    for words in ["1/2  a → b  ", "2/2  b → a  ", "2 sites, 2 of 2 pairs tested"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(a.records().len(), 0, "who is called keeps nothing");
    let (mut called, mut kept) = (b.records(), records(home.path()));
    called.sort_by(|one, two| one.started.cmp(&two.started));
    kept.sort_by(|one, two| one.started.cmp(&two.started));
    assert_eq!(called, kept, "to the last bit");
    let directions: Vec<_> = kept.iter().map(|record| record.plan.direction).collect();
    assert_eq!(directions, [Direction::Reverse, Direction::Send]);
    assert!(kept.iter().all(|record| record.result.goodput_bits_per_s.0 > 0.0));
    wait_for("no port to stand open", || (a.servers(), b.servers()) == (0, 0));
}

#[test]
fn a_second_agent_of_a_name_is_refused_in_words_and_a_site_without_one_is_named() {
    let Some(fleet) = Fleet::new() else { return };
    let _a = Agent::start(&fleet, "a");
    let home = Home::new();
    let url = fleet.nats.url();
    let second = home.run(&["fleet", "agent", "--nats", &url, "--name", "a"]);
    assert_eq!(second.status.code(), Some(2), "{}", stderr(&second));
    let why = stderr(&second);
    assert!(why.contains("Z agent a: an agent a already runs on host "), "{why}");
    assert!(why.contains("by its clock") && why.contains("--name"), "{why}");
    let output = fleet.run_to_the_end(&home, &fleet.mesh(PAIR));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stdout(&output);
    assert_eq!(said.matches("no record: no agent b is connected").count(), 2, "{said}");
}

#[test]
fn a_test_that_an_agent_did_not_survive_has_a_reason_and_is_not_made_again() {
    let Some(fleet) = Fleet::new() else { return };
    let (a, b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    let mesh = PAIR.replace("1s", "30s").replace("pause", "directions = \"one\"\npause");
    let home = Home::new();
    let run = fleet.run(&home, &fleet.mesh(&mesh));
    wait_for("a server at a", || a.servers() == 1);
    let b = Agent::start_in(&fleet, "b", b.kill());
    let output = run.wait_with_output().expect("it ends");
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{said}{}", stderr(&output));
    assert!(said.contains("no record: the agent b ended while it was in this test"), "{said}");
    assert_eq!(b.records().len(), 0);
}

/// Two agents have a server opened, and are killed before they connect to it.
#[test]
fn a_server_whose_caller_is_gone_ends_and_holds_up_no_other_test() {
    let Some(fleet) = Fleet::new() else { return };
    let a = Agent::start_with(&fleet, "a", Home::new(), &["--max-duration", "600s"]);
    let b = Agent::start(&fleet, "b");
    let expires_s = jiff::Timestamp::now().as_second() + 3600;
    let call = |id: &str, near: &str| {
        let task = serde_json::json!({
            "format": goodput_fleet::FORMAT, "id": id, "near": near, "far": "a", "target": "127.0.0.1", "direction": "send",
            "length_s": 600.0, "rate": null, "expires_s": expires_s, "token": 0,
        });
        let open = serde_json::json!({ "open": {
            "format": goodput_fleet::FORMAT, "key": "x25519:RaPJSx1Bmyen+ag5rKZDiwtExfqVSn8yLXMWFfOZ1mg", "can_be_asked": true,
            "sealed": { "format": goodput_fleet::FORMAT, "task": task.to_string(), "signature": null },
        }});
        fleet.nats.publish(&format!("goodput.call.a.{near}"), &open.to_string());
    };
    call("t-1", "x");
    wait_for("a server at a", || a.servers() == 1);
    call("t-2", "y");
    let called = || std::fs::read_to_string(a.home.path().join("state/fleet/a/called"));
    wait_for("the next call", || called().is_ok_and(|text| text.contains("t-2 ")));
    let home = Home::new();
    let output = fleet.run_to_the_end(&home, &fleet.mesh(PAIR));
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}{}", stderr(&output), a.log());
    assert_eq!(b.records().len(), 2, "{said}");
    assert!(!a.log().contains("it is in another test"), "{}", a.log());
    wait_for("no port to stand open", || a.servers() == 0);
}

#[test]
fn a_coordinator_that_was_killed_has_a_successor_and_nothing_runs_twice() {
    let Some(fleet) = Fleet::new() else { return };
    let (a, b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    let mesh = fleet.mesh(&PAIR.replace("1s", "3s"));
    let (first, second) = (Home::new(), Home::new());
    let mut run = fleet.run(&first, &mesh);
    wait_for("a server at a", || a.servers() == 1);
    run.kill().expect("it runs");
    run.wait().expect("it is ours");
    let output = fleet.run_to_the_end(&second, &mesh);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert_eq!((b.records().len(), records(second.path()).len()), (2, 2), "{}", stdout(&output));
    // What is done is known: a turn that has ended is not made again by accident, but by another run.
    let output = fleet.run_to_the_end(&second, &mesh);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert_eq!((b.records().len(), records(second.path()).len()), (4, 4));
}

#[test]
fn without_nats_or_with_a_bad_name_the_agent_says_so() {
    let home = Home::new();
    let output = home.run(&["fleet", "agent", "--nats", "nats://127.0.0.1:1", "--name", "a"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("can't connect to NATS at nats://127.0.0.1:1"),
        "{}",
        stderr(&output)
    );
    let output =
        home.run(&["fleet", "agent", "--nats", "nats://me:secret@127.0.0.1:1", "--name", "a"]);
    let why = stderr(&output);
    assert!(why.contains("has a user or a password") && !why.contains("secret"), "{why}");
    let output = home.run(&["fleet", "agent", "--nats", "nats://127.0.0.1:1", "--name", ""]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("the name of a site has 1 to 255 visible characters"),
        "{}",
        stderr(&output)
    );
}
