//! The conversation of one flow, as its mover sees it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use goodput_files::{Conversation, Extent, FileError, Ready, Wait};
use goodput_kernel::tcp_info;
use goodput_mover::{self as mover, Bodies, Body, BodyError, Pause};
use rustix::event::PollFlags;

use super::log::FetchLog;
use super::readiness::events;

/// Length of an upload if nobody asked for one: long enough that the requests between uploads take little of the time,
/// and short enough for a small server's disk, which holds one file for each flow.
const UPLOAD_BYTES: u64 = 64 << 20;
/// How long payload may fail to come before the server is given up.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(15);

/// Bodies from a conversation.
pub struct FileBodies {
    flow: u16,
    conversation: Box<dyn Conversation>,
    log: Arc<FetchLog>,
    /// Remaining fetches, if their number is limited.
    left: Option<u32>,
    /// Length of the file of the last body, as its server announced it, bytes.
    announced: Option<u64>,
}

impl FileBodies {
    pub fn new(
        flow: u16,
        conversation: Box<dyn Conversation>,
        log: Arc<FetchLog>,
        left: Option<u32>,
    ) -> Self {
        Self { flow, conversation, log, left, announced: None }
    }
}

/// Waits as the mover's flow does.
struct Paused<'a>(&'a dyn Pause);

impl Wait for Paused<'_> {
    fn wait(&self, socket: BorrowedFd<'_>, ready: Ready, until: Instant) -> Result<(), FileError> {
        self.0.on(socket, events(ready), until).map_err(ended)
    }

    fn rest(&self, until: Instant) -> Result<(), FileError> {
        self.0.rest(until).map_err(ended)
    }
}

fn ended(why: BodyError) -> FileError {
    match why {
        BodyError::Stopped => FileError::Stopped,
        BodyError::Forbidden(why) => FileError::NotPermitted(why),
        BodyError::Peer(why) | BodyError::Own(why) => FileError::Protocol(why),
    }
}

impl Bodies for FileBodies {
    fn next(&mut self, pause: &dyn Pause) -> Result<Option<Body>, BodyError> {
        let (goes_on, over) = (self.conversation.is_cut(), Instant::now());
        if !goes_on {
            self.log.over(self.flow, over);
        }
        if let Some(left) = self.left.as_mut().filter(|_| !goes_on) {
            let Some(fewer) = left.checked_sub(1) else { return Ok(None) };
            *left = fewer;
        }
        let body = self.conversation.fetch(&Paused(pause)).map_err(body_error)?;
        if goes_on {
            self.log.went_on(self.flow, over, &body);
            return handed_on(self.conversation.as_ref(), &body).map(Some);
        }
        if body.extent == Extent::Bytes(0) {
            return Err(BodyError::Peer("the file is empty by now".into()));
        }
        self.log.answered(self.flow, &body, self.conversation.about());
        self.announced = body.announced_bytes;
        body.announced_bytes.into_iter().for_each(|bytes| self.log.announced(bytes));
        handed_on(self.conversation.as_ref(), &body).map(Some)
    }

    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.conversation.read(room)
    }

    fn read_enough(&mut self, got: u64) {
        if self.announced.is_some_and(|all| got >= all) {
            self.log.over(self.flow, Instant::now());
        }
    }

    fn store(&mut self, bytes: Option<u64>, pause: &dyn Pause) -> Result<Body, BodyError> {
        // Asking for room is part of the wait, even for the first file.
        self.log.over(self.flow, Instant::now());
        let body = self.conversation.store(bytes, &Paused(pause)).map_err(body_error)?;
        self.log.answered(self.flow, &body, self.conversation.about());
        handed_on(self.conversation.as_ref(), &body)
    }

    fn most_bytes(&self) -> u64 {
        UPLOAD_BYTES
    }

    fn write(&mut self, payload: &[u8]) -> io::Result<usize> {
        self.conversation.write(payload)
    }

    fn awaits(&self) -> PollFlags {
        events(self.conversation.awaits())
    }

    fn stored(&mut self, pause: &dyn Pause) -> Result<(), BodyError> {
        // If each file has its own connection, the answer closes it.
        let socket = self.conversation.socket().and_then(|socket| socket.try_clone().ok());
        let busy_us = || tcp_info(socket.as_ref()?.as_fd()).value()?.busy_us;
        let busy = || busy_us().map(Duration::from_micros);
        let (written, busy_before) = (Instant::now(), busy());
        self.conversation.stored(&Paused(pause)).map_err(body_error)?;
        let took = written.elapsed();
        // The time for what the kernel still had to send was not a wait for the server.
        let sending = busy().zip(busy_before).map(|(after, before)| after.saturating_sub(before));
        self.log.stored(self.flow, took, sending.map(|sending| took.saturating_sub(sending)));
        self.log.about(self.conversation.about());
        self.log.over(self.flow, Instant::now());
        Ok(())
    }

    fn refusal(&mut self, pause: &dyn Pause) -> Option<BodyError> {
        self.conversation.refusal(&Paused(pause)).map(body_error)
    }

    fn trouble(&self) -> Option<String> {
        self.conversation.broken()
    }

    fn resumes_at(&self) -> Option<Instant> {
        self.conversation.resumes_at()
    }

    fn is_asked_as_read(&self) -> bool {
        self.conversation.rpcs().is_some()
    }

    fn cut(&mut self, why: &str) -> bool {
        self.conversation.cut(why)
    }

    fn patience(&self) -> Duration {
        SILENCE_TIMEOUT
    }
}

fn body_error(why: FileError) -> BodyError {
    match why {
        FileError::Stopped => BodyError::Stopped,
        FileError::NotPermitted(why) => BodyError::Forbidden(why),
        why => BodyError::Peer(why.to_string()),
    }
}

/// A body in the mover's form.
fn handed_on(
    conversation: &dyn Conversation,
    body: &goodput_files::Body,
) -> Result<Body, BodyError> {
    let extent = match body.extent {
        Extent::Bytes(bytes) => mover::Extent::Bytes(bytes),
        Extent::ToClose => mover::Extent::ToClose,
        Extent::Decoded => mover::Extent::Decoded,
    };
    let failed = |cause| BodyError::Own(format!("can't hand on a connection: {cause}"));
    let socket = match conversation.socket() {
        Some(socket) if body.anew => Some(socket.try_clone().map_err(failed)?),
        Some(_) => None,
        None => return Err(BodyError::Own("there is no connection".into())),
    };
    Ok(Body { extent, socket })
}

/// A single request, and what is known of it.
pub struct Question {
    pub conversation: Option<Box<dyn Conversation>>,
    /// Length of the whole file, as the server announced it, bytes.
    pub announced: Option<u64>,
    /// When it had left, and when the first byte of the answer came.
    pub asked_and_answered: Option<(Instant, Instant)>,
    pub failure: Option<FileError>,
}

impl Question {
    pub fn new(conversation: Box<dyn Conversation>) -> Self {
        Self {
            conversation: Some(conversation),
            announced: None,
            asked_and_answered: None,
            failure: None,
        }
    }
}

/// The only body of a flow.
pub struct OneBody {
    pub question: Arc<Mutex<Question>>,
    /// When it was answered, for the thread that waits for its end.
    pub answered: Arc<OnceLock<Instant>>,
}

impl OneBody {
    fn question(&self) -> MutexGuard<'_, Question> {
        self.question.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bodies for OneBody {
    fn next(&mut self, pause: &dyn Pause) -> Result<Option<Body>, BodyError> {
        let mut question = self.question();
        let is_cut = question.conversation.as_ref().is_some_and(|one| one.is_cut());
        if question.asked_and_answered.is_some() && !is_cut {
            return Ok(None);
        }
        let Some(mut conversation) = question.conversation.take() else { return Ok(None) };
        let fetched = conversation.fetch(&Paused(pause));
        let body = match fetched {
            Ok(body) => body,
            Err(why) => {
                let error = BodyError::Peer(why.to_string());
                question.failure = Some(why);
                return Err(error);
            }
        };
        question.asked_and_answered.get_or_insert((body.asked, body.answered));
        question.announced = body.announced_bytes;
        self.answered.get_or_init(|| body.answered);
        let handed_on = handed_on(conversation.as_ref(), &body);
        question.conversation = Some(conversation);
        handed_on.map(Some)
    }

    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.question().conversation.as_mut().map_or(Ok(0), |conversation| conversation.read(room))
    }

    fn resumes_at(&self) -> Option<Instant> {
        self.question().conversation.as_ref()?.resumes_at()
    }

    fn is_asked_as_read(&self) -> bool {
        self.question().conversation.as_ref().is_some_and(|one| one.rpcs().is_some())
    }

    fn cut(&mut self, why: &str) -> bool {
        self.question().conversation.as_mut().is_some_and(|conversation| conversation.cut(why))
    }

    fn patience(&self) -> Duration {
        SILENCE_TIMEOUT
    }
}

#[cfg(test)]
mod tests {
    use goodput_files::{Options, schemes};
    use goodput_model::SocketOptions;

    use super::*;
    use crate::near::fetch::asker::Asker;
    use crate::near::fetch::dialler::Addresses;

    #[test]
    fn the_first_fetch_is_read_as_it_comes_if_its_server_is_asked_piece_by_piece() {
        let is_asked_as_read = |place: &str| {
            let (target, addresses) = (place.parse().unwrap(), Addresses::new(Vec::new()));
            let options = Options::default();
            let asker = Asker::new(target, addresses, SocketOptions::default(), options).unwrap();
            let question = Question::new(asker.converse(&schemes::parse(place).unwrap()));
            let question = Arc::new(Mutex::new(question));
            OneBody { question, answered: Arc::default() }.is_asked_as_read()
        };
        assert!(is_asked_as_read("nfs://nas/export/file"));
        assert!(!is_asked_as_read("http://nas/file"));
    }
}
