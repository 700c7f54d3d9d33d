//! A test that ends when it has cost what it may, of a watch or of an agent of a fleet: one module connects, measures, counts
//! what the line carries, and says what ended the payload.

mod ending;
mod line_meter;

use std::cell::{Cell, RefCell};
use std::time::Duration;

use goodput_engine::{
    Client, Credentials, EngineError, Event, Interrupt, Listener, Target, conclude, measure,
};
use goodput_model::{Bytes, Length, Plan, Record};
use goodput_watch::bytes_on_the_path;
use tokio::sync::Notify;
use tokio::time::sleep;

use self::ending::Ended;
pub use self::ending::Ending;
use self::line_meter::LineMeter;

/// Whom a test measures with.
#[derive(Clone, Copy)]
pub struct Towards<'a> {
    /// Where it connects to.
    pub target: &'a Target,
    /// What it shows there.
    pub credentials: &'a Credentials,
    /// The target as its record has it.
    pub text: &'a str,
    /// When it began, as its record has it.
    pub started: &'a str,
}

/// What a test may take; it ends with what it has.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most bytes on the line, and what ends the payload with them; absent: any number.
    pub bytes: Option<(Bytes, Ending)>,
    /// Longest time of a test of bytes, from when its flows are open; absent: any time.
    pub time: Option<Duration>,
    /// How long a test whose payload has ended waits for the far end's report after the user ended it.
    pub report_patience: Duration,
}

/// A test, and what it has cost the line so far.
pub struct Metered {
    plan: Plan,
    meter: RefCell<LineMeter>,
    /// What the whole test has cost, once it is known.
    total: Cell<Option<Bytes>>,
    ended: Ended,
}

impl Metered {
    /// A test of `plan`.
    pub fn new(plan: Plan) -> Self {
        let meter = RefCell::new(LineMeter::new(&plan));
        Self { plan, meter, total: Cell::new(None), ended: Ended::default() }
    }

    /// What it has cost so far, whether it has a result or not.
    pub fn bytes(&self) -> Bytes {
        self.total.get().unwrap_or_else(|| self.meter.borrow().bytes())
    }

    /// What ended its payload.
    pub fn ended(&self) -> Option<Ending> {
        self.ended.first()
    }

    /// Measures within `limits`. An interrupt ends it early with what was measured so far.
    pub async fn run(
        &self,
        towards: Towards<'_>,
        limits: Limits,
        interrupt: &Interrupt,
        listener: &mut Listener<'_>,
    ) -> Result<Record, EngineError> {
        let (raise, soon) = goodput_engine::interrupt();
        let opened = Notify::new();
        let ends_it = async {
            tokio::select! {
                true = self.time_is_over(limits.time, &opened) => raise.raise_at_time_limit(),
                () = self.user_ends(limits.report_patience, interrupt) => raise.raise(),
            }
            std::future::pending().await
        };
        let heard = &mut |event: Event| {
            self.hear(&event, &opened);
            if self.costs_too_much(limits.bytes) {
                raise.raise();
            }
            listener(event);
        };
        tokio::select! {
            measured = self.measured(towards, &soon, heard) => measured,
            never = ends_it => never,
        }
    }

    fn hear(&self, event: &Event, opened: &Notify) {
        self.meter.borrow_mut().hear(event);
        match event {
            Event::Opened { .. } => opened.notify_one(),
            Event::Ended => drop(self.ended.by(Ending::Plan)),
            _ => {}
        }
    }

    /// Whether the payload ends now because it would cost more than it may.
    fn costs_too_much(&self, most: Option<(Bytes, Ending)>) -> bool {
        let exceeded = most.filter(|(bytes, _)| self.meter.borrow().will_exceed(*bytes));
        exceeded.is_some_and(|(_, ending)| self.ended.by(ending))
    }

    /// Waits until a test of bytes lasts for its longest time. Whether that is what ends its payload.
    async fn time_is_over(&self, most: Option<Duration>, opened: &Notify) -> bool {
        let most = most.filter(|_| matches!(self.plan.length, Length::Bytes(_)));
        let Some(most) = most else { return std::future::pending().await };
        opened.notified().await;
        sleep(most).await;
        self.ended.by(Ending::Time)
    }

    /// Waits until the user ends it. If its payload had ended before, the far end's report is on its way, and gets a moment.
    async fn user_ends(&self, report_patience: Duration, interrupt: &Interrupt) {
        interrupt.raised().await;
        if !self.ended.by(Ending::User) {
            sleep(report_patience).await;
        }
    }

    async fn measured(
        &self,
        Towards { target, credentials, text, started }: Towards<'_>,
        interrupt: &Interrupt,
        listener: &mut Listener<'_>,
    ) -> Result<Record, EngineError> {
        let plan = &self.plan;
        let mut client = Client::connect(target, plan, credentials, interrupt, listener).await?;
        let measured = measure(&mut client, plan, interrupt, listener).await;
        let control = client.control_counts();
        client.leave().await;
        let record = conclude(measured?, text, started)?.record;
        self.total.set(Some(bytes_on_the_path(&record, control.as_ref())));
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Sample;

    fn of_bytes(bytes: u64) -> Metered {
        Metered::new(Plan { length: Length::Bytes(Bytes(bytes)), ..Plan::standard() })
    }

    fn sampled(sent_bytes: u64) -> Event {
        let sample = Sample { at_s: 0.1, sent_bytes, received_bytes: 0, flows: Vec::new() };
        Event::Sampled { end: goodput_model::EndName::Near, sample: sample.into() }
    }

    #[test]
    fn a_test_ends_once_it_would_cost_more_and_says_by_what() {
        let (test, opened) = (of_bytes(1_000_000), Notify::new());
        let most = Some((Bytes(500_000), Ending::Cost));
        assert!(!test.costs_too_much(most));
        test.hear(&sampled(100_000), &opened);
        assert!(!test.costs_too_much(None), "it may cost anything");
        assert!(test.costs_too_much(Some((Bytes(100_000), Ending::Cost))));
        assert!(!test.costs_too_much(most), "it has ended already");
        assert_eq!(test.ended(), Some(Ending::Cost));
        assert!(test.bytes() >= Bytes(100_000));
    }

    #[test]
    fn what_came_to_its_own_end_is_ended_by_nothing_else() {
        let (test, opened) = (of_bytes(1_000_000), Notify::new());
        test.hear(&sampled(100_000), &opened);
        test.hear(&Event::Ended, &opened);
        assert!(!test.costs_too_much(Some((Bytes(1), Ending::Budget))));
        assert_eq!(test.ended(), Some(Ending::Plan));
    }

    fn wait_for<T>(work: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().build().unwrap().block_on(work)
    }

    #[test]
    fn only_a_test_of_bytes_has_a_longest_time_which_begins_with_its_flows() {
        let (test, opened) = (of_bytes(1000), Notify::new());
        opened.notify_one();
        assert!(wait_for(test.time_is_over(Some(Duration::ZERO), &opened)));
        assert_eq!(test.ended(), Some(Ending::Time));
        let timed = Metered::new(Plan { length: Length::Seconds(1.0), ..Plan::standard() });
        for (test, most) in [(&timed, Some(Duration::ZERO)), (&of_bytes(1000), None)] {
            opened.notify_one();
            let ended = async {
                tokio::select! {
                    biased;
                    _ = test.time_is_over(most, &opened) => true,
                    () = tokio::task::yield_now() => false,
                }
            };
            assert!(!wait_for(ended));
        }
    }
}
