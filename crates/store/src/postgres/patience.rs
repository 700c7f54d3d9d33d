//! How long the database may take.

use std::time::Duration;

use tokio::time::timeout;

use super::error::{Failure, Why};

/// How long the server may take to let goodput in, and to do something short: a person waits for most of it.
pub(super) const PATIENCE: Duration = Duration::from_secs(6);

/// How long it may take to do something with many records.
pub(super) const LONG_PATIENCE: Duration = Duration::from_secs(120);

/// Waits for at most `patience`.
pub(super) async fn within<T>(
    patience: Duration,
    action: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    timeout(patience, action).await.map_err(|_| Why::Late(patience.as_secs()))?
}
