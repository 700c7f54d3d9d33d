//! Which database of PostgreSQL has the history, and how it is reached.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::password;

/// Where Debian's servers have their socket, if the URL names no host.
const SOCKET_DIRECTORY: &str = "/var/run/postgresql";

/// The port that a URL need not name.
const PORT: u16 = 5432;

/// How long a host may take to accept a connection. A name may stand for several.
const ACCEPT: Duration = Duration::from_secs(5);

/// How long a host may take to acknowledge what it is sent.
const ACKNOWLEDGE: Duration = Duration::from_secs(30);

/// Idle time after which the kernel asks whether the other host is still there.
const IDLE: Duration = Duration::from_secs(60);

/// The option of the URL with the file of authorities, which the client library does not know.
const AUTHORITIES: &str = "sslrootcert=";

/// A database of PostgreSQL, as its URL names it. Shown without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    config: Config,
    authorities: Option<PathBuf>,
}

impl Server {
    /// The database that a URL names, with the options of libpq that the client library knows, and `sslrootcert`.
    ///
    /// TLS is asked for unless the server is on this host, or the URL says otherwise.
    ///
    /// # Errors
    /// Why it names none; never with a part of it, which may be a password.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let (url, authorities) = without_authorities(url);
        // What follows the first one would be a host, and be shown.
        if url.matches('@').count() > 1 {
            return Err("there is an @ too many: in a password it is written %40".into());
        }
        let mut config: Config = url.parse().map_err(in_words)?;
        if config.get_user().is_none() {
            config.user(ours()?);
        }
        name_hosts(&mut config);
        if !names_option(&url, "sslmode") {
            config.ssl_mode(if is_here(&config) { SslMode::Disable } else { SslMode::Require });
        }
        if config.get_application_name().is_none() {
            config.application_name("goodput");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(ACCEPT);
        }
        config.tcp_user_timeout(ACKNOWLEDGE).keepalives_idle(IDLE);
        Ok(Self { config, authorities })
    }

    /// What to connect with: as the URL says, with the password of the environment if the URL has none.
    pub(super) fn config(&self) -> Config {
        let mut config = self.config.clone();
        if config.get_password().is_none()
            && let Some(password) = password::of_environment(&self.logins())
        {
            config.password(password);
        }
        config
    }

    /// The file with the authorities that may have signed the server's certificate.
    pub(super) fn authorities(&self) -> Option<&Path> {
        self.authorities.as_deref()
    }

    /// Who logs in.
    pub(super) fn user(&self) -> String {
        self.config.get_user().unwrap_or_default().to_owned()
    }

    /// Name of the database; PostgreSQL calls one without a name as its user.
    pub(super) fn database(&self) -> String {
        self.config.get_dbname().map_or_else(|| self.user(), str::to_owned)
    }

    /// Host, port, database and user, as a password file has them, for each host.
    fn logins(&self) -> Vec<[String; 4]> {
        let (database, user) = (self.database(), self.user());
        let login = |(host, port): (String, u16)| {
            let host = if host == SOCKET_DIRECTORY { "localhost".into() } else { host };
            [host, port.to_string(), database.clone(), user.clone()]
        };
        self.hosts().map(login).collect()
    }

    fn hosts(&self) -> impl Iterator<Item = (String, u16)> {
        let ports = self.config.get_ports();
        let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(PORT);
        let names = self.config.get_hosts().iter().map(shown);
        names.enumerate().map(move |(at, name)| (name, port(at)))
    }
}

impl fmt::Display for Server {
    /// `postgres://user@host/database`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = |(name, port): (String, u16)| match port {
            PORT => name,
            port if name.contains(':') => format!("[{name}]:{port}"),
            port => format!("{name}:{port}"),
        };
        let hosts: Vec<_> = self.hosts().map(host).collect();
        let user = self.config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
        write!(f, "postgres://{user}{}/{}", hosts.join(","), self.database())
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Who logs in if the URL names nobody: the user of this process, as libpq has it.
fn ours() -> Result<String, String> {
    let why = |why| format!("it names no user, and this process runs as one without a name: {why}");
    whoami::username().map_err(why)
}

/// Names the hosts of which the URL has only addresses, or none at all.
fn name_hosts(config: &mut Config) {
    if !config.get_hosts().is_empty() {
        return;
    }
    let addresses = config.get_hostaddrs().to_vec();
    if addresses.is_empty() {
        config.host_path(SOCKET_DIRECTORY);
    }
    // TLS checks a certificate by the name.
    for address in addresses {
        config.host(address.to_string());
    }
}

/// The URL without its file of authorities, and that file.
fn without_authorities(url: &str) -> (String, Option<PathBuf>) {
    let (before, options) = parted(url);
    let (named, others): (Vec<&str>, Vec<&str>) =
        options.split('&').partition(|option| option.starts_with(AUTHORITIES));
    let Some(named) = named.last() else { return (url.into(), None) };
    let file = percent_decode_str(&named[AUTHORITIES.len()..]).decode_utf8_lossy().into_owned();
    let mark = if others.is_empty() { "" } else { "?" };
    (format!("{before}{mark}{}", others.join("&")), Some(file.into()))
}

fn names_option(url: &str, name: &str) -> bool {
    let keys = parted(url).1.split('&').filter_map(|option| option.split_once('='));
    keys.map(|(key, _)| percent_decode_str(key)).any(|key| key.eq(name.bytes()))
}

/// What is before the options of a URL, and these. A password may have a question mark.
fn parted(url: &str) -> (&str, &str) {
    let host = url.find('@').unwrap_or_default();
    let mark = url[host..].find('?').map(|at| host + at);
    mark.map_or((url, ""), |at| (&url[..at], &url[at + 1..]))
}

/// Why the client library does not take the URL. It shows what it does not know, which may be a part of a password.
fn in_words(why: tokio_postgres::Error) -> String {
    let why = why.into_source().map_or_else(|| "it is not complete".into(), |why| why.to_string());
    match why.starts_with("unknown option") {
        true => {
            "it has an option that goodput does not know (in a password, & is written %26)".into()
        }
        false => why,
    }
}

fn shown(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(directory) => directory.display().to_string(),
    }
}

/// Whether all hosts are this one. What counts of each is its address, if the URL has one, as it is what is connected to.
fn is_here(config: &Config) -> bool {
    let addresses = config.get_hostaddrs();
    let is_local = |(at, host): (usize, &Host)| match (addresses.get(at), host) {
        (Some(address), _) => address.is_loopback(),
        (None, Host::Unix(_)) => true,
        (None, Host::Tcp(name)) => {
            name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        }
    };
    config.get_hosts().iter().enumerate().all(is_local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_shown_without_its_password() {
        for (url, shown) in [
            ("postgres://ada:secret@db.example/net", "postgres://ada@db.example/net"),
            ("postgresql://ada:secret@db:5433/net?connect_timeout=3", "postgres://ada@db:5433/net"),
            ("postgres://ada@/net?password=secret", "postgres://ada@/var/run/postgresql/net"),
            ("postgres://ada@[::1]:99/net", "postgres://ada@[::1]:99/net"),
            ("postgres://ada@%2Ftmp/net", "postgres://ada@/tmp/net"),
            ("postgres://ada@a,b/net", "postgres://ada@a,b/net"),
            ("postgres://ada@db/net?hostaddr=192.0.2.7", "postgres://ada@db/net"),
            ("postgres://ada@/net?hostaddr=192.0.2.7", "postgres://ada@192.0.2.7/net"),
            ("postgres://ada:sec?ret@db/net?sslrootcert=ca", "postgres://ada@db/net"),
        ] {
            let server = Server::parse(url).unwrap();
            assert_eq!(server.to_string(), shown);
            assert_eq!(format!("{server:?}"), shown);
        }
    }

    #[test]
    fn what_names_no_database_is_refused_without_its_password() {
        for url in [
            "postgres://ada:sec@ret@db/net",
            "postgres://ada:sec@ret/t@db/net",
            "postgres://ada:secret@db:http/net",
            "postgres://ada:secret@db/net?sslmode=verify-full",
            "postgres://ada:secret@db/net?colour=red",
            "postgres://ada:secret@[::1/net",
            "postgres://ada@db/net?password=sec&ret=1",
            "mysql://ada:secret@db/net",
        ] {
            let why = Server::parse(url).unwrap_err();
            assert!(!why.contains("ret"), "{why}");
        }
    }

    #[test]
    fn tls_is_asked_for_unless_the_server_is_here() {
        for (url, mode) in [
            ("postgres://a@db/n", SslMode::Require),
            ("postgres://a@localhost,db/n", SslMode::Require),
            ("postgres://a@db/n?sslmode=disable", SslMode::Disable),
            ("postgres://a@localhost/n", SslMode::Disable),
            ("postgres://a@127.0.0.1/n", SslMode::Disable),
            ("postgres://a@[::1]/n?sslmode=require", SslMode::Require),
            ("postgres:///n", SslMode::Disable),
            ("postgres:///n?hostaddr=127.0.0.1", SslMode::Disable),
            ("postgres:///n?hostaddr=192.0.2.7", SslMode::Require),
            ("postgres://a@localhost/n?hostaddr=192.0.2.7", SslMode::Require),
            ("postgres://a@db/n?hostaddr=::1", SslMode::Disable),
            ("postgres://a:sslmode=@db/n", SslMode::Require),
            ("postgres://a:x?sslmode=y@db/n", SslMode::Require),
            ("postgres://a@db/n?application_name=sslmode=", SslMode::Require),
            ("postgres://a@localhost/n?sslmod%65=require", SslMode::Require),
        ] {
            assert_eq!(Server::parse(url).unwrap().config.get_ssl_mode(), mode, "{url}");
        }
    }

    #[test]
    fn who_logs_in_is_this_user_unless_the_url_names_one() {
        let of = |url: &str| Server::parse(url).unwrap();
        assert_eq!(of("postgres://ada@db/net").user(), "ada");
        let ours = of("postgres://db");
        assert_eq!(ours.user(), whoami::username().unwrap());
        assert_eq!(ours.config().get_user(), Some(ours.user().as_str()));
        assert_eq!(ours.database(), ours.user());
        assert_eq!(ours.logins(), [["db".into(), "5432".into(), ours.user(), ours.user()]]);
    }

    #[test]
    fn the_file_of_authorities_is_taken_out_of_the_url() {
        let of = |options: &str| Server::parse(&format!("postgres://a@db/n?{options}")).unwrap();
        assert_eq!(of("sslmode=disable").authorities(), None);
        let named = of("sslrootcert=%2Fetc%2Fca.pem&connect_timeout=7");
        assert_eq!(named.authorities(), Some(Path::new("/etc/ca.pem")));
        assert_eq!(named.config.get_connect_timeout(), Some(&Duration::from_secs(7)));
        assert_eq!(of("sslrootcert=ca.pem").authorities(), Some(Path::new("ca.pem")));
    }
}
