//! The clocks of both ends over one measurement: exchanges beside it, and conclusions from them.

mod exchanges;
pub mod pings;
#[cfg(test)]
mod simulated;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use goodput_diagnose::clocks::relation;
use goodput_model::{
    Clocks, End, Exchange, Known, Missing, Plan, Seconds, Snapshot, SocketOptions,
};
use goodput_mover::LastHeard;
use goodput_wire::session::{ClockOffset, Cookie};
use tokio::task::JoinHandle;

use crate::error::EngineError;
use crate::near::client::Client;
use crate::threads::blocking;
use exchanges::ClockProgress;
pub use pings::CLOCK_PINGS;

/// Longest time that payload waits for the first answers.
const MAX_FIRST_ANSWERS_TIME: Duration = Duration::from_millis(300);

/// Offset worth reporting, microseconds: records and logs of both hosts no longer line up.
const NOTED_OFFSET_US: f64 = 1e6;

/// When the path is idle for questions about the far end's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleSides {
    /// Before the payload and after it.
    Both,
    /// Before the payload. What the clocks drift meanwhile is then only bounded by what is usual, which is little in a
    /// short run (`diagnose/src/clocks/idle.rs`).
    Before,
}

type ClockExchanges = Result<Vec<Exchange>, Missing>;

/// A comparison of both ends' clocks in progress.
pub struct Comparing {
    asking: Result<JoinHandle<Result<ClockExchanges, EngineError>>, Missing>,
    progress: Arc<ClockProgress>,
}

impl Comparing {
    /// Begins to ask the far end that `client` has found.
    pub fn begin(client: &Client, plan: &Plan, echo: Option<Cookie>) -> Self {
        let progress = Arc::new(ClockProgress::new(plan.keeps_quiet()));
        let asking = whom(client, plan, echo).map(|(to, cookie)| {
            // Source ports and subflows belong to the flows.
            let options = SocketOptions { source_port: None, mptcp: false, ..plan.socket.clone() };
            let progress = Arc::clone(&progress);
            let own = Arc::clone(&progress);
            let asking = blocking(move || exchanges::exchange(to, cookie, &options, &own));
            tokio::spawn(async move {
                let asked = asking.await;
                progress.end_first();
                asked
            })
        });
        Self { asking, progress }
    }

    /// When the far end last answered.
    pub fn last_heard(&self) -> LastHeard {
        self.progress.last_heard()
    }

    /// Whether the far end is asked at all.
    pub fn is_asking(&self) -> bool {
        self.asking.is_ok()
    }

    /// Waits briefly until the first questions are answered, while nothing else is on the path.
    pub async fn first(&self) {
        if self.is_asking() {
            let _ = tokio::time::timeout(MAX_FIRST_ANSWERS_TIME, self.progress.first()).await;
        }
    }

    /// The path is idle again: asks the last questions, if there are any.
    pub fn finish(&self, sides: IdleSides) {
        match sides {
            IdleSides::Both => self.progress.finish(),
            IdleSides::Before => self.progress.end(),
        }
    }

    /// The answers, within about a second at most.
    pub async fn collect(mut self) -> Result<ClockExchanges, EngineError> {
        let broken = |cause| EngineError::Flow(format!("an internal task failed: {cause}"));
        match &mut self.asking {
            Ok(asking) => asking.await.map_err(broken)?,
            Err(why) => Ok(Err(why.clone())),
        }
    }
}

impl Drop for Comparing {
    fn drop(&mut self) {
        self.progress.abandon();
    }
}

/// Whom to ask, and how it recognises the question.
fn whom(
    client: &Client,
    plan: &Plan,
    echo: Option<Cookie>,
) -> Result<(SocketAddr, Cookie), Missing> {
    if !client.far_end().compares_clocks {
        return Err(Missing::because("the far end is not goodput and does not report its clock"));
    }
    if !plan.observe {
        return Err(Missing::because("the plan does not observe"));
    }
    let mut to = client.addresses.first().copied().ok_or(Missing::because("it has no address"))?;
    to.set_port(client.target.port);
    let cookie = echo.ok_or(Missing::because("the far end's goodput is older"))?;
    Ok((to, cookie))
}

/// Concludes from the exchanges.
pub fn conclude(asked: ClockExchanges, near: &End, far: &Known<Arc<End>>) -> Clocks {
    let exchanges = match asked {
        Ok(exchanges) => exchanges,
        Err(why) => return Clocks { relation: Known::Missing(why), exchanges: Vec::new() },
    };
    let kernel = |end: &End| end.clock.as_ref()?.kernel.clone();
    let one =
        kernel(near).is_some_and(|near| far.value().and_then(|far| kernel(far)) == Some(near));
    Clocks { relation: relation(&exchanges, one).into(), exchanges }
}

/// Notes the offset among the near end's facts.
pub fn note(facts: &mut Snapshot, clock: Option<ClockOffset>) {
    match clock {
        Some(ClockOffset { ahead_us, uncertainty_us }) => {
            facts.put("clock.far_ahead_us", ahead_us);
            facts.put("clock.uncertainty_us", uncertainty_us);
        }
        None => facts.lacks("clock", "the far end did not report the time"),
    }
}

/// A doubt about clocks that are far apart.
pub fn doubt(clock: Option<ClockOffset>) -> Option<String> {
    let ClockOffset { ahead_us, uncertainty_us } = clock?;
    let surely = ahead_us.abs() - uncertainty_us;
    let which = if ahead_us > 0.0 { "ahead of" } else { "behind" };
    (surely > NOTED_OFFSET_US).then(|| {
        format!("the far host's clock is {} {which} this one's", Seconds::of_us(ahead_us.abs()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::{Host, OwnClock};

    #[test]
    fn ends_of_one_kernel_have_one_clock_and_those_of_two_have_a_bound() {
        let exchanges: Vec<_> = (0..20)
            .map(|n| 1_000_000_000 + n * 1_000_000)
            .map(|at| Exchange::from([at, at + 30_000, at + 40_000, at + 70_000]))
            .collect();
        let end = |kernel: &str| {
            let clock = Some(OwnClock { began_ns: 0, kernel: Some(kernel.into()) });
            End { clock, ..End::unobserved(Host::foreign("x")) }
        };
        let error = |far: &str| {
            let clocks =
                conclude(Ok(exchanges.clone()), &end("a 1"), &Known::Value(end(far).into()));
            clocks.relation.value().unwrap().error_ns
        };
        assert_eq!(error("a 1"), 0.0);
        assert!((29_000.0..40_000.0).contains(&error("b 1")), "{}", error("b 1"));
    }

    #[test]
    fn what_is_not_compared_says_why() {
        let why = Missing::because("the far end's goodput is older");
        let near = End::unobserved(Host::foreign("x"));
        let clocks = conclude(Err(why.clone()), &near, &Known::missing("private"));
        assert_eq!(clocks.relation, Known::Missing(why));
    }

    #[test]
    fn only_clocks_surely_apart_are_worth_a_word() {
        let of = |ahead_us, uncertainty_us| doubt(Some(ClockOffset { ahead_us, uncertainty_us }));
        assert_eq!(of(-3.2e6, 5e4).unwrap(), "the far host's clock is 3.20 s behind this one's");
        assert_eq!(of(1.2e6, 5e5), None);
        assert_eq!(doubt(None), None);
    }
}
