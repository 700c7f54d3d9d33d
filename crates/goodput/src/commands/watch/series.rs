//! Which tests a path's tests are compared with.

use anyhow::Result;
use goodput_model::{Plan, Record};
use goodput_store::Store;
use goodput_watch::{Difference, Series, made_in_another_way};

use crate::history_thread::HistoryThread;

/// The series of tests with this plan, as JSON: one that an older goodput began, if its newest test is made in the same way.
/// If there is no test of this way yet, also how the newest ones are made that ask the same in another way.
///
/// # Errors
/// The history can't be read.
pub async fn of(
    text: &str,
    plan: &Plan,
    on_mount: bool,
    history: &HistoryThread,
) -> Result<(String, Vec<Difference>)> {
    let (text, plan) = (text.to_owned(), plan.clone());
    history.ask(move |store: &Store| find(store, &text, (&plan, on_mount))).await
}

fn find(
    store: &Store,
    text: &str,
    (plan, on_mount): (&Plan, bool),
) -> Result<(String, Vec<Difference>)> {
    let own = serde_json::to_string(&Series::of(plan, on_mount))?;
    let mut newest = Vec::new();
    if !store.tests_of(text, &own, 1)?.is_empty() {
        return Ok((own, newest));
    }
    for (other, test) in others(store, text, &own)? {
        match made_in_another_way((plan, on_mount), &other, &test.plan) {
            Some(same) if same.is_empty() => return Ok((other, same)),
            Some(differs) if newest.is_empty() => newest = differs,
            _ => {}
        }
    }
    Ok((own, newest))
}

/// The other series of a target, each with its newest test, the one that was tested last first. A series without a test that can be
/// read is left out: its tests may have been deleted, or be of a newer goodput.
fn others(store: &Store, text: &str, own: &str) -> Result<Vec<(String, Record)>> {
    let mut others = Vec::new();
    let all = store.series()?;
    for other in all.into_iter().filter(|other| other.target == text && other.plan != own) {
        let Some(test) = store.tests_of(text, &other.plan, 1)?.pop() else { continue };
        others.push((test.record, other.plan));
    }
    // Records have numbers in the order in which they were stored, whatever the clock said.
    others.sort_unstable();
    let read = |(record, plan): (i64, String)| Some((plan, store.get(record).ok()?));
    Ok(others.into_iter().rev().filter_map(read).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::BitRate;
    use goodput_store::Watched;

    fn plan(flows: u16) -> Plan {
        Plan { flows, ..Plan::standard() }
    }

    /// Stores a test of `nas` with this number of flows.
    fn test(store: &Store, flows: u16) {
        let json = include_str!("../../report/example/record.json");
        let record = Record { plan: plan(flows), ..Record::from_json(json).unwrap() };
        let record = Record { target: "nas".into(), ..record };
        let series = serde_json::to_string(&Series::of(&record.plan, false)).unwrap();
        let watched = Watched { plan: series, goodput: Some(BitRate(1e9)) };
        store.add_watched(&record, &watched).unwrap();
    }

    /// What the tests of `nas` with two flows had before, if something else.
    fn before(store: &Store) -> Vec<String> {
        let (_, differs) = find(store, "nas", (&plan(2), false)).unwrap();
        differs.into_iter().map(|one| format!("{}: {}", one.what, one.before)).collect()
    }

    #[test]
    fn tests_are_compared_with_those_that_were_made_last_and_not_with_the_series_that_began_last() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("history.db")).unwrap();
        assert_eq!(before(&store), [""; 0]);
        for (flows, newest) in [(4, "4"), (8, "8"), (4, "4")] {
            test(&store, flows);
            assert_eq!(before(&store), [format!("option flows: {newest}")]);
        }
        test(&store, 2);
        test(&store, 8);
        assert_eq!(before(&store), [""; 0], "they go on with the old tests");
    }
}
