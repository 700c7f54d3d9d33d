//! How much a scenario's path can carry in the direction of its payload, according to what it plants.

use std::str::FromStr;
use std::time::Duration;

use goodput_model::units::{BitRate, Bytes};

use super::{LinkDirection, Scenario, Topology};

/// The path from the sender of the payload to its receiver, as planted. What the hosts' CPUs can do is unknown here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PayloadPath {
    /// Lowest rate of a link, of a fault, or that an end asks for, bits per second; `None` if nothing sets one.
    pub rate: Option<BitRate>,
    /// Size of a full packet, bytes.
    pub packet_bytes: u32,
    /// Delay there and back, without queues.
    pub round_trip: Duration,
    /// Share of packets lost at random, percent.
    pub loss_percent: f64,
}

/// Options of either end that set a rate.
const RATE_OPTIONS: [&str; 3] = ["--rate", "--max-pacing", "--max-rate"];

impl Scenario {
    /// The path of the payload; `None` if payload goes both ways.
    pub fn payload_path(&self) -> Option<PayloadPath> {
        if self.has("--both") {
            return None;
        }
        let is_reverse = self.has("--reverse");
        let (directions, mtu) = self.directions();
        let (there, back) = if is_reverse { (directions.1, directions.0) } else { directions };
        // Faults are described for the direction from near to far.
        let faults =
            self.faults.iter().filter(|_| !is_reverse).map(|planned| planned.fault.limits());
        let faults: Vec<_> = faults.collect();
        let asked = RATE_OPTIONS.into_iter().filter_map(|name| self.value(name));
        let rates = asked.chain(there.rate).chain(faults.iter().filter_map(|limits| limits.rate));
        let sizes = faults.iter().filter_map(|limits| limits.segment_bytes);
        let datagram = self.value("--chunk").filter(|_| self.has("--udp"));
        let datagram = datagram.and_then(|bytes: Bytes| u32::try_from(bytes.0).ok());
        Some(PayloadPath {
            rate: rates.min_by(|a, b| a.0.total_cmp(&b.0)),
            packet_bytes: sizes.chain(datagram).fold(mtu, u32::min),
            round_trip: there.delay + back.delay,
            loss_percent: there.loss_percent,
        })
    }

    /// All links as one, from near to far and back, and the smallest MTU.
    fn directions(&self) -> ((LinkDirection, LinkDirection), u32) {
        match self.topology() {
            Topology::Pair(link) => (link.directions(), link.mtu()),
            Topology::Routed(near, far) => {
                let ((there, back), (next, before)) = (near.directions(), far.directions());
                ((there.then(&next), before.then(&back)), near.mtu().min(far.mtu()))
            }
        }
    }

    /// Whether an end is started with this option.
    pub fn has(&self, option: &str) -> bool {
        self.run.client.iter().chain(&self.run.server).any(|word| word == option)
    }

    /// The value of an option of either end.
    pub fn value<T: FromStr>(&self, option: &str) -> Option<T> {
        let mut words = self.run.client.iter().chain(&self.run.server);
        words.find(|word| *word == option)?;
        words.next()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Option<PayloadPath> {
        let text = format!("name = \"x\"\ntitle = \"X.\"\n{text}");
        text.parse::<Scenario>().unwrap().payload_path()
    }

    fn rate(text: &str) -> Option<f64> {
        path(text).unwrap().rate.map(|rate| rate.0)
    }

    #[test]
    fn nothing_planted_is_no_rate() {
        assert_eq!(rate(""), None);
        assert_eq!(path("[run]\nclient = [\"--both\"]"), None);
    }

    #[test]
    fn the_lowest_rate_counts() {
        let links = "[link.near-router]\nrate = \"1gbit\"\n[link.router-far]\nrate = \"400mbit\"\n";
        assert_eq!(rate(links), Some(4e8));
        let bucket = "[[fault]]\nkind = \"tbf\"\nhost = \"router\"\nrate = \"50mbit\"\nburst = \"9K\"\n\
                      limit = \"1M\"\n";
        assert_eq!(rate(&format!("{links}{bucket}")), Some(5e7));
        let asked = "[run]\nserver = [\"--max-rate\", \"10mbit\"]\n";
        assert_eq!(rate(&format!("{links}{bucket}{asked}")), Some(1e7));
    }

    #[test]
    fn a_reverse_flow_has_the_links_back_and_no_fault_of_the_other_direction() {
        let text = "[link.path]\nrate = \"1gbit\"\ndelay = \"3ms\"\nback = { rate = \"2mbit\", delay = \"1ms\" }\n\
                    [[fault]]\nkind = \"policer\"\nhost = \"far\"\nrate = \"1mbit\"\nburst = 20\n";
        assert_eq!(rate(text), Some(1e6));
        let reverse = format!("{text}[run]\nclient = [\"--reverse\"]");
        assert_eq!(rate(&reverse), Some(2e6));
        assert_eq!(path(&reverse).unwrap().round_trip, Duration::from_millis(4));
    }

    #[test]
    fn small_segments_and_datagrams_are_small_packets() {
        let bytes = |text: &str| path(text).unwrap().packet_bytes;
        let segments = "[[fault]]\nkind = \"route-advmss\"\nhost = \"far\"\nbytes = 400\n";
        assert_eq!(bytes(segments), 400);
        assert_eq!(bytes("[link.path]\nmtu = 9000"), 9000);
        let datagrams =
            "[link.path]\nmtu = 9000\n[run]\nclient = [\"--udp\", \"--chunk\", \"4000\"]";
        assert_eq!(bytes(datagrams), 4000);
        assert_eq!(bytes("[run]\nclient = [\"--chunk\", \"100\"]"), 1500);
    }
}
