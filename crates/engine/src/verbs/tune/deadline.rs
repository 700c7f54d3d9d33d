//! The end of the available time, for work that may hang: a dead path never answers.

use std::pin::pin;
use std::time::{Duration, Instant};

use crate::interrupt::{Interrupt, interrupt};

/// How long work may take to end once it is asked to, for example after an interrupt.
const MAX_ENDING_TIME: Duration = Duration::from_secs(2);

/// Interrupts `work` if `outer` is raised, or at `until`. If it has not ended soon after `until`, gives up: `None`.
pub async fn within<T>(
    until: Instant,
    outer: &Interrupt,
    work: impl AsyncFnOnce(&Interrupt) -> T,
) -> Option<T> {
    let (raise, inner) = interrupt();
    let mut work = pin!(work(&inner));
    let mut until = pin!(tokio::time::sleep_until(until.into()));
    tokio::select! {
        done = &mut work => return Some(done),
        () = outer.raised() => raise.raise(),
        () = &mut until => raise.raise_at_time_limit(),
    }
    tokio::select! {
        done = &mut work => Some(done),
        () = async { until.await; tokio::time::sleep(MAX_ENDING_TIME).await } => None,
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

    #[tokio::test(start_paused = true)]
    async fn work_ends_at_the_end_of_the_time_or_is_given_up() {
        let (_raise, outer) = interrupt();
        let began = tokio::time::Instant::now();
        let until = (began + Duration::from_secs(9)).into_std();
        assert_eq!(within(until, &outer, obedient).await, Some("ended by the time limit"));
        assert_eq!(began.elapsed().as_secs(), 9);
        let hangs = within(until, &outer, async |_| std::future::pending::<()>().await);
        assert_eq!(hangs.await, None);
        assert_eq!(began.elapsed().as_secs(), 11);
        assert_eq!(within(until, &outer, async |_| 7).await, Some(7), "what is done counts");
    }

    #[tokio::test(start_paused = true)]
    async fn an_interrupt_from_outside_is_passed_on_at_once() {
        let (raise, outer) = interrupt();
        raise.raise();
        let began = tokio::time::Instant::now();
        let until = (began + Duration::from_secs(9)).into_std();
        assert_eq!(within(until, &outer, obedient).await, Some("interrupted"));
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
