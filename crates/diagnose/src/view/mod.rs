//! The rules' view of the evidence: derived quantities, restricted to the measured window.

mod arrivals;
mod backlog;
mod bursts;
mod connections;
mod cpu;
mod cpu_room;
mod device;
mod episodes;
mod flows;
mod growth;
mod halves;
mod held_to;
mod host;
mod idle_jitter;
mod loss_step;
mod losses;
mod moment;
mod packets;
mod pauses;
mod probed;
mod rates;
mod round_trip;
mod series;
mod side;
mod tcp;
mod tcp_series;
mod trouble;
mod udp;
mod unanswered;
mod unseen;
mod waiting;

use std::cell::OnceCell;

use goodput_model::{
    Account, EndName, Evidence, Finding, Loss, Missing, Place, Plan, Role, Transport,
};

pub use arrivals::{MIN_OPEN_WINDOW_RATIO, WINDOW_IS_ALL_RATIOS};
pub use bursts::Bursts;
pub use cpu_room::CpuTaker;
pub use episodes::Episodes;
pub use halves::Halves;
pub use held_to::HeldToLimits;
pub use loss_step::LossStep;
pub use losses::Losses;
pub use moment::Moment;
pub use probed::Probed;
pub use rates::Plateau;
pub use series::{Interval, Step};
pub use side::Side;
pub use tcp::TcpOption;
pub use unanswered::Unanswered;

use crate::names;

/// One direction of one measurement, as the rules see it.
#[derive(Debug, Clone)]
pub struct View<'a> {
    evidence: &'a Evidence,
    account: OnceCell<Result<Account, Missing>>,
    loss: OnceCell<Result<Loss, Missing>>,
    /// The end that sent.
    pub sender: Side<'a>,
    /// The end that received.
    pub receiver: Side<'a>,
}

impl<'a> View<'a> {
    /// Looks at `evidence`.
    pub fn new(evidence: &'a Evidence) -> Self {
        let (from_s, to_s) = (evidence.measured.from_s, evidence.measured.to_s);
        // The window is the receiver's. If nothing relates the clocks, both are taken to begin with the traffic.
        let by_s = evidence.sender_began_earlier_s().unwrap_or(0.0);
        let sent = (from_s + by_s, to_s + by_s);
        let sender = Side::new(evidence, evidence.sender_end, Role::Sender, sent);
        let receiver = evidence.sender_end.other();
        let receiver = Side::new(evidence, receiver, Role::Receiver, (from_s, to_s));
        Self { evidence, account: OnceCell::new(), loss: OnceCell::new(), sender, receiver }
    }

    /// The account, which `make` gives when it is first asked for.
    ///
    /// # Errors
    /// Those of `make`.
    pub(crate) fn account_by(
        &self,
        make: impl FnOnce(&Self) -> Result<Account, Missing>,
    ) -> Result<&Account, Missing> {
        self.account.get_or_init(|| make(self)).as_ref().map_err(Missing::clone)
    }

    /// The loss model, which `make` gives when it is first asked for.
    ///
    /// # Errors
    /// Those of `make`.
    pub(crate) fn loss_by(
        &self,
        make: impl FnOnce(&Self) -> Result<Loss, Missing>,
    ) -> Result<&Loss, Missing> {
        self.loss.get_or_init(|| make(self)).as_ref().map_err(Missing::clone)
    }

    /// How much earlier the sender's samples began than the receiver's, seconds; none if nothing relates the clocks.
    pub fn sender_began_earlier_s(&self) -> f64 {
        self.evidence.sender_began_earlier_s().unwrap_or(0.0)
    }

    /// The agreed plan.
    pub fn plan(&self) -> &'a Plan {
        &self.evidence.plan
    }

    /// Goodput of the window, bits per second; zero if nothing arrived.
    pub fn goodput_or_zero(&self) -> f64 {
        self.evidence.measured.goodput.0
    }

    /// Goodput of the window, bits per second, more than zero.
    pub fn goodput(&self) -> Result<f64, Missing> {
        positive(self.evidence.measured.goodput.0, "goodput")
    }

    /// Whether TCP carries the payload.
    pub fn is_tcp(&self) -> bool {
        self.plan().transport == Transport::Tcp
    }

    /// Reports that a rule is for TCP only, if the flows use UDP.
    pub fn needs_tcp(&self) -> Result<(), Missing> {
        if self.is_tcp() { Ok(()) } else { Err(Missing::because("only TCP has it")) }
    }

    /// Reports that a rule needs the connection from its start, if it was older than the measurement.
    pub fn needs_start(&self) -> Result<(), Missing> {
        if self.plan().only_watches() {
            return Err(Missing::because("the connection is older than the measurement"));
        }
        Ok(())
    }

    /// The side of the named end.
    pub fn side(&self, name: EndName) -> &Side<'a> {
        if self.sender.name == name { &self.sender } else { &self.receiver }
    }

    /// Both sides, the sender first.
    pub fn sides(&self) -> [&Side<'a>; 2] {
        [&self.sender, &self.receiver]
    }

    /// Whether both ends report the same about their machine, and so may run on one.
    pub fn ends_share_a_machine(&self) -> bool {
        let host = |side: &Side| side.end().ok().map(|end| end.host.clone());
        let near = host(&self.sender);
        near.is_some() && near == host(&self.receiver)
    }

    /// Congestion control of the flows: from the plan, else from the sender's route, else the sender's
    /// default.
    pub fn congestion(&self) -> Result<&'a str, Missing> {
        match &self.plan().socket.congestion {
            Some(name) => Ok(name),
            None => self
                .sender
                .text(names::ROUTE_CONGCTL)
                .or_else(|_| self.sender.text(names::TCP_CONGESTION)),
        }
    }

    /// Whether the congestion control backs off by design at each loss; BBR does not.
    pub fn backs_off_at_loss(&self) -> Result<bool, Missing> {
        Ok(!self.congestion()?.starts_with("bbr"))
    }
}

impl Side<'_> {
    /// This side as a place.
    pub fn place(&self) -> Place {
        self.name.into()
    }
}

/// The first finding that either side gives. If there is none, a side that could not be asked is
/// the reason why the answer is unknown.
pub(crate) fn first_of(
    view: &View,
    ask: impl Fn(&Side) -> Result<Option<Finding>, Missing>,
) -> Result<Option<Finding>, Missing> {
    let mut unknown = None;
    for side in view.sides() {
        match ask(side) {
            Ok(Some(finding)) => return Ok(Some(finding)),
            Ok(None) => {}
            Err(why) => unknown = unknown.or(Some(why)),
        }
    }
    unknown.map_or(Ok(None), Err)
}

/// A finite number above zero, or the reason why it can't be a divisor.
pub(crate) fn positive(value: f64, what: &str) -> Result<f64, Missing> {
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else {
        Err(Missing::because(format!("{what} is {value}")))
    }
}

/// The median, or why there is none.
pub(crate) fn median(values: Vec<f64>, what: &str) -> Result<f64, Missing> {
    goodput_model::median(values)
        .ok_or_else(|| Missing::because(format!("{what} was not sampled in the window")))
}

/// From the median absolute deviation to the standard deviation of a normal distribution.
pub(crate) const STANDARD_DEVIATIONS_PER_MAD: f64 = 1.4826;

/// How far values lie from `middle`, as a share of it: the median absolute deviation, scaled to read like a
/// standard deviation.
pub(crate) fn spread(values: &[f64], middle: f64, what: &str) -> Result<f64, Missing> {
    let off = values.iter().map(|value| (value / middle - 1.0).abs()).collect();
    Ok(STANDARD_DEVIATIONS_PER_MAD * median(off, what)?)
}

/// The arithmetic mean, or why there is none.
pub(crate) fn mean(values: &[f64], what: &str) -> Result<f64, Missing> {
    if values.is_empty() {
        return Err(Missing::because(format!("{what} was not sampled in the window")));
    }
    Ok(values.iter().sum::<f64>() / values.len() as f64)
}
