//! The conversation of one flow, as its mover sees it.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use goodput_files::{Conversation, Extent, FileError, Ready, Wait};
use goodput_mover::{self as mover, Bodies, Body, BodyError, Pause};

use super::log::FetchLog;

/// How long payload may stay away before the server is given up.
const PATIENCE: Duration = Duration::from_secs(15);

/// Bodies that a conversation gives.
pub struct FileBodies {
    flow: u16,
    conversation: Box<dyn Conversation>,
    log: Arc<FetchLog>,
}

impl FileBodies {
    pub fn new(flow: u16, conversation: Box<dyn Conversation>, log: Arc<FetchLog>) -> Self {
        Self { flow, conversation, log }
    }
}

/// Waits as the mover's flow does.
struct Paused<'a>(&'a Pause<'a>);

impl Wait for Paused<'_> {
    fn wait(&self, socket: BorrowedFd<'_>, ready: Ready, until: Instant) -> Result<(), FileError> {
        self.0.on(socket, ready == Ready::Write, until).map_err(|why| match why {
            BodyError::Stopped => FileError::Stopped,
            BodyError::Peer(why) | BodyError::Own(why) => FileError::Protocol(why),
        })
    }
}

impl Bodies for FileBodies {
    fn next(&mut self, pause: &Pause<'_>) -> Result<Option<Body>, BodyError> {
        self.log.over(self.flow, Instant::now());
        let body = self.conversation.fetch(&Paused(pause)).map_err(|why| match why {
            FileError::Stopped => BodyError::Stopped,
            why => BodyError::Peer(why.to_string()),
        })?;
        if body.extent == Extent::Bytes(0) {
            return Err(BodyError::Peer("the file is empty by now".into()));
        }
        self.log.answered(self.flow, &body, self.conversation.about());
        let socket = if body.anew { Some(self.socket()?) } else { None };
        let extent = match body.extent {
            Extent::Bytes(bytes) => mover::Extent::Bytes(bytes),
            Extent::ToClose => mover::Extent::ToClose,
            Extent::Decoded => mover::Extent::Decoded,
        };
        Ok(Some(Body { extent, socket }))
    }

    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.conversation.read(room)
    }

    fn is_asked_as_read(&self) -> bool {
        self.conversation.rpcs().is_some()
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }
}

impl FileBodies {
    fn socket(&self) -> Result<OwnedFd, BodyError> {
        let socket = self.conversation.socket().map(OwnedFd::try_clone);
        let socket = socket.ok_or_else(|| BodyError::Own("there is no connection".into()))?;
        socket.map_err(|cause| BodyError::Own(format!("cannot hand on a connection: {cause}")))
    }
}
