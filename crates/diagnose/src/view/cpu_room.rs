//! What the CPUs of one end would carry without something that takes their time, or makes a byte cost more of it.
//!
//! What takes time away leaves the cost of a byte as it is, so the time that comes back says what more of it would carry. What
//! handles each segment alone makes a byte cost more: of the cost, one part goes with the bytes and one with the packets.
//! One measurement does not tell these parts apart, so only the most is known: all of it goes with the packets.

use goodput_ceiling::bucket::SUPER_PACKET_BYTES;
use goodput_model::{Missing, Role};

use super::{Side, View, positive};
use crate::thresholds::MAX_EXTRAPOLATION_RATIO;

/// What may make the CPUs of one end carry less than they could.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuTaker {
    /// Other programs of the host.
    OtherPrograms,
    /// The hypervisor, which runs other machines.
    Hypervisor,
    /// A quota of the process's cgroup.
    Quota,
    /// A policy that keeps the clock low.
    Clock,
    /// Packets that carry one segment, where a super-packet could carry many.
    SingleSegments,
}

impl View<'_> {
    /// How many times as much the CPUs of `side` would carry without `taker`, at most; 1 or more.
    ///
    /// # Errors
    /// If the host does not report what this needs.
    pub fn cpu_room(&self, side: &Side, taker: CpuTaker) -> Result<f64, Missing> {
        let without = |share: f64| -> Result<f64, Missing> {
            Ok(1.0 / positive(1.0 - share, "the time that is left")?)
        };
        let times = match taker {
            CpuTaker::OtherPrograms => self.room_of_others(side),
            CpuTaker::Hypervisor => side.steal_share().and_then(without),
            CpuTaker::Quota => side.throttled_share().and_then(without),
            CpuTaker::Clock => side.clock_share().and_then(|share| without(1.0 - share)),
            CpuTaker::SingleSegments => side.packet_bytes().map(|bytes| SUPER_PACKET_BYTES / bytes),
        };
        Ok(times?.max(1.0))
    }

    /// The same, if it is known well enough to predict a rate.
    ///
    /// # Errors
    /// Those of [`Self::cpu_room`], and if the present share of the CPU says too little of more.
    pub fn known_cpu_room(&self, side: &Side, taker: CpuTaker) -> Result<f64, Missing> {
        match self.cpu_room(side, taker)? {
            times if times > MAX_EXTRAPOLATION_RATIO => {
                Err(Missing::because("what the CPU would carry without it is not known from here"))
            }
            times => Ok(times),
        }
    }

    /// All time of the host's CPUs over what the flows take of it, packets included; but the thread of a flow gains no more than
    /// the time for which it waited.
    fn room_of_others(&self, side: &Side) -> Result<f64, Missing> {
        let shares = side.interrupt_shares()?;
        let packets: f64 = shares.iter().map(|(_, share)| share).sum();
        let taken = positive(self.own_cpus(side)? + packets, "the CPU time of the flows")?;
        let of_host = shares.len() as f64 / taken;
        let ran = positive(side.thread_cpu_share()?, "the CPU time of a flow's thread")?;
        let of_thread = side.cpu_wait_share().map(|wait| (ran + wait) / ran);
        Ok(of_thread.unwrap_or(of_host).min(of_host))
    }

    /// CPU time of the measurement's own processes on the host of `side`, in CPUs: of both ends, if they share it.
    ///
    /// # Errors
    /// If this end does not report it.
    pub fn own_cpus(&self, side: &Side) -> Result<f64, Missing> {
        let other = self.side(side.name.other());
        let together = self.ends_share_a_machine();
        let other = if together { other.process_cpus().unwrap_or(0.0) } else { 0.0 };
        Ok(side.process_cpus()? + other)
    }
}

impl Side<'_> {
    /// Mean length of a packet that this side hands to its device, or takes from it, bytes.
    fn packet_bytes(&self) -> Result<f64, Missing> {
        match self.role {
            Role::Sender => self.sent_packet_bytes(),
            Role::Receiver => self.arrived_packet_bytes(),
        }
    }

    /// The highest clock that the policy allows, as a share of what the CPU can do.
    ///
    /// # Errors
    /// If the host does not report its clocks.
    pub fn clock_share(&self) -> Result<f64, Missing> {
        let most = positive(self.count("frequency.max_hz")?, "the CPU's maximum")?;
        Ok(self.count("frequency.limit_hz")? / most)
    }
}

#[cfg(test)]
mod tests {
    use goodput_model::EndName::Near;

    use super::*;
    use crate::names::{LINK_TX_BYTES, LINK_TX_PACKETS};
    use crate::testing::Case;

    fn room(case: Case, taker: CpuTaker) -> Result<f64, Missing> {
        let evidence = case.evidence();
        let view = View::new(&evidence);
        view.cpu_room(&view.sender, taker)
    }

    /// Two CPUs, of which the flows' processes took 0.4 s of 4.2 s each, and softirqs a tenth of the busier one.
    fn shared(wait: f64) -> Case {
        let case = Case::healthy().cpu(Near, 0.1, 0.99).writer(0.1, 0.0, 0.2).waiting(wait, 0.0);
        let case = case.grows(Near, "process.user_us", 200_000);
        case.grows(Near, "process.system_us", 200_000)
    }

    #[test]
    fn without_others_a_thread_gains_what_it_waited_for_and_all_flows_what_the_host_has() {
        let short = room(shared(0.1), CpuTaker::OtherPrograms).unwrap();
        assert!((short - 1.5).abs() < 0.01, "{short}");
        let long = room(shared(0.79), CpuTaker::OtherPrograms).unwrap();
        assert!((short..=5.0).contains(&long), "{long}");
    }

    #[test]
    fn what_is_stolen_comes_back() {
        let stolen = Case::healthy().cpu(Near, 0.1, 0.5).grows(Near, "cpu.0.steal_us", 1_000_000);
        let times = room(stolen, CpuTaker::Hypervisor).unwrap();
        assert!(times > 1.1 && times < 2.0, "{times}");
        assert_eq!(room(Case::healthy(), CpuTaker::Hypervisor), Ok(1.0));
    }

    #[test]
    fn of_single_segments_only_the_most_is_known() {
        let sent = |packets| {
            let case = Case::healthy().grows(Near, LINK_TX_BYTES, 65_536_000);
            case.grows(Near, LINK_TX_PACKETS, packets)
        };
        let times = room(sent(20_000), CpuTaker::SingleSegments);
        assert_eq!(times, Ok(SUPER_PACKET_BYTES * 20_000.0 / 65_536_000.0));
        assert_eq!(room(sent(100), CpuTaker::SingleSegments), Ok(1.0));
        let evidence = sent(20_000).evidence();
        let view = View::new(&evidence);
        assert!(view.known_cpu_room(&view.sender, CpuTaker::SingleSegments).is_err());
    }

    #[test]
    fn unknown_clocks_say_nothing() {
        assert!(room(Case::healthy(), CpuTaker::Clock).is_err());
    }
}
