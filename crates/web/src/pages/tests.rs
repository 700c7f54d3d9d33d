//! Starting a test, and following it while it runs.

use std::sync::Arc;
use std::time::Duration;

use goodput_model::{BitRate, EndName};
use goodput_store::{Store, Wanted};
use http_body_util::BodyExt;
use http_body_util::channel::Channel;
use hyper::body::Bytes;
use maud::{Markup, html};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Page, Visit};
use crate::answer::{Answer, Trouble};
use crate::graph::Lines;
use crate::layout::{plain, table};
use crate::program::Program;
use crate::progress::Progress;
use crate::runs::{End, Run};

/// Longest target, bytes: names and paths are shorter.
const MAX_TARGET_BYTES: usize = 1024;

/// Longest test, seconds.
const MAX_SECONDS: u32 = 3600;

/// A comment is sent after this time without an event, so that a browser that went away is noticed.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// The form, and the tests so far.
pub const PAGE: Page = Page { in_navigation: Some("Tests"), ..Page::of("/tests", show) };

/// Starts a test.
pub const START: Page = Page::change("/tests", start);

/// A test that runs, or ran.
pub const RUN: Page = Page::of("/tests/{}", run);

/// What happens in it.
pub const EVENTS: Page = Page::of("/tests/{}/events", events);

/// Ends it early.
pub const STOP: Page = Page::change("/tests/{}/stop", stop);

fn show(visit: &Visit) -> Result<Answer, Trouble> {
    visit.runs.follow(visit.program.running());
    let runs = visit.runs.all();
    let (own, others): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| run.is_own());
    let others: Vec<_> = others.into_iter().filter(|run| run.end().is_none()).collect();
    Ok(Answer::page(
        "Tests",
        html! {
            @if visit.who.known { (visit.who.form("/tests", "Start", &fields())) }
            @else { p { a href="/login" { "Log in" } " to start a test from here." } }
            @if !others.is_empty() { h2 { "Running on this host" } (list(&others)) }
            @if !own.is_empty() { h2 { "Started here" } (list(&own)) }
        },
    ))
}

fn list(runs: &[Arc<Run>]) -> Markup {
    html! {
        ul { @for run in runs { li {
            a href={ "/tests/" (run.number) } { "Test " (run.number) " of " (plain(&run.target)) }
            @if let Some(command) = run.command() { " (goodput " (plain(command)) ")" }
            @if run.end().is_none() { ", running" }
        } } }
    }
}

fn fields() -> Markup {
    html! {
        p { label for="target" { "Target" }
            input #target name="target" required maxlength=(MAX_TARGET_BYTES) autocomplete="off"; }
        p { label for="seconds" { "Seconds" }
            input #seconds type="number" name="seconds" value="10" min="1" max=(MAX_SECONDS); }
        p { input #reverse type="checkbox" name="reverse" value="yes";
            label for="reverse" { "The far host sends" } }
    }
}

fn start(visit: &Visit) -> Result<Answer, Trouble> {
    let target = visit.asked.field("target").unwrap_or_default();
    if target.is_empty() || target.len() > MAX_TARGET_BYTES || target.starts_with('-') {
        return Err(Trouble::bad("name a host, an address or a file as the target"));
    }
    let seconds = visit.asked.field("seconds").and_then(|text| text.parse().ok());
    let seconds = seconds.filter(|seconds| (1..=MAX_SECONDS).contains(seconds));
    let seconds =
        seconds.ok_or_else(|| Trouble::bad(format!("a test takes 1 to {MAX_SECONDS} seconds")))?;
    let command = visit.program.test(target, seconds, visit.asked.field("reverse").is_some());
    let number = visit.runs.start(command, target)?;
    Ok(Answer::go(format!("/tests/{number}")))
}

fn found(visit: &Visit) -> Result<Arc<Run>, Trouble> {
    let number = visit.number()?;
    let run = visit.runs.find(number);
    run.ok_or_else(|| Trouble::unknown(format!("this server knows no test {number}")))
}

fn run(visit: &Visit) -> Result<Answer, Trouble> {
    let run = found(visit)?;
    let (lines, end) = run.since(0);
    let known = lines.len();
    let intervals: Vec<_> = lines.iter().filter_map(|line| interval(line)).collect();
    let mut graph = Lines::default();
    intervals.iter().for_each(|interval| interval.draw(&mut graph));
    let mut progress = Progress::default();
    let is_several = lines.iter().filter(|line| progress.enter(line)).count() > 0;
    let rows = html! { @for interval in &intervals { tr { @for cell in interval.cells() { td { (cell) } } } } };
    let state = match &end {
        None => html! { "Running." },
        Some(end) => outcome(&ended(end, &run.target, visit.program.history().ok().as_ref())),
    };
    let stop = format!("/tests/{}/stop", run.number);
    Ok(Answer::page(
        title(&run),
        html! {
            p #state role="status" { (state) }
            @if end.is_none() {
                noscript { p { "Reload this page to see more." } }
                @if visit.who.known && run.is_own() { div #stop { (visit.who.form(&stop, "Stop", &html! {})) } }
            }
            div #progress { (progress.markup()) }
            div #over-time hidden[is_several && intervals.is_empty()] {
                (graph.picture())
                div #intervals { (table("Intervals", &["From", "To", "Goodput", "Direction"], &rows)) }
            }
            @if end.is_none() {
                script src="/live.js" data-events={ "/tests/" (run.number) "/events?known=" (known) }
                    data-points=(graph.data()) data-ends=(Lines::ends()) {}
            }
        },
    ))
}

/// What runs, and of what.
fn title(run: &Run) -> String {
    match run.command() {
        None | Some("test") => format!("Test of {}", run.target),
        Some(command) => format!("goodput {command} of {}", run.target),
    }
}

/// An interval of a test, seconds since its beginning.
struct Interval {
    sender: EndName,
    from: f64,
    to: f64,
    /// If it is known.
    goodput: Option<BitRate>,
}

impl Interval {
    fn cells(&self) -> [String; 4] {
        let goodput = self.goodput.map_or("unknown".into(), |goodput| goodput.to_string());
        let direction = format!("{} → {}", self.sender, self.sender.other());
        [format!("{:.1} s", self.from), format!("{:.1} s", self.to), goodput, direction]
    }

    fn draw(&self, graph: &mut Lines) {
        if let Some(goodput) = self.goodput {
            graph.push(self.sender, self.to, goodput.0);
        }
    }
}

/// The interval in a line of JSON; `None` for another event.
fn interval(line: &str) -> Option<Interval> {
    let event: Value = serde_json::from_str(line).ok()?;
    let number = |name: &str| event[name].as_f64();
    let is_interval = event["event"] == "interval";
    let goodput = number("goodput_bits_per_s").map(BitRate);
    let sender = serde_json::from_value(event["sender"].clone()).ok()?;
    let interval = Interval { sender, from: number("from_s")?, to: number("to_s")?, goodput };
    is_interval.then_some(interval)
}

/// How a run ended, for the script and for the page.
fn ended(end: &End, target: &str, history: Option<&Store>) -> Value {
    let kept = end.started.as_ref().zip(history).and_then(|(started, history)| {
        let (from, until) = (Some(started.clone()), Some(format!("{started}!")));
        let wanted =
            Wanted { target: Some(target.into()), from, until, limit: 1, ..Wanted::default() };
        history.search(&wanted).ok()?.first().map(|entry| entry.id)
    });
    json!({ "result": kept, "said": plain(&end.said) })
}

fn outcome(ended: &Value) -> Markup {
    html! {
        @match ended["result"].as_i64() {
            Some(id) => { "Ended. See " a href={ "/results/" (id) } { "the result" } ". " }
            None => "Ended without a result in the history. ",
        }
        (ended["said"].as_str().unwrap_or_default())
    }
}

fn stop(visit: &Visit) -> Result<Answer, Trouble> {
    let run = found(visit)?;
    run.stop();
    Ok(Answer::go(format!("/tests/{}", run.number)))
}

/// A stream of server-sent events. Each has its number as its id, with which a browser that connects again goes on.
fn events(visit: &Visit) -> Result<Answer, Trouble> {
    let run = found(visit)?;
    let known = visit.asked.last_event.or_else(|| visit.asked.field("known")?.parse().ok());
    let program = Arc::clone(visit.program);
    let (mut sender, body) = Channel::<Bytes, std::convert::Infallible>::new(1);
    tokio::runtime::Handle::current().spawn(async move {
        let mut told = Told::until(known.unwrap_or(0), &run);
        let mut changes = run.changes();
        loop {
            changes.mark_unchanged();
            let (new, end) = run.since(told.events);
            let mut text = told.tell(&new);
            let has_ended = end.is_some();
            if let Some(end) = end {
                let found = found_at_the_end(end, &run, &program).await;
                text += &format!("event: end\ndata: {found}\n\n");
            }
            if text.is_empty() {
                text += ":\n\n";
            }
            // Fails if the browser has gone.
            if sender.send_data(text.into()).await.is_err() || has_ended {
                return;
            }
            let _ = timeout(SIGN_OF_LIFE, changes.changed()).await;
        }
    });
    Ok(Answer::Events(body.boxed_unsync()))
}

/// What a browser has been told.
struct Told {
    /// How many events.
    events: usize,
    progress: Progress,
}

impl Told {
    /// A browser that knows this many events of a run.
    fn until(known: usize, run: &Run) -> Self {
        let mut progress = Progress::default();
        let (lines, _) = run.since(0);
        for line in lines.iter().take(known) {
            progress.enter(line);
        }
        Self { events: known.min(lines.len()), progress }
    }

    /// These events, and what they change of the progress, which is made here alone.
    fn tell(&mut self, new: &[String]) -> String {
        let mut text = String::new();
        let mut has_changed = false;
        for line in new {
            self.events += 1;
            has_changed |= self.progress.enter(line);
            text += &format!("id: {}\ndata: {line}\n\n", self.events);
        }
        if has_changed {
            let shown = json!(self.progress.markup().into_string());
            text += &format!("event: progress\ndata: {shown}\n\n");
        }
        text
    }
}

/// How a run ended, from the history: in a thread that may wait for the disk.
async fn found_at_the_end(end: End, run: &Arc<Run>, program: &Arc<dyn Program>) -> Value {
    let (run, program) = (Arc::clone(run), Arc::clone(program));
    let find = move || ended(&end, &run.target, program.history().ok().as_ref());
    // A panic is a bug; the page still hears of the end.
    tokio::task::spawn_blocking(find).await.unwrap_or_else(|why| json!({ "said": why.to_string() }))
}
