//! A running capture: a thread that takes packets from the ring to the file.

use std::fs::File;
use std::io::BufWriter;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::block::Frame;
use crate::error::CaptureError;
use crate::filter;
use crate::packet::Packet;
use crate::pcapng::Writer;
use crate::ring::{Blocks, Ring, open};
use crate::taking::{Counts, now_ns, take_all};

/// Packets that are kept in memory at most: 24 bytes each, 5 s at 400 000 packets per second. All are in the file.
const MAX_KEPT: usize = 2_000_000;

/// What to capture, and where to write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The device.
    pub device: String,
    /// The other host.
    pub peer: IpAddr,
    /// The file. One that is there is replaced.
    pub file: PathBuf,
}

/// A capture that runs.
pub struct Capture {
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<Captured>>,
}

/// What was captured.
#[derive(Debug, Default)]
pub struct Captured {
    /// TCP and UDP, in the order in which they passed.
    pub packets: Vec<Packet>,
    /// How many more passed than were kept here.
    pub not_kept: u64,
    /// How many were lost because the ring was full.
    pub dropped: u64,
    /// Why the capture ended early, if it did.
    pub failure: Option<String>,
}

impl Capture {
    /// Begins. What passes the device from now on is captured.
    ///
    /// # Errors
    /// If a privilege is missing, the file can't be written, or the kernel refuses.
    pub fn start(wanted: &Wanted) -> Result<Self, CaptureError> {
        let device = &wanted.device;
        let socket = open(device, &filter::of(wanted.peer), Blocks::OWN)?;
        let ring = Ring::map(socket, Blocks::OWN).map_err(|cause| CaptureError::Refused {
            device: device.clone(),
            step: "map the ring",
            cause,
        })?;
        let of_file = |cause| CaptureError::File { file: wanted.file.clone(), cause };
        // Addresses and times of packets are for the one who captured them.
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(&wanted.file).map_err(of_file)?;
        let writer = Writer::begin(BufWriter::new(file), &wanted.device).map_err(of_file)?;
        let stops = Arc::new(AtomicBool::new(false));
        let taking = Taking { ring, writer };
        let until = Arc::clone(&stops);
        let thread = std::thread::Builder::new().name("capture".into());
        let thread = thread.spawn(move || taking.run(&until));
        let thread = thread.map_err(|cause| CaptureError::Refused {
            device: wanted.device.clone(),
            step: "start a thread",
            cause,
        })?;
        Ok(Self { stops, thread: Some(thread) })
    }

    /// Ends, once all that has passed so far is in the file. Blocks for some tenths of a second.
    pub fn finish(mut self) -> Captured {
        self.stop()
    }

    fn stop(&mut self) -> Captured {
        self.stops.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        let failure = Some("the thread that captures panicked".to_owned());
        ended.and_then(Result::ok).unwrap_or(Captured { failure, ..Captured::default() })
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop();
        }
    }
}

/// What the thread works with.
struct Taking {
    ring: Ring,
    writer: Writer<BufWriter<File>>,
}

impl Taking {
    /// Takes packets until it is to stop, and ends the file.
    fn run(self, stops: &AtomicBool) -> Captured {
        let Self { mut ring, mut writer } = self;
        let (mut found, mut counts) = (Captured::default(), Counts::default());
        let taken = take_all(&mut ring, stops, &mut counts, |frame| {
            writer.packet(frame)?;
            found.keep(frame);
            Ok(())
        });
        found.dropped = counts.dropped;
        let ended = taken.and_then(|()| writer.end(now_ns(), counts.received, counts.dropped));
        found.failure = ended.err().map(|cause| cause.to_string());
        found
    }
}

impl Captured {
    fn keep(&mut self, frame: &Frame) {
        let Some(packet) = Packet::read(frame.head, frame.bytes, frame.at_ns) else { return };
        match self.packets.len() < MAX_KEPT {
            true => self.packets.push(packet),
            false => self.not_kept += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_testing::in_namespace;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    /// Captures on loopback what `traffic` sends to `peer`.
    fn captured(peer: IpAddr, traffic: impl FnOnce()) -> (Captured, Vec<u8>) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("own.pcapng");
        let wanted = Wanted { device: "lo".into(), peer, file: file.clone() };
        let capture = Capture::start(&wanted).unwrap();
        traffic();
        (capture.finish(), std::fs::read(file).unwrap())
    }

    /// Runs in a namespace with two hosts of each IP version on loopback.
    fn with_two_hosts(test: impl FnOnce() + Send) {
        in_namespace(|| {
            let ip = |words: &str| {
                let done = std::process::Command::new("ip").args(words.split(' ')).status();
                assert!(done.unwrap().success(), "ip {words}");
            };
            ip("link set lo mtu 1500 up");
            ip("addr add fd00::1/128 dev lo nodad");
            ip("addr add fd00::2/128 dev lo nodad");
            test();
        });
    }

    /// Sends datagrams of these many bytes from the second host to `to`.
    fn datagrams(from: &str, to: &UdpSocket, bytes: &[usize]) {
        let from = UdpSocket::bind((from, 0)).unwrap();
        for bytes in bytes {
            from.send_to(&vec![7; *bytes], to.local_addr().unwrap()).unwrap();
        }
    }

    #[test]
    fn only_the_packets_of_one_host_are_captured_and_each_once() {
        with_two_hosts(|| {
            for (peer, other) in [("127.0.0.1", "127.0.0.2"), ("fd00::1", "fd00::2")] {
                let [wanted, unwanted] = [peer, other].map(|ip| UdpSocket::bind((ip, 0)).unwrap());
                let (found, file) = captured(peer.parse().unwrap(), || {
                    datagrams(other, &wanted, &[10, 1000]);
                    datagrams(other, &unwanted, &[20]);
                    datagrams(peer, &unwanted, &[30]);
                });
                let payload: Vec<_> = found.packets.iter().map(|packet| packet.payload).collect();
                assert_eq!(payload, [10, 1000, 30], "{peer}");
                assert!(found.packets.iter().all(|packet| !packet.is_tcp));
                assert_eq!((found.dropped, found.failure), (0, None));
                assert!(file.len() > 3 * 32, "{}", file.len());
            }
        });
    }

    /// Packets in a file: blocks of the type 6 (draft-ietf-opsawg-pcapng, section 4.3).
    fn packets_in(mut file: &[u8]) -> usize {
        let word = |bytes: &[u8], at: usize| {
            u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a word has four bytes"))
        };
        let mut packets = 0;
        while !file.is_empty() {
            packets += usize::from(word(file, 0) == 6);
            file = &file[word(file, 4) as usize..];
        }
        packets
    }

    #[test]
    fn fragments_without_ports_are_in_the_file() {
        with_two_hosts(|| {
            for (from, to) in [("127.0.0.2", "127.0.0.1:0"), ("fd00::2", "[fd00::1]:0")] {
                let to = UdpSocket::bind(to).unwrap();
                let peer = to.local_addr().unwrap().ip();
                let (_, file) = captured(peer, || datagrams(from, &to, &[2000, 4000]));
                assert_eq!(packets_in(&file), 2 + 3, "{peer}");
            }
        });
    }

    #[test]
    fn a_connection_is_captured_from_its_first_packet_on() {
        with_two_hosts(|| {
            let peer: IpAddr = "127.0.0.1".parse().unwrap();
            let listener = TcpListener::bind((peer, 0)).unwrap();
            let address = listener.local_addr().unwrap();
            let (found, _) = captured(peer, || {
                drop(TcpStream::connect(address).unwrap());
                drop(listener.accept().unwrap());
            });
            let first = found.packets.first().unwrap();
            assert!(first.is_tcp && first.to_port == address.port() && first.payload == 0);
            let times = found.packets.windows(2);
            assert!(times.into_iter().all(|two| two[0].at_ns <= two[1].at_ns));
        });
    }

    #[test]
    fn a_device_that_is_not_there_and_a_file_that_can_not_be_made_are_named() {
        with_two_hosts(|| {
            let wanted = |device: &str, file: &str| Wanted {
                device: device.into(),
                peer: "127.0.0.1".parse().unwrap(),
                file: file.into(),
            };
            let refused = |wanted: &Wanted| Capture::start(wanted).err().unwrap().to_string();
            let device = refused(&wanted("absent0", "/dev/null"));
            assert!(device.contains("absent0: find the device"), "{device}");
            let file = refused(&wanted("lo", "/absent/own.pcapng"));
            assert!(file.contains("write the capture to /absent/own.pcapng"), "{file}");
            // A disk that is full.
            let full = Capture::start(&wanted("lo", "/dev/full")).unwrap().finish();
            assert!(full.failure.is_some_and(|why| why.contains("No space left")));
        });
    }
}
