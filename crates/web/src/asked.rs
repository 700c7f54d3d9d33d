//! One request, without its connection.

use hyper::body::Bytes;
use hyper::header::{COOKIE, HOST, HeaderName, ORIGIN};
use hyper::{Method, Request};
use url::form_urlencoded;

/// What a browser says about where a request comes from (Fetch Metadata, W3C).
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The id of the last event that a browser got (HTML, server-sent events).
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// A request.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// `GET`, `POST` or another.
    pub method: Method,
    /// The path, as it was sent.
    pub path: String,
    /// Fields of the query and of the form, in their order.
    pub fields: Vec<(String, String)>,
    /// What the browser calls this server.
    pub host: Option<String>,
    /// The page that a change comes from.
    pub origin: Option<String>,
    /// How that page is related to this server.
    pub fetch_site: Option<String>,
    /// The session's cookie.
    pub session: Option<String>,
    /// The last event that a browser has, if it goes on to follow a test.
    pub last_event: Option<usize>,
}

impl Asked {
    /// Takes a request apart. `cookie` is the name of the session's cookie.
    pub fn new(request: &Request<Bytes>, cookie: &str) -> Self {
        let header = |name: HeaderName| {
            let value = request.headers().get(name)?.to_str().ok()?;
            Some(value.to_owned())
        };
        let query = request.uri().query().unwrap_or_default().as_bytes();
        let fields = form_urlencoded::parse(query).chain(form_urlencoded::parse(request.body()));
        Self {
            method: request.method().clone(),
            path: request.uri().path().into(),
            fields: fields.map(|(name, value)| (name.into(), value.into())).collect(),
            host: header(HOST),
            origin: header(ORIGIN),
            fetch_site: header(FETCH_SITE),
            last_event: header(LAST_EVENT).and_then(|number| number.parse().ok()),
            session: request.headers().get(COOKIE).and_then(|all| session(all.as_bytes(), cookie)),
        }
    }

    /// The first field called `name` that is not empty.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.all(name).find(|value| !value.is_empty())
    }

    /// Every field called `name`.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self.fields.iter().filter(move |(known, _)| known == name);
        named.map(|(_, value)| value.trim())
    }
}

/// The value of this cookie. Bytes, as the cookies of other servers on this host may have any.
fn session(cookies: &[u8], cookie: &str) -> Option<String> {
    let mut pairs = cookies.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let value = pairs.find_map(|pair| pair.strip_prefix(cookie.as_bytes())?.strip_prefix(b"="))?;
    String::from_utf8(value.into()).ok()
}

/// A path with fields, such as `/?target=a%26b`; without those that are empty.
pub fn link(path: &str, fields: &[(&str, &str)]) -> String {
    let given = fields.iter().filter(|(_, value)| !value.is_empty());
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish();
    if query.is_empty() { path.into() } else { format!("{path}?{query}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_query_and_of_the_form_are_read_and_written_alike() {
        let target = "<b>&=ü 1";
        let uri = link("/x", &[("target", target), ("none", "")]);
        let request =
            Request::post(uri).header(COOKIE, &b"a=\xe4; session-8=t; session-80=s; c=d"[..]);
        let request = request.body(Bytes::from_static(b"id=7&id=8&empty=")).unwrap();
        let asked = Asked::new(&request, "session-80");
        assert_eq!(asked.field("target"), Some(target));
        assert_eq!(asked.all("id").collect::<Vec<_>>(), ["7", "8"]);
        assert_eq!((asked.field("empty"), asked.field("none")), (None, None));
        assert_eq!((asked.path.as_str(), asked.session.as_deref()), ("/x", Some("s")));
    }
}
