//! What is let in on a host of 4 GB, and what is not.

use std::time::Duration;

use super::*;
use crate::serve::host::Buffers;
use goodput_model::{Bytes, Direction, Transport};

const GIB: u64 = 1 << 30;

fn host(memory_bytes: u64) -> Host {
    let buffers = Buffers::usual(memory_bytes);
    Host { memory_bytes, descriptors: 20_000, threads: 15_000, buffers }
}

fn lent(measurements: u32) -> Lent {
    Lent {
        measurements,
        connections_per_client: 2,
        client_percent: 50,
        client_rate: None,
        total_rate: None,
    }
}

fn small_host(measurements: u32) -> Admission {
    Admission::new(&lent(measurements), host(4 * GIB))
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn why<T>(refused: Result<T, String>) -> String {
    refused.err().expect("it is refused")
}

#[test]
fn a_thousand_flows_fit_on_a_host_of_4_gb() {
    let admission = small_host(512);
    for transport in [Transport::Tcp, Transport::Udp] {
        for direction in [Direction::Send, Direction::Reverse, Direction::Both] {
            let flows = if direction == Direction::Both { 500 } else { 1000 };
            let chunk_bytes = transport.standard_chunk();
            let plan = Plan { transport, direction, flows, chunk_bytes, ..Plan::standard() };
            let let_in = admission.measurement(address("192.0.2.1"), &plan);
            assert!(let_in.is_ok(), "{transport:?} {direction:?}: {}", why(let_in));
        }
    }
}

#[test]
fn who_proposes_much_and_sends_nothing_locks_nobody_out() {
    for memory_bytes in [4 * GIB, 16 * GIB] {
        let admission = Admission::new(&lent(512), host(memory_bytes));
        let greedy = Plan { flows: 128, chunk_bytes: Bytes(16 << 20), ..Plan::standard() };
        let propose = |from, plan: &Plan| admission.measurement(address(from), plan);
        let mut held: Vec<_> = (0..2).map(|_| propose("192.0.2.1", &greedy)).collect();
        held.extend((0..2).map(|_| propose("192.0.2.2", &greedy)));
        for other in ["192.0.2.3", "198.51.100.7", "2001:db8::1"] {
            for flows in [1, 8] {
                let plan = Plan { flows, ..Plan::standard() };
                let let_in = propose(other, &plan);
                assert!(let_in.is_ok(), "{memory_bytes}: {other}: {}", why(let_in));
            }
        }
        assert!(held.iter().any(Result::is_err), "{memory_bytes}: not all of it");
    }
}

#[test]
fn forged_conversations_leave_others_their_measurements() {
    let admission = small_host(8);
    let forged = |last: u8| {
        let from = IpAddr::from([10, last, 2, 3]);
        admission.unproven(from).and_then(|seat| {
            let plan = Plan {
                transport: Transport::Udp,
                chunk_bytes: Transport::Udp.standard_chunk(),
                ..Plan::standard()
            };
            Ok((seat, admission.measurement(from, &plan)?))
        })
    };
    let flood: Vec<_> = (0..100).filter_map(|last| forged(last).ok()).collect();
    assert_eq!(flood.len(), 4, "half of eight");
    assert!(admission.connection(address("192.0.2.1")).is_ok());
    // Their flows come before any other's, who then needs a place of those that are proven.
    drop(flood.into_iter().next());
    assert!(admission.measurement(address("192.0.2.1"), &Plan::standard()).is_ok());
}

#[test]
fn the_connections_of_one_client_are_bounded() {
    let admission = small_host(4);
    let client = address("192.0.2.1");
    let _two = [admission.connection(client).unwrap(), admission.connection(client).unwrap()];
    assert!(why(admission.connection(client)).contains("one client may have 2"));
    assert!(admission.connection(address("192.0.2.2")).is_ok());
}

#[test]
fn one_client_leaves_half_of_the_measurements_to_others() {
    let admission = small_host(4);
    let plan = Plan::standard();
    let begun = |from| {
        let mut place = admission.measurement(address(from), &plan)?;
        place.fulfilled();
        Ok::<_, String>(place)
    };
    let _its = [begun("192.0.2.1").unwrap(), begun("192.0.2.1").unwrap()];
    let refused = why(begun("192.0.2.1"));
    assert!(refused.starts_with("busy: this takes 1 measurement"), "{refused}");
    let _other = begun("192.0.2.2").unwrap();
    assert!(why(begun("192.0.2.3")).contains("192.0.2.0/24"));
    assert!(begun("198.51.100.1").is_ok());
    let alone = small_host(1);
    let running = alone.measurement(address("::1"), &plan).unwrap();
    assert!(alone.measurement(address("::1"), &plan).is_err());
    drop(running);
    assert!(alone.measurement(address("::1"), &plan).is_ok());
}

#[test]
fn what_is_too_much_for_this_server_says_what_would_do() {
    let plan = Plan { chunk_bytes: Bytes(u64::MAX), ..Plan::standard() };
    let refused = why(small_host(4).measurement(address("192.0.2.1"), &plan));
    assert!(refused.starts_with("this takes ") && refused.contains("smaller chunk"), "{refused}");
    let threads = Host { threads: 10, ..host(4 * GIB) };
    let plan = Plan { flows: 100, ..Plan::standard() };
    let admission = Admission::new(&lent(4), threads);
    let refused = why(admission.measurement(address("192.0.2.1"), &plan));
    assert!(refused.contains("102 threads") && refused.contains("fewer flows"), "{refused}");
}

fn paced(rate: f64, direction: Direction) -> Plan {
    Plan { rate_bits_per_s: Some(BitRate(rate)), direction, ..Plan::standard() }
}

#[test]
fn a_client_gets_no_more_than_what_it_claims() {
    let rates = Lent { client_rate: Some(BitRate(1e9)), ..lent(64) };
    let admission = Admission::new(&rates, host(16 * GIB));
    let client = address("192.0.2.1");
    let place = |plan: &Plan| admission.measurement(client, plan);
    let slow = place(&paced(4e8, Direction::Send)).unwrap();
    assert_eq!(slow.rate(), Some(BitRate(5e8)), "a quarter more is let through");
    let sent = place(&paced(4e8, Direction::Reverse)).unwrap();
    assert_eq!(sent.rate(), Some(BitRate(4e8)), "this end keeps to the rate");
    let refused = why(place(&paced(2e8, Direction::Send)));
    assert!(refused.contains("900 Mbit/s are in use"), "{refused}");
    assert!(place(&Plan::standard()).is_err());
    assert!(admission.measurement(address("192.0.2.2"), &Plan::standard()).is_ok());
    drop((slow, sent));
    let whole = place(&paced(1e9, Direction::Send)).unwrap();
    assert_eq!(whole.rate(), Some(BitRate(1e9)));
    drop(whole);
    assert_eq!(place(&Plan::standard()).unwrap().rate(), Some(BitRate(1e9)));
}

#[test]
fn all_rates_together_stay_below_the_total() {
    let rates = Lent { total_rate: Some(BitRate(1e9)), ..lent(64) };
    assert_eq!(rates.rate_of_a_client(), Some(BitRate(5e8)));
    let admission = Admission::new(&rates, host(16 * GIB));
    let place = |from| admission.measurement(address(from), &Plan::standard());
    let (one, other) = (place("192.0.2.1").unwrap(), place("198.51.100.1").unwrap());
    let sum: f64 = [&one, &other].map(|place| place.rate().unwrap().0).iter().sum();
    assert_eq!(sum, 1e9);
    assert!(why(place("203.0.113.1")).contains("all clients together"));
    let small = Lent { client_rate: Some(BitRate(1e8)), ..rates };
    assert_eq!(small.rate_of_a_client(), Some(BitRate(1e8)));
    assert_eq!(small_host(4).measurement(address("::1"), &Plan::standard()).unwrap().rate(), None);
}

#[test]
fn who_does_not_send_its_flows_waits_the_next_time() {
    let (admission, began) = (small_host(64), Instant::now());
    let later = began + Duration::from_secs(60);
    let (client, plan) = (address("192.0.2.1"), Plan::standard());
    for _ in 0..3 {
        admission.measurement_at(began, client, &plan).unwrap().end(later);
    }
    assert!(why(admission.measurement_at(later, client, &plan)).contains("did not come"));
    assert!(admission.measurement_at(later, address("192.0.2.2"), &plan).is_ok());
}
