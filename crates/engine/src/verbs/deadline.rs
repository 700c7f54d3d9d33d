//! The end of the available time, or of the user's patience, for work that may hang: a dead path never answers.

use std::pin::pin;
use std::time::{Duration, Instant};

use crate::interrupt::{Interrupt, interrupt};

/// How long work may take to end once the time is over.
const MAX_ENDING_TIME: Duration = Duration::from_secs(2);

/// The same after an interrupt from outside. Nobody counts on an end at that moment, and a far end that answers slowly
/// may still deliver what was measured.
const MAX_INTERRUPTED_TIME: Duration = Duration::from_secs(10);

/// Interrupts `work` if `outer` is raised, or at `until`, if there is such a time. If it has not ended soon after that,
/// gives up: `None`. What `work` has borrowed must bear that: it is dropped wherever it waits.
pub async fn within<T>(
    until: Option<Instant>,
    outer: &Interrupt,
    work: impl AsyncFnOnce(&Interrupt) -> T,
) -> Option<T> {
    let (raise, inner) = interrupt();
    let mut work = pin!(work(&inner));
    let over = async || match until {
        Some(until) => tokio::time::sleep_until(until.into()).await,
        None => std::future::pending().await,
    };
    let interrupted = tokio::select! {
        done = &mut work => return Some(done),
        () = outer.raised() => true,
        () = over() => false,
    };
    let time = match interrupted {
        true => {
            raise.raise();
            // Without a limit of time, only what was measured counts: whoever can't wait for that interrupts again.
            if until.is_none() {
                return Some(work.await);
            }
            MAX_INTERRUPTED_TIME
        }
        false => {
            raise.raise_at_time_limit();
            MAX_ENDING_TIME
        }
    };
    let over = async || {
        over().await;
        tokio::time::sleep(MAX_ENDING_TIME).await;
    };
    tokio::select! {
        done = &mut work => Some(done),
        () = tokio::time::sleep(time) => None,
        // An interrupt shortly before the end does not move the end.
        () = over() => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends when it is interrupted, and says how.
    async fn obedient(interrupt: &Interrupt) -> &'static str {
        interrupt.raised().await;
        interrupt.in_words()
    }

    async fn hangs(_: &Interrupt) {
        std::future::pending().await
    }

    fn from_now(began: tokio::time::Instant, seconds: u64) -> Option<Instant> {
        Some((began + Duration::from_secs(seconds)).into_std())
    }

    #[tokio::test(start_paused = true)]
    async fn work_ends_at_the_end_of_the_time_or_is_given_up() {
        let (_raise, outer) = interrupt();
        let began = tokio::time::Instant::now();
        let until = from_now(began, 9);
        assert_eq!(within(until, &outer, obedient).await, Some("ended by the time limit"));
        assert_eq!(began.elapsed().as_secs(), 9);
        assert_eq!(within(until, &outer, hangs).await, None);
        assert_eq!(began.elapsed().as_secs(), 11);
        assert_eq!(within(until, &outer, async |_| 7).await, Some(7), "what is done counts");
    }

    #[tokio::test(start_paused = true)]
    async fn an_interrupt_from_outside_is_passed_on_at_once() {
        let (raise, outer) = interrupt();
        raise.raise();
        let began = tokio::time::Instant::now();
        assert_eq!(within(from_now(began, 9), &outer, obedient).await, Some("interrupted"));
        assert_eq!(within(None, &outer, obedient).await, Some("interrupted"));
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_ignores_an_interrupt_is_given_up_long_before_the_end_of_the_time() {
        let (raise, outer) = interrupt();
        raise.raise();
        for (until_s, given_up_s) in [(600, 10), (5, 7)] {
            let began = tokio::time::Instant::now();
            let until = from_now(began, until_s);
            assert_eq!(within(until, &outer, hangs).await, None);
            assert_eq!(began.elapsed().as_secs(), given_up_s, "{until_s:?}");
        }
    }
}
