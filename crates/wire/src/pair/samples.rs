//! Sample data for test conversations.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use goodput_model::{End, Host, Sample, Transport};

use crate::keys::{AuthorizedKeys, Clients, KeyAuthorization, PrivateKey};
use crate::session::{ClientConfig, ClientKey, HostClock, Limits, ServerConfig, ServerIs, Token};

/// The beginning of virtual time: always the same instant within a process.
pub fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    // An `Instant` has no constructor; only its distance to others matters.
    #[expect(clippy::disallowed_methods, reason = "the clock's zero, not the time")]
    *ORIGIN.get_or_init(Instant::now)
}

/// A machine.
pub fn host(name: &str) -> Host {
    Host {
        name: name.into(),
        kernel: "Linux 6.1.0".into(),
        goodput: env!("CARGO_PKG_VERSION").into(),
        cpus: 2,
    }
}

/// A token; each text gives a different one.
pub fn token(text: &str) -> Token {
    Token(format!("{text:x<16}").into_bytes())
}

/// A key; each number gives a different one.
///
/// # Panics
/// Never: any 32 bytes are a key.
pub fn key(number: u8) -> Arc<PrivateKey> {
    /// Making a key is slow in test builds.
    static MADE: [OnceLock<Arc<PrivateKey>>; 8] = [const { OnceLock::new() }; 8];
    let make = || Arc::new(PrivateKey::of([number; 32]).expect("every 32 bytes are a key"));
    MADE.get(usize::from(number)).map_or_else(make, |made| Arc::clone(made.get_or_init(make)))
}

/// The client with the key of this number, and the number of the key by which it knows the server.
pub fn client_key(own: u8, server: Option<u8>) -> ClientKey {
    let by = "line 1 of known_servers".into();
    let known = |number| ServerIs::Known { key: key(number).public(), by };
    ClientKey { own: key(own), server: server.map_or(ServerIs::Unknown, known) }
}

/// A server with the key of this number, which knows the clients of this file. `KEY1` in it is the key with
/// the number 1.
///
/// # Panics
/// When it is no such file.
pub fn knows(clients: &str, own: u8) -> KeyAuthorization {
    let clients = clients.replace("KEY1", &key(1).public().to_string());
    let clients = AuthorizedKeys::parse(&clients).expect("the list of the test is good");
    KeyAuthorization { own: key(own), clients: Clients::new(clients) }
}

/// How far the server's time of day is ahead of the client's, microseconds.
pub const FAR_AHEAD_US: u64 = 7_000_000;

/// What the client's monotonic clock reads at [`origin`], nanoseconds.
pub const BOOTED_NS: u64 = 900_000_000_000;

/// Both clocks of the server are ahead by the same time.
fn clock(ahead_us: u64) -> HostClock {
    HostClock {
        at: origin(),
        unix_us: 1_700_000_000_000_000 + ahead_us,
        monotonic_ns: Some(BOOTED_NS + ahead_us * 1000),
    }
}

/// A client, with the token of this text if there is one.
pub fn client_config(text: Option<&str>) -> ClientConfig {
    ClientConfig {
        host: host("near"),
        token: text.map(token),
        key: None,
        login: None,
        seed: [5; 32],
        clock: clock(0),
    }
}

/// A server, with the token of this text if there is one.
pub fn server_config(text: Option<&str>) -> ServerConfig {
    ServerConfig {
        host: host("far"),
        token: text.map(token),
        keys: None,
        credential_required: false,
        users: None,
        limits: limits(),
        peer: ([192, 0, 2, 1], 50_000).into(),
        local: ([192, 0, 2, 2], 5_000).into(),
        transport: Transport::Tcp,
        seed: [3; 32],
        clock: clock(FAR_AHEAD_US),
    }
}

/// Limits of a server.
pub fn limits() -> Limits {
    Limits {
        duration_s: 60.0,
        flows: 128,
        rate_bits_per_s: None,
        chunk_bytes: 16 << 20,
        socket_buffer_bytes: 64 << 20,
        dscp: 47,
        unproven_udp: false,
    }
}

/// Counters at an instant.
pub fn sample(at_s: f64, bytes: u64) -> Sample {
    Sample { at_s, sent_bytes: bytes, received_bytes: 0, flows: Vec::new() }
}

/// The observations of one end.
pub fn end(name: &str) -> End {
    End { samples: vec![sample(1.0, 1000)], ..End::unobserved(host(name)) }
}
