//! Invariants for clients that come and leave in any order.

use proptest::prelude::*;

use super::*;

const ALL: u64 = 100;

fn usage() -> Usage {
    Usage::new(&[(Memory, Limit::shared(ALL, 40)), (Threads, Limit::shared(50, 60))])
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn memory(amount: u64) -> Amounts {
    Amounts::default().with(Memory, amount)
}

fn refused(usage: &Usage, from: &str, amount: u64) -> String {
    usage.charge(address(from), true, memory(amount)).err().expect("it is refused").to_string()
}

#[test]
fn a_client_gets_its_share_and_leaves_the_rest_to_others() {
    let usage = usage();
    let first = usage.charge(address("192.0.2.1"), true, memory(40)).unwrap();
    let why = refused(&usage, "192.0.2.1", 1);
    let expected = "busy: this takes 1 B of memory, and one client may have 40 B, of which 40 B are in use; \
                try again later, or use fewer flows";
    assert!(why.starts_with(expected), "{why}");
    let other = usage.charge(address("192.0.2.2"), true, memory(30)).unwrap();
    let why = refused(&usage, "192.0.2.3", 1);
    assert!(why.contains("the network 192.0.2.0/24 may have 70 B"), "{why}");
    let third = usage.charge(address("198.51.100.1"), true, memory(30)).unwrap();
    assert!(refused(&usage, "203.0.113.1", 1).contains("all clients together"));
    drop((first, other, third));
    assert!(usage.charge(address("203.0.113.1"), true, memory(40)).is_ok());
}

#[test]
fn what_never_fits_is_not_called_busy() {
    let why = refused(&usage(), "192.0.2.1", 41);
    let expected = "this takes 41 B of memory, and one client may have 40 B; ";
    assert!(why.starts_with(expected), "{why}");
}

#[test]
fn the_addresses_of_an_ipv6_network_are_one_client_and_its_neighbours_share() {
    let usage = usage();
    let take = |text: &str, amount| usage.charge(address(text), true, memory(amount));
    let _one = take("2001:db8:0:0::1", 30).unwrap();
    assert!(take("2001:db8:0:0:ffff::2", 11).is_err(), "of the same 64 bits");
    let _two = take("2001:db8:0:1::1", 25).unwrap();
    assert!(take("2001:db8:0:2::1", 1).is_err(), "55 are those of 56 bits");
    let _three = take("2001:db8:0:100::1", 15).unwrap();
    assert!(take("2001:db8:0:200::1", 1).is_err(), "70 are those of 48 bits");
    assert!(take("2001:db8:1::1", 30).is_ok());
    assert!(take("::ffff:192.0.2.1", 30).is_ok());
}

#[test]
fn who_has_proven_nothing_leaves_half_to_others() {
    let usage = usage();
    let take = |last, amount| usage.charge([192, last, 2, 1].into(), false, memory(amount));
    let mut first = take(1, 20).unwrap();
    let why = take(1, 1).err().unwrap().to_string();
    assert!(why.contains("one client may have 20 B before its flows have come"), "{why}");
    let _others = [take(2, 20).unwrap(), take(3, 10).unwrap()];
    assert!(take(4, 1).is_err(), "half of all");
    assert!(usage.charge(address("198.51.100.1"), true, memory(40)).is_ok());
    first.prove();
    let _fourth = take(4, 10).unwrap();
    assert!(usage.charge(address("192.1.2.1"), true, memory(21)).is_err(), "it still counts");
    drop(first);
    assert!(usage.charge(address("192.1.2.1"), true, memory(21)).is_ok());
}

#[test]
fn without_a_limit_there_is_none() {
    let usage = Usage::new(&[]);
    let _much = usage.charge(address("::1"), false, memory(u64::MAX)).unwrap();
    assert!(usage.charge(address("::1"), false, memory(1)).is_err(), "what no number holds");
    assert!(usage.charge(address("::1"), false, Amounts::default().with(Threads, 1)).is_ok());
}

/// Actions of a random crowd: a charge from one of few addresses, a proof, or a departure.
#[derive(Debug, Clone)]
enum Does {
    Charge(IpAddr, bool, Amounts),
    Prove(usize),
    Leave(usize),
}

fn crowd() -> impl Strategy<Value = Vec<Does>> {
    let v4 = (0..3u8, 0..3u8).prop_map(|(net, host)| IpAddr::from([192, 0, net, host]));
    let v6 = (0..2u16, 0..0x201u16)
        .prop_map(|(site, subnet)| IpAddr::from([0x2001, 0xdb8, site, subnet, 0, 0, 0, 1]));
    let amounts = (0..30u64, 0..20u64).prop_map(|(m, t)| memory(m).with(Threads, t));
    let one = prop_oneof![
        4 => (prop_oneof![v4, v6], any::<bool>(), amounts)
            .prop_map(|(from, proven, amounts)| Does::Charge(from, proven, amounts)),
        1 => any::<prop::sample::Index>().prop_map(|at| Does::Prove(at.index(64))),
        2 => any::<prop::sample::Index>().prop_map(|at| Does::Leave(at.index(64))),
    ];
    prop::collection::vec(one, 0..200)
}

/// Carries out the actions and returns who is left.
fn carry_out(usage: &Usage, crowd: &[Does]) -> Vec<Charge> {
    let mut here: Vec<Charge> = Vec::new();
    for does in crowd {
        match does {
            Does::Charge(from, proven, amounts) => {
                here.extend(usage.charge(*from, *proven, *amounts));
            }
            Does::Prove(at) if !here.is_empty() => {
                let at = at % here.len();
                here[at].prove();
            }
            Does::Leave(at) if !here.is_empty() => drop(here.swap_remove(at % here.len())),
            _ => {}
        }
        for (quota, used) in lock(&usage.book).iter() {
            for resource in [Memory, Threads] {
                let most = usage.limit(resource).most(quota);
                assert!(used.of(resource) <= most, "{resource:?} of {quota}");
            }
        }
    }
    here
}

proptest! {
    #[test]
    fn no_limit_is_ever_exceeded_and_all_is_given_back(crowd in crowd()) {
        let usage = usage();
        drop(carry_out(&usage, &crowd));
        prop_assert!(lock(&usage.book).is_empty());
    }

    #[test]
    fn the_order_in_which_charges_leave_does_not_matter(crowd in crowd(), seed in any::<u64>()) {
        let usage = usage();
        let mut here = carry_out(&usage, &crowd);
        let before = lock(&usage.book).clone();
        let added = carry_out(&usage, &crowd[..crowd.len() / 2]);
        drop(added);
        prop_assert_eq!(&before, &*lock(&usage.book), "who comes and leaves has changed nothing");
        let mut turn = seed;
        while !here.is_empty() {
            turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            drop(here.swap_remove((turn >> 33) as usize % here.len()));
        }
        prop_assert!(lock(&usage.book).is_empty());
    }

    #[test]
    fn a_larger_network_never_gets_less(all in 0..u64::MAX, percent in 1..=100u64, last: u8) {
        let limit = Limit::shared(all, percent);
        for address in [IpAddr::from([192, 0, 2, last]), IpAddr::from([0x2001, 0, 0, 0, 0, 0, 0, 1])] {
            for unproven in [false, true] {
                let most: Vec<_> = whose(address)
                    .into_iter()
                    .map(|whose| limit.most(&Quota { whose, unproven }))
                    .collect();
                prop_assert!(most.is_sorted(), "{:?}", most);
                prop_assert!(*most.last().unwrap() <= all);
            }
        }
    }
}
