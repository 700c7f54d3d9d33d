//! What it means if the kernel refuses a ring: permanent, or only for now.

use std::io;
use std::sync::OnceLock;

use rustix::process::{Resource, getrlimit};

use super::{QUEUE_DEPTH, Ring};
use crate::error::{MoveError, Unsupported};
use crate::flow::Flow;
use crate::movers::Mover;

/// Why a kernel did not do what it was asked to try.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It does not support it, in words.
    Lacks(String),
    /// It may do it at another time: something is short, or forbidden at the moment.
    Now(io::Error),
}

/// The kernel's answer to a trial, once and for all.
pub(crate) struct Answer(OnceLock<Result<(), String>>);

impl Answer {
    pub(crate) const fn unknown() -> Self {
        Self(OnceLock::new())
    }

    /// The answer, by a trial unless it is known. Only a permanent answer is kept.
    pub(crate) fn get(&self, trial: impl FnOnce() -> io::Result<()>) -> Result<(), Refusal> {
        if let Some(known) = self.0.get() {
            return known.clone().map_err(Refusal::Lacks);
        }
        let said = match trial() {
            Ok(()) => Ok(()),
            Err(cause) if lasts(&cause) => Err(cause.to_string()),
            Err(cause) => return Err(Refusal::Now(cause)),
        };
        self.0.get_or_init(|| said).clone().map_err(Refusal::Lacks)
    }
}

/// Whether the error means that the kernel does not know the call (io_uring_register(2), io_uring_enter(2)), not that
/// something is short or forbidden.
fn lasts(cause: &io::Error) -> bool {
    matches!(cause.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP | libc::ENOSYS))
}

/// Whether a mover that needs a ring gets one here.
pub(crate) fn ring_can_be_had(mover: &dyn Mover) -> Result<(), Unsupported> {
    Ring::<Vec<u8>>::new(QUEUE_DEPTH).map(drop).map_err(|cause| Unsupported {
        mover: mover.id().into(),
        why: format!("no io_uring available: {cause}"),
        needs: needs(&cause),
    })
}

pub(crate) fn no_ring(flow: &Flow, cause: &io::Error) -> MoveError {
    let cause = io::Error::new(cause.kind(), format!("{cause}; {}", needs(cause)));
    MoveError::from_system(flow.config.id, "make an io_uring", cause)
}

/// What io_uring needs, by the cause of its refusal (io_uring_setup(2)).
fn needs(cause: &io::Error) -> String {
    let words = match cause.raw_os_error() {
        Some(libc::ENOSYS) => "io_uring needs Linux 5.6 or later, built with it",
        Some(libc::EPERM | libc::EACCES) => {
            "allow it: sysctl kernel.io_uring_disabled, or the system call filter of the container"
        }
        // Pages of its queues and of its ring of buffers (io_uring/memmap.c of Linux 6.18, `io_create_region`).
        Some(libc::ENOMEM) => {
            let has = getrlimit(Resource::Memlock).current.map_or(0, |bytes| bytes / 1024);
            return format!(
                "raise the limit on locked memory, now {has} KiB (ulimit -l): each flow needs at least 8 KiB to send and 12 KiB to receive"
            );
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            "use fewer flows or raise ulimit -n: this needs one more descriptor"
        }
        _ => "choose another mover",
    };
    words.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_short_by_now_is_asked_again_and_what_lacks_is_not() {
        let answer = Answer::unknown();
        for short in [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EAGAIN, libc::EINTR] {
            let said = answer.get(|| Err(io::Error::from_raw_os_error(short)));
            assert!(matches!(said, Err(Refusal::Now(_))), "{short}: {said:?}");
        }
        assert!(answer.get(|| Ok(())).is_ok());
        assert!(answer.get(|| unreachable!("it is known")).is_ok());

        let answer = Answer::unknown();
        let lacks = |said| matches!(said, Err(Refusal::Lacks(_)));
        assert!(lacks(answer.get(|| Err(io::Error::from_raw_os_error(libc::EINVAL)))));
        assert!(lacks(answer.get(|| unreachable!("it is known"))));
    }
}
