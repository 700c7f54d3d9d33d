//! The control connection written by hand, for either role: what any peer might say, not what
//! goodput would let it say.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use goodput_model::Plan;
use goodput_testing::WAIT_TIMEOUT;
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

/// One control connection.
pub struct RawPeer {
    pub stream: TcpStream,
    address: SocketAddr,
}

/// A frame around `body`.
pub fn frame(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes()[..], body].concat()
}

/// A frame around a message.
pub fn message(message: &Value) -> Vec<u8> {
    frame(message.to_string().as_bytes())
}

/// What the peer says about its host.
pub fn host(name: &str) -> Value {
    json!({ "name": name, "kernel": "Linux 6", "goodput": "0.1.0", "cpus": 1 })
}

impl RawPeer {
    /// Connects from `local` and says nothing.
    pub fn connect_from(local: IpAddr, address: &str) -> Self {
        let address: SocketAddr = address.parse().expect("a server says where it listens");
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket can be made");
        socket.bind(&SocketAddr::new(local, 0).into()).expect("all of 127/8 is this host");
        socket.connect(&address.into()).expect("the server listens");
        Self::on(socket.into(), address)
    }

    /// Takes over a connection that was accepted.
    pub fn on(stream: TcpStream, address: SocketAddr) -> Self {
        stream.set_read_timeout(Some(WAIT_TIMEOUT)).expect("a time that is not zero");
        stream.set_write_timeout(Some(WAIT_TIMEOUT)).expect("a time that is not zero");
        Self { stream, address }
    }

    /// A client that has greeted.
    pub fn greet(address: &str) -> Self {
        Self::greet_from([127, 0, 0, 1].into(), address)
    }

    pub fn greet_from(local: IpAddr, address: &str) -> Self {
        let mut peer = Self::connect_from(local, address);
        peer.send(b"goodputc");
        peer.say(&json!({ "hello": { "version": 1, "host": host("peer") } }));
        peer.preamble();
        assert!(peer.hear()["hello"].is_object());
        peer
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the peer takes it");
    }

    pub fn say(&mut self, what: &Value) {
        self.send(&message(what));
    }

    /// Says `what` repeatedly without ever listening. Returns after how many bytes the peer had
    /// enough, or `None` if it took `limit` bytes.
    pub fn flood(&mut self, what: &Value, limit: usize) -> Option<usize> {
        const AT_ONCE_BYTES: usize = 64 << 10;
        let one = message(what);
        let bytes = one.repeat((AT_ONCE_BYTES / one.len()).max(1));
        let mut said = 0;
        while said < limit {
            if self.stream.write_all(&bytes).is_err() {
                return Some(said);
            }
            said += bytes.len();
        }
        None
    }

    pub fn preamble(&mut self) {
        let mut preamble = [0; 8];
        self.stream.read_exact(&mut preamble).expect("the peer greets");
        assert_eq!(&preamble, b"goodputc");
    }

    /// The next message.
    pub fn hear(&mut self) -> Value {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).expect("the peer says more");
        let mut body = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut body).expect("the peer says all of it");
        serde_json::from_slice(&body).expect("messages are JSON")
    }

    /// The next message that is one of `kinds`, or the one that ends what it waits for.
    pub fn hear_of(&mut self, kinds: &[&str]) -> Value {
        loop {
            let heard = self.hear();
            let is = |kind: &str| heard.get(kind).is_some();
            if kinds.iter().any(|kind| is(kind)) || is("refuse") || is("goodbye") {
                return heard;
            }
        }
    }

    /// Client: proposes a plan; the answer.
    pub fn propose(&mut self, measurement: u32, plan: &Plan) -> Value {
        self.say(&json!({ "propose": { "measurement": measurement, "plan": plan } }));
        self.hear_of(&["accept"])
    }

    /// Client: a data connection that shows `cookie`.
    pub fn flow(&self, cookie: &Value) -> TcpStream {
        let digits = cookie.as_str().expect("a cookie is text");
        let bytes = u128::from_str_radix(digits, 16).expect("of hexadecimal digits").to_be_bytes();
        let mut flow = TcpStream::connect(self.address).expect("the server listens");
        flow.set_read_timeout(Some(WAIT_TIMEOUT)).expect("a time that is not zero");
        flow.write_all(&[&b"goodputd"[..], &bytes].concat()).expect("the server listens");
        flow
    }

    /// Client: a measurement whose payload moves, and its flows.
    pub fn begin(&mut self, plan: &Plan) -> Vec<TcpStream> {
        let accepted = self.propose(1, plan);
        let cookies = accepted["accept"]["cookies"].as_array().expect("the plan is accepted");
        let flows = cookies.iter().map(|cookie| self.flow(cookie)).collect();
        assert!(self.hear_of(&["flows-ready"])["flows-ready"].is_object());
        self.say(&json!({ "begin": { "measurement": 1 } }));
        flows
    }

    /// Vanishes as a killed process does whose bytes were not all read: with a reset.
    pub fn vanish(self) {
        let socket = socket2::SockRef::from(&self.stream);
        socket.set_linger(Some(Duration::ZERO)).expect("lingering can be switched off");
    }
}
