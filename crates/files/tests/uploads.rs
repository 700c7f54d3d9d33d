//! Files that are stored and removed: what is said to a server, and what is made of its answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use goodput_files::{Conversation, Dial, Extent, FileError, Options, Ready, Wait, schemes};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

struct To(SocketAddr);

impl Dial for To {
    fn connect(&mut self, _host: &str, port: u16, _: &dyn Wait) -> Result<OwnedFd, FileError> {
        let failed = |cause| FileError::Io { operation: "connect".into(), cause };
        Ok(TcpStream::connect((self.0.ip(), port)).map_err(failed)?.into())
    }
}

struct Waiting;

impl Wait for Waiting {
    fn wait(&self, socket: BorrowedFd<'_>, ready: Ready, until: Instant) -> Result<(), FileError> {
        let events = match ready {
            Ready::Read => PollFlags::IN,
            Ready::Write => PollFlags::OUT,
            Ready::Either => PollFlags::IN | PollFlags::OUT,
        };
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        poll(&mut [PollFd::from_borrowed_fd(socket, events)], Some(&left)).expect("it can wait");
        Ok(())
    }

    fn rest(&self, until: Instant) -> Result<(), FileError> {
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        Ok(())
    }
}

/// A server that answers each line of a control connection, or each header, by `answer`, and passes on what it heard. An
/// answer that is `None` ends the connection.
fn serve(
    scheme: &str,
    greeting: &'static str,
    mut answer: impl FnMut(&str, &mut dyn BufRead) -> Option<String> + Send + 'static,
) -> (Box<dyn Conversation>, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (say, said) = channel();
    let is_http = scheme == "http";
    std::thread::spawn(move || {
        while let Ok((socket, _)) = listener.accept() {
            let mut writer = socket.try_clone().expect("it works");
            let mut reader = BufReader::new(socket);
            let _ = writer.write_all(greeting.as_bytes());
            while let Some(heard) = hear(&mut reader, is_http) {
                let _ = say.send(heard.clone());
                let Some(words) = answer(&heard, &mut reader) else { break };
                let _ = writer.write_all(words.as_bytes());
            }
        }
    });
    let place = schemes::parse(&format!("{scheme}://{address}/in/x")).expect("a place");
    let client = schemes::find(scheme).expect("a scheme");
    let conversation = (client.open)(place, Arc::new(Options::default()), Box::new(To(address)));
    (conversation, said)
}

/// A line, or a whole header.
fn hear(reader: &mut impl BufRead, is_header: bool) -> Option<String> {
    let mut heard = String::new();
    loop {
        let at = heard.len();
        if reader.read_line(&mut heard).ok()? == 0 {
            return None;
        }
        if !is_header || heard[at..].trim().is_empty() {
            return Some(heard);
        }
    }
}

/// Writes all of a body.
fn write(conversation: &mut dyn Conversation, mut payload: &[u8]) -> std::io::Result<()> {
    while !payload.is_empty() {
        match conversation.write(payload) {
            Ok(written) => payload = &payload[written..],
            Err(cause) if cause.kind() == std::io::ErrorKind::WouldBlock => {
                let socket = conversation.socket().expect("there is one").as_fd();
                Waiting.wait(socket, Ready::Write, Instant::now()).expect("it can");
            }
            Err(cause) => return Err(cause),
        }
    }
    Ok(())
}

#[test]
fn a_web_server_is_asked_before_the_first_body_and_no_more() {
    let mut puts = 0;
    let (mut conversation, said) = serve("http", "", move |heard, reader| {
        if heard.starts_with("DELETE") {
            puts += 1;
            let status = if puts > 3 { "404 Not Found" } else { "204 No Content" };
            return Some(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"));
        }
        // It says nothing before it has the body, as servers do that know no Expect.
        let mut body = [0; 1000];
        reader.read_exact(&mut body).ok()?;
        puts += 1;
        Some("HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\npage".into())
    });
    for expects in [true, false] {
        let body = conversation.store(Some(1000), &Waiting).unwrap();
        assert_eq!((body.extent, body.anew), (Extent::Bytes(1000), expects));
        write(conversation.as_mut(), &[7; 1000]).unwrap();
        conversation.stored(&Waiting).unwrap();
        let heard = said.recv().unwrap().to_lowercase();
        assert!(heard.starts_with("put /in/x http/1.1"), "{heard}");
        assert_eq!(heard.contains("expect: 100-continue"), expects, "{heard}");
    }
    assert!(conversation.remove(&Waiting).unwrap());
    assert!(!conversation.remove(&Waiting).unwrap(), "it is gone");
}

#[test]
fn a_web_server_that_takes_no_body_gets_none() {
    let too_large = "HTTP/1.1 413 Payload Too Large\r\nContent-Length: 0\r\n\r\n";
    let (mut conversation, _) = serve("http", "", move |_, _| Some(too_large.into()));
    let why = conversation.store(Some(1000), &Waiting).map(drop).unwrap_err().to_string();
    assert!(why.contains("413") && why.contains("--size"), "{why}");
    let unknown = conversation.store(None, &Waiting).map(drop).unwrap_err().to_string();
    assert!(unknown.contains("ftp://"), "{unknown}");
}

#[test]
fn a_web_server_that_has_no_room_left_is_quoted() {
    let (mut conversation, _) = serve("http", "", |_, reader| {
        let mut begin = [0; 10];
        reader.read_exact(&mut begin).ok()?;
        Some("HTTP/1.1 507 Insufficient Storage\r\nContent-Length: 0\r\n\r\n".into())
    });
    conversation.store(Some(1 << 40), &Waiting).unwrap();
    write(conversation.as_mut(), &[7; 1000]).unwrap();
    let why = conversation.refusal(&Waiting).expect("it says so").to_string();
    assert!(why.contains("507") && why.contains("no room"), "{why}");
}

/// Nothing comes in time.
struct Late;

impl Wait for Late {
    fn wait(&self, _: BorrowedFd<'_>, ready: Ready, _: Instant) -> Result<(), FileError> {
        match ready {
            Ready::Read => Err(FileError::TimedOut("too late".into())),
            _ => Ok(()),
        }
    }

    fn rest(&self, _: Instant) -> Result<(), FileError> {
        Ok(())
    }
}

#[test]
fn a_web_server_that_takes_a_file_and_says_nothing_is_distinguished_from_one_that_is_silent() {
    let (mut conversation, _) = serve("http", "", |_, reader| {
        let mut body = Vec::new();
        reader.read_to_end(&mut body).ok()?;
        None
    });
    conversation.store(Some(4), &Waiting).unwrap();
    write(conversation.as_mut(), b"1234").unwrap();
    let why = conversation.stored(&Late).unwrap_err();
    assert!(matches!(why, FileError::TimedOut(_)), "{why:?}");
    let words = "the server took the file, and did not confirm it within 30 s";
    assert_eq!(why.to_string(), words);
}

#[test]
fn a_web_server_that_only_says_to_go_on_is_not_heard_for_ever() {
    let (mut conversation, _) = serve("http", "", |_, reader| {
        let mut body = [0; 4];
        reader.read_exact(&mut body).ok()?;
        Some("HTTP/1.1 102 Processing\r\n\r\n".repeat(1 << 16))
    });
    conversation.store(Some(4), &Waiting).unwrap();
    write(conversation.as_mut(), b"1234").unwrap();
    let why = conversation.stored(&Waiting).unwrap_err().to_string();
    assert!(why.contains("more than 65536 bytes"), "{why}");
}

/// What comes of fetching and storing through a proxy that answers so.
fn through_proxy(answer: Option<&'static str>) -> [FileError; 2] {
    [false, true].map(|stores| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            while let Ok((socket, _)) = listener.accept() {
                let mut writer = socket.try_clone().expect("it works");
                let mut reader = BufReader::new(socket);
                while hear(&mut reader, true).is_some() {
                    let Some(answer) = answer else { break };
                    let _ = writer.write_all(answer.as_bytes());
                }
            }
        });
        let proxy = goodput_files::Proxy::parse(&address.to_string()).expect("it is one");
        let options = Options { proxy: Some(proxy), ..Options::default() };
        let place = schemes::parse("http://nas.invalid/in/x").expect("a place");
        let mut conversation =
            (schemes::http::HTTP.open)(place, Arc::new(options), Box::new(To(address)));
        let answered = match stores {
            true => conversation.store(Some(1), &Waiting),
            false => conversation.fetch(&Waiting),
        };
        answered.map(drop).expect_err("it fails")
    })
}

#[test]
fn what_comes_by_a_proxy_names_it() {
    let empty = "Content-Length: 0\r\n\r\n";
    let login = format!("HTTP/1.1 407 Proxy Authentication Required\r\n{empty}").leak();
    for why in through_proxy(Some(login)) {
        assert!(why.not_permitted() && why.to_string().contains("the proxy"), "{why}");
        assert!(!why.to_string().contains("the server does not"), "{why}");
    }
    let gateway = format!("HTTP/1.1 502 Bad Gateway\r\n{empty}").leak();
    for why in [through_proxy(Some(gateway)), through_proxy(None)].into_iter().flatten() {
        assert!(why.to_string().starts_with("through the proxy 127.0.0.1:"), "{why}");
    }
}

/// Answers of an FTP server to all but what is about data.
fn ftp_answer(heard: &str) -> String {
    let answer = match heard.split_whitespace().next().unwrap_or_default() {
        "USER" => "331 password",
        "PASS" => "230 in",
        "TYPE" => "200 binary",
        _ => "502 no",
    };
    format!("{answer}\r\n")
}

#[test]
fn an_ftp_server_stores_and_removes() {
    let data = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = data.local_addr().unwrap().port();
    let (came, all) = channel();
    std::thread::spawn(move || {
        while let Ok((mut socket, _)) = data.accept() {
            let mut body = Vec::new();
            let _ = socket.read_to_end(&mut body);
            let _ = came.send(body.len());
        }
    });
    let mut deletions = 0;
    let (mut conversation, said) = serve("ftp", "220 hello\r\n", move |heard, _| {
        Some(match heard.split_whitespace().next()? {
            "EPSV" => format!("229 data (|||{port}|)\r\n"),
            "STOR" => "150 send\r\n226 have it\r\n".into(),
            "DELE" => {
                deletions += 1;
                if deletions == 1 { "250 gone\r\n".into() } else { "550 no\r\n".into() }
            }
            "SIZE" => {
                if deletions == 2 {
                    "550 no\r\n".into()
                } else {
                    "213 5\r\n".into()
                }
            }
            _ => ftp_answer(heard),
        })
    });
    for bytes in [Some(5), None] {
        let body = conversation.store(bytes, &Waiting).unwrap();
        assert!(body.anew && body.extent != Extent::Decoded);
        write(conversation.as_mut(), b"12345").unwrap();
        conversation.stored(&Waiting).unwrap();
        assert_eq!(all.recv().unwrap(), 5);
    }
    assert!(said.try_iter().any(|line| line == "STOR in/x\r\n"));
    assert!(conversation.remove(&Waiting).unwrap());
    assert!(!conversation.remove(&Waiting).unwrap(), "no size and no file");
    let why = conversation.remove(&Waiting).unwrap_err().to_string();
    assert!(why.contains("550"), "it has a size: {why}");
}

#[test]
fn an_ftp_server_that_refuses_is_quoted() {
    let data = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = data.local_addr().unwrap().port();
    let (mut conversation, _) = serve("ftp", "220 hello\r\n", move |heard, _| {
        Some(match heard.split_whitespace().next()? {
            "EPSV" => format!("229 data (|||{port}|)\r\n"),
            "STOR" => "553 Permission denied.\r\n".into(),
            _ => ftp_answer(heard),
        })
    });
    let why = conversation.store(Some(5), &Waiting).map(drop).unwrap_err();
    assert!(why.not_permitted() && why.to_string().contains("553"), "{why}");
}
