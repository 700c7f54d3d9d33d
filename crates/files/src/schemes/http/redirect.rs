//! Where a redirect may lead: nothing is sent to a host that the user did not name.

use super::{HTTP, HTTPS};
use crate::error::FileError;
use crate::options::Options;
use crate::place::Place;
use crate::words::shown;

/// Most consecutive redirects.
pub(super) const MAX_REDIRECTS: usize = 10;

/// The place to which `location` resolves at `from`, if a request may go there; the user named
/// `named`.
pub(super) fn judge(
    named: &Place,
    from: &Place,
    location: &[u8],
    options: &Options,
) -> Result<Place, FileError> {
    let text = std::str::from_utf8(location).map_err(|_| {
        FileError::Protocol("the server redirects to a place that can't be read".into())
    })?;
    let to = from.redirect(text, &[&HTTP.scheme, &HTTPS.scheme])?;
    let to_words = shown(to.to_string().as_bytes());
    if options.follow {
        return Ok(to);
    }
    if !to.host().eq_ignore_ascii_case(named.host()) {
        return Err(FileError::Refused(format!(
            "the server redirects to another host, {to_words}; name that one, or allow it by --follow"
        )));
    }
    if from.scheme() == &HTTPS.scheme && to.scheme() == &HTTP.scheme {
        return Err(FileError::Refused(format!(
            "the server redirects to {to_words}, which is not encrypted; name that one, or allow it by --follow"
        )));
    }
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemes;

    #[test]
    fn only_hosts_that_the_user_named_are_asked() {
        let named = schemes::parse("http://nas/x").unwrap();
        let judge = |to: &str, follow| {
            judge(&named, &named, to.as_bytes(), &Options { follow, ..Options::default() })
        };
        assert_eq!(judge("/y", false).unwrap().request(), "http://nas/y");
        assert_eq!(judge("http://NAS:81/y", false).unwrap().port(), 81);
        assert!(judge("http://else/y", false).unwrap_err().to_string().contains("--follow"));
        assert_eq!(judge("http://else/y", true).unwrap().host(), "else");
    }
}
