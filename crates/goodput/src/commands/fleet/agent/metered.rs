//! A test that ends when it has cost what it may.

use std::cell::{Cell, RefCell};

use anyhow::Result;
use goodput_engine::{
    Client, Credentials, EngineError, Event, Interrupt, Listener, Target, conclude, measure,
};
use goodput_fleet::Task;
use goodput_model::{Bytes, Length, Plan, Record, Sites};
use goodput_watch::bytes_on_the_path;

use crate::commands::line_meter::LineMeter;
use crate::commands::measured;

/// What a test may cost.
pub(super) struct Most {
    pub bytes: Bytes,
    /// The site whose budget has no more.
    pub site: String,
}

/// A test, and what it has cost the line so far.
pub(super) struct Metered<'a> {
    task: &'a Task,
    plan: Plan,
    most: Option<Most>,
    meter: RefCell<LineMeter>,
    /// What the whole test has cost, once it is known.
    total: Cell<Option<Bytes>>,
}

impl<'a> Metered<'a> {
    /// A test that may cost `most`; absent: anything.
    pub fn new(task: &'a Task, most: Option<Most>) -> Self {
        let plan = Plan {
            direction: task.direction,
            length: Length::Seconds(task.length_s),
            rate_bits_per_s: task.rate,
            rate_limit_of: task.rate_limit_of,
            ..Plan::standard()
        };
        let meter = RefCell::new(LineMeter::new(&plan));
        Self { task, plan, most, meter, total: Cell::new(None) }
    }

    /// What it has cost.
    pub fn bytes(&self) -> Bytes {
        self.total.get().unwrap_or_else(|| self.meter.borrow().bytes())
    }

    /// Measures. An interrupt ends it early with what was measured so far.
    pub async fn run(
        &self,
        target: &Target,
        credentials: &Credentials,
        interrupt: &Interrupt,
        listener: &mut Listener<'_>,
    ) -> Result<Record> {
        let (raise, soon) = goodput_engine::interrupt();
        let used_up = Cell::new(false);
        let heard = &mut |event: Event| {
            self.meter.borrow_mut().hear(&event);
            let is_over = |most: &Most| self.meter.borrow().will_exceed(most.bytes);
            if self.most.as_ref().is_some_and(is_over) {
                used_up.set(true);
                raise.raise();
            }
            listener(event);
        };
        let ends_it = async {
            interrupt.raised().await;
            raise.raise();
            std::future::pending::<EngineError>().await
        };
        let mut record = tokio::select! {
            record = self.measured(target, credentials, &soon, heard) => record?,
            never = ends_it => return Err(never.into()),
        };
        if used_up.get()
            && let Some(Most { site, .. }) = &self.most
        {
            let why = || format!("the budget of {site} was used up (--budget of its own agent)");
            record.incomplete.get_or_insert_with(why);
        }
        Ok(record)
    }

    async fn measured(
        &self,
        target: &Target,
        credentials: &Credentials,
        interrupt: &Interrupt,
        listener: &mut Listener<'_>,
    ) -> Result<Record, EngineError> {
        let (plan, started) = (&self.plan, measured::now());
        let mut client = Client::connect(target, plan, credentials, interrupt, listener).await?;
        let measured = measure(&mut client, plan, interrupt, listener).await;
        let control = client.control_counts();
        client.leave().await;
        let mut record = conclude(measured?, &self.task.target, &started)?.record;
        let Task { near, far, .. } = self.task.clone();
        record.sites = Some(Sites { near, far });
        self.total.set(Some(bytes_on_the_path(&record, control.as_ref())));
        Ok(record)
    }
}
