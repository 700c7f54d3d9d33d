//! What others write where a fleet reads: no agent ends for it, and what is wrong is said.

use std::thread;
use std::time::Duration;

use goodput_bus::{Bus, Keys, Proof, Server};

use goodput_testing::wait_for;
use serde_json::{Value, json};

use crate::common::{Home, records, stderr, stdout};
use crate::fleet_stage::{Agent, Fleet, PAIR, announcement};

#[test]
fn an_agent_whose_name_is_written_over_puts_it_there_again() {
    let Some(fleet) = Fleet::new() else { return };
    let (_a, b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    fleet.nats.publish("$KV.goodput-agents.b", "poison");
    wait_for("the agent to say so", || b.log().contains("is put there again"));
    let log = b.log();
    assert!(log.contains("the key b of the bucket goodput-agents"), "{log}");
    assert!(log.contains("Z agent b: "), "{log}");
    let home = Home::new();
    let output = fleet.run_to_the_end(&home, &fleet.mesh(PAIR));
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert_eq!((b.records().len(), records(home.path()).len()), (2, 2), "{}", b.log());
}

/// As after a long time without the bus, in which another agent was started with the name.
#[test]
fn an_agent_whose_name_another_one_has_ends_and_names_it() {
    let Some(fleet) = Fleet::new() else { return };
    let mut b = Agent::start(&fleet, "b");
    let other = r#"{"session":"other","host":{"name":"elsewhere"},"since":"noon"}"#;
    let mut ended = None;
    // Again and again: on a busy machine, the name may expire before the agent looks, which then takes it anew.
    wait_for("the agent to end", || {
        fleet.nats.publish("$KV.goodput-agents.b", other);
        ended = b.ended();
        ended.is_some()
    });
    assert_eq!(ended.and_then(|status| status.code()), Some(2), "{}", b.log());
    let log = b.log();
    assert!(
        log.contains("on host elsewhere since noon (by its clock) has taken the name b"),
        "{log}"
    );
}

#[test]
fn what_begins_a_test_and_is_no_agent_s_is_a_reason() {
    let Some(fleet) = Fleet::new() else { return };
    let (_a, b) = (Agent::start(&fleet, "a"), Agent::start(&fleet, "b"));
    let mut tasks = fleet.nats.hear("goodput.task.b");
    let home = Home::new();
    let output = fleet.run_to_the_end(&home, &fleet.mesh(PAIR));
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    // The same task under another name, which someone else has begun.
    let sealed = tasks.next_message();
    let mut sealed: Value = serde_json::from_str(&sealed).expect(&sealed);
    let mut task: Value = serde_json::from_str(sealed["task"].as_str().unwrap()).unwrap();
    task["id"] = "t-1".into();
    sealed["task"] = task.to_string().into();
    fleet.nats.publish("$KV.goodput-begun.b.t-1", "poison");
    let mut outcome = fleet.nats.hear("goodput.outcomes.b.t-1");
    fleet.nats.publish("goodput.task.b", &sealed.to_string());
    let outcome = outcome.next_message();
    assert!(outcome.contains("the key b.t-1 of the bucket goodput-begun"), "{outcome}");
    assert_eq!(b.records().len(), 2);
}

/// Answers the calls for `a` with this, as someone who may write everywhere.
fn impostor(url: String, answer: Value) {
    let answers = async move {
        let (name, inbox) = ("impostor", "_INBOX.impostor");
        let server = Server { url: &url, proof: Proof::None, authority: None, name, inbox };
        let bus = Bus::connect(server).await.expect("it listens");
        let agents = bus.keys("goodput-agents", Some(Duration::from_secs(12)));
        let agents = agents.await.expect("it has the bucket");
        let questions = bus.questions("goodput.call.a.*");
        let mut questions = questions.await.expect("it may hear them");
        let answered = async {
            while let Ok(question) = questions.next().await {
                let _ = question.answer("_INBOX.agent.b", &answer).await;
            }
        };
        tokio::select! {
            () = announce(&agents) => {}
            () = answered => {}
        }
    };
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("there is room").block_on(answers);
    });
}

/// Until the bus ends with the test.
async fn announce(agents: &Keys) {
    let said = announcement("a");
    while agents.put("a", &said).await.is_ok() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// What a fleet says of the test from b to a, whose agent answers with this.
fn answered_with(answer: Value) -> Option<String> {
    let fleet = Fleet::new()?;
    let b = Agent::start(&fleet, "b");
    let mut announced = fleet.nats.hear("$KV.goodput-agents.a");
    impostor(fleet.nats.url(), answer);
    announced.next_message();
    let mesh = PAIR.replace("pause", "directions = \"one\"\npause");
    let output = fleet.run_to_the_end(&Home::new(), &fleet.mesh(&mesh));
    let said = stdout(&output) + &stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(b.records().len(), 0, "{said}");
    Some(said)
}

#[test]
fn an_answer_that_is_none_is_a_reason() {
    let Some(said) = answered_with(json!("poison")) else { return };
    assert!(said.contains("the answer of the agent a can't be read"), "{said}");
}

/// Who answers for another agent has no server at its address.
#[test]
fn who_answers_for_another_agent_gets_no_payload() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let number = port.local_addr().unwrap().port();
    drop(port);
    let key = "x25519:RaPJSx1Bmyen+ag5rKZDiwtExfqVSn8yLXMWFfOZ1mg";
    let answer = json!({ "listening": { "port": number, "key": key, "most_bytes": null } });
    let Some(said) = answered_with(answer) else { return };
    assert!(said.contains("no record: "), "{said}");
}
