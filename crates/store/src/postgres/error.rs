//! What can go wrong with a history in PostgreSQL, and what to do about it.

use std::error::Error as _;

use goodput_model::certificate_in_words;
use tokio_postgres::error::SqlState;

use super::server::Server;

/// The history in a database of PostgreSQL failed. Names the database, without its password.
#[derive(Debug, thiserror::Error)]
#[error("can't {doing} the history in {place}: {why}")]
pub struct PostgresError {
    /// What was tried.
    pub doing: &'static str,
    /// The database.
    pub place: String,
    /// The reason, and what to do.
    pub why: Why,
}

/// Why PostgreSQL did not do it, with what to do.
#[derive(Debug, thiserror::Error)]
pub enum Why {
    /// Nobody answers.
    #[error("no answer: {0}; is PostgreSQL running, and are host and port right?")]
    Away(String),
    /// The answer took too long, or something else held what is needed for too long.
    #[error("it took longer than {0} s; try again when it has less to do")]
    Late(u64),
    /// The connection ended in the middle.
    #[error("the connection was lost: {0}; the next try opens a new one")]
    Lost(String),
    /// No TLS, or a certificate that nobody vouches for.
    #[error(
        "{0}; `?sslrootcert=FILE` in the URL names who signed its certificate, and `?sslmode=disable` does without TLS"
    )]
    Tls(String),
    /// The user may not log in.
    #[error("{0}; the password is taken from the URL, PGPASSWORD or ~/.pgpass (mode 0600)")]
    Login(String),
    /// The server has no such database.
    #[error("{message}; `createdb {name}` makes it")]
    NoDatabase {
        /// What the server says.
        message: String,
        /// Name of the database.
        name: String,
    },
    /// The user may not do this.
    #[error(
        "{message}; the owner of the database lets goodput make its tables by `GRANT CREATE ON DATABASE \"{name}\" TO \
         \"{user}\"`, and the owner of the schema goodput lets others use them"
    )]
    NoRight {
        /// What the server says.
        message: String,
        /// Name of the database.
        name: String,
        /// Who asked.
        user: String,
    },
    /// A server that takes no changes.
    #[error("{0}; it is a standby or set to read-only, so name the primary server")]
    ReadOnly(String),
    /// Another program uses the same name for its tables.
    #[error("its schema `goodput` has tables of another program; name another database")]
    Foreign,
    /// Written by a newer goodput.
    #[error("it has schema {found}, and this goodput knows up to {known}: use a newer goodput")]
    Newer {
        /// Its schema.
        found: i32,
        /// Newest schema that this program knows.
        known: usize,
    },
    /// It can't hold every text.
    #[error("its encoding is {0}; make a database with the encoding UTF8")]
    Encoding(String),
    /// No room left.
    #[error("{0}; make room on the server")]
    Full(String),
    /// Another one changes the same.
    #[error("{0}; try again")]
    Busy(String),
    /// Its tables are not as goodput made them.
    #[error("{0}; someone changed its tables, and a backup has them as they were")]
    Changed(String),
    /// Anything else that PostgreSQL reports.
    #[error("{0}")]
    Other(String),
}

/// What an action ends with, before its database is named.
#[derive(Debug)]
pub(super) enum Failure {
    /// The client library's error.
    Client(tokio_postgres::Error),
    /// Known already.
    Known(Why),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(why: tokio_postgres::Error) -> Self {
        Self::Client(why)
    }
}

impl From<Why> for Failure {
    fn from(why: Why) -> Self {
        Self::Known(why)
    }
}

impl Failure {
    /// The same with its database, in the user's terms.
    pub fn of(self, doing: &'static str, server: &Server) -> PostgresError {
        let why = match self {
            Self::Known(why) => why,
            Self::Client(why) => translated(&why, server),
        };
        PostgresError { doing, place: server.to_string(), why }
    }
}

fn translated(why: &tokio_postgres::Error, server: &Server) -> Why {
    match why.as_db_error() {
        Some(said) => by_code(said.code(), said.message().to_owned(), server),
        None => by_kind(why),
    }
}

/// By the code of the server (PostgreSQL's documentation, "PostgreSQL Error Codes"), of which the first two letters are
/// the class.
fn by_code(code: &SqlState, message: String, server: &Server) -> Why {
    match code.code() {
        "3D000" => Why::NoDatabase { message, name: server.database() },
        "42501" => Why::NoRight { message, name: server.database(), user: server.user() },
        "25006" => Why::ReadOnly(message),
        "53100" => Why::Full(message),
        "55P03" | "57014" | "40001" | "40P01" => Why::Busy(message),
        // It is shutting down or starting up, or is out of memory or of connections.
        "57P03" | "53200" | "53300" => Why::Busy(message),
        "57P01" | "57P02" => Why::Lost(message),
        "42P01" | "42703" | "42804" | "3F000" => Why::Changed(message),
        code if code.starts_with("28") => Why::Login(message),
        code if code.starts_with("08") => Why::Lost(message),
        _ => Why::Other(message),
    }
}

/// By the client library's own words, as its kinds are private.
fn by_kind(why: &tokio_postgres::Error) -> Why {
    let reason = why.source().map_or_else(|| why.to_string(), |reason| reason.to_string());
    match why.to_string().as_str() {
        "error connecting to server" => Why::Away(reason),
        "error performing TLS handshake" => {
            Why::Tls(certificate_in_words(&reason).unwrap_or(reason))
        }
        "authentication error" | "invalid configuration" => Why::Login(reason),
        "connection closed" | "error communicating with the server" => Why::Lost(reason),
        other if other == reason => Why::Other(reason),
        other => Why::Other(format!("{other}: {reason}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_names_the_database_and_says_what_to_do() {
        let server = Server::parse("postgres://ada:secret@db.example/net").unwrap();
        let said = |code: &str| {
            let why = by_code(&SqlState::from_code(code), "it says no".into(), &server);
            Failure::Known(why).of("open", &server).to_string()
        };
        for (code, advice) in [
            ("3D000", "`createdb net` makes it"),
            ("42501", "`GRANT CREATE ON DATABASE \"net\" TO \"ada\"`"),
            ("28P01", "PGPASSWORD or ~/.pgpass"),
            ("25006", "name the primary server"),
            ("53100", "make room on the server"),
            ("53200", "try again"),
            ("55P03", "try again"),
            ("57P01", "the next try opens a new one"),
            ("42P01", "someone changed its tables"),
        ] {
            let text = said(code);
            let begin = "can't open the history in postgres://ada@db.example/net: it says no";
            let lost = "can't open the history in postgres://ada@db.example/net: the connection was lost: it says no";
            assert!(text.starts_with(begin) || text.starts_with(lost), "{text}");
            assert!(text.contains(advice), "{code}: {text}");
        }
        assert!(said("XX000").ends_with("it says no"));
    }
}
