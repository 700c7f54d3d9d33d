//! The tests that someone asks for in between, as they come.

use anyhow::Result;
use goodput_bus::Queue;
use goodput_fleet::places::COORDINATOR;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Mutex, oneshot};
use tokio::time::{Duration, sleep, timeout};

use crate::commands::fleet::places::{BEAT, DELIVERED_AGAIN};
use crate::commands::fleet::trouble::Trouble;

/// How long it may take until a wish is here that the bus has: it may be out to a coordinator that was killed.
const COMES: Duration = DELIVERED_AGAIN.saturating_add(BEAT);

/// What is asked for, and not done yet.
pub(in crate::commands::fleet) struct Demand {
    wanted: Queue,
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
    /// What is in this queue; none is here yet.
    pub fn new(wanted: &Queue) -> Self {
        let (tell, told) = unbounded_channel();
        Self { wanted: wanted.clone(), tell, told: Mutex::new(told) }
    }

    /// Takes one wish after the other from the bus, and keeps each until it is done. Never ends by itself.
    ///
    /// # Errors
    /// This user has no right to the wishes.
    pub async fn collect<T>(&self) -> Result<T> {
        let mut trouble = Trouble::default();
        loop {
            if let Err(why) = self.take().await {
                trouble.pass(why)?;
            }
            sleep(BEAT).await;
        }
    }

    async fn take(&self) -> Result<()> {
        let mut inbox = self.wanted.inbox(COORDINATOR, DELIVERED_AGAIN).await?;
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

    /// The next wish, if there is one by now, here or still on the bus: one is out at a time. May be dropped while it waits.
    pub async fn now(&self) -> Option<Asked> {
        let here = self.told.lock().await.try_recv().ok();
        if here.is_some() {
            return here;
        }
        match self.wanted.waiting(COORDINATOR, DELIVERED_AGAIN).await {
            Ok(0) => None,
            Ok(_) => timeout(COMES, self.next()).await.ok(),
            Err(why) => {
                tracing::debug!("{why}; the round begins");
                None
            }
        }
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
