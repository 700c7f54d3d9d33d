//! Evidence of many flows with small windows.

use std::sync::Arc;

use goodput_model::{Evidence, FlowSample, Known, TcpInfo};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::Case;

const FLOWS: usize = 64;
/// BBR's smallest window, segments (net/ipv4/tcp_bbr.c, `bbr_cwnd_min_target`).
const WINDOW: u64 = 4;

/// What one flow has counted, segments.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    sent: u64,
    arrived: u64,
}

/// 64 flows of BBR with its smallest windows send about 160 segments in each tenth of a second over 160 ms. `passes` tells
/// which of them pass.
pub fn crowd(passes: impl Fn(&mut Xoshiro256PlusPlus, usize) -> Vec<bool>) -> Evidence {
    of_case(crowded(), passes)
}

/// The same, of a program that hands over payload at its own pace, so that the windows are hardly used.
pub fn paced_crowd(passes: impl Fn(&mut Xoshiro256PlusPlus, usize) -> Vec<bool>) -> Evidence {
    let mut evidence = of_case(crowded().writer(0.0, 0.95, 0.05), passes);
    let Known::Value(near) = &mut evidence.near else { panic!("the case has both ends") };
    let samples = Arc::make_mut(near).samples.iter_mut();
    for tcp in samples.flat_map(|sample| &mut sample.flows).map(|flow| &mut flow.tcp) {
        let Known::Value(tcp) = tcp else { panic!("it is TCP") };
        tcp.snd_cwnd_segments = Some(100);
        tcp.notsent_bytes = Some(0);
        tcp.delivery_rate_app_limited = Some(1);
        tcp.busy_us = tcp.busy_us.map(|us| us / 5);
    }
    evidence
}

fn crowded() -> Case {
    Case::path_rate().without_links().goodput(113.0 * 1448.0 * 80.0).wobble(0.0)
}

fn of_case(case: Case, passes: impl Fn(&mut Xoshiro256PlusPlus, usize) -> Vec<bool>) -> Evidence {
    let mut evidence = case.evidence();
    let Known::Value(near) = &mut evidence.near else { panic!("the case has both ends") };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(64);
    let mut flows = [Counts::default(); FLOWS];
    for (number, sample) in Arc::make_mut(near).samples.iter_mut().enumerate() {
        if number > 0 {
            let mut senders: Vec<usize> = (0..FLOWS).chain(0..FLOWS).collect();
            let more = rng.random_range(16..48);
            senders.extend((0..more).map(|_| rng.random_range(0..FLOWS)));
            for (flow, arrives) in senders.iter().zip(passes(&mut rng, senders.len())) {
                flows[*flow].sent += 1;
                flows[*flow].arrived += u64::from(arrives);
            }
        }
        let one = sample.flows.pop().expect("each has one flow");
        let flow = |(flow, counts): (u16, &Counts)| {
            let mut of = FlowSample { flow, ..one.clone() };
            let Known::Value(tcp) = &mut of.tcp else { panic!("it is TCP") };
            counts.enter(tcp);
            of
        };
        sample.flows = (0..).zip(&flows).map(flow).collect();
    }
    evidence
}

impl Counts {
    fn enter(self, tcp: &mut TcpInfo) {
        let (bytes, lost) = (|segments| Some(segments * 1448), self.sent - self.arrived);
        tcp.data_segs_out = Some(self.sent + WINDOW);
        tcp.sent_bytes = bytes(self.sent + WINDOW);
        (tcp.delivered_segments, tcp.acked_bytes) = (Some(self.arrived), bytes(self.arrived));
        (tcp.total_retrans_segments, tcp.retrans_bytes) = (Some(lost), bytes(lost));
        (tcp.unacked_segments, tcp.snd_cwnd_segments) = (Some(WINDOW), Some(WINDOW));
        tcp.ca_state = Some(3);
        (tcp.min_rtt_us, tcp.rtt_us, tcp.rttvar_us) = (Some(160_000), Some(161_000), Some(500));
        // Each sees its own bursts.
        tcp.delivery_rate_bytes_per_s = Some(100_000);
    }
}
