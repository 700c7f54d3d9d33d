//! Metrics for whoever asks: one text, made when it is asked for, in the format that was asked for.

use std::collections::HashMap;
use std::sync::Arc;

use hyper::body::Bytes;
use hyper::header::{ACCEPT, ALLOW, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use crate::answer::{self, Body};
use crate::server::Answers;

/// The media type of OpenMetrics (OpenMetrics 1.0, "Protocol Negotiation").
const OPENMETRICS: &str = "application/openmetrics-text";
const OPENMETRICS_1: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The older format, for those who don't ask for OpenMetrics (Prometheus, "Exposition formats").
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers at `/metrics`, and nowhere else. The text is made beside what goes on, in a thread that may take its time, and one
/// at a time: many readers take no more memory than one.
#[derive(Clone)]
pub struct Metrics {
    text: Arc<dyn Fn() -> String + Send + Sync>,
    turn: Arc<Mutex<()>>,
}

impl Metrics {
    /// With what `text` makes, as OpenMetrics 1.0.
    pub fn new(text: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { text: Arc::new(text), turn: Arc::default() }
    }

    /// What was asked for; none if the text can't be made.
    async fn made(&self, openmetrics: bool) -> Option<String> {
        // A reader that leaves does not end the work, so its turn lasts as long as the work.
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let text = Arc::clone(&self.text);
        let make = move || {
            let _turn = turn;
            let text = text();
            if openmetrics { text } else { plain(&text) }
        };
        spawn_blocking(make).await.ok()
    }

    async fn answer_to(&self, request: &Request<Bytes>) -> Response<Body> {
        let reads = [Method::GET, Method::HEAD].contains(request.method());
        let (status, kind, text) = match (reads, request.uri().path()) {
            (true, "/metrics") => {
                let openmetrics = wants_openmetrics(request);
                let kind = if openmetrics { OPENMETRICS_1 } else { PLAIN };
                match self.made(openmetrics).await {
                    Some(text) => (StatusCode::OK, kind, text),
                    None => {
                        let why = "the metrics can't be made; see the program's output\n".into();
                        (StatusCode::INTERNAL_SERVER_ERROR, "text/plain", why)
                    }
                }
            }
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
        self.answer_to(&request).await
    }
}

fn wants_openmetrics(request: &Request<Bytes>) -> bool {
    let mut accepted = request.headers().get_all(ACCEPT).iter();
    accepted.any(|value| value.to_str().is_ok_and(|value| value.contains(OPENMETRICS)))
}

/// OpenMetrics in the older format: the samples are the same. There, a metric has the name of its samples, and units and
/// the end are not written.
fn plain(openmetrics: &str) -> String {
    let head = |line: &str, word: &str| -> Option<(String, String)> {
        let (name, rest) = line.strip_prefix("# ")?.strip_prefix(word)?.trim().split_once(' ')?;
        Some((name.to_owned(), rest.to_owned()))
    };
    let kinds: HashMap<_, _> = openmetrics.lines().filter_map(|line| head(line, "TYPE ")).collect();
    let renamed = |name: String| match kinds.get(&name).map(String::as_str) {
        Some("counter") => (format!("{name}_total"), "counter"),
        Some("info") => (format!("{name}_info"), "gauge"),
        Some("gauge") => (name, "gauge"),
        _ => (name, "untyped"),
    };
    let line = |line: &str| {
        if let Some((name, help)) = head(line, "HELP ") {
            return Some(format!("# HELP {} {help}\n", renamed(name).0));
        }
        if let Some((name, _)) = head(line, "TYPE ") {
            let (name, kind) = renamed(name);
            return Some(format!("# TYPE {name} {kind}\n"));
        }
        (!line.starts_with('#')).then(|| format!("{line}\n"))
    };
    openmetrics.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const TEXT: &str = "# HELP x_sent_bytes Payload.\n# TYPE x_sent_bytes counter\n# UNIT x_sent_bytes bytes\n\
                        x_sent_bytes_total{target=\"# TYPE a b\"} 2\n# HELP x_build Version.\n# TYPE x_build info\n\
                        x_build_info{version=\"1\"} 1\n# HELP x_up Up.\n# TYPE x_up gauge\nx_up 1.0\n# EOF\n";

    fn asked(method: Method, path: &str, accept: &str) -> Response<Body> {
        let request = Request::builder().method(method).uri(path).header(ACCEPT, accept);
        let request = request.body(Bytes::new()).unwrap();
        runtime().block_on(Metrics::new(|| TEXT.into()).answer_to(&request))
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    #[test]
    fn a_text_that_takes_long_stops_nothing_else_and_one_is_made_at_a_time() {
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        let (wait, at_once) = (std::sync::Mutex::new(wait), Arc::new(AtomicUsize::new(0)));
        let most = Arc::clone(&at_once);
        let metrics = Metrics::new(move || {
            let others = at_once.fetch_add(1, Ordering::SeqCst);
            wait.lock().unwrap().recv().unwrap();
            at_once.fetch_sub(1, Ordering::SeqCst);
            format!("{others} others\n")
        });
        let texts = runtime().block_on(async {
            // The only thread of the runtime goes on while both wait.
            let last = async {
                while most.load(Ordering::SeqCst) == 0 {
                    tokio::task::yield_now().await;
                }
                go_on.send(()).unwrap();
                go_on.send(()).unwrap();
            };
            tokio::join!(metrics.made(true), metrics.made(true), last)
        });
        let expected = Some("0 others\n".to_string());
        assert_eq!((texts.0, texts.1), (expected.clone(), expected));
    }

    #[test]
    fn a_text_that_cannot_be_made_is_an_error_of_the_server() {
        let request = Request::builder().uri("/metrics").body(Bytes::new()).unwrap();
        let metrics = Metrics::new(|| std::panic::resume_unwind(Box::new("the test says so")));
        let response = runtime().block_on(metrics.answer_to(&request));
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }

    #[test]
    fn only_metrics_are_there_and_only_to_read() {
        let status = |method, path: &str| asked(method, path, "*/*").status().as_u16();
        assert_eq!(status(Method::GET, "/metrics"), 200);
        assert_eq!(status(Method::GET, "/"), 404);
        assert_eq!(status(Method::POST, "/metrics"), 405);
    }

    #[test]
    fn who_asks_for_openmetrics_gets_it_and_others_the_older_format() {
        let kind = |accept: &str| {
            asked(Method::GET, "/metrics", accept).headers()["content-type"]
                .to_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(kind("application/openmetrics-text;version=1.0.0,*/*;q=0.1"), OPENMETRICS_1);
        assert_eq!(kind("*/*"), PLAIN);
        assert_eq!(
            plain(TEXT),
            "# HELP x_sent_bytes_total Payload.\n# TYPE x_sent_bytes_total counter\n\
             x_sent_bytes_total{target=\"# TYPE a b\"} 2\n# HELP x_build_info Version.\n# TYPE x_build_info gauge\n\
             x_build_info{version=\"1\"} 1\n# HELP x_up Up.\n# TYPE x_up gauge\nx_up 1.0\n"
        );
    }
}
