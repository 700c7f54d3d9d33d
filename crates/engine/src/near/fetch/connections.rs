//! What the kernel counted on the connections of one flow, one after the other.

use std::os::fd::BorrowedFd;
use std::sync::{Mutex, PoisonError};

use goodput_kernel::tcp_info;
use goodput_model::{Known, TcpInfo};
use goodput_mover::Connections;

/// Sums over the connections that are gone.
#[derive(Default)]
pub struct PastConnections(Mutex<TcpInfo>);

impl Connections for PastConnections {
    fn leaves(&self, socket: BorrowedFd<'_>) {
        if let Known::Value(info) = tcp_info(socket) {
            let mut past = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *past = info.after(&past);
        }
    }

    fn tcp_info(&self, socket: BorrowedFd<'_>) -> Known<TcpInfo> {
        let past = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tcp_info(socket).map(|info| info.after(&past))
    }
}
