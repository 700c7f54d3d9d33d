//! An HTTP proxy, as the user names it.

use std::fmt;

use base64ct::{Base64, Encoding};
use percent_encoding::percent_decode_str;
use url::{Host, Url};

use crate::error::FileError;
use crate::login::Login;

/// Default port of a proxy, as in curl.
const DEFAULT_PORT: u16 = 1080;

/// A proxy. Only its host and port are ever shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Name or address, an IPv6 address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    login: Option<Login>,
}

impl Proxy {
    /// Reads `[http://][USER[:PASSWORD]@]HOST[:PORT]`. An invalid text is not repeated: it may contain a password.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let unfit = |why: &str| {
            FileError::Place(format!(
                "the URL of the proxy can't be used: {why}; write http://HOST:PORT"
            ))
        };
        let with_scheme = if text.contains("://") { text.into() } else { format!("http://{text}") };
        let url = Url::parse(&with_scheme).map_err(|why| unfit(&why.to_string()))?;
        if url.scheme() != "http" {
            return Err(unfit(&format!(
                "proxies of the kind {}:// are not supported",
                url.scheme()
            )));
        }
        let host = match url.host() {
            Some(Host::Ipv6(address)) => address.to_string(),
            Some(host) => host.to_string(),
            None => return Err(unfit("it has no host")),
        };
        // The parser removes the scheme's default port.
        let names_80 = with_scheme.trim_end_matches('/').ends_with(":80");
        let port = url.port().unwrap_or(if names_80 { 80 } else { DEFAULT_PORT });
        let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let user = Some(url.username()).filter(|user| !user.is_empty());
        let password = url.password().unwrap_or_default();
        let login = user.map(|user| Login::new(plain(user), plain(password)));
        Ok(Self { host, port, login })
    }

    /// Whether it has a password.
    pub fn has_password(&self) -> bool {
        self.login.as_ref().is_some_and(|login| !login.password.is_empty())
    }

    /// The credentials for the proxy, as a header field.
    pub(crate) fn authorization(&self) -> Option<String> {
        let Login { user, password } = self.login.as_ref()?;
        Some(format!("Basic {}", Base64::encode_string(format!("{user}:{password}").as_bytes())))
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn anything_is_read_or_refused(text in ".{0,60}") {
            let shown = Proxy::parse(&text).map(|proxy| proxy.to_string());
            proptest::prop_assert!(shown.is_err() || !shown.unwrap().contains('@'));
        }
    }

    #[test]
    fn a_proxy_has_a_host_and_shows_no_password() {
        let shown = |text: &str| Proxy::parse(text).unwrap().to_string();
        assert_eq!(shown("cache"), "cache:1080");
        assert_eq!(shown("http://cache:80/"), "cache:80");
        assert_eq!(shown("http://[::1]:3128"), "[::1]:3128");
        let with_login = Proxy::parse("http://me:s3c%20ret@cache:8080").unwrap();
        assert!(with_login.has_password());
        assert_eq!(format!("{with_login} {with_login:?}"), "cache:8080 Proxy(cache:8080)");
        // "me:s3c ret" (RFC 7617).
        assert_eq!(with_login.authorization().unwrap(), "Basic bWU6czNjIHJldA==");
        for text in
            ["socks5://me:s3cret@cache", "https://s3cret@cache", "http://", "http://me:s3cret@", ""]
        {
            let why = Proxy::parse(text).unwrap_err().to_string();
            assert!(!why.contains("s3cret") && why.contains("HOST:PORT"), "{why}");
        }
    }
}
