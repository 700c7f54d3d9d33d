//! Metrics for whoever asks: one text over HTTP/1.1, made when it is asked for.
//!
//! Whoever connects is a stranger: connections, their heads and their lives are bounded.

use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Connections at once: a few scrapers, each with one.
const MAX_CONNECTIONS: usize = 16;
/// How long a client may take for the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a connection may last; a scraper connects again.
const MAX_LIFE: Duration = Duration::from_secs(300);
/// Longest head of a request, bytes.
const MAX_HEAD_BYTES: usize = 8 << 10;
/// How long to wait if the system has no descriptor for another connection.
const BREATH: Duration = Duration::from_millis(100);
/// The media type of OpenMetrics 1.0 (OpenMetrics, "Protocol Negotiation").
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A socket that listens, and does not answer yet.
pub struct Listening {
    socket: TcpListener,
    address: SocketAddr,
}

/// Listens on `address`. Must be called within a runtime.
pub async fn listen(address: SocketAddr) -> Result<Listening> {
    let socket = TcpListener::bind(address).await;
    let socket = socket.with_context(|| {
        format!("can't listen on {address} for --metrics; choose another address or port")
    })?;
    let address = socket.local_addr().context("can't ask a socket for its address")?;
    Ok(Listening { socket, address })
}

impl Listening {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers with what `text` makes, until it is dropped.
    pub async fn serve(self, text: impl Fn() -> String + Clone + Send + Sync + 'static) {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let (stream, peer) = match self.socket.accept().await {
                Ok(accepted) => accepted,
                Err(why) => {
                    tracing::debug!("can't accept a connection for metrics: {why}");
                    sleep(BREATH).await;
                    continue;
                }
            };
            let text = text.clone();
            tokio::spawn(async move {
                if timeout(MAX_LIFE, converse(stream, text)).await.is_err() {
                    tracing::debug!("ended the connection of {peer}, which lasted too long");
                }
                drop(place);
            });
        }
    }
}

async fn converse(stream: TcpStream, text: impl Fn() -> String) {
    let service = service_fn(|request| ready(Ok::<_, Infallible>(answer(&request, &text))));
    let ended = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(why) = ended {
        tracing::debug!("a connection for metrics ended: {why}");
    }
}

fn answer(request: &Request<Incoming>, text: impl Fn() -> String) -> Response<Full<Bytes>> {
    answer_to(request.method(), request.uri().path(), text)
}

fn answer_to(method: &Method, path: &str, text: impl Fn() -> String) -> Response<Full<Bytes>> {
    let reads = [Method::GET, Method::HEAD].contains(method);
    let (status, kind, text) = match (reads, path) {
        (true, "/metrics") => (StatusCode::OK, OPENMETRICS, text()),
        (true, _) => (StatusCode::NOT_FOUND, "text/plain", "the metrics are at /metrics\n".into()),
        (false, _) => {
            (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "metrics are read with GET\n".into())
        }
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if !reads {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_metrics_are_there_and_only_to_read() {
        let status = |method, path: &str| answer_to(&method, path, String::new).status().as_u16();
        assert_eq!(status(Method::GET, "/metrics"), 200);
        assert_eq!(status(Method::GET, "/"), 404);
        assert_eq!(status(Method::POST, "/metrics"), 405);
    }
}
