//! Debian's nats-server, with JetStream.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Running, free_port, has, start, write};
use crate::wait_for;

/// A running nats-server on a port of its own.
pub struct Nats {
    server: Option<Running>,
    address: SocketAddr,
    storage: String,
    configuration: String,
}

/// Starts one whose storage is in `folder`. None, and the test is skipped, if it is not installed.
pub fn nats(folder: &Path) -> Option<Nats> {
    nats_with(folder, "")
}

/// The same, with these lines of configuration. What they include is beside the storage.
pub fn nats_with(folder: &Path, configuration: &str) -> Option<Nats> {
    nats_at(folder, Ipv4Addr::LOCALHOST, configuration)
}

fn nats_at(folder: &Path, address: Ipv4Addr, configuration: &str) -> Option<Nats> {
    if !has("nats-server") {
        return None;
    }
    let address = SocketAddr::from((address, free_port()));
    let storage = folder.join("jetstream").display().to_string();
    let configuration = write(folder, "nats.conf", configuration);
    let mut nats = Nats { server: None, address, storage, configuration };
    nats.start();
    Some(nats)
}

/// Starts three that are one cluster; what each stores is in a folder of its own in `folder`.
pub fn nats_cluster(folder: &Path) -> Option<[Nats; 3]> {
    nats_cluster_at(folder, Ipv4Addr::LOCALHOST)
}

/// The same, for clients that connect to this address of this host.
pub fn nats_cluster_at(folder: &Path, address: Ipv4Addr) -> Option<[Nats; 3]> {
    let routes: [u16; 3] = std::array::from_fn(|_| free_port());
    let urls = routes.map(|port| format!("nats://127.0.0.1:{port}")).join(", ");
    let server = |number: usize| {
        let port = routes[number];
        let own = folder.join(number.to_string());
        std::fs::create_dir_all(&own).expect("the folder is writable");
        let cluster = format!("name: c, listen: \"127.0.0.1:{port}\", routes: [{urls}]");
        nats_at(&own, address, &format!("server_name: n{number}\ncluster {{ {cluster} }}\n"))
    };
    let [one, two, three] = [server(0)?, server(1)?, server(2)?];
    Some([one, two, three])
}

/// Starts `command`, which is `nats-server` in a namespace, on every address there. `listens` says whether it does.
pub fn nats_in(
    mut command: Command,
    storage: &Path,
    port: u16,
    listens: impl FnMut() -> bool,
) -> Running {
    command.args(["-js", "-p", &port.to_string(), "-sd"]).arg(storage);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let running = Running(child.expect("the server can be started"));
    wait_for("nats-server to listen", listens);
    running
}

impl Nats {
    /// What clients connect to.
    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// What clients connect to with TLS.
    pub fn tls_url(&self) -> String {
        format!("tls://{}", self.address)
    }

    /// Kills it. What it has stored stays.
    pub fn kill(&mut self) {
        self.server = None;
    }

    /// Removes what it has stored, once it is killed.
    pub fn lose_storage(&self) {
        std::fs::remove_dir_all(&self.storage).expect("it has stored something");
    }

    /// Starts it again, at the same address.
    pub fn start(&mut self) {
        let (host, port) = (self.address.ip().to_string(), self.address.port().to_string());
        let arguments = ["-js", "-sd", &self.storage, "-a", &host, "-p", &port];
        let arguments = [&arguments[..], &["-c", &self.configuration]].concat();
        self.server = Some(start("nats-server", &arguments, self.address));
    }

    /// Publishes a message as anyone could.
    pub fn publish(&self, subject: &str, message: &str) {
        let length = message.len();
        let mut client = self.client(&format!("PUB {subject} {length}\r\n{message}\r\n"));
        client.wait();
    }

    /// Hears the messages at a subject, as anyone could.
    pub fn hear(&self, subject: &str) -> Heard {
        let mut client = self.client(&format!("SUB {subject} 1\r\n"));
        client.wait();
        client
    }

    /// A client that says this, in the text protocol of NATS (docs.nats.io, "NATS Protocol").
    fn client(&self, said: &str) -> Heard {
        let mut client = TcpStream::connect(self.address).expect("it listens");
        let text = format!("CONNECT {{\"verbose\":false}}\r\n{said}PING\r\n");
        client.write_all(text.as_bytes()).expect("it reads");
        client.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket has one");
        Heard { client, text: String::new() }
    }
}

/// What is heard at a subject.
pub struct Heard {
    client: TcpStream,
    text: String,
}

impl Heard {
    /// Waits until the server has taken everything.
    fn wait(&mut self) {
        while !self.text.contains("PONG") {
            self.read();
        }
    }

    fn read(&mut self) {
        let mut some = [0; 4096];
        let read = self.client.read(&mut some).expect("it says something");
        assert!(read > 0, "{}", self.text);
        self.text += &String::from_utf8_lossy(&some[..read]);
    }

    /// The next message, which has one line.
    pub fn next_message(&mut self) -> String {
        loop {
            if let Some((_, rest)) = self.text.split_once("MSG ")
                && let Some((message, left)) =
                    rest.split_once("\r\n").and_then(|(_, body)| body.split_once("\r\n"))
            {
                let message = message.to_owned();
                self.text = left.to_owned();
                // The headers stand before an empty line.
                return message;
            }
            self.read();
        }
    }
}
