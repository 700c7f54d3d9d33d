//! Which tests a path's tests are compared with.

use anyhow::Result;
use goodput_model::Plan;
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
    let own = serde_json::to_string(&Series::of(plan, on_mount))?;
    let (text, plan) = (text.to_owned(), plan.clone());
    let find = move |store: &Store| {
        let mut newest = Vec::new();
        if !store.tests_of(&text, &own, 1)?.is_empty() {
            return Ok((own, newest));
        }
        let all = store.series()?;
        let others = all.into_iter().rev();
        for other in others.filter(|other| other.target == text && other.plan != own) {
            let test = store.tests_of(&text, &other.plan, 1)?.pop();
            // It may have been deleted, or be of a newer goodput.
            let Some(test) = test.and_then(|test| store.get(test.record).ok()) else { continue };
            match made_in_another_way((&plan, on_mount), &other.plan, &test.plan) {
                Some(same) if same.is_empty() => return Ok((other.plan, same)),
                Some(differs) if newest.is_empty() => newest = differs,
                _ => {}
            }
        }
        Ok((own, newest))
    };
    history.ask(find).await
}
