//! A site without an agent, where the agents of others start a server through a real SSH server on loopback.

use goodput_testing::skip;

use crate::common::{Home, records, stderr, stdout, unused_ports};
use crate::fleet_stage::{Agent, Fleet};
use crate::started_by_ssh::{Host, find};

/// A fleet, and a host by SSH that has no goodput, but iperf3. None if this machine can't host it.
fn stage() -> Option<(Fleet, Host)> {
    let iperf3 = find("iperf3");
    if iperf3.as_os_str().is_empty() {
        skip("iperf3");
        return None;
    }
    Some((Fleet::new()?, Host::with(&[("iperf3", iperf3)])?))
}

/// An agent that may log in to these hosts.
fn agent(fleet: &Fleet, host: &Host, name: &str, hosts: &str) -> Agent {
    let config = host.sshd.config().display().to_string();
    Agent::start_with(fleet, name, Home::new(), &["--ssh", hosts, "--ssh-config", &config])
}

/// A mesh in which `a` tests with a host by SSH.
fn mesh(fleet: &Fleet, length: &str, ssh: &str, more: &str) -> String {
    let port = unused_ports(1);
    fleet.mesh(&format!(
        "[test]\nlength = \"{length}\"\npause = \"0s\"\n[site.a]\n[site.x]\nssh = \"{ssh}\"\nport = {port}\n{more}"
    ))
}

#[test]
fn a_host_without_an_agent_is_tested_in_both_directions_and_nothing_is_left_there() {
    let Some((fleet, host)) = stage() else { return };
    let a = agent(&fleet, &host, "a", "b");
    let home = Home::new();
    let output = fleet.run_to_the_end(&home, &mesh(&fleet, "1s", "b", "program = \"iperf3\"\n"));
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}{}", stderr(&output), a.log());
    assert!(said.contains("2 sites, 2 of 2 pairs tested"), "{said}");
    let kept = records(home.path());
    let of_iperf3 = |record: &&goodput_model::Record| record.far_totals.is_some();
    assert_eq!(kept.iter().filter(of_iperf3).count(), 2, "{said}");
    assert!(kept.iter().all(|record| record.target == "ssh://b"));
    host.wait_for_the_end();
}

#[test]
fn an_agent_that_is_killed_in_a_test_leaves_no_server_there() {
    let Some((fleet, host)) = stage() else { return };
    let a = agent(&fleet, &host, "a", "b");
    let mut news = fleet.nats.hear("goodput.news.a.*");
    let home = Home::new();
    let mut run = fleet.run(&home, &mesh(&fleet, "30s", "b", ""));
    news.next_message();
    assert!(host.serves(), "{}", a.log());
    a.kill();
    host.wait_for_the_end();
    run.kill().expect("it runs");
    run.wait().expect("it is ours");
}

#[test]
fn an_agent_logs_in_only_where_its_own_options_and_the_known_keys_allow_it() {
    let Some((fleet, host)) = stage() else { return };
    let a = agent(&fleet, &host, "a", "unknown,changed");
    for (ssh, words) in [
        ("b", "a does not log in to ssh://b (--ssh)"),
        ("me@unknown", "a does not log in to ssh://me@unknown (--ssh)"),
        ("unknown", "its host key"),
        ("changed", "its host key"),
    ] {
        let output = fleet.run_to_the_end(&Home::new(), &mesh(&fleet, "1s", ssh, ""));
        let said = stdout(&output);
        assert_eq!(output.status.code(), Some(1), "{ssh}: {said}{}{}", stderr(&output), a.log());
        assert_eq!(said.matches("no record: ").count(), 2, "{ssh}: {said}");
        assert!(said.contains(words), "{ssh}: {said}");
        assert!(!host.serves());
    }
}
