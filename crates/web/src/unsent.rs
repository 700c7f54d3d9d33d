//! Answers that hyper has taken and not yet sent: their connection keeps its place until the socket has them.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use http_body_util::BodyExt;
use hyper::body::{Bytes, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::answer::Body;
use crate::places::Answering;

/// The answers of one connection that are on their way; all clones are one.
#[derive(Clone, Default)]
pub struct Unsent(Arc<Mutex<Vec<Answering>>>);

impl Unsent {
    /// The connection's stream, which knows when everything before was sent.
    pub fn on<S>(&self, stream: S) -> Flushed<S> {
        Flushed { stream, unsent: self.clone() }
    }

    /// The body of an answer, which is being answered until it was sent.
    pub fn until_sent(&self, body: Body, answering: Answering) -> Body {
        let unsent = self.clone();
        Answered { body, unsent, answering: Some(answering) }.boxed_unsync()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Answering>> {
        // A panic in between leaves a whole list.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body that hyper takes piece by piece, and drops with the last one.
struct Answered {
    body: Body,
    unsent: Unsent,
    answering: Option<Answering>,
}

impl Drop for Answered {
    fn drop(&mut self) {
        self.unsent.lock().extend(self.answering.take());
    }
}

impl hyper::body::Body for Answered {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream that hyper flushes after it has written all that it took.
pub struct Flushed<S> {
    stream: S,
    unsent: Unsent,
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Flushed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(context));
        self.unsent.lock().clear();
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Flushed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}
