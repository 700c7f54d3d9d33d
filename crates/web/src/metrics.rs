//! Metrics for whoever asks: one text, made when it is asked for.

use std::sync::Arc;

use hyper::body::Bytes;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use crate::answer::{self, Body};
use crate::server::Answers;

/// The media type of OpenMetrics 1.0 (OpenMetrics, "Protocol Negotiation").
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers at `/metrics`, and nowhere else.
#[derive(Clone)]
pub struct Metrics(Arc<dyn Fn() -> String + Send + Sync>);

impl Metrics {
    /// With what `text` makes, as OpenMetrics 1.0.
    pub fn new(text: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(text))
    }

    fn answer_to(&self, request: &Request<Bytes>) -> Response<Body> {
        let reads = [Method::GET, Method::HEAD].contains(request.method());
        let (status, kind, text) = match (reads, request.uri().path()) {
            (true, "/metrics") => (StatusCode::OK, OPENMETRICS, (self.0)()),
            (true, _) => (StatusCode::NOT_FOUND, "text/plain", "see /metrics\n".into()),
            (false, _) => (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "use GET\n".into()),
        };
        let mut response = answer::response(status, kind, text);
        if !reads {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response
    }
}

impl Answers for Metrics {
    async fn answer(&self, request: Request<Bytes>) -> Response<Body> {
        self.answer_to(&request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: Method, path: &str) -> Response<Body> {
        let request = Request::builder().method(method).uri(path).body(Bytes::new()).unwrap();
        Metrics::new(String::new).answer_to(&request)
    }

    #[test]
    fn only_metrics_are_there_and_only_to_read() {
        let status = |method, path: &str| asked(method, path).status().as_u16();
        assert_eq!(status(Method::GET, "/metrics"), 200);
        assert_eq!(status(Method::GET, "/"), 404);
        assert_eq!(status(Method::POST, "/metrics"), 405);
    }
}
