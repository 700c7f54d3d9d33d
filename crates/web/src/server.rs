//! Connections: how many, for how long, encrypted or not. What is answered is not known here.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::answer::{self, Body};
use crate::shares::Shares;
use crate::tls::Tls;

/// Connections at once; a browser opens up to six.
const MAX_CONNECTIONS: usize = 64;

/// Of these, those of one client.
const MAX_OF_CLIENT: usize = MAX_CONNECTIONS / 4;

/// How long a client may take for the encryption, for the head of a request, and for a form.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a connection may last. A reader that stalls ends with it; a browser that follows a test connects again.
const MAX_LIFE: Duration = Duration::from_secs(300);

/// Longest head of a request, bytes.
const MAX_HEAD_BYTES: usize = 16 << 10;

/// Longest form, bytes.
const MAX_FORM_BYTES: usize = 16 << 10;

/// How long to wait if the system has no descriptor for another connection.
const BREATH: Duration = Duration::from_millis(100);

/// An address that can't be listened on.
#[derive(Debug, thiserror::Error)]
#[error("can't listen on {address}: {source}; {option} ADDRESS:PORT chooses another")]
pub struct WebError {
    address: SocketAddr,
    option: &'static str,
    source: io::Error,
}

/// What answers requests; all clones are one.
pub trait Answers: Clone + Send + Sync + 'static {
    /// Answers a request whose body has arrived. Called within a runtime.
    fn answer(&self, request: Request<Bytes>) -> impl Future<Output = Response<Body>> + Send;
}

/// A server that accepts connections, and does not answer yet.
pub struct Listening {
    socket: TcpListener,
    tls: Option<Tls>,
}

/// Listens on `address`, which the user chose with `option`. Must be called within a runtime.
///
/// # Errors
/// When the address is taken or not this host's.
pub async fn listen(
    address: SocketAddr,
    option: &'static str,
    tls: Option<Tls>,
) -> Result<Listening, WebError> {
    let socket = TcpListener::bind(address).await;
    let socket = socket.map_err(|source| WebError { address, option, source })?;
    Ok(Listening { socket, tls })
}

impl Listening {
    /// Where browsers find what it answers.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn url(&self) -> io::Result<String> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        Ok(format!("{scheme}://{}/", self.socket.local_addr()?))
    }

    /// The port that it listens on.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn port(&self) -> io::Result<u16> {
        Ok(self.socket.local_addr()?.port())
    }

    /// Answers until it is dropped.
    pub async fn serve(self, answers: impl Answers) {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let shares = Shares::new(MAX_OF_CLIENT);
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let (stream, peer) = match self.socket.accept().await {
                Ok(accepted) => accepted,
                Err(why) => {
                    tracing::debug!("can't accept a connection: {why}");
                    sleep(BREATH).await;
                    continue;
                }
            };
            let Some(share) = shares.take(peer.ip()) else {
                tracing::debug!("refused a connection of {peer}, which has too many");
                continue;
            };
            let (answers, tls) = (answers.clone(), self.tls.clone());
            tokio::spawn(async move {
                if timeout(MAX_LIFE, talk(stream, tls, answers)).await.is_err() {
                    tracing::debug!("ended the connection of {peer}, which lasted too long");
                }
                drop((share, place));
            });
        }
    }
}

/// Answers one client.
async fn talk(stream: TcpStream, tls: Option<Tls>, answers: impl Answers) {
    let Some(tls) = tls else { return converse(stream, answers).await };
    match timeout(PATIENCE, tls.acceptor().accept(stream)).await {
        Ok(Ok(stream)) => converse(stream, answers).await,
        Ok(Err(why)) => tracing::debug!("a client does not agree on encryption: {why}"),
        Err(_) => tracing::debug!("a client takes too long to agree on encryption"),
    }
}

async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin + 'static, answers: impl Answers) {
    let service = service_fn(|request| {
        let answers = answers.clone();
        async move { Ok::<_, Infallible>(answered(request, answers).await) }
    });
    let ended = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(why) = ended {
        tracing::debug!("a connection ended: {why}");
    }
}

/// Reads the form, then asks for the answer.
async fn answered(request: Request<Incoming>, answers: impl Answers) -> Response<Body> {
    let (head, body) = request.into_parts();
    if body.size_hint().lower() > MAX_FORM_BYTES as u64 {
        return refused(StatusCode::PAYLOAD_TOO_LARGE, "the form is too long");
    }
    let read = timeout(PATIENCE, Limited::new(body, MAX_FORM_BYTES).collect()).await;
    let body: Bytes = match read {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(why)) => return refused(StatusCode::PAYLOAD_TOO_LARGE, &why.to_string()),
        Err(_) => return refused(StatusCode::REQUEST_TIMEOUT, "the form took too long"),
    };
    answers.answer(Request::from_parts(head, body)).await
}

fn refused(status: StatusCode, why: &str) -> Response<Body> {
    let mut response = answer::response(status, "text/plain; charset=utf-8", format!("{why}\n"));
    // The rest of the form would be read as the next request.
    let close = hyper::header::HeaderValue::from_static("close");
    response.headers_mut().insert(hyper::header::CONNECTION, close);
    response
}
