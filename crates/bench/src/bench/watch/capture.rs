//! The headers of packets on a device, captured by tcpdump: with the kernel's time of each, in nanoseconds.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::process::{Child, ChildStderr, Stdio};

use anyhow::{Context, Result, bail};
use pcap_parser::pcap::{parse_pcap_frame, parse_pcap_frame_be, parse_pcap_header};
use rustix::process::{Pid, Signal, kill_process};

use crate::bench::net::device;
use crate::bench::stage::Stage;

/// Enough for the headers of Ethernet, IPv4 and TCP with its options.
const HEAD_BYTES: u32 = 96;
/// The kernel's buffer for tcpdump, KiB per second: tcpdump runs when nobody else wants the CPU.
const BUFFER_KIB: u32 = 32 * 1024;

/// A running capture.
pub struct Capture {
    tcpdump: Child,
    said: BufReader<ChildStderr>,
    packets: File,
    limited: bool,
}

/// A packet, or several that the kernel handled as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Nanoseconds since 1970.
    pub at_ns: u64,
    /// Its header, starting with Ethernet.
    pub head: Vec<u8>,
}

impl Capture {
    /// Captures packets that pass `filter` (pcap-filter(7)) at the stage's receiving device, all or only the first
    /// ones.
    pub fn start(stage: &Stage<'_>, filter: &str, first: Option<u32>) -> Result<Self> {
        let packets = tempfile::tempfile()?;
        let mut command = stage.net.at_server(stage.place, "nice");
        command.args(["-n", "19", "tcpdump", "-n", "-i", device(stage.place), "-w", "-"]);
        // As another user, tcpdump would no longer end with this process.
        command.args(["-Z", "root"]);
        command.args(["-s", &HEAD_BYTES.to_string(), "--time-stamp-precision=nano"]);
        command.args(["-B", &(BUFFER_KIB * (stage.seconds + 1)).to_string()]);
        if let Some(first) = first {
            command.args(["-c", &first.to_string()]);
        }
        command.arg(filter).stdout(packets.try_clone()?).stderr(Stdio::piped());
        let mut tcpdump = command.spawn().context("can't start tcpdump")?;
        let err = tcpdump.stderr.take().context("tcpdump has no stderr")?;
        let mut capture =
            Self { tcpdump, said: BufReader::new(err), packets, limited: first.is_some() };
        capture.wait_until_ready()?;
        Ok(capture)
    }

    /// tcpdump reports that it is listening once its socket is open.
    fn wait_until_ready(&mut self) -> Result<()> {
        let mut said = String::new();
        while !said.contains("listening on") {
            if self.said.read_line(&mut said)? == 0 {
                bail!("tcpdump: {}", said.trim());
            }
        }
        Ok(())
    }

    /// Ends the capture and returns all packets. An error if the kernel had to drop some.
    pub fn finish(mut self) -> Result<Vec<Packet>> {
        // If this fails, tcpdump had enough packets and has ended.
        let _ = kill_process(Pid::from_child(&self.tcpdump), Signal::INT);
        let mut said = String::new();
        self.said.read_to_string(&mut said)?;
        self.tcpdump.wait()?;
        let dropped = said.lines().find_map(|line| line.strip_suffix(" packets dropped by kernel"));
        if !self.limited && dropped != Some("0") {
            bail!("tcpdump could not keep up: {}", said.replace('\n', "; "));
        }
        let mut file = Vec::new();
        self.packets.rewind()?;
        self.packets.read_to_end(&mut file)?;
        packets(&file)
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // If this fails, it has already ended.
        let _ = self.tcpdump.kill();
        let _ = self.tcpdump.wait();
    }
}

/// The packets of a file (draft-ietf-opsawg-pcap). A truncated last packet is left out.
fn packets(file: &[u8]) -> Result<Vec<Packet>> {
    let Ok((mut rest, header)) = parse_pcap_header(file) else {
        bail!("tcpdump wrote no pcap file");
    };
    let fraction_ns = if header.is_nanosecond_precision() { 1 } else { 1000 };
    let frame = if header.is_bigendian() { parse_pcap_frame_be } else { parse_pcap_frame };
    let mut packets = Vec::new();
    while let Ok((after, frame)) = frame(rest) {
        let fraction = u64::from(frame.ts_usec) * fraction_ns;
        let at_ns = u64::from(frame.ts_sec) * 1_000_000_000 + fraction;
        packets.push(Packet { at_ns, head: frame.data.to_vec() });
        rest = after;
    }
    Ok(packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_nanoseconds_is_read() {
        let words = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>();
        let mut file = words(&[0xa1b2_3c4d, 0x0004_0002, 0, 0, 96, 1]);
        file.extend(words(&[7, 5, 4, 1500]));
        file.extend([1, 2, 3, 4]);
        let whole = file.clone();
        file.extend(words(&[8, 6, 4, 1500]));
        file.extend([1, 2]);
        let expected = vec![Packet { at_ns: 7_000_000_005, head: vec![1, 2, 3, 4] }];
        assert_eq!(packets(&whole).unwrap(), expected);
        assert_eq!(packets(&file).unwrap(), expected, "the last is cut short");
        assert!(packets(&file[..10]).is_err());
    }
}
