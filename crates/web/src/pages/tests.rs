//! The measurements that run here, and following one of them.

use std::sync::Arc;
use std::time::Duration;

use goodput_model::{Event, Interval, Known};
use goodput_store::{Store, Wanted};
use http_body_util::BodyExt;
use http_body_util::channel::Channel;
use hyper::body::Bytes;
use maud::{Markup, html};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::start::form;
use super::{Page, Visit};
use crate::answer::{Answer, Trouble};
use crate::graph::Lines;
use crate::layout::{plain, table};
use crate::program::Program;
use crate::runs::{End, News, Run, Told};

/// A comment is sent after this time without an event, so that a browser that went away is noticed.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// The form, and the tests so far.
pub const PAGE: Page = Page { in_navigation: Some("Tests"), ..Page::of("/tests", show) };

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
            @if visit.who.known { (form(visit)) }
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
            " (goodput " (plain(&run.command)) ")"
            @if run.end().is_none() { ", running" }
        } } }
    }
}

fn found(visit: &Visit) -> Result<Arc<Run>, Trouble> {
    let number = visit.number()?;
    let run = visit.runs.find(number);
    run.ok_or_else(|| Trouble::unknown(format!("this server knows no test {number}")))
}

fn run(visit: &Visit) -> Result<Answer, Trouble> {
    let run = found(visit)?;
    let News { events, progress, told, end } = run.since(Told::default());
    let intervals: Vec<_> = events.iter().filter_map(|line| interval(line)).collect();
    let mut graph = Lines::default();
    intervals.iter().for_each(|interval| draw(interval, &mut graph));
    let is_several = progress.is_some();
    let rows = html! { @for interval in &intervals { tr { @for cell in cells(interval) { td { (cell) } } } } };
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
            div #progress { @if let Some(progress) = &progress { (progress) } }
            div #over-time hidden[is_several && intervals.is_empty()] {
                (graph.picture())
                div #intervals { (table("Intervals", &["From", "To", "Goodput", "Direction"], &rows)) }
            }
            @if end.is_none() {
                script src="/live.js" data-events={ "/tests/" (run.number) "/events?known=" (told.events) }
                    data-points=(graph.data()) data-ends=(Lines::ends()) {}
            }
        },
    ))
}

/// What runs, and of what.
fn title(run: &Run) -> String {
    match &run.command[..] {
        "test" => format!("Test of {}", run.target),
        command => format!("goodput {command} of {}", run.target),
    }
}

fn cells(interval: &Interval) -> [String; 4] {
    let goodput = match (&interval.goodput_bits_per_s, interval.sent_bits_per_s) {
        (Known::Value(goodput), _) => goodput.to_string(),
        (Known::Missing(_), Some(sent)) => format!("{sent} sent"),
        (Known::Missing(_), None) => "unknown".into(),
    };
    let Interval { sender, from_s, to_s, .. } = interval;
    let direction = format!("{sender} → {}", sender.other());
    [format!("{from_s:.1} s"), format!("{to_s:.1} s"), goodput, direction]
}

fn draw(interval: &Interval, graph: &mut Lines) {
    if let Known::Value(goodput) = interval.goodput_bits_per_s {
        graph.push(interval.sender, interval.to_s, goodput.0);
    }
}

/// The interval in a line of JSON; `None` for another event.
fn interval(line: &str) -> Option<Interval> {
    match serde_json::from_str(line).ok()? {
        Event::Interval(interval) => Some(interval),
        _ => None,
    }
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
        let mut told = Told { events: known.unwrap_or(0), steps: 0 };
        let mut changes = run.changes();
        loop {
            changes.mark_unchanged();
            let news = run.since(told);
            let mut text = sent(&news);
            told = news.told;
            let has_ended = news.end.is_some();
            if let Some(end) = news.end {
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

/// What a browser does not know yet, in the form of server-sent events.
fn sent(News { events, progress, told, .. }: &News) -> String {
    let first = told.events - events.len() + 1;
    let mut text = String::new();
    for (number, line) in (first..).zip(events) {
        text += &format!("id: {number}\ndata: {line}\n\n");
    }
    if let Some(progress) = progress {
        let shown = json!(progress.clone().into_string());
        text += &format!("event: progress\ndata: {shown}\n\n");
    }
    text
}

/// How a run ended, from the history: in a thread that may wait for the disk.
async fn found_at_the_end(end: End, run: &Arc<Run>, program: &Arc<dyn Program>) -> Value {
    let (run, program) = (Arc::clone(run), Arc::clone(program));
    let find = move || ended(&end, &run.target, program.history().ok().as_ref());
    // A panic is a bug; the page still hears of the end.
    tokio::task::spawn_blocking(find).await.unwrap_or_else(|why| json!({ "said": why.to_string() }))
}
