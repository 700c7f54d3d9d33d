//! The connection.

use std::path::Path;
use std::time::{Duration, Instant};

use async_nats::jetstream::context::{CreateStreamError, CreateStreamErrorKind};
use async_nats::jetstream::stream::{Config, Stream};
use async_nats::jetstream::{Context, ErrorCode};
use async_nats::{
    Client, ClientError, ConnectError, ConnectErrorKind, ConnectOptions, Event, ServerError,
};
use serde::Serialize;
use tokio::time::sleep;

use crate::error::BusError;
use crate::reasons::of_connecting;
use crate::refusals::{On, Refusals};
use crate::seed::Seed;

/// A connection to NATS. After it has begun, it is made again whenever it breaks; what is asked meanwhile fails after some
/// seconds.
#[derive(Debug, Clone)]
pub struct Bus {
    pub(crate) client: Client,
    pub(crate) jetstream: Context,
    refusals: Refusals,
    /// What the subjects begin with where it hears answers.
    inbox: String,
    /// Who it is, for people.
    user: String,
}

/// A server of NATS, and who connects to it.
#[derive(Clone, Copy)]
pub struct Server<'a> {
    /// Its address, such as `nats://host:4222` or `tls://host`, or several of one cluster with commas between them.
    pub url: &'a str,
    /// How the user proves who it is.
    pub proof: Proof<'a>,
    /// File with the certificates of the authority that signed the server's own (PEM); absent: those of this host.
    pub authority: Option<&'a Path>,
    /// How the server's own tools call this connection.
    pub name: &'a str,
    /// Where answers come, as a subject: a server that limits subjects gives each user one of its own.
    pub inbox: &'a str,
}

/// How a user proves who it is.
#[derive(Clone, Copy)]
pub enum Proof<'a> {
    /// Not at all.
    None,
    /// With the text of a file of credentials (JWT and nkey).
    Credentials(&'a str),
    /// With an nkey that the server's configuration names.
    Nkey(&'a Seed),
}

impl Proof<'_> {
    /// Who proves it so, for people.
    fn user(&self) -> String {
        match self {
            Self::None => "a user without a key".into(),
            Self::Credentials(_) => "the user of these credentials".into(),
            Self::Nkey(seed) => format!("the key {}", seed.public()),
        }
    }
}

impl Bus {
    /// Connects to the server.
    ///
    /// # Errors
    /// The address names a user, the credentials can't be read, the server can't be reached, or it refuses the user.
    pub async fn connect(server: Server<'_>) -> Result<Self, BusError> {
        let Server { url, proof, authority, name, inbox } = server;
        let addresses: Vec<&str> = url.split(',').map(str::trim).collect();
        if addresses
            .iter()
            .any(|url| url.split_once("://").map_or(*url, |(_, rest)| rest).contains('@'))
        {
            return Err(BusError::UserInAddress);
        }
        let (refusals, user) = (Refusals::new(), proof.user());
        let heard = refusals.clone();
        let options = ConnectOptions::new().name(name);
        let options = options.event_callback(move |event| hear(event, heard.clone()));
        let options = options.custom_inbox_prefix(inbox);
        let options = match proof {
            Proof::None => options,
            Proof::Credentials(text) => options.credentials(text).map_err(BusError::Credentials)?,
            Proof::Nkey(seed) => options.nkey(seed.text()?),
        };
        let options = match authority {
            None => options,
            // Without encryption, nobody would look at the certificate.
            Some(file) => options.add_root_certificates(file.to_owned()).require_tls(true),
        };
        let client = first_connection(&options, &addresses).await.map_err(|why| {
            let cause = std::error::Error::source(&why).map(ToString::to_string);
            let why = of_connecting(why.kind(), cause.as_deref(), &user);
            BusError::Connect { url: url.to_owned(), why }
        })?;
        let jetstream = async_nats::jetstream::new(client.clone());
        Ok(Self { client, jetstream, refusals, inbox: inbox.to_owned(), user })
    }

    /// Does what needs rights at these subjects. A request without them has no answer: the server says beside it that it
    /// refuses.
    pub(crate) async fn with_rights<T>(
        &self,
        subjects: &[String],
        operation: &str,
        work: impl Future<Output = Result<T, BusError>>,
    ) -> Result<T, BusError> {
        self.refusals.forget(&On { subjects, heard: "", inbox: &self.inbox });
        self.unless_refused(subjects, operation, work).await
    }

    /// The same for what has begun: what was refused before counts.
    pub(crate) async fn unless_refused<T>(
        &self,
        subjects: &[String],
        operation: &str,
        work: impl Future<Output = Result<T, BusError>>,
    ) -> Result<T, BusError> {
        self.unless(On { subjects, heard: "", inbox: &self.inbox }, operation, work).await
    }

    /// The same for what is heard at a subject.
    pub(crate) async fn while_heard<T>(
        &self,
        heard: &str,
        operation: &str,
        work: impl Future<Output = Result<T, BusError>>,
    ) -> Result<T, BusError> {
        self.unless(On { subjects: &[], heard, inbox: &self.inbox }, operation, work).await
    }

    async fn unless<T>(
        &self,
        on: On<'_>,
        operation: &str,
        work: impl Future<Output = Result<T, BusError>>,
    ) -> Result<T, BusError> {
        tokio::select! {
            biased;
            done = work => done,
            refusal = self.refusals.next(&on) => {
                let (operation, user) = (operation.to_owned(), self.user.clone());
                Err(BusError::Forbidden { operation, user, refusal })
            }
        }
    }

    /// A stream, made on first use: with several copies if the servers are a cluster that has room for them.
    pub(crate) async fn stream(&self, config: Config) -> Result<Stream, BusError> {
        let name = config.name.clone();
        let subjects = [format!("STREAM.INFO.{name}"), format!("STREAM.CREATE.{name}")];
        let made = self.with_rights(&subjects, &make(&name), self.made(config)).await;
        made.map_err(|why| match why {
            BusError::Forbidden { user, refusal, .. }
                if refusal.subject.ends_with(&subjects[1]) =>
            {
                BusError::NotThere { stream: name, user }
            }
            why => why,
        })
    }

    async fn made(&self, config: Config) -> Result<Stream, BusError> {
        let name = config.name.clone();
        let mut made = self.copied(&config).await;
        for less in smaller(&config) {
            if !made.as_ref().err().and_then(code).is_some_and(lacks_room) {
                break;
            }
            made =
                self.jetstream.get_or_create_stream(Config { num_replicas: COPIES, ..less }).await;
        }
        let refused = made.as_ref().err().and_then(code);
        if refused == Some(TOO_FEW) {
            tracing::warn!(
                "the NATS cluster can't keep {COPIES} copies of the stream {}, so it gets one, and is away while its \
                 server is; once {COPIES} servers run: nats stream edit {} --replicas {COPIES}",
                config.name,
                config.name
            );
        }
        // The last one reserves nothing.
        let alone = smaller(&config).into_iter().chain([Config { max_bytes: 0, ..config.clone() }]);
        for bounded in [config.clone()].into_iter().chain(alone) {
            let refused = made.as_ref().err().and_then(code);
            if !refused.is_some_and(|why| why == ALONE || lacks_room(why)) {
                break;
            }
            made = self.jetstream.get_or_create_stream(bounded).await;
        }
        let made = made.map_err(|why| refused_stream(&name, why))?;
        warn_of_less(&config, &made);
        Ok(made)
    }

    /// The stream with several copies. A cluster also says that it is too small while it elects its leader, or while a
    /// server of it starts again, and a stream keeps for good what it was made with: so it is asked for some seconds.
    async fn copied(&self, config: &Config) -> Result<Stream, CreateStreamError> {
        let copied = Config { num_replicas: COPIES, ..config.clone() };
        let began = Instant::now();
        loop {
            let made = self.jetstream.get_or_create_stream(copied.clone()).await;
            let is_too_small = made.as_ref().err().and_then(code) == Some(TOO_FEW);
            if !is_too_small || began.elapsed() >= COMPLETE_AFTER {
                return made;
            }
            sleep(ASKED_AGAIN_AFTER).await;
        }
    }

    /// The longest message that the server takes, bytes, headers included.
    pub fn longest_message(&self) -> usize {
        self.client.server_info().max_payload
    }
}

/// How often a server is tried that does not answer within the five seconds that the library waits for it: TLS takes long on a
/// host that has much to do. Once there is a connection, the library itself makes it again.
const TRIES: u32 = 4;

/// The first connection. A server that is slow is tried again; what can't go better the next time is not.
async fn first_connection(
    options: &ConnectOptions,
    addresses: &[&str],
) -> Result<Client, ConnectError> {
    for _ in 1..TRIES {
        match options.clone().connect(addresses).await {
            Err(why) if why.kind() == ConnectErrorKind::TimedOut => {
                tracing::info!("NATS: no answer in time; trying again");
            }
            done => return done,
        }
    }
    options.clone().connect(addresses).await
}

/// Copies of each stream in a cluster. With three, one server can be lost (docs.nats.io, "JetStream Clustering").
const COPIES: usize = 3;

/// How long a cluster may take to elect a leader, and to see all its servers.
const COMPLETE_AFTER: Duration = Duration::from_secs(10);
/// Time between two requests meanwhile.
const ASKED_AGAIN_AFTER: Duration = Duration::from_millis(250);
/// What a server alone answers.
const ALONE: ErrorCode = ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED;
/// What a cluster answers that sees too few servers, now or for good.
const TOO_FEW: ErrorCode = ErrorCode::CLUSTER_NO_PEERS;

/// The same stream with less room, for servers that have less.
fn smaller(config: &Config) -> Vec<Config> {
    let parts = [4, 16].map(|part| Config { max_bytes: config.max_bytes / part, ..config.clone() });
    parts.into_iter().filter(|less| less.max_bytes > 0).collect()
}

/// Whether the servers can't reserve the room of a stream. A cluster says the same if it has too few servers.
fn lacks_room(why: ErrorCode) -> bool {
    const NO_ROOM: [ErrorCode; 3] =
        [TOO_FEW, ErrorCode::STORAGE_RESOURCES_EXCEEDED, ErrorCode::INSUFFICIENT_RESOURCES];
    NO_ROOM.contains(&why)
}

/// Says that a stream has less room than it should. One that was there before keeps what it was made with.
fn warn_of_less(asked: &Config, stream: &Stream) {
    let has = stream.cached_info().config.max_bytes;
    if has > 0 && has < asked.max_bytes {
        tracing::warn!(
            "the stream {} has room for {has} bytes at the NATS server, and should have room for {}; give JetStream more \
             (max_file_store), and then: nats stream edit {} --max-bytes {}",
            asked.name,
            asked.max_bytes,
            asked.name,
            asked.max_bytes
        );
    }
}

/// Why the servers refuse a stream, if they said so.
fn code(why: &CreateStreamError) -> Option<ErrorCode> {
    match why.kind() {
        CreateStreamErrorKind::JetStream(why) => Some(why.error_code()),
        _ => None,
    }
}

fn make(stream: &str) -> String {
    format!("make the stream {stream}")
}

/// Why a stream can't be had. While the servers of a cluster elect their leader, they say nothing, or that JetStream is
/// away for the moment.
fn refused_stream(name: &str, why: CreateStreamError) -> BusError {
    let operation = make(name);
    let is_away = code(&why) == Some(ErrorCode::CLUSTER_NOT_AVAILABLE)
        || matches!(why.kind(), CreateStreamErrorKind::TimedOut | CreateStreamErrorKind::Response);
    if is_away { BusError::away(operation)(why) } else { BusError::storage(operation)(why) }
}

/// What the library says of a login that fails when it connects again (the `Display` of its kind of error).
const VIOLATION: &str = "authorization violation";

/// What the server says beside answers. A right that this user lacks shows only here: the request itself has no answer.
async fn hear(event: Event, refusals: Refusals) {
    match event {
        Event::ServerError(ServerError::Other(why)) if refusals.note(&why) => {
            tracing::info!("the NATS server refuses something: {why}");
        }
        Event::ServerError(ServerError::AuthorizationViolation) => {
            refusals.note_login(Instant::now());
        }
        Event::ClientError(ClientError::Other(why)) if why == VIOLATION => {
            refusals.note_login(Instant::now());
        }
        Event::ServerError(why) => tracing::warn!("the NATS server says: {why}"),
        Event::Connected => {
            refusals.clear();
            tracing::info!("NATS: connected");
        }
        event => tracing::info!("NATS: {event}"),
    }
}

/// A message as it goes over the bus.
pub(crate) fn json<T: Serialize>(message: &T) -> Result<Vec<u8>, BusError> {
    serde_json::to_vec(message).map_err(BusError::request("write a message"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::thread;

    /// As while its host is too busy for TLS: the first connection hears nothing.
    #[tokio::test]
    async fn a_server_that_is_slow_at_first_is_tried_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("nats://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            let slow = listener.accept();
            for mut client in listener.incoming().flatten() {
                let info = r#"{"server_id":"x","version":"2.9.10","max_payload":1048576}"#;
                let _ = write!(client, "INFO {info}\r\n");
                let lines = BufReader::new(client.try_clone().unwrap()).lines();
                for _ in lines.map_while(Result::ok).filter(|line| line == "PING") {
                    let _ = write!(client, "PONG\r\n");
                }
            }
            drop(slow);
        });
        let connected = first_connection(&ConnectOptions::new(), &[&url]).await;
        assert!(connected.is_ok(), "{:?}", connected.err());
    }
}
