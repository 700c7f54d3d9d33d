//! A user and a password, which no message and no record ever shows.

use std::fmt;

use crate::place::Place;

/// A user with a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user.
    pub user: String,
    /// Never shown.
    pub(crate) password: String,
}

impl Login {
    /// A user with a password.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: user.into(), password: password.into() }
    }

    /// The login in `netrc`, the text of a file ~/.netrc (ftp(1), netrc(5)), for the host of a place, and for its user
    /// if the place names one. The first match counts, and `default` matches any host.
    pub fn of_netrc(netrc: &str, place: &Place) -> Option<Self> {
        let mut words = Words(netrc);
        let mut found: Option<Entry> = None;
        while let Some(word) = words.next() {
            match word.as_str() {
                "machine" | "default" => {
                    if let Some(login) = found.take().and_then(|entry| entry.login(place)) {
                        return Some(login);
                    }
                    let is_named = word == "machine";
                    let host = if is_named { words.next() } else { None };
                    let fits = !is_named
                        || host.is_some_and(|host| host.eq_ignore_ascii_case(place.host()));
                    found = fits.then(Entry::default);
                }
                "login" => note(&mut found, words.next(), |entry| &mut entry.user),
                "password" => note(&mut found, words.next(), |entry| &mut entry.password),
                "account" => drop(words.next()),
                "macdef" => words.skip_macro(),
                _ => {}
            }
        }
        found.and_then(|entry| entry.login(place))
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// The entry of a machine in such a file.
#[derive(Default)]
struct Entry {
    user: Option<String>,
    password: Option<String>,
}

impl Entry {
    fn login(self, place: &Place) -> Option<Login> {
        let user = self.user.or_else(|| place.user().map(str::to_owned))?;
        let is_asked = place.user().is_none_or(|asked| asked == user);
        is_asked.then(|| Login { user, password: self.password.unwrap_or_default() })
    }
}

fn note(
    entry: &mut Option<Entry>,
    word: Option<String>,
    field: impl Fn(&mut Entry) -> &mut Option<String>,
) {
    if let Some(entry) = entry {
        *field(entry) = word;
    }
}

/// The words of a file, quoted or not, without comments.
struct Words<'a>(&'a str);

impl Words<'_> {
    /// A macro ends at the next empty line.
    fn skip_macro(&mut self) {
        self.0 = self.0.split_once("\n\n").map_or("", |(_, rest)| rest);
    }
}

impl Iterator for Words<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        loop {
            self.0 = self.0.trim_start();
            if !self.0.starts_with('#') {
                break;
            }
            self.0 = self.0.split_once('\n').map_or("", |(_, rest)| rest);
        }
        let mut word = String::new();
        let (quoted, mut escaped) = (self.0.starts_with('"'), false);
        let skipped = usize::from(quoted);
        for (at, c) in self.0.char_indices().skip(skipped) {
            match c {
                _ if escaped => {
                    word.push(c);
                    escaped = false;
                }
                '\\' if quoted => escaped = true,
                '"' if quoted => {
                    self.0 = &self.0[at + 1..];
                    return Some(word);
                }
                c if c.is_whitespace() && !quoted => {
                    self.0 = &self.0[at..];
                    return Some(word);
                }
                c => word.push(c),
            }
        }
        self.0 = "";
        (!word.is_empty()).then_some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemes;

    const NETRC: &str = "# mine\nmachine nas login me password s3cret\nmachine nas login you password \"a b\\\"c\"\n\
                         macdef init\nmachine evil login x password y\n\nmachine other password p\ndefault login any password d";

    fn found(place: &str) -> Option<(String, String)> {
        let login = Login::of_netrc(NETRC, &schemes::parse(place).unwrap())?;
        Some((login.user, login.password))
    }

    #[test]
    fn the_first_that_fits_counts() {
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        assert_eq!(found("ftp://nas/x"), pair("me", "s3cret"));
        assert_eq!(found("ftp://you@NAS/x"), pair("you", "a b\"c"));
        assert_eq!(found("http://we@other/x"), pair("we", "p"));
        assert_eq!(found("http://evil/x"), pair("any", "d"), "a macro is no machine");
        assert_eq!(found("http://me@evil/x"), None);
        for text in ["machine", "machine nas login", "machine nas login \"me", "macdef", "\""] {
            assert!(
                Login::of_netrc(text, &schemes::parse("ftp://nas/x").unwrap())
                    .is_none_or(|l| l.password.is_empty())
            );
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        assert!(!format!("{:?}", Login::new("me", "s3cret")).contains("s3cret"));
    }
}
