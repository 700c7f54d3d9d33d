//! A thread with an event loop of its own: what happens there takes the time of that thread, not that of the
//! control connections. Datagrams of addresses without a flow are looked at on one, as anyone may send them, as
//! many as the network carries. Echoes are answered on another.

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
    /// Starts it. The kernel shows the first 15 bytes of its name.
    pub fn start(name: &str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (handle, (stop, stopped)) = (runtime.handle().clone(), oneshot::channel::<()>());
        let (give, given) = mpsc::channel::<Runtime>();
        let run = move || {
            if let Ok(runtime) = given.recv() {
                // Dropped without a word it stops as well.
                let _ = runtime.block_on(stopped);
            }
        };
        match thread::Builder::new().name(name.into()).spawn(run) {
            Ok(thread) => {
                // The thread waits for it.
                let _ = give.send(runtime);
                Ok(Self { handle, stop, thread })
            }
            Err(cause) => {
                // Dropped in an event loop it would wait, which panics.
                runtime.shutdown_background();
                Err(cause)
            }
        }
    }

    /// What tasks are spawned on.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Ends it, with whatever still runs there.
    pub fn close(self) {
        let Self { stop, thread, .. } = self;
        drop(stop);
        // A panic there was reported where it happened.
        let _ = thread.join();
    }
}
