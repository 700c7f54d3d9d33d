//! Flows on CPUs that were asked for, at either end.

use goodput_model::{End, FlowPlacement, Pin, Record};

use crate::common::{Home, Server, record, stderr, stdout};

/// CPUs that this process may use (`Cpus_allowed_list`, proc_pid_status(5)).
fn allowed() -> Vec<u16> {
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel reports it");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let ranges = list.expect("it has a list").trim().split(',').flat_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        first.parse::<u16>().expect("a CPU")..=last.parse().expect("a CPU")
    });
    ranges.collect()
}

fn flows(end: Option<&End>) -> Vec<FlowPlacement> {
    end.and_then(|end| end.placement.clone()).map(|placement| placement.flows).unwrap_or_default()
}

fn measure(arguments: &[&str]) -> Record {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let mut all = vec!["test", &server.address, "--json", "--no-store", "-t", "1"];
    all.extend(arguments);
    record(&home.run(&all))
}

#[test]
fn the_flows_of_each_end_run_where_they_were_put_and_nowhere_else() {
    let (first, last) = (allowed()[0], *allowed().last().expect("there is a CPU"));
    let (near, far) = (format!("--pin={first},{last}"), format!("--pin=far:{last}"));
    let record = measure(&[&near, &far, "-P", "3"]);
    let near = flows(record.ends.near.value());
    let pinned: Vec<_> = near.iter().map(|flow| flow.pinned_to).collect();
    assert_eq!(pinned, [Some(first), Some(last), Some(first)]);
    let far = flows(record.ends.far.value());
    assert_eq!(far.len(), 3);
    for flow in near.iter().chain(&far) {
        assert_eq!(Some(flow.seen_on.clone()), flow.pinned_to.map(|cpu| vec![cpu]), "{flow:?}");
    }
}

#[test]
fn without_a_wish_the_record_says_where_the_scheduler_put_them() {
    let record = measure(&[]);
    assert!(record.plan.pin.are_none());
    let near = flows(record.ends.near.value());
    assert!(!near[0].seen_on.is_empty() && near[0].pinned_to.is_none(), "{near:?}");
    assert!(near[0].seen_on.iter().all(|cpu| allowed().contains(cpu)));
}

#[test]
fn loopback_has_no_card_to_be_near_to() {
    let record = measure(&["--pin", "auto"]);
    assert_eq!(record.plan.pin.near, Pin::Auto);
    let near = record
        .ends
        .near
        .value()
        .and_then(|end| end.placement.clone())
        .expect("the near end reports its placement");
    assert!(near.chosen.contains("virtual") && near.chosen.contains("scheduler"), "{near:?}");
    assert_eq!(near.flows[0].pinned_to, None);
}

#[test]
fn a_cpu_that_is_not_there_is_refused_with_those_that_are() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let absent = (0..1024).find(|cpu| !allowed().contains(cpu)).expect("fewer than 1024 CPUs");
    for (pin, end) in
        [(format!("--pin={absent}"), "near end"), (format!("--pin=far:{absent}"), "refused")]
    {
        let output = home.run(&["test", &server.address, "--no-store", "-t", "1", &pin]);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(end) && text.contains(&format!("CPU {absent}")), "{text}");
        assert!(text.contains(&format!("may run on CPU {}", allowed()[0])), "{text}");
        assert!(!stdout(&output).contains("received,"), "nothing was measured");
    }
}
