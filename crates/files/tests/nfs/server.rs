//! An NFS server of one file, `/export/file`, as bad as a test wants it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Length of the file, bytes.
pub const FILE_BYTES: u64 = 100_000;

/// What is bad about a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Honest,
    /// No READ brings more than this.
    Short(u32),
    /// MOUNT is never answered.
    MuteMount,
    /// MOUNT is refused with this status.
    NoMount(u32),
    /// Every call is refused, because the credential is too weak.
    TooWeak,
    /// READs after this many are refused with this status.
    ReadFails {
        after: u32,
        status: u32,
    },
    /// READs after this many bring more than was asked for.
    TooMuch {
        after: u32,
    },
    /// READs after this many are never answered.
    Stalls {
        after: u32,
    },
    /// After this many READs on a connection it is reset.
    Resets {
        after: u32,
    },
    /// The answer to this many READs on a connection is cut after some payload, and the connection closed.
    CutShort {
        after: u32,
    },
    /// Connections after the first are closed at once, once a READ came.
    GoneAfterFirst,
    /// A READ is answered with a fragment of nothing, again and again.
    EmptyFragments,
    /// The attributes say that the file is longer than it is.
    SaysLonger,
    /// A file handle of 4 GiB is announced.
    HugeHandle,
    /// CREATE is refused with this status.
    NoCreate(u32),
    /// CREATE says no handle.
    NamelessCreate,
    /// WRITEs after this many are refused with this status.
    WriteFails {
        after: u32,
        status: u32,
    },
    /// No WRITE takes more than this.
    WritesShort(u32),
    /// The server has another verifier after this many WRITEs, as if it had restarted.
    Forgets {
        after: u32,
    },
    /// The same between the last WRITE and COMMIT.
    ForgetsAtCommit,
    /// The connection is closed after this many WRITEs.
    WriteCloses {
        after: u32,
    },
    /// Each n-th READ or WRITE is put off (`NFS3ERR_JUKEBOX`).
    Later {
        every: u32,
    },
    /// A record of 2 GiB is announced in answer to a READ, and begins with nothing that is an answer.
    HugeRecord,
}

/// What is stored as `/export/new`: its bytes and where they were written to, and whether it was committed.
pub type Stored = Arc<Mutex<Option<New>>>;

/// A file that a client made.
#[derive(Debug, Default, Clone)]
pub struct New {
    pub bytes: Vec<u8>,
    pub writes: u32,
    pub commits: u32,
}

/// A server, until it is dropped.
pub struct Server {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    mounted: Arc<AtomicI64>,
    stored: Stored,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let stored = Stored::default();
        let store = Arc::clone(&stored);
        let (stop, mounted) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI64::new(0)));
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&mounted));
        let accepting = std::thread::spawn(move || {
            let readers = Arc::new(AtomicU32::new(0));
            for socket in listener.incoming().map_while(Result::ok) {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (count, readers) = (Arc::clone(&count), Arc::clone(&readers));
                let stored = Arc::clone(&store);
                let session = Session { socket, manner, count, readers, reads: 0, stored };
                std::thread::spawn(move || drop(session.run()));
            }
        });
        Self { address, stop, mounted, stored, accepting: Some(accepting) }
    }

    /// The file that a client made, if it is there.
    pub fn stored(&self) -> Option<New> {
        self.stored.lock().expect("no session panics with it").clone()
    }

    /// Mounts that nobody took back.
    pub fn mounted(&self) -> i64 {
        self.mounted.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

/// One connection.
struct Session {
    socket: TcpStream,
    manner: Manner,
    count: Arc<AtomicI64>,
    /// Connections on which something was read.
    readers: Arc<AtomicU32>,
    reads: u32,
    stored: Stored,
}

/// Words of a call.
struct Call {
    xid: u32,
    program: u32,
    procedure: u32,
    args: Vec<u8>,
}

impl Session {
    /// Answers calls until the client hangs up.
    fn run(mut self) -> io::Result<()> {
        loop {
            let call = self.call()?;
            let answer = if self.manner == Manner::TooWeak {
                words(&[1, 1, 1, 5])
            } else {
                let Some(results) = self.results(&call)? else { continue };
                [words(&[1, 0, 0, 0, 0]), results].concat()
            };
            let record = [words(&[call.xid]), answer].concat();
            let mark = (record.len() as u32 | 1 << 31).to_be_bytes();
            self.socket.write_all(&[&mark, record.as_slice()].concat())?;
        }
    }

    fn call(&mut self) -> io::Result<Call> {
        let mut mark = [0; 4];
        self.socket.read_exact(&mut mark)?;
        let mut record = vec![0; (u32::from_be_bytes(mark) & !(1 << 31)) as usize];
        self.socket.read_exact(&mut record)?;
        let word =
            |at: usize| u32::from_be_bytes(record[at..at + 4].try_into().expect("four bytes"));
        // The credential has its length at 28; after it is an empty verifier.
        let args = record[32 + word(28) as usize + 8..].to_vec();
        Ok(Call { xid: word(0), program: word(12), procedure: word(20), args })
    }

    /// Results of a call; `None`: it is not answered.
    fn results(&mut self, call: &Call) -> io::Result<Option<Vec<u8>>> {
        Ok(Some(match (call.program, call.procedure) {
            (100_005, 1) if self.manner == Manner::MuteMount => return Ok(None),
            (100_005, 1) => self.mount(&call.args),
            (100_005, 3) => {
                self.count.fetch_sub(1, Ordering::SeqCst);
                Vec::new()
            }
            (100_003, 3) if call.args.ends_with(b"file") => {
                let said = if self.manner == Manner::SaysLonger { 2 } else { 1 } * FILE_BYTES;
                [words(&[0, 1, 7, 1]), attributes(said), words(&[0])].concat()
            }
            (100_003, 3) if call.args.ends_with(b"new\0") && self.stored().is_some() => {
                [words(&[0, 1, 7, 1]), attributes(0), words(&[0])].concat()
            }
            (100_003, 3) => words(&[2, 0]),
            (100_003, 19) => words(&[0, 0, 65536, 65536, 1, 65536, 1, 1, 1, 0, 9, 0, 1, 0]),
            (100_003, 6) => return self.read(call.xid, &call.args),
            (100_003, 2) => {
                self.stored().as_mut().expect("it was made").bytes.clear();
                words(&[0, 0, 0])
            }
            (100_003, 7) => return self.write(&call.args),
            (100_003, 8) => self.create(),
            (100_003, 12) => match self.stored().take() {
                Some(_) => words(&[0, 0, 0]),
                None => words(&[2, 0, 0]),
            },
            (100_003, 21) => {
                let mut stored = self.stored();
                let new = stored.as_mut().expect("it was made");
                new.commits += 1;
                let restarts = self.manner == Manner::ForgetsAtCommit;
                let verifier = words(&[9, 1]);
                let verifier = if restarts { verifier } else { self.verifier(new.writes) };
                [words(&[0, 0, 0]), verifier].concat()
            }
            other => panic!("{other:?} is called"),
        }))
    }

    fn mount(&self, path: &[u8]) -> Vec<u8> {
        match self.manner {
            Manner::NoMount(status) => words(&[status]),
            Manner::HugeHandle => words(&[0, u32::MAX - 3]),
            _ if path.ends_with(b"/export\0") => {
                self.count.fetch_add(1, Ordering::SeqCst);
                words(&[0, 4, 5, 1, 1])
            }
            _ => words(&[2]),
        }
    }

    fn stored(&self) -> std::sync::MutexGuard<'_, Option<New>> {
        self.stored.lock().expect("no session panics with it")
    }

    fn create(&self) -> Vec<u8> {
        if let Manner::NoCreate(status) = self.manner {
            return words(&[status, 0, 0]);
        }
        *self.stored() = Some(New::default());
        match self.manner {
            Manner::NamelessCreate => words(&[0, 0, 0, 0, 0]),
            _ => words(&[0, 1, 1, 7, 0, 0, 0]),
        }
    }

    /// A verifier of a server that takes writes.
    fn verifier(&self, writes: u32) -> Vec<u8> {
        let restarts = matches!(self.manner, Manner::Forgets { after } if writes > after);
        words(&[9, u32::from(restarts)])
    }

    /// Takes payload, with the attributes before and after it.
    fn write(&self, args: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let at = u64::from_be_bytes(args[8..16].try_into().expect("eight bytes")) as usize;
        let asked = u32::from_be_bytes(args[16..20].try_into().expect("four bytes"));
        let payload = &args[28..28 + asked as usize];
        assert_eq!(args.len(), (28 + payload.len()).next_multiple_of(4), "it is padded");
        let mut stored = self.stored();
        let Some(new) = stored.as_mut() else { return Ok(Some(words(&[70, 0, 0]))) };
        new.writes += 1;
        let taken = match self.manner {
            Manner::WriteFails { after, status } if new.writes > after => {
                return Ok(Some(words(&[status, 0, 0])));
            }
            Manner::Later { every } if new.writes % every == 1 => {
                return Ok(Some(words(&[10008, 0, 0])));
            }
            Manner::WriteCloses { after } if new.writes > after => {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            Manner::WritesShort(most) => asked.min(most),
            _ => asked,
        };
        new.bytes.resize(new.bytes.len().max(at + taken as usize), 0);
        new.bytes[at..at + taken as usize].copy_from_slice(&payload[..taken as usize]);
        let attributes = [words(&[0, 1, 0, 0, 0, 0, 0, 0, 1]), attributes(0)].concat();
        Ok(Some([attributes, words(&[taken, 0]), self.verifier(new.writes)].concat()))
    }

    fn read(&mut self, xid: u32, args: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let offset = u64::from_be_bytes(args[8..16].try_into().expect("eight bytes"));
        let asked = u32::from_be_bytes(args[16..20].try_into().expect("four bytes"));
        if self.reads == 0 {
            self.readers.fetch_add(1, Ordering::SeqCst);
        }
        self.reads += 1;
        let mut bytes = u64::from(asked).min(FILE_BYTES.saturating_sub(offset)) as u32;
        let closed = || Err(io::ErrorKind::ConnectionAborted.into());
        match self.manner {
            Manner::GoneAfterFirst if self.readers.load(Ordering::SeqCst) > 1 => return closed(),
            Manner::GoneAfterFirst if self.reads > 20 => return closed(),
            Manner::EmptyFragments => {
                while self.socket.write_all(&[0; 4096]).is_ok() {}
                return Ok(None);
            }
            Manner::Short(most) => bytes = bytes.min(most),
            Manner::ReadFails { after, status } if self.reads > after => {
                return Ok(Some(words(&[status, 0])));
            }
            Manner::Later { every } if self.reads % every == 1 => {
                return Ok(Some(words(&[10008, 0])));
            }
            Manner::TooMuch { after } if self.reads > after => bytes += 4,
            Manner::Stalls { after } if self.reads > after => return Ok(None),
            Manner::Resets { after } if self.reads > after => {
                // What was received and not read makes the kernel reset the connection.
                self.socket.peek(&mut [0])?;
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            Manner::HugeRecord => {
                self.socket.write_all(&[0xff; 4])?;
                while self.socket.write_all(&[0; 4096]).is_ok() {}
                return Ok(None);
            }
            _ => {}
        }
        let is_end = u32::from(offset + u64::from(bytes) >= FILE_BYTES);
        let head = [words(&[0, 1]), attributes(FILE_BYTES), words(&[bytes, is_end, bytes])];
        let mut results = head.concat();
        let end = results.len() + bytes as usize;
        results.resize(end.next_multiple_of(4), 7);
        if let Manner::CutShort { after } = self.manner
            && self.reads > after
        {
            let record = [words(&[xid, 1, 0, 0, 0, 0]), results].concat();
            let mark = (record.len() as u32 | 1 << 31).to_be_bytes();
            let most = record.len() - bytes as usize / 2;
            self.socket.write_all(&[&mark, &record[..most]].concat())?;
            return closed();
        }
        Ok(Some(results))
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// `fattr3` of a file.
fn attributes(bytes: u64) -> Vec<u8> {
    let mut words_of_it = vec![1, 0o644, 1, 0, 0, 0, bytes as u32];
    words_of_it.resize(21, 0);
    words(&words_of_it)
}
