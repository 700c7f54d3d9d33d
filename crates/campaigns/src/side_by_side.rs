//! Runs cases, several at a time if they leave the CPUs mostly idle.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::Result;

/// Does the work for each item and hands over what came of it. Items that are `light` go first, up to `jobs` at a time and
/// in no fixed order; each of the others runs alone. With one job, all run alone and in their order. Ends at the first
/// error.
pub fn each<I: Send, R: Send>(
    items: impl IntoIterator<Item = I>,
    jobs: usize,
    is_light: impl Fn(&I) -> bool,
    work: impl Fn(I) -> Result<R> + Sync,
    mut done: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let (light, heavy): (Vec<I>, Vec<I>) =
        items.into_iter().partition(|item| jobs > 1 && is_light(item));
    let queue = Mutex::new(light.into_iter());
    thread::scope(|scope| {
        let (results, came) = channel();
        for _ in 0..jobs {
            let results = results.clone();
            scope.spawn(|| take_turns(&queue, &work, results));
        }
        drop(results);
        came.into_iter().try_for_each(|result| done(result?))
    })?;
    heavy.into_iter().try_for_each(|item| done(work(item)?))
}

/// Works until the queue is empty, or nobody wants the results any more.
fn take_turns<I, R>(
    queue: &Mutex<impl Iterator<Item = I>>,
    work: &impl Fn(I) -> Result<R>,
    results: Sender<Result<R>>,
) {
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    while let Some(item) = next() {
        if results.send(work(item)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use anyhow::bail;

    use super::*;

    fn collected(jobs: usize, work: impl Fn(u32) -> Result<u32> + Sync) -> (Vec<u32>, bool) {
        let mut came = Vec::new();
        let is_even = |item: &u32| item.is_multiple_of(2);
        let failed = each(0..6, jobs, is_even, work, |item| {
            came.push(item);
            Ok(())
        });
        (came, failed.is_err())
    }

    #[test]
    fn one_job_keeps_the_order() {
        assert_eq!(collected(1, Ok), (vec![0, 1, 2, 3, 4, 5], false));
    }

    #[test]
    fn light_items_run_beside_each_other_and_the_others_after_them() {
        let three = Barrier::new(3);
        let (came, failed) = collected(3, |item| {
            if item.is_multiple_of(2) {
                three.wait();
            }
            Ok(item)
        });
        let mut light = came[..3].to_vec();
        light.sort_unstable();
        assert_eq!((light, &came[3..], failed), (vec![0, 2, 4], &[1, 3, 5][..], false));
    }

    #[test]
    fn the_first_error_ends_it() {
        let fails = |item| if item == 3 { bail!("no") } else { Ok(item) };
        assert_eq!(collected(1, fails), (vec![0, 1, 2], true));
        assert_eq!(collected(2, |_| bail!("no")), (vec![], true));
    }
}
