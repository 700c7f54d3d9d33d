//! From a request to its answer.

use std::sync::Arc;

use hyper::body::Bytes;
use hyper::header::CONTENT_DISPOSITION;
use hyper::{Request, Response, StatusCode};
use maud::{Markup, html};

use crate::answer::{self, Answer, Body, Trouble};
use crate::asked::Asked;
use crate::gate::{Gate, Refusal};
use crate::layout::{self, Document, Who};
use crate::pages::{self, Found, Visit};
use crate::program::Program;
use crate::runs::Runs;
use crate::server::Answers;

const HTML: &str = "text/html; charset=utf-8";

/// All pages.
#[derive(Clone)]
pub struct Site(Arc<Shared>);

struct Shared {
    program: Arc<dyn Program>,
    gate: Gate,
    runs: Runs,
}

impl Site {
    /// The pages of `program`, for those whom the `gate` lets in.
    pub fn new(program: impl Program, gate: Gate) -> Self {
        Self(Arc::new(Shared { program: Arc::new(program), gate, runs: Runs::default() }))
    }

    /// Asks the tests that pages have started to end, starts no more, and waits until their results are kept.
    pub async fn end_tests(&self) {
        self.0.runs.stop();
        for run in self.0.runs.all().iter().filter(|run| run.is_own()) {
            run.ended().await;
        }
    }
}

impl Answers for Site {
    /// A page may wait for the disk, in a thread of its own.
    async fn answer(&self, request: Request<Bytes>) -> Response<Body> {
        let shared = Arc::clone(&self.0);
        let made = tokio::task::spawn_blocking(move || {
            shared.answer(&Asked::new(&request, &shared.gate.cookie_name()))
        });
        // A panic is a bug; the other pages still work.
        made.await.unwrap_or_else(|why| {
            answer::response(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", why.to_string())
        })
    }
}

impl Shared {
    fn answer(&self, asked: &Asked) -> Response<Body> {
        let who = || Who::new(&self.gate, self.gate.knows(asked));
        let Found { page, part } = match pages::find(&asked.method, &asked.path) {
            Ok(found) => found,
            Err(trouble) => {
                return self
                    .allowed(asked, true)
                    .unwrap_or_else(|| troubled(&trouble, asked, &who()));
            }
        };
        if let Some(refusal) = self.allowed(asked, page.open) {
            return refusal;
        }
        let (program, runs, gate, who) = (&self.program, &self.runs, &self.gate, who());
        let visit = Visit { asked, program, runs, gate, who: &who, part };
        match (page.show)(&visit) {
            Ok(answer) => shown(answer, asked, &who),
            Err(trouble) => troubled(&trouble, asked, &who),
        }
    }

    /// Nothing if the request may be answered; otherwise what to answer instead.
    fn allowed(&self, asked: &Asked, open: bool) -> Option<Response<Body>> {
        let trouble = |status, why: &str| {
            let who = Who::new(&self.gate, false);
            Some(troubled(&Trouble { status, why: why.into() }, asked, &who))
        };
        match self.gate.check(asked, open).err()? {
            Refusal::Login => Some(answer::redirect("/login", None)),
            Refusal::Host(host) => trouble(
                StatusCode::MISDIRECTED_REQUEST,
                &format!(
                    "this server is not called {host:?}; use its address, or start it with --name NAME"
                ),
            ),
            Refusal::Foreign => trouble(
                StatusCode::FORBIDDEN,
                "only a page of this server can ask for a change; load the page again, then repeat it",
            ),
        }
    }
}

fn shown(answer: Answer, asked: &Asked, who: &Who) -> Response<Body> {
    match answer {
        Answer::Page { title, body } => {
            answer::response(StatusCode::OK, HTML, document(&title, &body, asked, who))
        }
        Answer::Refused { title, body } => {
            answer::response(StatusCode::BAD_REQUEST, HTML, document(&title, &body, asked, who))
        }
        Answer::Go { to, cookie } => answer::redirect(&to, cookie.as_deref()),
        Answer::File { kind, content } => answer::response(StatusCode::OK, kind, content),
        Answer::Download { name, content } => {
            let mut response = answer::response(StatusCode::OK, "application/json", content);
            if let Ok(value) = format!("attachment; filename=\"{name}\"").parse() {
                response.headers_mut().insert(CONTENT_DISPOSITION, value);
            }
            response
        }
        Answer::Events(body) => answer::stream(StatusCode::OK, "text/event-stream", body),
    }
}

fn troubled(trouble: &Trouble, asked: &Asked, who: &Who) -> Response<Body> {
    let title = trouble.title();
    let body = html! { p.doubt role="alert" { (layout::words(&trouble.why)) } };
    answer::response(trouble.status, HTML, document(title, &body, asked, who))
}

fn document(title: &str, body: &Markup, asked: &Asked, who: &Who) -> String {
    layout::document(&Document { title, body, path: &asked.path, links: &pages::links(), who })
}
