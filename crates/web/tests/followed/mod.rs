//! Runs of other programs on this host, which pages follow.

use goodput_model::{BitRate, Event, Known, Trial};
use goodput_web::Running;
use hyper::StatusCode;

use super::{Fixture, HOSTILE};

/// The first interval of a run.
pub const INTERVAL: &str = r#"{"event":"interval","sender":"near","from_s":0,"to_s":2,"received_bytes":250000000,"goodput_bits_per_s":1e9}"#;

/// A test and a comparison go on for as long as the program runs, a test has ended in the meantime.
pub fn running() -> Vec<Running> {
    let first = std::iter::once(INTERVAL.to_owned());
    let endless = || {
        std::iter::from_fn(|| {
            loop {
                std::thread::park();
            }
        })
    };
    let trial = Box::new(Trial::new(1, 0, Known::Value(BitRate(1e9))));
    let values = || vec![HOSTILE.into()];
    let runs =
        [Event::TrialEnded { values: values(), trial }, Event::TrialBegan { values: values() }];
    let runs = runs.map(|event| serde_json::to_string(&event).expect("it is JSON"));
    let running = |id: &str, events| {
        let [command, target] = [HOSTILE; 2].map(String::from);
        let started = "2026-01-01T00:00:00Z".into();
        Running { id: id.into(), command, target, started, events }
    };
    vec![
        running("endless", Box::new(first.clone().chain(endless()))),
        running("ended", Box::new(first)),
        running("comparison", Box::new(runs.into_iter().chain(endless()))),
    ]
}

#[tokio::test]
async fn a_test_of_another_program_is_listed_while_it_runs_and_followed() {
    let site = Fixture::new(false);
    site.page("/tests").await;
    // The one that has ended is in the list until its end is known.
    let ended = site.page("/tests/2/events").await;
    assert!(ended.contains("event: end"), "{ended}");
    let list = site.page("/tests").await;
    assert!(list.contains("Running on this host") && list.contains("/tests/1"), "{list}");
    assert!(list.contains("/tests/3") && !list.contains("/tests/2"), "{list}");
    let page = site.page("/tests/1").await;
    assert!(page.contains("Running.") && page.contains("/live.js"), "{page}");
    assert!(!page.contains(HOSTILE) && !page.contains("/tests/1/stop"), "{page}");
    assert_eq!(site.post("/tests/1/stop", "").await.0, StatusCode::SEE_OTHER);
    assert!(site.page("/tests/1").await.contains("Running."), "it is not ours to stop");
}

#[tokio::test]
async fn a_followed_comparison_shows_its_runs_and_no_empty_graph() {
    let site = Fixture::new(false);
    site.page("/tests").await;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let page = loop {
        let page = site.page("/tests/3").await;
        if page.contains("Now: ") || std::time::Instant::now() > deadline {
            break page;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    for part in ["Now: &lt;script&gt;", "The runs so far", "1 Gbit/s", "id=\"over-time\" hidden"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains(HOSTILE), "{page}");
    assert!(!site.page("/tests/1").await.contains("id=\"over-time\" hidden"), "a test has one");
}
