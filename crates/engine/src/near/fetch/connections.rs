//! The kernel's counters for the successive connections of one flow.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use goodput_files::RpcLog;
use goodput_kernel::tcp_info;
use goodput_model::{Known, TcpInfo};
use goodput_mover::Connections;

/// Sums over the connections that are gone.
#[derive(Default)]
pub struct PastConnections {
    past: Mutex<TcpInfo>,
    /// The calls of a flow that stores a file by calls. Their answers say what the server stored.
    stores: Option<Arc<RpcLog>>,
}

impl PastConnections {
    /// No connections yet; with the calls of a flow that stores a file by calls.
    pub fn of(stores: Option<Arc<RpcLog>>) -> Self {
        Self { stores, ..Self::default() }
    }

    fn past(&self) -> MutexGuard<'_, TcpInfo> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connections for PastConnections {
    fn leaves(&self, socket: BorrowedFd<'_>) {
        if let Known::Value(info) = tcp_info(socket) {
            let mut past = self.past();
            *past = info.after(&past);
        }
    }

    fn tcp_info(&self, socket: BorrowedFd<'_>) -> Known<TcpInfo> {
        let past = self.past();
        tcp_info(socket).map(|info| info.after(&past))
    }

    fn confirmed_bytes(&self) -> Option<u64> {
        self.stores.as_ref().map(|calls| calls.stored_bytes())
    }
}
