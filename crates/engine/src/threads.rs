//! Work that blocks, beside the control connections.

use goodput_mover::no_thread;

use crate::error::EngineError;

/// Fails if the system refuses a thread; tokio would panic then.
pub fn can_start_thread() -> std::io::Result<()> {
    let tried = std::thread::Builder::new().spawn(|| ()).map_err(|cause| no_thread(&cause))?;
    // The thread does nothing, and its place is free again.
    tried.join().map_err(|_| std::io::Error::other("a thread that does nothing panicked"))
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
