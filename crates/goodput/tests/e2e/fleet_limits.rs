//! What an agent takes part in, whatever the coordinator asks.

use goodput_model::{EndName, Known};

use crate::common::{Home, Server, records, stderr, stdout};
use crate::fleet_stage::{Agent, Fleet, PAIR};

#[test]
fn tests_keep_to_the_rate_of_the_slower_agent() {
    let Some(fleet) = Fleet::new() else { return };
    let _a = Agent::start_with(&fleet, "a", Home::new(), &["--max-rate", "40mbit"]);
    let _b = Agent::start_with(&fleet, "b", Home::new(), &["--max-rate", "20mbit"]);
    let home = Home::new();
    let output = fleet.run_to_the_end(&home, &fleet.mesh(PAIR));
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let kept = records(home.path());
    assert_eq!(kept.len(), 2);
    let mut at_limit = 0;
    for record in kept {
        assert_eq!(record.plan.rate_bits_per_s.map(|rate| rate.0), Some(20e6));
        // The pacing of a busy machine may catch up for a moment.
        let goodput = record.result.goodput_bits_per_s.0;
        assert!(goodput < 25e6, "{:?}", record.result);
        assert_eq!(record.plan.rate_limit_of, Some(EndName::Near), "b calls a");
        let sites = record.sites.map(|sites| (sites.near, sites.far));
        assert_eq!(sites, Some(("b".into(), "a".into())));
        // A busy machine may not reach the rate, and may have more to say of a test than its limit.
        at_limit += usize::from(goodput >= 18e6);
    }
    let said = stdout(&output);
    assert_eq!(said.matches('≥').count() > 0, at_limit > 0, "{said}");
    assert_eq!(said.contains("2 of them capped by --max-rate"), at_limit == 2, "{said}");
}

#[test]
fn an_agent_tests_only_with_the_sites_that_it_accepts() {
    let Some(fleet) = Fleet::new() else { return };
    let _a = Agent::start_with(&fleet, "a", Home::new(), &["--accept", "c,d"]);
    let _b = Agent::start(&fleet, "b");
    let output = fleet.run_to_the_end(&Home::new(), &fleet.mesh(PAIR));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stdout(&output);
    assert_eq!(said.matches("no record: a does not test with b (--accept)").count(), 2, "{said}");
}

/// What an agent said of its budget in a test is old after it: only the agent itself judges by it.
#[test]
fn a_roomy_budget_pays_for_one_test_after_the_other() {
    let Some(fleet) = Fleet::new() else { return };
    let budget = ["--budget", "100TB/day"];
    let _a = Agent::start_with(&fleet, "a", Home::new(), &budget);
    let b = Agent::start_with(&fleet, "b", Home::new(), &budget);
    let name = "$KV.goodput-agents.b";
    let mut names = fleet.nats.hear(name);
    let said = names.next_message();
    let mut said: serde_json::Value = serde_json::from_str(&said).expect(&said);
    // As in a test without a rate, which may cost all that is left.
    said["limits"]["left"] = 0.into();
    fleet.nats.publish(name, &said.to_string());
    let home = Home::new();
    let output = fleet.run_to_the_end(&home, &fleet.mesh(PAIR));
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert_eq!((b.records().len(), records(home.path()).len()), (2, 2), "{}", b.log());
}

/// The budget ends a test in the middle, and once there is none left, none is left after a restart either.
#[test]
fn a_budget_holds_in_a_test_and_over_restarts() {
    let Some(fleet) = Fleet::new() else { return };
    let budget = ["--budget", "30MB/day"];
    let _a = Agent::start(&fleet, "a");
    let b = Agent::start_with(&fleet, "b", Home::new(), &budget);
    let home = Home::new();
    let mesh = fleet.mesh(&PAIR.replace("1s", "30s"));
    let output = fleet.run_to_the_end(&home, &mesh);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{said}{}", stderr(&output));
    assert!(
        said.contains("1/2  a → b") && said.contains("that the budget of b had left"),
        "{said}"
    );
    // A test ends before the sample that would exceed the budget, so a rest may be left for others.
    let refused = |said: &str| said.matches("no record: the budget of b has").count();
    let free_again = "left of 30 MB/day (--budget of its own agent)";
    let until_empty = (0..10).find(|_| refused(&stdout(&fleet.run_to_the_end(&home, &mesh))) == 2);
    assert!(until_empty.is_some(), "the budget has something left after ten turns: {}", b.log());
    let kept = records(home.path());
    assert!(matches!(kept.last().map(|record| &record.ends.far), Some(Known::Value(_))));
    let home_of_b = b.kill();
    let _b = Agent::start_with(&fleet, "b", home_of_b, &budget);
    let output = fleet.run_to_the_end(&home, &mesh);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{said}{}", stderr(&output));
    assert_eq!(refused(&said), 2, "{said}");
    assert!(said.contains(free_again) && said.contains("free again in"), "{said}");
}

/// A server that stands open knows nothing of budgets, and sends until it hears of the end.
#[test]
fn a_budget_ends_a_test_with_a_server_that_stands_open_and_the_record_says_so() {
    let Some(fleet) = Fleet::new() else { return };
    let at = Home::new();
    let server = Server::start(&at, &[]);
    let a = Agent::start_with(&fleet, "a", Home::new(), &["--budget", "10MB/day"]);
    let mesh = fleet.mesh(&format!(
        "[test]\npairs = \"named\"\ndirections = \"one\"\nlength = \"30s\"\n[site.a]\n[site.x]\n\
         server = \"iperf3://{}\"\n[[pair]]\nsites = [\"x\", \"a\"]\n",
        server.address
    ));
    let home = Home::new();
    let output = fleet.run_to_the_end(&home, &mesh);
    let said = stdout(&output);
    assert!(
        said.contains("only a part: it would have cost more than the 10 MB that the budget of a"),
        "{said}{}",
        a.log()
    );
    let kept = records(home.path());
    let why = kept.first().and_then(|record| record.incomplete.as_deref());
    assert!(why.is_some_and(|why| why.contains("the budget of a had left")), "{why:?}");
    assert!(said.contains("0 of 1 pairs tested"), "a part is no test of the pair: {said}");
}
