//! Work that blocks, beside the control connections.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use goodput_mover::no_thread;

use crate::error::EngineError;

/// Fails if the system refuses a thread; tokio would panic then.
pub fn can_start_thread() -> std::io::Result<()> {
    let tried = std::thread::Builder::new().spawn(|| ()).map_err(|cause| no_thread(&cause))?;
    // The thread does nothing, and its place is free again.
    tried.join().map_err(|_| std::io::Error::other("a thread that does nothing panicked"))
}

/// Threads that [`side_by_side`] uses at most.
const MOST_SIDE_BY_SIDE: usize = 64;

/// Does blocking work for each of `items`, many at the same time. Returns the results in the order of the items, or the
/// error of the first item that failed; after a failure nothing more begins.
///
/// # Errors
/// If the work fails for an item.
pub fn side_by_side<T: Send, R: Send, E: Send>(
    items: Vec<T>,
    work: impl Fn(T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let helpers = items.len().min(MOST_SIDE_BY_SIDE).saturating_sub(1);
    let (queue, done) = (Mutex::new(items.into_iter().enumerate()), Mutex::new(Vec::new()));
    let take_turns = || {
        // The queue must not stay locked during the work.
        while let Some((number, item)) = { lock(&queue).next() } {
            let outcome = work(item);
            if outcome.is_err() {
                lock(&queue).by_ref().for_each(drop);
            }
            lock(&done).push((number, outcome));
        }
    };
    thread::scope(|scope| {
        // This thread works too: if the system has no more threads, the work only takes longer.
        let starts = |_: &usize| thread::Builder::new().spawn_scoped(scope, take_turns).is_ok();
        (0..helpers).take_while(starts).for_each(drop);
        take_turns();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs blocking work beside the control connections.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, EngineError> {
    can_start_thread().map_err(EngineError::io("work beside the conversation"))?;
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|cause| EngineError::Flow(format!("an internal task failed: {cause}")))
}

/// Does work that only waits for others, and leaves nothing to tidy up: names are looked up, a connection is made. Unlike
/// [`blocking`] work, it keeps nobody who no longer wants its result: a run that is interrupted ends without it.
pub async fn abandonable<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, EngineError> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let waits = move || drop(tell.send(work()));
    let thread = thread::Builder::new().spawn(waits).map_err(|cause| no_thread(&cause));
    thread.map_err(EngineError::io("wait beside the conversation"))?;
    told.await.map_err(|cause| EngineError::Flow(format!("an internal task failed: {cause}")))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn items_are_worked_on_at_the_same_time_and_come_back_in_their_order() {
        // No thread passes before all have come.
        let (all, count) = (Barrier::new(MOST_SIDE_BY_SIDE), MOST_SIDE_BY_SIDE);
        let doubled = side_by_side((0..count).collect(), |number| {
            all.wait();
            Ok::<_, ()>(2 * number)
        });
        assert_eq!(doubled, Ok((0..count).map(|number| 2 * number).collect()));
        let many = side_by_side((0..1000).collect(), Ok::<_, ()>);
        assert_eq!(many, Ok((0..1000).collect()));
        assert_eq!(side_by_side(Vec::new(), Ok::<u8, ()>), Ok(Vec::new()));
    }

    #[test]
    fn a_runtime_ends_without_what_only_waits() {
        let (done, waits) = std::sync::mpsc::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (begun, begins) = tokio::sync::oneshot::channel();
        let endless = abandonable(move || {
            let _ = begun.send(());
            let _ = waits.recv();
        });
        let runs = runtime.block_on(async {
            tokio::select! {
                biased;
                ended = endless => panic!("{ended:?}"),
                begun = begins => begun,
            }
        });
        assert_eq!(runs, Ok(()));
        // It would wait for ever.
        drop(runtime);
        drop(done);
    }

    #[test]
    fn the_first_item_that_fails_is_reported_and_nothing_more_begins() {
        let both = Barrier::new(2);
        let failed = side_by_side(vec![0, 1], |number| {
            both.wait();
            Err::<(), _>(number)
        });
        assert_eq!(failed, Err(0));
        let begun = Mutex::new(0);
        let failed = side_by_side((0..10_000).collect(), |number| {
            *lock(&begun) += 1;
            Err::<(), u32>(number)
        });
        assert!(failed.is_err());
        assert!(*lock(&begun) <= MOST_SIDE_BY_SIDE, "each thread met a failure at most once");
    }
}
