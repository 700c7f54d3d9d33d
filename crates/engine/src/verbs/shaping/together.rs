//! Several conversations at the same time.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// The outcomes of all futures, in their order.
pub(super) async fn all<T, F: Future<Output = T>>(futures: impl IntoIterator<Item = F>) -> Vec<T> {
    let mut running: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut outcomes: Vec<Option<T>> = running.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, outcome) in running.iter_mut().zip(&mut outcomes) {
            if outcome.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *outcome = Some(value);
            }
        }
        if outcomes.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outcomes.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn outcomes_are_in_order_and_none_waits_for_another() {
        let (later, now) = tokio::sync::oneshot::channel();
        let first: Pin<Box<dyn Future<Output = u32>>> = Box::pin(async { now.await.unwrap() });
        let second = Box::pin(async {
            later.send(1).unwrap();
            2
        });
        assert_eq!(all([first, second]).await, [1, 2]);
        assert!(all(Vec::<Pin<Box<dyn Future<Output = u32>>>>::new()).await.is_empty());
    }
}
