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
use crate::reasons::{is_for_room, of_connecting};
use crate::refusals::{On, Refusals};
use crate::seed::Seed;
use crate::streams::Streams;

/// A connection to NATS. After it has begun, it is made again whenever it breaks; what is asked meanwhile fails after some
/// seconds.
#[derive(Debug, Clone)]
pub struct Bus {
    pub(crate) client: Client,
    pub(crate) jetstream: Context,
    refusals: Refusals,
    /// The streams that it has opened.
    streams: Streams,
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
        let (refusals, streams, user) = (Refusals::new(), Streams::default(), proof.user());
        let (heard, opened) = (refusals.clone(), streams.clone());
        let options = ConnectOptions::new().name(name);
        let options = options.event_callback(move |event| {
            // A server that is back may be one that has lost everything.
            opened.doubt();
            hear(event, heard.clone())
        });
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
        Ok(Self { client, jetstream, refusals, streams, inbox: inbox.to_owned(), user })
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
            done = work => done.inspect_err(|_| self.streams.doubt()),
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
        let made = made.inspect(|stream| self.streams.note(stream));
        made.map_err(|why| match why {
            BusError::Forbidden { user, refusal, .. }
                if refusal.subject.ends_with(&subjects[1]) =>
            {
                BusError::NotThere { stream: name, user }
            }
            why => why,
        })
    }

    /// Something is as it can only be if streams are gone: they are looked at soon.
    pub(crate) fn doubt(&self) {
        self.streams.doubt();
    }

    /// Waits until a stream that this connection has opened is gone, or another one has its name: the server was set up anew, or
    /// someone has removed the stream. Returns its name. Looks only if something has failed.
    pub async fn lost(&self) -> String {
        self.streams.lost(&self.jetstream, &self.client).await
    }

    async fn made(&self, config: Config) -> Result<Stream, BusError> {
        let mut tried = Config { num_replicas: COPIES, ..config.clone() };
        loop {
            let why = match self.complete(&tried).await {
                Ok(made) => {
                    warn_of_less(&config, &made);
                    return Ok(made);
                }
                Err(why) => why,
            };
            let lack = Lack::of(&why);
            let Some(next) = lack.and_then(|lack| instead(&config, &tried, lack)) else {
                return Err(refused_stream(&config.name, why));
            };
            if lack == Some(Lack::Servers) && next.num_replicas < tried.num_replicas {
                tracing::warn!(
                    "the NATS cluster can't keep {COPIES} copies of the stream {}, so it gets one, and is away while its \
                     server is; once {COPIES} servers run: nats stream edit {} --replicas {COPIES}",
                    config.name,
                    config.name
                );
            }
            tried = next;
        }
    }

    /// This stream. A cluster also says that it is too small while it elects its leader, or while a server of it starts again,
    /// and a stream keeps for good what it was made with: so it is asked for some seconds.
    async fn complete(&self, config: &Config) -> Result<Stream, CreateStreamError> {
        let began = Instant::now();
        loop {
            let made = self.jetstream.get_or_create_stream(config.clone()).await;
            let lack = made.as_ref().err().and_then(Lack::of);
            let is_too_small = lack == Some(Lack::Servers) && config.num_replicas == COPIES;
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

/// What servers lack for a stream, which they may have for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lack {
    /// Room to reserve, of the servers or of the account.
    Room,
    /// Servers of the cluster, now or for good.
    Servers,
    /// A cluster: the server is alone.
    Cluster,
}

impl Lack {
    fn of(why: &CreateStreamError) -> Option<Self> {
        match code(why)? {
            ErrorCode::STORAGE_RESOURCES_EXCEEDED | ErrorCode::INSUFFICIENT_RESOURCES => {
                Some(Self::Room)
            }
            // The text tells for what no server is suitable.
            ErrorCode::CLUSTER_NO_PEERS if is_for_room(why) => Some(Self::Room),
            ErrorCode::CLUSTER_NO_PEERS => Some(Self::Servers),
            ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED => Some(Self::Cluster),
            _ => None,
        }
    }
}

/// What is asked for instead of the stream that was `tried`; none: nothing less would do. Without room, less is reserved, and at
/// last nothing, but no copy is given up.
fn instead(asked: &Config, tried: &Config, lack: Lack) -> Option<Config> {
    if lack != Lack::Room && tried.num_replicas == COPIES {
        return Some(Config { num_replicas: 1, ..asked.clone() });
    }
    // There is a server for one copy, so that it can only lack room, whatever it says.
    let parts = [asked.max_bytes / 4, asked.max_bytes / 16, 0];
    let max_bytes = parts.into_iter().find(|less| *less < tried.max_bytes)?;
    Some(Config { max_bytes, ..tried.clone() })
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
    use async_nats::jetstream;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::thread;

    /// What such servers answer with (nats-server, server/errors.json and server/jetstream_cluster.go).
    fn refused(code: u64, text: &str) -> Option<Lack> {
        let why = serde_json::json!({ "code": 400, "err_code": code, "description": text });
        let why: jetstream::Error = serde_json::from_value(why).unwrap();
        Lack::of(&CreateStreamError::new(CreateStreamErrorKind::JetStream(why)))
    }

    #[test]
    fn what_servers_lack_is_told_apart_by_their_words() {
        let no_peers = "no suitable peers for placement";
        assert_eq!(refused(10_005, &format!("{no_peers}, peer offline")), Some(Lack::Servers));
        let full = format!("{no_peers}, peer offline, insufficient storage");
        assert_eq!(refused(10_005, &full), Some(Lack::Room));
        assert_eq!(refused(10_047, "insufficient storage resources available"), Some(Lack::Room));
        assert_eq!(refused(10_023, "insufficient resources"), Some(Lack::Room));
        let alone = "replicas > 1 not supported in non-clustered mode";
        assert_eq!(refused(10_074, alone), Some(Lack::Cluster));
        assert_eq!(refused(10_065, "subjects overlap with an existing stream"), None);
    }

    #[test]
    fn without_room_less_is_reserved_and_no_copy_is_given_up() {
        let asked = Config { max_bytes: 1600, ..Config::default() };
        let all = |first: Config, lack| {
            let next = |tried: &Config| instead(&asked, tried, lack);
            let tries = std::iter::successors(Some(first), next).skip(1);
            tries.map(|next| (next.num_replicas, next.max_bytes)).collect::<Vec<_>>()
        };
        let copied = Config { num_replicas: COPIES, ..asked.clone() };
        assert_eq!(all(copied.clone(), Lack::Room), [(3, 400), (3, 100), (3, 0)]);
        for lack in [Lack::Servers, Lack::Cluster] {
            let tries = [(1, 1600), (1, 400), (1, 100), (1, 0)];
            assert_eq!(all(copied.clone(), lack), tries, "one copy, with all its room at first");
        }
        let bucket = Config::default();
        assert_eq!(instead(&bucket, &bucket, Lack::Room).map(|next| next.max_bytes), None);
    }

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
