//! What iperf 2's server adds for a client with several simultaneous flows: their sum, when the last
//! flow has ended. Flows from one address at the same time count as one client's (2.1.8,
//! `iperf_initialize_active_table`).

use std::collections::HashMap;
use std::net::IpAddr;

use goodput_model::{EndName, Record, Transport};

use super::counts;
use super::iperf2_text::{HEADER, line};

/// The clients being served.
pub struct Sums {
    unit: char,
    clients: HashMap<(IpAddr, Transport), Client>,
}

/// What a client has sent or, if it has sent nothing, received.
#[derive(Default)]
struct Client {
    running: usize,
    ended: usize,
    seconds: f64,
    bytes: u64,
    lost: Option<(u64, u64)>,
}

impl Sums {
    /// Rates in the unit of `-f`.
    pub fn in_units(unit: Option<char>) -> Self {
        Self { unit: unit.unwrap_or('a'), clients: HashMap::new() }
    }

    /// Another flow of a client begins.
    pub fn began(&mut self, client: IpAddr, over: Transport) {
        self.clients.entry((client, over)).or_default().running += 1;
    }

    /// A flow has ended, with this record unless it was broken off.
    pub fn ended(&mut self, client: IpAddr, over: Transport, record: Option<&Record>) -> String {
        let Some(known) = self.clients.get_mut(&(client, over)) else { return String::new() };
        record.into_iter().for_each(|record| known.add(record));
        known.running = known.running.saturating_sub(1);
        if known.running > 0 {
            return String::new();
        }
        let known = self.clients.remove(&(client, over)).unwrap_or_default();
        if known.ended > 1 { known.sum(self.unit) } else { String::new() }
    }
}

impl Client {
    fn add(&mut self, record: &Record) {
        let flows = counts::flows(record);
        // If both ends send, the client's direction comes last.
        let directions = counts::directions(record, &flows);
        let Some(direction) = directions.last() else { return };
        let side = match direction.sender {
            EndName::Near => &direction.sent,
            EndName::Far => &direction.received,
        };
        self.ended += 1;
        self.bytes = self.bytes.saturating_add(side.bytes.unwrap_or(0));
        self.seconds = self.seconds.max(side.seconds.unwrap_or(0.0));
        if let Some((lost, packets)) = side.lost.zip(side.packets) {
            let (lost_before, before) = self.lost.unwrap_or_default();
            self.lost = Some((lost_before + lost, before + packets));
        }
    }

    fn sum(&self, unit: char) -> String {
        let sum = line(unit, "SUM", (0.0, self.seconds), self.bytes);
        match self.lost {
            // Under its own heading, without the jitter.
            Some((lost, all)) => {
                format!("{HEADER}{sum}   {}\n", super::iperf2_text::lost_of(lost, all))
            }
            None => sum + "\n",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::made_up::Made;
    use super::*;
    use goodput_model::Direction;

    fn of(made: Made, flows: usize) -> String {
        let mut sums = Sums::in_units(None);
        let client = IpAddr::from([192, 0, 2, 7]);
        (0..flows).for_each(|_| sums.began(client, made.transport));
        let record = made.record();
        let said: Vec<_> =
            (0..flows).map(|_| sums.ended(client, made.transport, Some(&record))).collect();
        assert!(said[..flows - 1].iter().all(String::is_empty) && sums.clients.is_empty());
        said.concat()
    }

    #[test]
    fn several_flows_at_once_have_a_sum_and_one_has_none() {
        let served = Made { direction: Direction::Reverse, ..Made::plain() };
        assert_eq!(of(served, 1), "");
        assert_eq!(of(served, 2), "[SUM] 0.0000-2.0000 sec  3.81 MBytes  16.0 Mbits/sec\n");
        let udp = Made { transport: Transport::Udp, ..served };
        assert_eq!(
            of(udp, 3),
            "[ ID] Interval       Transfer     Bandwidth\n\
             [SUM] 0.0000-2.0000 sec  5.72 MBytes  24.0 Mbits/sec   12/1200 (1%)\n"
        );
    }

    #[test]
    fn what_is_broken_off_does_not_count() {
        let (mut sums, client) = (Sums::in_units(None), IpAddr::from([192, 0, 2, 7]));
        let served = Made { direction: Direction::Reverse, ..Made::plain() };
        (0..2).for_each(|_| sums.began(client, Transport::Tcp));
        assert_eq!(sums.ended(client, Transport::Tcp, None), "");
        assert_eq!(sums.ended(client, Transport::Tcp, Some(&served.record())), "");
    }
}
