//! `auto`: which mover one end uses for a plan, and why.
//!
//! The best mover was measured by interleaved runs over loopback and veth (Linux 6.18), as CPU time of sender and
//! receiver together per byte. With fewer cycles per byte, a CPU moves more bytes; if the CPU is not the limit, nothing
//! is lost. Each candidate states its reason. The first candidate that can run here within the limits of this process
//! is taken.

use goodput_model::{PAGE_BYTES, Plan, Role, Source, Transport};

use crate::error::Unsupported;
use crate::limits::Needs;
use crate::movers::{GSO_IF_TAKEN, Mover, check_here, check_storage, find};

/// The plan's mover name that leaves the choice to each end.
pub const AUTO: &str = Plan::AUTO;

/// Write size in bytes below which gathering many writes into one pays, unless they fill whole pages. A pipe's slot
/// holds a page or a part of one, so `splice` gains with whole pages. CPU time per byte, sender and receiver
/// (`discard`) together, splice over writev, on loopback and over veth: at 1500 bytes 3.4 and 2.4, at 3000 2.1 and 1.3,
/// at 6000 2.0 and 1.7; at 4 KiB 0.83 and 0.86, at 8 KiB 0.85 and 0.74, at 12 KiB 0.86 and 1.2, at 16 KiB 0.81 and 0.67
/// (medians of 6 interleaved rounds). `copy` cost 1.3 to 3.7 times as much as writev on loopback, and 1.8 to 17 times
/// over veth.
const SMALL_WRITE_BYTES: u64 = 16 << 10;

/// A mover, and the reason for it.
#[derive(Clone, Copy)]
struct Candidate {
    mover: &'static str,
    why: &'static str,
}

/// The mover for one side of a plan, with the reason in words.
pub(crate) fn choose(plan: &Plan, role: Role) -> Result<(&'static dyn Mover, String), Unsupported> {
    let mut passed = Vec::new();
    for Candidate { mover, why } in candidates(plan, role) {
        let Some(mover) = own(mover) else { continue };
        match check_storage(mover, plan, role).and_then(|()| check_here(mover, plan, role)) {
            Ok(()) => {
                let form = mover.form(role).map_or_else(String::new, |form| format!("; {form}"));
                return Ok((mover, reason(why, &passed) + &form));
            }
            Err(obstacle) => passed.push(obstacle),
        }
    }
    // The last one is the plainest: the user must know why it can't run.
    Err(passed.pop().unwrap_or_else(|| Unsupported {
        mover: AUTO.into(),
        why: "no mover fits this plan".into(),
        needs: "choose one from `goodput list movers`".into(),
    }))
}

/// The mover of this id as it runs if nobody asked for it.
fn own(id: &str) -> Option<&'static dyn Mover> {
    if id == GSO_IF_TAKEN.id() { Some(&GSO_IF_TAKEN) } else { find(id) }
}

/// The greatest needs of any mover that may be chosen for one side of a plan. None is tried.
pub(crate) fn most_needs(plan: &Plan, role: Role) -> Needs {
    let known = candidates(plan, role).into_iter().filter_map(|candidate| find(candidate.mover));
    known.map(|mover| mover.needs(plan, role)).fold(Needs::default(), Needs::max)
}

fn reason(why: &str, passed: &[Unsupported]) -> String {
    let passed = passed.iter().map(|other| format!("; {} is not used: {}", other.mover, other.why));
    std::iter::once(why.to_string()).chain(passed).collect()
}

/// The best first, the plainest last.
fn candidates(plan: &Plan, role: Role) -> Vec<Candidate> {
    let of = |list: &[(&'static str, &'static str)]| {
        list.iter().map(|(mover, why)| Candidate { mover, why }).collect()
    };
    match (plan.transport, role) {
        (Transport::Tcp, Role::Sender) => of(stream_senders(plan)),
        (Transport::Tcp, Role::Receiver) if plan.storage.sink.is_some() => {
            of(&[("copy", "only copied data can be written to a sink")])
        }
        // A byte cost both ends 0.65 times the CPU time of copying it out, and 0.8 times through splice-null.
        (Transport::Tcp, Role::Receiver) => of(&[
            ("discard", "the kernel drops the payload, so nothing is copied"),
            ("copy", PLAIN),
        ]),
        (Transport::Udp, Role::Sender) if plan.rate_bits_per_s.is_some() => {
            of(&[("datagram", "paced datagrams are sent one by one, for even gaps")])
        }
        // What came joined shares a time of arrival, and the gaps within are unknown.
        (Transport::Udp, Role::Receiver) if plan.rate_bits_per_s.is_some() => {
            of(&[("datagram", "paced datagrams are read one by one, each with its arrival time")])
        }
        // A byte cost sender and receiver together 0.06 times the CPU time of single datagrams, and 0.2 times if only
        // the sender joined them.
        (Transport::Udp, Role::Receiver) => {
            of(&[("gro", "datagrams that arrive joined are read joined"), ("datagram", PLAIN)])
        }
        (Transport::Udp, Role::Sender) => of(&[
            ("gso", "many datagrams pass the kernel as one, if the path allows"),
            ("datagram", PLAIN),
        ]),
    }
}

const PLAIN: &str = "it always works";

fn stream_senders(plan: &Plan) -> &'static [(&'static str, &'static str)] {
    match &plan.storage.source {
        Some(Source::Input) => {
            &[("splice", "a pipe's pages are passed on without a copy"), ("copy", PLAIN)]
        }
        // A byte of a memory file costs 0.47 times the CPU time of read and send, over loopback and veth. The others:
        // sendfile 0.5 to 0.74 times (it uses a small pipe inside the kernel), mmap-send and uring 0.6 to 0.8 times.
        Some(_) => &[
            (
                "splice",
                "a file is sent from the page cache without a copy, through a pipe of a whole chunk",
            ),
            ("sendfile", "a file is sent from the page cache without a copy"),
            ("copy", PLAIN),
        ],
        None if plan.chunk_bytes.0 < SMALL_WRITE_BYTES
            && !plan.chunk_bytes.0.is_multiple_of(PAGE_BYTES) =>
        {
            &[
                (
                    "writev",
                    "such small writes are gathered into large ones, at a fraction of the cost",
                ),
                ("copy", PLAIN),
            ]
        }
        None => &[("splice", "pages of memory are sent without a copy"), ("copy", PLAIN)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{BitRate, Bytes, Sink};

    fn picked(change: impl FnOnce(&mut Plan), role: Role) -> &'static str {
        let mut plan = Plan { mover: AUTO.into(), ..Plan::standard() };
        change(&mut plan);
        choose(&plan, role).expect("something can always run").0.id()
    }

    #[test]
    fn every_candidate_is_in_the_list_and_has_the_side() {
        let mut plans = vec![Plan::standard(); 6];
        plans[1].chunk_bytes = Bytes(100);
        plans[2].storage.source = Some(Source::Input);
        plans[3].storage.source = Some(Source::Memory(Bytes(1)));
        (plans[4].transport, plans[4].chunk_bytes) = (Transport::Udp, Bytes(1400));
        plans[5] = Plan { rate_bits_per_s: Some(BitRate(1e6)), ..plans[4].clone() };
        for (plan, role) in plans.iter().flat_map(|p| [(p, Role::Sender), (p, Role::Receiver)]) {
            let all = candidates(plan, role);
            for Candidate { mover, why } in &all {
                let known = find(mover).unwrap_or_else(|| panic!("no mover {mover}"));
                assert!(known.roles().contains(&role) && !why.is_empty(), "{mover} {role:?}");
                assert!(known.transports().contains(&plan.transport), "{mover}");
            }
            assert!(matches!(all.last(), Some(Candidate { mover: "copy" | "datagram", .. })));
        }
    }

    #[test]
    fn what_is_sent_and_where_it_goes_decide() {
        let file = |plan: &mut Plan| plan.storage.source = Some(Source::Memory(Bytes(1 << 20)));
        assert_eq!(picked(file, Role::Sender), "splice");
        assert_eq!(picked(|p| p.storage.source = Some(Source::Input), Role::Sender), "splice");
        assert_eq!(picked(|_| {}, Role::Receiver), "discard");
        assert_eq!(picked(|_| {}, Role::Sender), "splice");
        let of = |bytes| picked(|p| p.chunk_bytes = Bytes(bytes), Role::Sender);
        assert_eq!([1500, 4096, 6000, 20_000].map(of), ["writev", "splice", "writev", "splice"]);
        let sink = Sink { name: "x".into(), direct: false, fsync: false };
        assert_eq!(picked(|p| p.storage.sink = Some(sink), Role::Receiver), "copy");
    }

    #[test]
    fn datagrams_are_joined_unless_a_rate_spaces_them() {
        let of = |rate: Option<f64>, chunk| {
            let both = [Role::Sender, Role::Receiver];
            both.map(|role| {
                let change = |plan: &mut Plan| {
                    plan.transport = Transport::Udp;
                    plan.chunk_bytes = Bytes(chunk);
                    plan.rate_bits_per_s = rate.map(BitRate);
                };
                picked(change, role)
            })
        };
        assert_eq!(of(None, 1472), ["gso", "gro"]);
        assert_eq!(of(None, 60_000), ["datagram", "gro"], "two of them fill no packet");
        assert_eq!(of(Some(1e9), 1472), ["datagram", "datagram"]);
    }

    #[test]
    fn what_can_not_run_is_passed_over_and_named() {
        let plan = Plan { mover: AUTO.into(), chunk_bytes: Bytes(64 << 20), ..Plan::standard() };
        let (mover, why) = choose(&plan, Role::Sender).unwrap();
        assert_eq!(mover.id(), "copy");
        assert!(why.starts_with("it always works; splice is not used: no pipe"), "{why}");
    }
}
