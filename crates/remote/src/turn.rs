//! The right to change a host reached by SSH, for a run that changes and puts back several times.

use std::path::Path;

use crate::changes::RemoteChanges;
use crate::error::RemoteError;
use crate::host::Host;
use crate::ssh::DeadManId;

/// Holds a host by a process there that has nothing to put back. Dropping it, or any other end of this run, releases the
/// host.
pub struct RemoteTurn(RemoteChanges);

impl RemoteTurn {
    /// Takes the right, after putting back what dead runs left changed there. The journal in `state_dir` stays empty.
    ///
    /// # Errors
    /// As for [`RemoteChanges::begin`], and if the host is one of the `others`.
    pub(crate) fn take(
        state_dir: &Path,
        host: Host,
        others: &mut [Self],
    ) -> Result<Self, RemoteError> {
        let others = others.iter_mut().map(|turn| &mut turn.0);
        RemoteChanges::begin_beside(state_dir, host, others).map(Self)
    }

    /// The process there.
    pub(crate) fn process(&self) -> Option<DeadManId> {
        self.0.dead_man()
    }
}
