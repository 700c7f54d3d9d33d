//! What the user can end.

use goodput_engine::Interrupt;

/// Does this unless the user ends it first, as while NATS or a database can't be reached. None: it is ended.
pub(super) async fn unless<T>(interrupt: &Interrupt, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        done = work => Some(done),
        () = interrupt.raised() => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    #[test]
    fn what_never_ends_is_ended_by_the_user() {
        let (raise, interrupt) = goodput_engine::interrupt();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            assert_eq!(unless(&interrupt, async { 7 }).await, Some(7));
            raise.raise();
            assert_eq!(unless(&interrupt, pending::<()>()).await, None);
        });
    }
}
