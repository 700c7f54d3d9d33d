//! What a host of 4 GB admits, and what it refuses.

use std::time::Duration;

use super::*;
use crate::serve::admit::host::Buffers;
use goodput_model::{Bytes, Direction, Length, Sink, Transport};

const GIB: u64 = 1 << 30;

fn host(memory_bytes: u64) -> Host {
    let buffers = Buffers::usual(memory_bytes);
    Host { memory_bytes, descriptors: 20_000, threads: 15_000, buffers }
}

fn allowed(measurements: u32) -> ServerLimits {
    ServerLimits {
        measurements,
        connections_per_client: 2,
        client_percent: 50,
        client_rate: None,
        total_rate: None,
    }
}

fn small_host(measurements: u32) -> Admission {
    Admission::new(&allowed(measurements), None, host(4 * GIB))
}

/// A host where one client may make two measurements at a time, together at this rate.
pub fn a_small_host_at(client_rate: BitRate) -> Admission {
    let allowed = ServerLimits { client_rate: Some(client_rate), ..allowed(4) };
    Admission::new(&allowed, None, host(4 * GIB))
}

impl Admission {
    /// Admits flows whose turn has come.
    fn flows(&self, client: IpAddr, plan: &Plan) -> Result<Place, String> {
        self.place(Permit::any(), client, Wants::Flows(plan), None)
    }
}

/// Each flow that stores what it receives has a chunk of its own.
fn stored(mut plan: Plan) -> Plan {
    plan.storage.sink = Some(Sink { name: "x".into(), direct: false, fsync: false });
    plan
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
            let let_in = admission.flows(address("192.0.2.1"), &plan);
            assert!(let_in.is_ok(), "{transport:?} {direction:?}: {}", why(let_in));
        }
    }
}

#[test]
fn a_server_with_a_watcher_charges_for_what_it_keeps_of_a_measurement() {
    let plan = Plan { length: Length::Source, ..Plan::standard() };
    let most = |admission: &Admission| {
        let from = |n: u16| IpAddr::from([10, 0, (n >> 8) as u8, n as u8]);
        (0..9999).map_while(|n| admission.flows(from(n), &plan).ok()).collect::<Vec<_>>().len()
    };
    let (alone, watched) = (small_host(9999), small_host(9999).showing(true));
    let (alone, watched) = (most(&alone) as u64, most(&watched) as u64);
    assert!(watched > 0 && watched < alone, "{watched} of {alone}");
    let kept = watched * crate::serve::shown_memory::kept_bytes(&plan);
    assert!(kept <= host(4 * GIB).lent_bytes(), "{watched} keep {kept} B");
}

#[test]
fn who_proposes_much_and_sends_nothing_locks_nobody_out() {
    for memory_bytes in [4 * GIB, 16 * GIB] {
        let admission = Admission::new(&allowed(512), None, host(memory_bytes));
        let greedy = stored(Plan { flows: 128, chunk_bytes: Bytes(16 << 20), ..Plan::standard() });
        let propose = |from, plan: &Plan| admission.flows(address(from), plan);
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
        admission.unproven(from).and_then(|permit| {
            let plan = Plan {
                transport: Transport::Udp,
                chunk_bytes: Transport::Udp.standard_chunk(),
                ..Plan::standard()
            };
            Ok((permit, admission.flows(from, &plan)?))
        })
    };
    let flood: Vec<_> = (0..100).filter_map(|last| forged(last).ok()).collect();
    assert_eq!(flood.len(), 4, "half of eight");
    assert!(admission.connection(address("192.0.2.1")).is_ok());
    // Their flows come before any other's, who then needs a place of those that are proven.
    drop(flood.into_iter().next());
    assert!(admission.flows(address("192.0.2.1"), &Plan::standard()).is_ok());
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
        let mut place = admission.flows(address(from), &plan)?;
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
    let running = alone.flows(address("::1"), &plan).unwrap();
    assert!(alone.flows(address("::1"), &plan).is_err());
    drop(running);
    assert!(alone.flows(address("::1"), &plan).is_ok());
}

#[test]
fn what_is_too_much_for_this_server_says_what_would_do() {
    let plan = stored(Plan { chunk_bytes: Bytes(u64::MAX), ..Plan::standard() });
    let refused = why(small_host(4).flows(address("192.0.2.1"), &plan));
    assert!(refused.starts_with("this takes ") && refused.contains("smaller chunk"), "{refused}");
    let threads = Host { threads: 10, ..host(4 * GIB) };
    let plan = Plan { flows: 100, ..Plan::standard() };
    let admission = Admission::new(&allowed(4), None, threads);
    let refused = why(admission.flows(address("192.0.2.1"), &plan));
    assert!(refused.contains("102 threads") && refused.contains("fewer flows"), "{refused}");
}

#[test]
fn measurements_of_one_client_share_its_rate_and_all_share_the_total() {
    let rates = ServerLimits { total_rate: Some(BitRate(1e9)), ..allowed(64) };
    assert_eq!(rates.rate_of_a_client(), Some(BitRate(5e8)));
    let admission = Admission::new(&rates, None, host(16 * GIB));
    let rates_of = |from| {
        let place = admission.flows(address(from), &Plan::standard()).unwrap();
        let rates = place.rates(Role::Receiver);
        (place, rates)
    };
    let (one, again) = (rates_of("192.0.2.1"), rates_of("192.0.2.1"));
    let other = rates_of("198.51.100.1");
    let values: Vec<_> = one.1.iter().map(|shared| shared.rate().0).collect();
    assert_eq!(values, [5e8, 7.5e8, 1e9], "its own, that of its network, that of all");
    assert!(one.1.iter().zip(&again.1).all(|(one, again)| Arc::ptr_eq(one, again)));
    assert!(!Arc::ptr_eq(&one.1[0], &other.1[0]) && Arc::ptr_eq(&one.1[2], &other.1[2]));
    let small = ServerLimits { client_rate: Some(BitRate(1e8)), ..rates };
    assert_eq!(small.rate_of_a_client(), Some(BitRate(1e8)));
    let free = small_host(4).flows(address("::1"), &Plan::standard()).unwrap();
    assert!(free.rates(Role::Sender).is_empty());
}

/// A client is admitted, learns of it if `accepted`, and leaves before its flows have come.
fn leaves(admission: &Admission, client: IpAddr, accepted: bool) -> Result<(), String> {
    let mut place = admission.flows(client, &Plan::standard())?;
    if accepted {
        place.expecting();
    }
    place.end(Instant::now() + Duration::from_secs(60));
    Ok(())
}

#[test]
fn who_does_not_send_its_flows_waits_the_next_time() {
    let (admission, client) = (small_host(64), address("192.0.2.1"));
    (0..3).for_each(|_| leaves(&admission, client, true).unwrap());
    assert!(why(admission.flows(client, &Plan::standard())).contains("never arrived"));
    assert!(admission.flows(address("192.0.2.2"), &Plan::standard()).is_ok());
    let conversation = Wants::Conversation;
    let place = admission.place(Permit::any(), client, conversation, None);
    assert!(place.is_ok(), "no flows are awaited");
    drop(place);
    assert!(admission.flows(client, &Plan::standard()).is_err(), "nor made up for");
}

#[test]
fn a_client_is_not_blamed_for_what_this_end_waited_for() {
    let (admission, client) = (small_host(64), address("192.0.2.1"));
    (0..9).for_each(|_| leaves(&admission, client, false).unwrap());
}

#[tokio::test]
async fn everything_that_takes_resources_has_a_place_and_a_turn() {
    let plan = Plan::standard();
    let all = [Wants::Flows(&plan), Wants::ThirdParty(&plan), Wants::Conversation];
    for (held, other) in all.iter().flat_map(|held| all.iter().map(move |other| (held, other))) {
        let admit = async |admission: &Admission, wants: &Wants<'_>| {
            admission.admit(Permit::any(), address("::1"), *wants, false).await
        };
        let full = small_host(1);
        let _held = admit(&full, held).await.unwrap();
        assert!(why(admit(&full, other).await).contains("1 measurement"), "{held:?} {other:?}");
        let alone = Admission::new(&allowed(64), Some(Exclusive::Busy), host(4 * GIB));
        let _held = admit(&alone, held).await.unwrap();
        assert!(why(admit(&alone, other).await).contains("one at a time"), "{held:?} {other:?}");
    }
}

#[test]
fn a_client_with_a_key_has_the_places_of_its_key() {
    let admission = small_host(64);
    let ann = crate::serve::admit::keys::tests::ann("max-measurements=1 max-rate=5mbit");
    let place = |from: &str| {
        let (permit, plan) = (Permit::of(Arc::clone(&ann)), Plan::standard());
        admission.place(permit, address(from), Wants::Flows(&plan), None)
    };
    let first = place("192.0.2.1").unwrap();
    assert_eq!(first.rate_limits().rate, Some(BitRate(5e6)));
    assert!(place("2001:db8::1").is_err_and(|why| why.contains("key ann")), "wherever it is");
    drop(first);
    assert!(place("2001:db8::1").is_ok());
}
