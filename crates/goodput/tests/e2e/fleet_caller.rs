//! A caller that is no agent of goodput: what it does and says costs the called site no more than it allows.

use std::time::Duration;

use goodput_bus::{Bus, Proof, Server};
use goodput_fleet::{Answer, Call, FORMAT, Farewell, Invitation, Mesh, Sealed, Task, task_between};
use goodput_testing::wait_for;

use crate::common::{Home, stderr, stdout};
use crate::fleet_stage::{Agent, Fleet, PAIR};

/// Calls `a` as someone who may write to the bus as the agent of `b`.
fn called(fleet: &Fleet, calls: &[Call]) -> Vec<Answer> {
    let ask = async {
        let (url, name, inbox) = (fleet.nats.url(), "caller", "_INBOX.agent.b");
        let server = Server { url: &url, proof: Proof::None, authority: None, name, inbox };
        let bus = Bus::connect(server).await.expect("it listens");
        let mut answers = Vec::new();
        for call in calls {
            let answer = bus.ask("goodput.call.a.b", call, Duration::from_secs(60)).await;
            let answer = answer.expect("the bus goes on").expect("an agent answers");
            answers.push(Answer::read(&answer).expect("it is an answer"));
        }
        answers
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("there is room").block_on(ask)
}

/// Who calls may have nothing observed, go on, and say that it was free: the server of the called agent counts by itself.
#[test]
fn a_called_agent_keeps_to_its_budget_whatever_its_caller_does_and_says() {
    let Some(fleet) = Fleet::new() else { return };
    let a = Agent::start_with(&fleet, "a", Home::new(), &["--budget", "30MB/day"]);
    let mesh = Mesh::parse("x", PAIR).expect("it is a mesh");
    let home = Home::new();
    let file = home.path().join("caller").display().to_string();
    let made = home.run(&["key", "-o", &file]);
    let key = stdout(&made).split_whitespace().last().expect("it is printed").to_owned();
    let invitation = |id: &str| {
        let task = task_between(&mesh, id, "b", "a").expect("b calls a");
        let expires_s = jiff::Timestamp::now().as_second() as f64 + 3600.0;
        let sealed = Sealed::of(&Task { length_s: 50.0, expires_s, ..task }).expect("it is JSON");
        Call::Open(Invitation { format: FORMAT, sealed, key: key.clone(), can_be_asked: false })
    };
    let [Answer::Listening { port, key: of_server, most_bytes }] =
        &called(&fleet, &[invitation("t-1")])[..]
    else {
        panic!("it listens: {}", a.log())
    };
    assert_eq!(*most_bytes, Some(30_000_000));
    let target = format!("127.0.0.1:{port}");
    let options = ["--key", &file, "--server-key", of_server, "-t", "50", "--no-observe"];
    let output = home.run(&[&["test", &target], &options[..]].concat());
    wait_for("the end of the server", || a.servers() == 0);
    let said = stdout(&output) + &stderr(&output);
    let farewell = Call::Close(Farewell { task: "t-1".into(), bytes: Some(0) });
    let answers = called(&fleet, &[farewell, invitation("t-2")]);
    let [Answer::Closed, Answer::Refused(why)] = &answers[..] else {
        panic!("{answers:?}\n{said}\n{}", a.log())
    };
    assert!(why.contains("the budget of a has 0 B left of 30 MB/day"), "{why}\n{said}");
}
