//! How bounds read their inputs: a value above zero, or why there is none.

use goodput_model::{BitRate, CeilingInputs, Missing};

/// The inputs, with a reason for each that is absent.
pub(crate) trait Read {
    /// Round-trip time, seconds.
    fn rtt_s(&self) -> Result<f64, Missing>;
    /// Lost segments, a share between 0 and 1.
    fn loss(&self) -> Result<f64, Missing>;
    /// Connections; 1 if that is not said.
    fn flow_count(&self) -> Result<f64, Missing>;
    /// Speed of the link, bits per second.
    fn link(&self) -> Result<f64, Missing>;
}

impl Read for CeilingInputs {
    fn rtt_s(&self) -> Result<f64, Missing> {
        Ok(given(self.rtt_us, "round-trip time")? / 1e6)
    }

    fn loss(&self) -> Result<f64, Missing> {
        let loss = given(self.loss_percent, "loss")? / 100.0;
        if loss < 1.0 { Ok(loss) } else { Err(Missing::because("nothing arrives at this loss")) }
    }

    fn flow_count(&self) -> Result<f64, Missing> {
        given(Some(f64::from(self.flows.unwrap_or(1))), "number of flows")
    }

    fn link(&self) -> Result<f64, Missing> {
        given(self.link_bits_per_s.map(|BitRate(rate)| rate), "speed of the link")
    }
}

/// A value above zero that was given.
pub(crate) fn given(value: Option<f64>, what: &str) -> Result<f64, Missing> {
    match value {
        Some(value) if value.is_finite() && value > 0.0 => Ok(value),
        Some(value) => Err(Missing::because(format!("the {what} is {value}"))),
        None => Err(Missing::because(format!("no {what} was given"))),
    }
}

/// The same for a count.
pub(crate) fn count(value: Option<u64>, what: &str) -> Result<f64, Missing> {
    given(value.map(|value| value as f64), what)
}
