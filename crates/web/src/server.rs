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
use tokio::time::{sleep, timeout};

use crate::answer::{self, Body};
use crate::places::{Answering, Leaving, Place, Places};
use crate::tls::Tls;
use crate::unsent::Unsent;

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
        let places = Places::new(MAX_CONNECTIONS, MAX_OF_CLIENT);
        loop {
            let (stream, peer) = match self.socket.accept().await {
                Ok(accepted) => accepted,
                Err(why) => {
                    tracing::debug!("can't accept a connection: {why}");
                    sleep(BREATH).await;
                    continue;
                }
            };
            let Some((place, leaving)) = places.take(peer.ip()) else {
                tracing::debug!("refused a connection of {peer}: all places are in use");
                continue;
            };
            let talk = talk(stream, self.tls.clone(), answers.clone(), place);
            tokio::spawn(async move {
                if let Some(why) = ended_early(talk, leaving).await {
                    tracing::debug!("ended the connection of {peer}, {why}");
                }
            });
        }
    }
}

/// Talks with one client, unless the connection lasts too long or has to leave its place: why, in that case.
async fn ended_early(talk: impl Future<Output = ()>, leaving: Leaving) -> Option<&'static str> {
    tokio::select! {
        ended = timeout(MAX_LIFE, talk) => ended.is_err().then_some("which lasted too long"),
        () = leaving.has_to() => Some("which had not asked anything when another one came"),
    }
}

/// Answers one client.
async fn talk(stream: TcpStream, tls: Option<Tls>, answers: impl Answers, place: Arc<Place>) {
    let Some(tls) = tls else { return converse(stream, answers, place).await };
    match timeout(PATIENCE, tls.acceptor().accept(stream)).await {
        Ok(Ok(stream)) => converse(stream, answers, place).await,
        Ok(Err(why)) => tracing::debug!("a client does not agree on encryption: {why}"),
        Err(_) => tracing::debug!("a client takes too long to agree on encryption"),
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    answers: impl Answers,
    place: Arc<Place>,
) {
    let unsent = Unsent::default();
    let service = service_fn(|request| {
        let (answers, place, unsent) = (answers.clone(), Arc::clone(&place), unsent.clone());
        async move { Ok::<_, Infallible>(answered(request, answers, &place, &unsent).await) }
    });
    let ended = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(unsent.on(stream)), service)
        .await;
    if let Err(why) = ended {
        tracing::debug!("a connection ended: {why}");
    }
}

/// Reads the form, then asks for the answer.
async fn answered(
    request: Request<Incoming>,
    answers: impl Answers,
    place: &Arc<Place>,
    unsent: &Unsent,
) -> Response<Body> {
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
    let answering = Answering::begin(place);
    let answer = answers.answer(Request::from_parts(head, body)).await;
    answer.map(|body| unsent.until_sent(body, answering))
}

fn refused(status: StatusCode, why: &str) -> Response<Body> {
    let mut response = answer::response(status, "text/plain; charset=utf-8", format!("{why}\n"));
    // The rest of the form would be read as the next request.
    let close = hyper::header::HeaderValue::from_static("close");
    response.headers_mut().insert(hyper::header::CONNECTION, close);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpSocket;
    use tokio::sync::Semaphore;

    /// Answers as soon as it is told to, once for each permit.
    #[derive(Clone)]
    struct Told {
        asked: Arc<Semaphore>,
        go_on: Arc<Semaphore>,
    }

    impl Answers for Told {
        async fn answer(&self, request: Request<Bytes>) -> Response<Body> {
            self.asked.add_permits(1);
            self.go_on.acquire().await.unwrap().forget();
            let words = if request.uri().path() == "/long" { LONG_BYTES / 4 } else { 1 };
            answer::response(StatusCode::OK, "text/plain", "told".repeat(words))
        }
    }

    /// Runs this beside a server that answers so many times.
    fn beside<T: Future<Output = ()>>(times: usize, test: impl FnOnce(Told, SocketAddr) -> T) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let told =
                Told { asked: Semaphore::new(0).into(), go_on: Semaphore::new(times).into() };
            let address = (Ipv4Addr::LOCALHOST, 0).into();
            let listening = listen(address, "--listen", None).await.unwrap();
            let address = (Ipv4Addr::LOCALHOST, listening.port().unwrap()).into();
            tokio::spawn(listening.serve(told.clone()));
            test(told, address).await;
        });
    }

    /// A connection of the client with this number, that sends this.
    async fn connection(client: u8, to: SocketAddr, words: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((Ipv4Addr::new(127, 0, 0, client), 0).into()).unwrap();
        let mut stream = socket.connect(to).await.unwrap();
        stream.write_all(words.as_bytes()).await.unwrap();
        stream
    }

    /// All that comes until the server closes the connection.
    async fn heard(mut stream: TcpStream) -> String {
        let mut text = Vec::new();
        // A server that closes it before it has read everything resets it.
        let _ = stream.read_to_end(&mut text).await;
        String::from_utf8(text).unwrap()
    }

    /// More than the sockets of a connection hold.
    const LONG_BYTES: usize = 32 << 20;
    const LONG: &str = "GET /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    const HALF: &str = "GET /metrics HTTP/1.1\r\nHo";
    const WHOLE: &str = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

    #[test]
    fn connections_that_ask_nothing_keep_nobody_away() {
        beside(2, async |_, address| {
            let mut crowd = Vec::new();
            // The server takes connections in their order.
            for client in 1..=4 {
                for _ in 0..MAX_OF_CLIENT {
                    crowd.push(connection(client, address, HALF).await);
                }
            }
            for client in [1, 5] {
                let answer = heard(connection(client, address, WHOLE).await).await;
                assert!(answer.starts_with("HTTP/1.1 200 OK"), "{client}: {answer}");
                assert!(answer.contains("content-length: 4"), "{answer}");
            }
        });
    }

    #[test]
    fn who_asks_again_and_again_is_always_answered() {
        beside(3 * MAX_CONNECTIONS, async |_, address| {
            for time in 0..3 * MAX_CONNECTIONS {
                let answer = heard(connection(1, address, WHOLE).await).await;
                assert!(answer.ends_with("told"), "{time}: {answer}");
            }
        });
    }

    #[test]
    fn who_is_being_answered_keeps_the_place() {
        beside(0, async |told, address| {
            let asking = connection(1, address, WHOLE).await;
            told.asked.acquire().await.unwrap().forget();
            let mut crowd = Vec::new();
            for _ in 0..=MAX_OF_CLIENT {
                crowd.push(connection(1, address, HALF).await);
            }
            // The oldest of the crowd had to leave.
            assert_eq!(heard(crowd.remove(0)).await, "");
            told.go_on.add_permits(1);
            assert!(heard(asking).await.ends_with("told"));
        });
    }

    #[test]
    fn who_has_not_been_sent_all_of_an_answer_keeps_the_place() {
        beside(1, async |told, address| {
            let asking = connection(1, address, LONG).await;
            told.asked.acquire().await.unwrap().forget();
            asking.readable().await.unwrap();
            let mut crowd = Vec::new();
            for _ in 0..=MAX_OF_CLIENT {
                crowd.push(connection(1, address, HALF).await);
            }
            // The oldest of the crowd had to leave.
            assert_eq!(heard(crowd.remove(0)).await, "");
            assert!(heard(asking).await.len() > LONG_BYTES);
        });
    }

    #[test]
    fn who_comes_while_all_of_its_share_is_being_answered_is_refused() {
        beside(0, async |told, address| {
            let mut crowd = Vec::new();
            for _ in 0..MAX_OF_CLIENT {
                crowd.push(connection(1, address, WHOLE).await);
            }
            told.asked.acquire_many(MAX_OF_CLIENT as u32).await.unwrap().forget();
            assert_eq!(heard(connection(1, address, WHOLE).await).await, "");
            told.go_on.add_permits(MAX_OF_CLIENT);
            for connection in crowd {
                assert!(heard(connection).await.ends_with("told"));
            }
        });
    }
}
