//! The tests that someone asks for in between, as they come.

use anyhow::Result;
use goodput_bus::Queue;
use goodput_fleet::places::COORDINATOR;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Mutex, oneshot};
use tokio::time::{Duration, sleep};

use crate::commands::fleet::places::BEAT;
use crate::commands::fleet::trouble::Trouble;

/// When a wish that this process no longer keeps is delivered again, to its successor.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is asked for, and not done yet.
pub(in crate::commands::fleet) struct Demand {
    tell: UnboundedSender<Asked>,
    told: Mutex<UnboundedReceiver<Asked>>,
}

/// A wish.
pub(in crate::commands::fleet) struct Asked {
    /// The wish as it came.
    pub body: Vec<u8>,
    done: oneshot::Sender<()>,
    acknowledged: oneshot::Receiver<()>,
}

impl Demand {
    /// None yet.
    pub fn new() -> Self {
        let (tell, told) = unbounded_channel();
        Self { tell, told: Mutex::new(told) }
    }

    /// Takes one wish after the other from the bus, and keeps each until it is done. Never ends by itself.
    ///
    /// # Errors
    /// This user has no right to the wishes.
    pub async fn collect<T>(&self, wanted: &Queue) -> Result<T> {
        let mut trouble = Trouble::default();
        loop {
            if let Err(why) = self.take(wanted).await {
                trouble.pass(why)?;
            }
            sleep(BEAT).await;
        }
    }

    async fn take(&self, wanted: &Queue) -> Result<()> {
        let mut inbox = wanted.inbox(COORDINATOR, PATIENCE).await?;
        loop {
            let delivery = inbox.next().await?;
            let ((done, mut is_done), (acknowledge, acknowledged)) =
                (oneshot::channel(), oneshot::channel());
            let _ = self.tell.send(Asked { body: delivery.body().to_vec(), done, acknowledged });
            loop {
                tokio::select! {
                    is_done = &mut is_done => match is_done {
                        Ok(()) => break,
                        // It was left: another coordinator gets it.
                        Err(_) => std::future::pending().await,
                    },
                    () = sleep(BEAT) => delivery.working().await?,
                }
            }
            delivery.done().await?;
            let _ = acknowledge.send(());
        }
    }

    /// Waits for the next wish. May be dropped while it waits.
    pub async fn next(&self) -> Asked {
        match self.told.lock().await.recv().await {
            Some(asked) => asked,
            // This holds the other end.
            None => std::future::pending().await,
        }
    }

    /// The next wish, if there is one.
    pub fn now(&self) -> Option<Asked> {
        self.told.try_lock().ok()?.try_recv().ok()
    }
}

impl Asked {
    /// Says that it is done, and waits until the bus knows, or does not answer.
    pub async fn done(self) {
        if self.done.send(()).is_ok() {
            let _ = self.acknowledged.await;
        }
    }
}
