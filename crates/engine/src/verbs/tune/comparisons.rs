//! The comparisons of one search: how long their runs are, how long each may take, and whether another may follow.

use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_experiment::starting::warmed_up_in_slow_start;
use goodput_model::{Length, Plan};

use super::gain::ways_to_win;
use super::request::TuneRequest;
use super::time_budget::TimeBudget;
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::result::measurement::FarSettings;
use crate::verbs::compare::{Arm, CompareRequest, Compared, MaxTime, compare_whole};

/// Why nothing more is compared.
pub const TIME_WAS_OVER: &str = "the time was over; --max-time gives more";

/// What to know of a comparison that was given up.
const GIVEN_UP: &str =
    "a comparison did not end when the time was over (--max-time), so its runs don't count";

/// The same, if some of its runs had ended before.
const CUT_SHORT: &str =
    "a comparison did not end when the time was over (--max-time), so only its finished runs count";

/// Why a search ends after a failure, which the record names ([`goodput_model::Record::incomplete`]).
const FAILED: &str = "a comparison failed";

/// What a comparison is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// To choose what a later one proves: an obvious difference suffices.
    Choose {
        /// Whether to end after a warm-up that was mostly slow start.
        past_slow_start: bool,
    },
    /// To prove.
    Prove,
}

/// Makes a comparison. Tests make up what it shows.
pub trait Compare {
    /// Makes it.
    async fn compare(
        &mut self,
        request: &CompareRequest,
        interrupt: &Interrupt,
        listener: &mut Listener<'_>,
    ) -> Result<Compared, EngineError>;
}

/// Makes comparisons by measuring.
pub struct Measured;

impl Compare for Measured {
    async fn compare(
        &mut self,
        request: &CompareRequest,
        interrupt: &Interrupt,
        listener: &mut Listener<'_>,
    ) -> Result<Compared, EngineError> {
        compare_whole(request, interrupt, listener).await
    }
}

/// The comparisons of one search.
pub struct Comparisons<'a, C> {
    /// What is tuned.
    pub request: &'a TuneRequest,
    /// Ends the search.
    pub interrupt: &'a Interrupt,
    /// The time for all of them.
    pub budget: TimeBudget,
    /// The run length of the last comparison; before the first one, that of the first.
    pub compared_length: Length,
    /// What is configured at a far end that reports nothing itself, before any change.
    pub far_settings: Option<Arc<FarSettings>>,
    /// The failure after which nothing more may be compared.
    pub broken: Option<String>,
    /// Why a comparison was given up at the end of the time. That is no failure: nothing may follow it anyway.
    pub given_up: Option<String>,
    /// Mean time of a run with the change that was compared last.
    changed_run: Option<Duration>,
    /// Of the next comparison.
    run_length: Length,
    made: u64,
    by: C,
}

impl<'a, C: Compare> Comparisons<'a, C> {
    /// None yet.
    pub fn new(
        request: &'a TuneRequest,
        interrupt: &'a Interrupt,
        run_length: Length,
        budget: TimeBudget,
        by: C,
    ) -> Self {
        Self {
            request,
            interrupt,
            budget,
            compared_length: run_length,
            far_settings: None,
            broken: None,
            given_up: None,
            changed_run: None,
            run_length,
            made: 0,
            by,
        }
    }

    /// Why nothing more may be compared, if that is so.
    pub fn ended(&self) -> Option<String> {
        let is_over = self.given_up.is_some() || self.budget.left().is_zero();
        let over = || is_over.then(|| TIME_WAS_OVER.into());
        self.broken_off().or_else(over)
    }

    /// The same, if a person wanted it to end.
    pub fn interrupted(&self) -> Option<String> {
        self.interrupt.is_raised().then(|| "it was interrupted".into())
    }

    /// The same, whatever time is left.
    pub fn broken_off(&self) -> Option<String> {
        self.interrupted().or_else(|| self.broken.as_ref().map(|_| FAILED.into()))
    }

    /// Doubles the length of the runs if there is time for this many comparisons. Returns the new length, seconds, if it
    /// did.
    pub fn lengthen_for(&mut self, comparisons: u8) -> Option<f64> {
        let is_longer = self.may_lengthen(comparisons);
        let Length::Seconds(seconds) = &mut self.run_length else { return None };
        is_longer.then(|| {
            self.budget.lengthen(*seconds);
            *seconds *= 2.0;
            *seconds
        })
    }

    /// Whether the runs may be twice as long: their length was chosen here, and there is time for this many comparisons.
    pub fn may_lengthen(&self, comparisons: u8) -> bool {
        let Length::Seconds(seconds) = self.run_length else { return false };
        self.request.run_length.is_none() && self.budget.may_lengthen(seconds, comparisons)
    }

    /// Makes the next one.
    pub async fn compare(
        &mut self,
        arms: Vec<Arm>,
        max_time: MaxTime,
        aim: Aim,
        listener: &mut Listener<'_>,
    ) -> Result<Compared, EngineError> {
        self.compared_length = self.run_length;
        let asked = self.asked(arms, max_time, aim);
        self.made += 1;
        let began = Instant::now();
        // The connection was already reported.
        let runs_only = &mut |event| match event {
            Event::Connected { .. } => {}
            event => listener(event),
        };
        let compared = self.by.compare(&asked, self.interrupt, runs_only).await;
        // A warm-up alone is mostly connecting.
        let runs = compared.as_ref().ok().filter(|compared| !only_started(compared));
        let runs = runs.and_then(|compared| compared.record.comparison.as_ref());
        self.budget.took(began.elapsed(), runs.map_or(0, |comparison| comparison.trials.len()));
        self.changed_run = compared.as_ref().ok().and_then(|compared| compared.changed_run);
        match &compared {
            Ok(Compared { not_put_back: Some(why), .. }) => self.broken = Some(why.clone()),
            Err(why @ EngineError::NotPutBack { .. }) => self.broken = Some(why.to_string()),
            _ => {}
        }
        let given_up = match &compared {
            Ok(Compared { given_up: Some(why), .. }) => Some((CUT_SHORT, why)),
            Err(EngineError::GivenUp(why)) => Some((GIVEN_UP, why)),
            _ => None,
        };
        if let Some((what, why)) = given_up {
            self.given_up = Some(match self.interrupt.is_raised() {
                true => why.clone(),
                false => format!("{what}: {why}"),
            });
        }
        compared
    }

    /// Keeps the change that was compared last: both arms of the next trial have it.
    pub fn keep(&mut self) {
        if let Some(run) = self.changed_run {
            self.budget.keep(run);
        }
    }

    fn asked(&self, arms: Vec<Arm>, max_time: MaxTime, aim: Aim) -> CompareRequest {
        let request = self.request;
        CompareRequest {
            target: request.target.clone(),
            credentials: request.credentials.clone(),
            plan: Plan { length: self.run_length, ..request.plan.clone() },
            arms,
            responses: request.purpose.responses().to_vec(),
            ways_to_win: ways_to_win(request.purpose),
            precision_percent: request.min_gain_percent / 2.0,
            threshold_percent: request.min_gain_percent,
            may_shorten: false,
            is_about_parts: false,
            settled: false,
            past_slow_start: aim == Aim::Choose { past_slow_start: true },
            proof_by: (aim != Aim::Prove).then(|| self.budget.end()),
            turns: None,
            given_up_at: Some(self.budget.end()),
            max_time,
            seed: request.seed.wrapping_add(self.made),
            state_dir: request.state_dir.clone(),
            hosts: request.hosts.clone(),
            far_settings: self.far_settings.clone(),
            started: request.started.clone(),
        }
    }
}

/// Whether a comparison ended after a warm-up that was mostly slow start.
pub fn only_started(compared: &Compared) -> bool {
    let comparison = compared.record.comparison.as_ref();
    comparison.is_some_and(|comparison| warmed_up_in_slow_start(&comparison.trials))
}
