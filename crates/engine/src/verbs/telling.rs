//! Work at hosts reached by SSH that may have to wait there, and says so.

use std::pin::pin;

use goodput_remote::Notify;
use tokio::sync::mpsc::unbounded_channel;

use crate::error::EngineError;
use crate::events::{Event, Listener};
use crate::threads::blocking;

/// Runs blocking work beside the control connections, and passes on what it waits for meanwhile.
pub async fn telling<T: Send + 'static>(
    listener: &mut Listener<'_>,
    work: impl FnOnce(&Notify) -> T + Send + 'static,
) -> Result<T, EngineError> {
    let (tell, mut told) = unbounded_channel();
    let notify = Notify::by(move |awaited| {
        // Nobody listens any more once the work is done.
        let _ = tell.send(awaited.to_string());
    });
    let mut work = pin!(blocking(move || work(&notify)));
    let done = loop {
        tokio::select! {
            done = &mut work => break done,
            Some(text) = told.recv() => listener(Event::Note { text }),
        }
    };
    while let Ok(text) = told.try_recv() {
        listener(Event::Note { text });
    }
    done
}
