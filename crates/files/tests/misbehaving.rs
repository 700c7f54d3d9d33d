//! Servers that misbehave: every one gets a clear error, within bounds, and nothing is sent to anyone else.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use goodput_files::{Conversation, Dial, Extent, FileError, Login, Options, Ready, Wait, schemes};
use rustix::event::{PollFd, PollFlags, poll};

/// Connects to the server of the test only: who wants another host fails the test.
struct Only(SocketAddr);

impl Dial for Only {
    fn connect(&mut self, host: &str, port: u16, _: &dyn Wait) -> Result<OwnedFd, FileError> {
        assert_eq!(host, "127.0.0.1", "nobody named that host");
        let failed = |cause| FileError::Io { operation: "connect".into(), cause };
        Ok(TcpStream::connect((self.0.ip(), port)).map_err(failed)?.into())
    }
}

struct Patient;

impl Wait for Patient {
    fn wait(&self, socket: BorrowedFd<'_>, ready: Ready, _: Instant) -> Result<(), FileError> {
        let events = match ready {
            Ready::Read => PollFlags::IN,
            Ready::Write => PollFlags::OUT,
            Ready::Either => PollFlags::IN | PollFlags::OUT,
        };
        let waited = poll(&mut [PollFd::from_borrowed_fd(socket, events)], None);
        assert_eq!(waited.ok(), Some(1));
        Ok(())
    }

    fn rest(&self, until: Instant) -> Result<(), FileError> {
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        Ok(())
    }
}

/// What a server does with each of its connections.
type Behaviour = fn(TcpStream);

fn conversation(scheme: &str, path: &str, behaviour: Behaviour) -> Box<dyn Conversation> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        while let Ok((socket, _)) = listener.accept() {
            behaviour(socket);
        }
    });
    let place = schemes::parse(&format!("{scheme}://{address}/{path}")).expect("a place");
    let options = Options { login: Some(Login::new("me", "s3cret")), ..Options::default() };
    let client = schemes::find(scheme).expect("a scheme");
    (client.open)(place, Arc::new(options), Box::new(Only(address)))
}

/// Reads a request to the end of its header.
fn hear(socket: &mut TcpStream) -> bool {
    let mut heard = Vec::new();
    let mut byte = [0];
    while !heard.ends_with(b"\r\n\r\n") {
        if socket.read(&mut byte).unwrap_or(0) == 0 {
            return false;
        }
        heard.push(byte[0]);
    }
    true
}

fn why(scheme: &str, behaviour: Behaviour) -> FileError {
    conversation(scheme, "x", behaviour).fetch(&Patient).map(drop).expect_err("it misbehaves")
}

/// Answers one request with this, and hangs up.
macro_rules! says {
    ($text:expr) => {
        |mut socket| {
            if hear(&mut socket) {
                let _ = socket.write_all($text);
            }
        }
    };
}

#[test]
fn what_is_no_answer_is_an_error_in_words() {
    let cases: [(Behaviour, &str); 12] = [
        // The settings of nginx with HTTP/2 on a port without encryption.
        (
            says!(b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x80\0\x04\0\x01\0\0\0\x05\0\xff\xff\xff"),
            "HTTP/2",
        ),
        (says!(b""), "without an answer"),
        (says!(b"HTTP/1.1 200 OK\r\nContent-"), "in the middle of its answer"),
        (says!(b"SSH-2.0-x\r\n\r\n"), "no HTTP"),
        (says!(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"), "no HTTP"),
        (says!(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"), "no HTTP"),
        (
            says!(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n"),
            "compressed",
        ),
        (
            says!(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
            ),
            "compressed (gzip",
        ),
        (says!(b"HTTP/1.1 401 Who?\r\nContent-Length: 0\r\n\r\n"), "~/.netrc"),
        (says!(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"), "403 Forbidden"),
        (says!(b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/y\r\n\r\n"), "--follow"),
        (says!(b"HTTP/1.1 500 \x1b[2J\r\nContent-Length: 0\r\n\r\n"), ""),
    ];
    for (behaviour, words) in cases {
        let why = why("http", behaviour).to_string();
        assert!(why.contains(words) && !why.contains('\x1b'), "{words}: {why}");
    }
}

#[test]
fn what_has_no_end_is_given_up() {
    let endless = |mut socket: TcpStream| {
        if hear(&mut socket) {
            let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nX: ");
            while socket.write_all(&[b'x'; 9000]).is_ok() {}
        }
    };
    let error = why("http", endless).to_string();
    assert!(error.contains("header of more than"), "{error}");
    let error = why("http", says!(b"HTTP/1.1 302 Found\r\nLocation: /y\r\n\r\n")).to_string();
    assert!(error.contains("redirects more than 10 times"), "{error}");
    let endless = |mut socket: TcpStream| while socket.write_all(&[b'2'; 9000]).is_ok() {};
    let error = why("ftp", endless).to_string();
    assert!(error.contains("header of more than"), "{error}");
}

#[test]
fn what_is_forbidden_is_distinguished_and_no_password_is_shown() {
    let forbids = says!(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    let denies = |mut socket: TcpStream| {
        let _ = socket.write_all(b"220 hello\r\n");
        let mut line = [0; 64];
        for reply in [&b"331 who?\r\n"[..], b"530 not you\r\n"] {
            let _ = socket.read(&mut line);
            let _ = socket.write_all(reply);
        }
    };
    for error in [why("http", forbids), why("ftp", denies)] {
        assert!(error.not_permitted(), "{error}");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}

#[test]
fn the_next_byte_of_the_socket_is_payload_and_a_lost_connection_is_made_anew() {
    let mut conversation = conversation(
        "http",
        "x",
        says!(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\npayload"),
    );
    conversation.connect(&Patient).unwrap();
    for anew in [false, true] {
        let body = conversation.fetch(&Patient).unwrap();
        let found = (body.extent, body.announced_bytes, body.anew);
        assert_eq!(found, (Extent::Bytes(7), Some(7), anew));
        let socket = conversation.socket().unwrap();
        let mut payload = Vec::new();
        while payload.len() < 7 {
            let mut room = [0; 7];
            match rustix::io::read(socket, &mut room) {
                Ok(read) => payload.extend_from_slice(&room[..read]),
                Err(_) => Patient.wait(socket.as_fd(), Ready::Read, Instant::now()).unwrap(),
            }
        }
        assert_eq!(payload, b"payload");
    }
}

/// All that a conversation decodes, or why it could not.
fn decoded(conversation: &mut dyn Conversation) -> Result<Vec<u8>, String> {
    let body = conversation.fetch(&Patient).map_err(|why| why.to_string())?;
    assert_eq!(body.extent, Extent::Decoded);
    let (mut all, mut room) = (Vec::new(), [0; 100]);
    loop {
        match conversation.read(&mut room) {
            Ok(0) => return Ok(all),
            Ok(read) => all.extend_from_slice(&room[..read]),
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => {
                let socket = conversation.socket().ok_or("no socket")?;
                let ready = Patient.wait(socket.as_fd(), Ready::Read, Instant::now());
                ready.map_err(|why| why.to_string())?;
            }
            Err(cause) => return Err(cause.to_string()),
        }
    }
}

#[test]
fn chunks_are_decoded_or_refused() {
    let chunks = |behaviour| decoded(conversation("http", "x", behaviour).as_mut());
    let good = says!(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    );
    assert_eq!(chunks(good), Ok(b"abcde".to_vec()));
    let cut = says!(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc");
    assert!(chunks(cut).unwrap_err().contains("in the middle of a chunk"));
    let nonsense = says!(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n");
    assert!(chunks(nonsense).unwrap_err().contains("chunks can't be read"));
    let endless = |mut socket: TcpStream| {
        if hear(&mut socket) {
            let _ = socket.write_all(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
            );
            while socket.write_all(b"X: y\r\n").is_ok() {}
        }
    };
    assert!(chunks(endless).unwrap_err().contains("without payload"));
}

/// An FTP server that says that data are elsewhere, and announces fewer bytes than it sends.
fn lies(mut socket: TcpStream) {
    let data = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = data.local_addr().expect("an address").port();
    let _ = socket.write_all(b"220 hello\r\n");
    let mut line = [0; 99];
    while let Ok(read @ 1..) = socket.read(&mut line) {
        let reply = match &line[..read.min(4)] {
            b"SIZE" => "213 3\r\n".to_owned(),
            b"EPSV" => "500 what?\r\n".to_owned(),
            b"PASV" => format!("227 at (192,0,2,1,{},{})\r\n", port >> 8, port & 255),
            b"RETR" => "150 here\r\n".to_owned(),
            _ => "200 fine\r\n".to_owned(),
        };
        let _ = socket.write_all(reply.as_bytes());
        if line.starts_with(b"RETR")
            && let Ok((mut data, _)) = data.accept()
        {
            let _ = data.write_all(b"abcd");
        }
    }
}

#[test]
fn data_come_from_the_host_that_was_named_and_no_more_than_announced() {
    let mut conversation = conversation("ftp", "x", lies);
    let body = conversation.fetch(&Patient).unwrap();
    assert_eq!((body.extent, body.announced_bytes), (Extent::Bytes(3), Some(3)));
    rustix::io::read(conversation.socket().unwrap(), &mut [0; 3]).unwrap();
    let error = conversation.fetch(&Patient).unwrap_err().to_string();
    assert!(error.contains("more than the 3 bytes"), "{error}");
}

#[test]
fn an_ftp_command_has_one_line() {
    let mut two_lines = conversation("ftp", "x%0d%0aDELE%20y", lies);
    let error = two_lines.fetch(&Patient).unwrap_err().to_string();
    assert!(error.contains("line end"), "{error}");
}

#[test]
fn a_part_must_be_the_one_that_was_asked_for() {
    let part = |behaviour: Behaviour| {
        let mut conversation = conversation("http", "x", behaviour);
        conversation.want(5);
        conversation.fetch(&Patient).map(|body| (body.extent, body.announced_bytes))
    };
    let good = part(says!(
        b"HTTP/1.1 206 Part\r\nContent-Range: bytes 0-4/9\r\nContent-Length: 5\r\n\r\n12345"
    ));
    assert_eq!(good.expect("it is the part"), (Extent::Bytes(5), Some(9)));
    let whole = part(says!(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123456789"));
    assert_eq!(whole.expect("a server may send all"), (Extent::Bytes(9), Some(9)));
    let none = part(says!(b"HTTP/1.1 416 No\r\nContent-Length: 3\r\n\r\nno!"));
    assert_eq!(none.expect("the file is empty"), (Extent::Bytes(0), Some(0)));
    let lies: [(Behaviour, &str); 4] = [
        (
            says!(b"HTTP/1.1 206 Part\r\nContent-Range: bytes 1-5/9\r\nContent-Length: 5\r\n\r\n"),
            "another part: \"bytes 1-5/9\"",
        ),
        (
            says!(b"HTTP/1.1 206 Part\r\nContent-Range: bytes 0-8/9\r\nContent-Length: 9\r\n\r\n"),
            "first 5 bytes",
        ),
        (says!(b"HTTP/1.1 206 Part\r\nContent-Length: 5\r\n\r\n"), "another part"),
        (
            says!(b"HTTP/1.1 206 Part\r\nContent-Range: bytes 0-4/9\r\nContent-Length: 7\r\n\r\n"),
            "a part of 5 bytes, and a body of 7",
        ),
    ];
    for (behaviour, words) in lies {
        let why = part(behaviour).expect_err("it lies").to_string();
        assert!(why.contains(words), "{why}");
    }
    let unasked =
        says!(b"HTTP/1.1 206 Part\r\nContent-Range: bytes 0-4/9\r\nContent-Length: 5\r\n\r\n");
    assert!(why("http", unasked).to_string().contains("206 Partial Content"));
}
