//! A thread with its own event loop: its work takes that thread's time, not that of the control connections. One such
//! thread handles datagrams of addresses without a flow, because anyone may send as many of them as the network
//! carries. Another one answers echoes.

use std::sync::mpsc;
use std::{io, thread};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

/// The thread, with its event loop.
pub struct EventThread {
    handle: Handle,
    stop: oneshot::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl EventThread {
    /// Starts the thread. The kernel shows the first 15 bytes of its name.
    pub fn start(name: &str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (handle, (stop, stopped)) = (runtime.handle().clone(), oneshot::channel::<()>());
        let (give, given) = mpsc::channel::<Runtime>();
        let run = move || {
            if let Ok(runtime) = given.recv() {
                // A dropped sender stops it as well.
                let _ = runtime.block_on(stopped);
            }
        };
        match thread::Builder::new().name(name.into()).spawn(run) {
            Ok(thread) => {
                // The thread waits for this.
                let _ = give.send(runtime);
                Ok(Self { handle, stop, thread })
            }
            Err(cause) => {
                // Dropping it in an event loop would wait, which panics.
                runtime.shutdown_background();
                Err(cause)
            }
        }
    }

    /// The handle to spawn tasks on.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Ends the thread, with whatever still runs there.
    pub fn close(self) {
        let Self { stop, thread, .. } = self;
        drop(stop);
        // A panic there was reported where it happened.
        let _ = thread.join();
    }
}
