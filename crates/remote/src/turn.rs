//! The right to change a host reached by SSH, for a run that changes and puts back several times.

use std::path::Path;

use crate::address::Address;
use crate::changes::RemoteChanges;
use crate::error::RemoteError;
use crate::host::Identity;
use crate::ssh::Access;

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
        address: &Address,
        access: &Access,
        others: &[Identity],
    ) -> Result<Self, RemoteError> {
        RemoteChanges::begin_held(state_dir, address, access, None, others).map(Self)
    }

    /// Which running host it is.
    pub(crate) fn identity(&self) -> Identity {
        self.0.identity()
    }

    /// The process there.
    pub(crate) fn process(&self) -> Option<u32> {
        self.0.dead_man()
    }
}
