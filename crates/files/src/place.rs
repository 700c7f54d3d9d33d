//! The place of a file: its URL, without secrets.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use url::Url;

use crate::error::FileError;
use crate::scheme::Scheme;

/// A file at a server.
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    url: Url,
    /// The zone of a link-local address, which a URL of the WHATWG does not have (RFC 6874).
    zone: Option<String>,
    scheme: &'static Scheme,
}

impl Place {
    /// Reads `SCHEME://[USER@]HOST[:PORT]/PATH`, whose scheme `find` finds by its id. A password is refused without
    /// repeating it: anyone who may list this host's processes could read it.
    pub(crate) fn parse(
        text: &str,
        find: impl Fn(&str) -> Option<&'static Scheme>,
    ) -> Result<Self, FileError> {
        let (text, zone) = without_zone(text);
        let url = Url::parse(&text).map_err(|why| {
            // The text may contain a password.
            FileError::Place(format!("the URL of the file can't be read: {why}"))
        })?;
        let scheme = find(url.scheme()).ok_or_else(|| {
            FileError::Place(format!("no files are fetched from {}://", url.scheme()))
        })?;
        Self::of(url, zone, scheme)
    }

    fn of(url: Url, zone: Option<String>, scheme: &'static Scheme) -> Result<Self, FileError> {
        if url.password().is_some() {
            return Err(FileError::Place(
                "a password in a URL can be read by other users of this host; put it into ~/.netrc (machine HOST \
                 login USER password PASSWORD) and leave it out here"
                    .into(),
            ));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(FileError::Place(format!("{url} has no host")));
        }
        Ok(Self { url, zone, scheme })
    }

    /// The place to which a server's redirect resolves here, if it has one of these schemes.
    pub(crate) fn redirect(
        &self,
        reference: &str,
        among: &[&'static Scheme],
    ) -> Result<Self, FileError> {
        let url = self.url.join(reference).map_err(|why| {
            FileError::Protocol(format!(
                "the server redirects to a place that can't be read: {why}"
            ))
        })?;
        let scheme = among.iter().find(|scheme| scheme.id == url.scheme()).ok_or_else(|| {
            let scheme = url.scheme();
            FileError::Refused(format!("the server redirects to {scheme}://, which is no web page"))
        })?;
        // The zone means something on this host alone, so no server can name one.
        let zone = self.zone.clone().filter(|_| url.host() == self.url.host());
        Self::of(url, zone, scheme)
    }

    /// The file with this name beside this one, or in this directory if the path ends with a slash.
    pub fn beside(&self, name: &str) -> Result<Self, FileError> {
        let mut url = self.url.join(name).map_err(|why| {
            FileError::Place(format!("no file {name:?} can be beside {self}: {why}"))
        })?;
        url.set_query(self.url.query().filter(|_| self.scheme.server_query));
        url.set_fragment(None);
        Self::of(url, self.zone.clone(), self.scheme)
    }

    /// The scheme of the place.
    pub fn scheme(&self) -> &'static Scheme {
        self.scheme
    }

    /// Name or address of the host to connect to: as [`host`](Self::host), with the zone of a link-local address.
    pub fn address(&self) -> String {
        match &self.zone {
            Some(zone) => format!("{}%{zone}", self.host()),
            None => self.host().into(),
        }
    }

    /// Name or address of the host, an IPv6 address without brackets and zone.
    pub fn host(&self) -> &str {
        let host = self.url.host_str().unwrap_or_default();
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// The URL's port, or else the scheme's.
    pub fn port(&self) -> u16 {
        self.url.port().unwrap_or(self.scheme.port)
    }

    /// The port, if the URL contains one.
    pub(crate) fn named_port(&self) -> Option<u16> {
        self.url.port()
    }

    /// The names of the path, as bytes. None is empty, or contains a terminator.
    pub(crate) fn names(&self) -> Result<Vec<Vec<u8>>, FileError> {
        let names = self.url.path().split('/').filter(|name| !name.is_empty());
        let names: Vec<Vec<u8>> = names.map(|name| percent_decode_str(name).collect()).collect();
        if names.iter().flatten().any(|byte| matches!(byte, 0 | b'/')) {
            return Err(FileError::Place(format!("{self} has a name that no file can have")));
        }
        Ok(names)
    }

    /// The query, in pairs.
    pub(crate) fn query(&self) -> Vec<(String, String)> {
        self.url.query_pairs().into_owned().collect()
    }

    /// The user, if the URL names one.
    pub fn user(&self) -> Option<&str> {
        Some(self.url.username()).filter(|user| !user.is_empty())
    }

    /// The same place with this user; an empty name means no user.
    pub fn of_user(mut self, user: &str) -> Self {
        // Fails only if there is no host.
        let _ = self.url.set_username(user);
        self
    }

    /// The URL without the user, as requested.
    pub(crate) fn request(&self) -> String {
        let mut url = self.url.clone();
        // Fails only if there is no host.
        let _ = url.set_username("");
        url.set_fragment(None);
        url.to_string()
    }

    /// The path, decoded, without its leading slash, as FTP needs it (RFC 1738 section 3.2.2: relative to the user's
    /// directory after the login; `%2F` at its beginning makes it absolute).
    pub(crate) fn path(&self) -> Vec<u8> {
        let path = self.url.path();
        let path = path.strip_prefix('/').unwrap_or(path);
        percent_encoding::percent_decode_str(path).collect()
    }

    /// Whether the path is empty or names a directory.
    pub fn is_directory(&self) -> bool {
        self.url.path().ends_with('/')
    }
}

/// A URL without the zone of its address, and the zone: `http://[fe80::1%25eth0]/` (RFC 6874), or with a bare `%`, as
/// people type it.
fn without_zone(text: &str) -> (Cow<'_, str>, Option<String>) {
    let found = || {
        let authority = text.find("://")? + 3;
        let length = text[authority..].find(['/', '?', '#']);
        let end = length.map_or(text.len(), |length| authority + length);
        let close = authority + text[authority..end].find(']')?;
        let open = authority + text[authority..close].find('[')?;
        let percent = open + text[open..close].find('%')?;
        let zone = &text[percent + 1..close];
        let zone = zone.strip_prefix("25").filter(|rest| !rest.is_empty()).unwrap_or(zone);
        Some((format!("{}{}", &text[..percent], &text[close..]), zone.to_owned()))
    };
    match found() {
        Some((url, zone)) => (Cow::Owned(url), Some(zone).filter(|zone| !zone.is_empty())),
        None => (Cow::Borrowed(text), None),
    }
}

/// The path of a URL `file:///PATH` on this host.
pub fn path_of_url(text: &str) -> Result<PathBuf, FileError> {
    let url =
        Url::parse(text).map_err(|why| FileError::Place(format!("it can't be read: {why}")))?;
    let far = || FileError::Place("it names another host; write file:///PATH".into());
    url.to_file_path().map_err(|()| far())
}

/// The URL `file:///PATH` of an absolute path on this host; `None` if it is relative.
pub fn url_of_path(path: &Path) -> Option<String> {
    Url::from_file_path(path).ok().map(String::from)
}

impl fmt::Display for Place {
    /// The URL, with the zone of its address (RFC 6874).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url.as_str();
        match self.zone.as_ref().zip(url.split_once(']')) {
            Some((zone, (before, after))) => write!(f, "{before}%25{zone}]{after}"),
            None => f.write_str(url),
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use crate::schemes;
    use crate::schemes::http::{HTTP, HTTPS};

    #[test]
    fn hosts_ports_and_users_are_distinguished() {
        let parts = |text: &str| {
            let place = schemes::parse(text).unwrap();
            (place.host().to_owned(), place.port(), place.user().map(str::to_owned))
        };
        assert_eq!(parts("http://nas/a b"), ("nas".into(), 80, None));
        assert_eq!(parts("http://me@[::1]:81/x"), ("::1".into(), 81, Some("me".into())));
        let zone = |text: &str| {
            let place = schemes::parse(text).unwrap();
            (place.host().to_owned(), place.address())
        };
        for text in ["http://me@[fe80::1%25eth0]:81/x%2f", "http://[fe80::1%eth0]/[y%25z]"] {
            assert_eq!(zone(text), ("fe80::1".into(), "fe80::1%eth0".into()), "{text}");
            let shown = schemes::parse(text).unwrap().to_string();
            assert_eq!(zone(&shown), zone(text), "{shown}");
        }
        assert_eq!(zone("http://[::1]/[y%25z]").1, "::1");
        assert_eq!(zone("http://nas/[y%25z]").1, "nas");
        let place = schemes::parse("http://me@nas/größe 1?x#y").unwrap();
        assert_eq!(place.request(), "http://nas/gr%C3%B6%C3%9Fe%201?x");
        assert!(schemes::parse("http://nas").unwrap().is_directory());
    }

    #[test]
    fn a_password_is_refused_and_not_repeated() {
        for text in
            ["http://me:s3cret@nas/x", "http://me:s3cret@/x", "http://me:s3cret@nas:99999/x"]
        {
            let why = schemes::parse(text).unwrap_err().to_string();
            assert!(!why.contains("s3cret"), "{why}");
        }
        assert!(schemes::parse("gopher://nas/x").unwrap_err().to_string().contains("gopher://"));
    }

    #[test]
    fn a_file_is_put_beside_the_one_that_was_named() {
        let beside = |text: &str| schemes::parse(text).unwrap().beside(".x").unwrap().to_string();
        assert_eq!(beside("http://me@nas:81/a/b?c#d"), "http://me@nas:81/a/.x");
        assert_eq!(beside("ftp://nas/a/"), "ftp://nas/a/.x");
        assert_eq!(beside("http://nas"), "http://nas/.x");
        let nfs = "nfs://nas:2049/a/.x?mountport=20048";
        assert_eq!(beside("nfs://nas:2049/a/?mountport=20048"), nfs, "it is about the server");
    }

    #[test]
    fn a_redirect_is_read_from_where_it_was_given() {
        let place = schemes::parse("http://me@nas/a/b").unwrap();
        let redirect = |to: &str| place.redirect(to, &[&HTTP.scheme, &HTTPS.scheme]);
        assert_eq!(redirect("../c").unwrap().request(), "http://nas/c");
        assert_eq!(redirect("//else/c").unwrap().host(), "else");
        assert_eq!(redirect("https://nas/c").unwrap().port(), 443);
        assert!(redirect("http://").is_err());
        for other in ["gopher://nas/", "ftp://nas/"] {
            assert!(redirect(other).unwrap_err().to_string().contains("no web page"));
        }
    }
}
