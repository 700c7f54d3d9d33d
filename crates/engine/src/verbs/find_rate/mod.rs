//! The trials of a search for the highest rate without loss. `experiment` decides what to try.

mod trial_counts;

use goodput_experiment::rate_search::{
    Next, RateSearch as Search, SearchState, TrialResult, TrialVerdict,
};
use goodput_model::{
    BitRate, Bytes, Kind, Length, Plan, RateOutcome, RateSearch, RateTrial, Record,
};

use crate::control::credentials::Credentials;
use crate::control::target::Target;
use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::interrupt::Interrupt;
use crate::near::client::Client;
use crate::result::conclude::conclude;
use crate::result::measurement::Measurement;
use crate::verbs::retry;
use trial_counts::{SampleCounts, TrialCounts};

/// How many times longer a confirming trial is than the others.
const CONFIRMING_LENGTH_FACTOR: f64 = 3.0;

/// Datagrams of a trial at the lowest rate: fewer say little about a share.
const MIN_DATAGRAMS: f64 = 100.0;

/// What to search.
#[derive(Clone)]
pub struct FindRateRequest {
    /// Who is at the other end.
    pub target: Target,
    /// Credentials that the far end may ask for.
    pub credentials: Credentials,
    /// The plan of every trial. Its length is in seconds; its rate, if any, is the highest to try.
    pub plan: Plan,
    /// Payload sizes of the datagrams; one search for each.
    pub sizes: Vec<Bytes>,
    /// Share of the datagrams that may be lost, percent.
    pub max_loss_percent: f64,
    /// When it began, RFC 3339, UTC.
    pub started: String,
}

/// Searches for each size. At an interrupt, or if trials fail several times in a row, ends early with
/// what the trials so far have shown ([`Record::incomplete`]).
pub async fn find_rate(
    request: &FindRateRequest,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Record, EngineError> {
    let FindRateRequest { target, credentials, plan, .. } = request;
    let mut client = Client::connect(target, plan, credentials, interrupt, listener).await?;
    let outcome = search_all(request, &mut client, interrupt, listener).await;
    client.leave().await;
    outcome
}

async fn search_all(
    request: &FindRateRequest,
    client: &mut Client,
    interrupt: &Interrupt,
    listener: &mut Listener<'_>,
) -> Result<Record, EngineError> {
    let (mut searches, mut last, mut broken) = (Vec::new(), None, None);
    for size in &request.sizes {
        let mut trials = Trials::new(request, *size)?;
        broken = trials.run(request, client, interrupt, listener).await.err();
        let (search, record) = trials.into_search(request);
        last = record.or(last);
        searches.push(search);
        if broken.is_some() || interrupt.is_raised() {
            break;
        }
    }
    let Some(record) = last else { return Err(broken.unwrap_or(EngineError::Interrupted)) };
    let incomplete = broken.map(|cause| format!("the search ended early: {cause}"));
    Ok(Record { kind: Kind::FindRate, rate_searches: searches, incomplete, ..record })
}

/// The trials of one size.
struct Trials {
    plan: Plan,
    seconds: f64,
    search: Search,
    tried: Vec<TrialResult>,
    made: Vec<RateTrial>,
    /// What each trial said about its limit.
    limits: Vec<String>,
    found: Option<SearchState>,
    last: Option<Record>,
}

impl Trials {
    fn new(request: &FindRateRequest, size: Bytes) -> Result<Self, EngineError> {
        let Length::Seconds(seconds) = request.plan.length else {
            return Err(EngineError::Flow("a trial needs a length in seconds".into()));
        };
        let search = Search {
            max_loss: request.max_loss_percent / 100.0,
            lowest: MIN_DATAGRAMS * size.0 as f64 * 8.0 / seconds,
        };
        let plan = Plan { chunk_bytes: size, ..request.plan.clone() };
        let (tried, made, limits) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { plan, seconds, search, tried, made, limits, found: None, last: None })
    }

    async fn run(
        &mut self,
        request: &FindRateRequest,
        client: &mut Client,
        interrupt: &Interrupt,
        listener: &mut Listener<'_>,
    ) -> Result<(), EngineError> {
        while !interrupt.is_raised() {
            let (rate, confirms) = match self.search.next(&self.tried) {
                Next::Try { rate, confirms } => (rate, confirms),
                Next::Done(found) => {
                    self.found = Some(found);
                    break;
                }
            };
            let seconds = self.seconds * if confirms { CONFIRMING_LENGTH_FACTOR } else { 1.0 };
            let plan = Plan {
                length: Length::Seconds(seconds),
                rate_bits_per_s: rate.map(BitRate).or(self.plan.rate_bits_per_s),
                ..self.plan.clone()
            };
            listener(Event::RateBegan {
                datagram_bytes: self.plan.chunk_bytes,
                rate_bits_per_s: plan.rate_bits_per_s,
                confirms,
            });
            let Some(measured) = retry::measure(client, &plan, interrupt).await? else { break };
            self.enter(request, measured, rate, confirms, listener)?;
        }
        Ok(())
    }

    fn enter(
        &mut self,
        request: &FindRateRequest,
        measured: Measurement,
        rate: Option<f64>,
        confirms: bool,
        listener: &mut Listener<'_>,
    ) -> Result<(), EngineError> {
        let counts = SampleCounts::of(&measured);
        let record = conclude(measured, &request.target.text, &request.started)?.record;
        let seen = TrialCounts::of(&counts, &record)?;
        // A first trial at the highest rate that the user allows is asked for that rate.
        let asked = rate.or(self.plan.rate_bits_per_s.map(|rate| rate.0));
        let tried = seen.tried(asked, confirms);
        let says = self.search.says(&tried);
        let trial = RateTrial {
            asked_bits_per_s: record.plan.rate_bits_per_s,
            sent_bits_per_s: BitRate(tried.sent),
            sent_datagrams: (seen.sent_bytes / self.plan.chunk_bytes.0 as f64).round() as u64,
            lost_percent: seen.lost * 100.0,
            dropped_by_receiver_percent: seen.dropped.map(|share| share * 100.0),
            duration_s: seen.seconds,
            confirms,
            passed: says == TrialVerdict::Passed,
            spoilt: says == TrialVerdict::Spoilt,
        };
        let datagram_bytes = self.plan.chunk_bytes;
        listener(Event::RateTried { datagram_bytes, trial: trial.clone() });
        self.tried.push(tried);
        self.made.push(trial);
        self.limits.push(record.verdict.summary.clone());
        self.last = Some(record);
        Ok(())
    }

    fn into_search(self, request: &FindRateRequest) -> (RateSearch, Option<Record>) {
        let (outcome, rate) = match self.found {
            Some(SearchState::Path(rate)) => (RateOutcome::Path, Some(rate)),
            Some(SearchState::Receiver(rate)) => (RateOutcome::Receiver, Some(rate)),
            Some(SearchState::Sender(rate)) => (RateOutcome::Sender, Some(rate)),
            Some(SearchState::LossEverywhere(_)) => (RateOutcome::LossEverywhere, None),
            Some(SearchState::Unsteady) => (RateOutcome::Unsteady, None),
            Some(SearchState::Unfinished(..)) | None => (RateOutcome::Unfinished, None),
        };
        let bits = self.plan.chunk_bytes.0 as f64 * 8.0;
        let search = RateSearch {
            datagram_bytes: self.plan.chunk_bytes,
            max_loss_percent: request.max_loss_percent,
            outcome,
            rate_bits_per_s: rate.map(BitRate),
            datagrams_per_s: rate.map(|rate| rate / bits),
            limit: self.limit(outcome),
            doubts: self.doubts(rate),
            trials: self.made,
        };
        (search, self.last)
    }

    /// What the slowest failed trial said about its limit; the last trial's limit, if none failed or
    /// the sender limits the rate.
    fn limit(&self, outcome: RateOutcome) -> String {
        let of_path = outcome != RateOutcome::Sender;
        let last = self.tried.last().filter(|trial| !of_path && trial.falls_short());
        if let Some((asked, sent)) = last.and_then(|trial| Some((trial.asked?, trial.sent))) {
            return format!(
                "the requested rate was {}, but the sender sent {}",
                BitRate(asked),
                BitRate(sent)
            );
        }
        let slowest = self.search.slowest_failure(&self.tried).filter(|_| of_path);
        let number = slowest.and_then(|failed| self.tried.iter().position(|t| *t == failed));
        let limit = number.and_then(|number| self.limits.get(number));
        limit.or(self.limits.last()).cloned().unwrap_or_default()
    }

    fn doubts(&self, rate: Option<f64>) -> Vec<String> {
        let all = self.tried.len();
        let contradictions = self.search.contradictions(&self.tried);
        let mut doubts: Vec<_> = contradictions
            .iter()
            .map(|(passed, failed)| {
                format!(
                    "loss does not grow with the rate here: {} lost {}, and {} lost {}",
                    BitRate(passed.sent),
                    percent(passed.lost),
                    BitRate(failed.sent),
                    percent(failed.lost)
                )
            })
            .collect();
        let short = self.tried.iter().filter(|trial| trial.falls_short()).count();
        if short > 0 {
            doubts.push(format!(
                "in {short} of {all} trials the sender did not hold the requested rate; its CPU may be busy"
            ));
        }
        let spoilt = self.made.iter().filter(|trial| trial.spoilt).count();
        if spoilt > 0 {
            doubts.push(format!(
                "in {spoilt} of {all} trials the receiving socket, not the path, lost the excess; the receiver's CPU may be busy, or its buffer too small (--rcvbuf)"
            ));
        }
        let accidents = self.search.accidents(&self.tried);
        if accidents > 0 {
            doubts.push(format!(
                "{accidents} of {all} trials lost too much, but not when repeated: something other than the rate disturbed them"
            ));
        }
        doubts.extend(rate.and_then(|_| self.too_few()));
        doubts
    }

    /// Reports that the confirming trial had too few datagrams to lose one at the allowed share.
    fn too_few(&self) -> Option<String> {
        let most = self.search.max_loss;
        let confirming = self.made.iter().rfind(|trial| trial.confirms && trial.passed)?;
        let few = most > 0.0 && (confirming.sent_datagrams as f64) * most < 1.0;
        few.then(|| {
            let (sent, most) = (confirming.sent_datagrams, percent(most));
            format!("{sent} datagrams are too few to show a loss of {most}; use longer trials (-t)")
        })
    }
}

fn percent(share: f64) -> String {
    format!("{:.3} %", share * 100.0)
}
