//! What a page answers, and the headers that every answer has.

use std::convert::Infallible;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION,
    REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Response, StatusCode};
use maud::Markup;

/// The body of an answer; that of a running test has no end yet.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A page loads only what this server has, and nobody else's page shows it.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// What a page has to say.
pub enum Answer {
    /// A page within the layout.
    Page {
        /// Its title, which is also its first heading.
        title: String,
        /// What is below.
        body: Markup,
    },
    /// A form that can't be used as it was filled in: the form again, with what is wrong.
    Refused {
        /// Its title.
        title: String,
        /// What is below.
        body: Markup,
    },
    /// Go to another page of this server.
    Go {
        /// Its path.
        to: String,
        /// A cookie to keep.
        cookie: Option<String>,
    },
    /// A file that never changes while this program runs.
    File {
        /// Its media type.
        kind: &'static str,
        /// Its content.
        content: String,
    },
    /// A file to keep.
    Download {
        /// Its name.
        name: String,
        /// JSON.
        content: String,
    },
    /// The events of a test, as they come (HTML, server-sent events).
    Events(Body),
}

impl Answer {
    /// A page.
    pub fn page(title: impl Into<String>, body: Markup) -> Self {
        Self::Page { title: title.into(), body }
    }

    /// Another page to go to.
    pub fn go(to: impl Into<String>) -> Self {
        Self::Go { to: to.into(), cookie: None }
    }
}

/// Why there is no page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// For programs.
    pub status: StatusCode,
    /// For people.
    pub why: String,
}

impl Trouble {
    /// What was asked for makes no sense.
    pub fn bad(why: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, why: why.into() }
    }

    /// There is no such thing.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, why: why.into() }
    }

    /// Something else that goes on has to end first.
    pub fn busy(why: impl Into<String>) -> Self {
        Self { status: StatusCode::CONFLICT, why: why.into() }
    }

    /// What a person sees first.
    pub fn title(&self) -> &'static str {
        match self.status {
            StatusCode::BAD_REQUEST => "This request makes no sense",
            StatusCode::NOT_FOUND => "Nothing is here",
            StatusCode::CONFLICT => "This is not possible now",
            StatusCode::UNPROCESSABLE_ENTITY => "This result can't be read",
            StatusCode::INTERNAL_SERVER_ERROR => "This did not work",
            other => other.canonical_reason().unwrap_or("This is not possible"),
        }
    }

    /// It did not work here.
    pub fn failed(why: impl Into<String>) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, why: why.into() }
    }
}

impl From<goodput_store::StoreError> for Trouble {
    fn from(error: goodput_store::StoreError) -> Self {
        match error {
            goodput_store::StoreError::UnknownId { .. } => Self::unknown(error.to_string()),
            // The history is fine, and so is this server.
            goodput_store::StoreError::Unreadable { .. } => {
                Self { status: StatusCode::UNPROCESSABLE_ENTITY, why: error.to_string() }
            }
            _ => Self::failed(error.to_string()),
        }
    }
}

/// The response with this content.
pub fn response(status: StatusCode, kind: &'static str, content: String) -> Response<Body> {
    stream(status, kind, Full::new(Bytes::from(content)).boxed_unsync())
}

/// The response with this body.
pub fn stream(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers: [(HeaderName, &'static str); 8] = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "same-origin"),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The response that sends a browser to another page.
pub fn redirect(to: &str, cookie: Option<&str>) -> Response<Body> {
    let mut response = response(StatusCode::SEE_OTHER, "text/plain", String::new());
    for (name, value) in [(LOCATION, Some(to)), (SET_COOKIE, cookie)] {
        // Both are made of what may be in a header.
        if let Some(Ok(value)) = value.map(HeaderValue::from_str) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
