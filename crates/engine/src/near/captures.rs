//! The captures of a test: at this host, at the far one, or at both.

use std::fs::File;
use std::io::{self, BufWriter};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use goodput_capture::block::Frame;
use goodput_capture::pcapng::Writer;
use goodput_capture::{CaptureError, Captured, Packet};
use goodput_model::{
    Connection, FarHeads, Known, Missing, PacketCapture, PacketHead, Plan, Record,
};

use super::capture::{TestCapture, summary};
use super::client::Client;
use crate::error::EngineError;
use crate::result::measurement::{FarCaptured, Measurement};
use crate::threads::blocking;

/// Where captures are to be written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaptureFiles {
    /// What passes this host.
    pub near: Option<PathBuf>,
    /// What passes the far host.
    pub far: Option<PathBuf>,
}

/// Captures that run beside one measurement, or several with the same peer.
pub struct Captures {
    near: Option<TestCapture>,
    far: Option<FarFile>,
}

/// What a measurement has for its captures.
#[derive(Debug, Clone, Default)]
pub struct CapturedRun {
    flows: Vec<Connection>,
    far: Option<Known<FarCaptured>>,
}

impl CapturedRun {
    /// Takes it out of a measurement.
    pub fn of(measurement: &mut Measurement) -> Self {
        let far = measurement.far_capture.take();
        Self { flows: measurement.connections.clone(), far }
    }
}

impl CaptureFiles {
    /// The plan of a measurement that is captured.
    pub fn plan(&self, plan: Plan) -> Plan {
        Plan { far_capture: self.far.is_some(), ..plan }
    }
}

impl Captures {
    /// Begins to capture what passes between this host and the peer. The far end begins with each measurement.
    ///
    /// # Errors
    /// If a privilege is missing at this host, the device is unknown, or a file can't be written.
    pub async fn start(
        client: &Client,
        plan: &Plan,
        files: &CaptureFiles,
    ) -> Result<Self, EngineError> {
        let far = files.far.as_deref().map(FarFile::open).transpose()?;
        let near = match &files.near {
            Some(file) => Some(TestCapture::start(client, plan, file).await?),
            None => None,
        };
        Ok(Self { near, far })
    }

    /// Ends, and notes in the record what was captured of the flows of these measurements. What is missing there is a
    /// doubt.
    pub async fn finish(self, record: &mut Record, runs: Vec<CapturedRun>) {
        let flows: Vec<_> = runs.iter().flat_map(|run| run.flows.clone()).collect();
        if let Some(near) = self.near {
            near.finish(record, &flows).await;
        }
        if let Some(far) = self.far {
            let written = blocking(move || far.write(runs, &flows)).await;
            let written = written.unwrap_or_else(|why| Known::missing(why.to_string()));
            record.doubts.extend(doubt(&written));
            record.far_capture = Some(written.map(Box::new));
        }
    }
}

/// The file for what the far host captures. If nothing is written to it, a new one is removed.
struct FarFile {
    path: PathBuf,
    file: Option<File>,
    is_new: bool,
}

impl FarFile {
    fn open(path: &Path) -> Result<Self, EngineError> {
        let of_file = |cause| CaptureError::File { file: path.into(), cause };
        let is_new = !path.exists();
        // Addresses and times of packets are for the one who captured them.
        let mut options = File::options();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = Some(options.open(path).map_err(of_file)?);
        Ok(Self { path: path.into(), file, is_new })
    }

    /// Writes what these measurements have, and reads what it shows of their flows.
    fn write(mut self, runs: Vec<CapturedRun>, flows: &[Connection]) -> Known<PacketCapture> {
        let all = runs.into_iter().map(|run| run.far.unwrap_or_else(not_asked));
        let (mut found, mut why) = (Vec::new(), None::<Missing>);
        for one in all {
            match one {
                Known::Value(captured) => found.push(captured),
                Known::Missing(missing) => why = why.or(Some(missing)),
            }
        }
        let Some(device) = found.first().map(|captured| captured.device.clone()) else {
            return why.map_or_else(not_asked, Known::Missing);
        };
        let Some(file) = self.file.take() else { return not_asked() };
        let mut whole = FarHeads { failure: why.map(|why| why.to_string()), ..FarHeads::default() };
        found.into_iter().for_each(|captured| whole.add(captured.heads));
        let written = file.set_len(0).and_then(|()| write(file, &device, &whole));
        let failure = written.err().map(|cause| format!("can't write: {cause}"));
        let packets: Vec<_> = whole.heads.iter().filter_map(packet).collect();
        let FarHeads { dropped, not_kept, .. } = whole;
        let failure = failure.or(whole.failure);
        let found = Captured { packets, not_kept: 0, dropped, failure };
        let summary = summary(&device, &self.path, found, flows);
        Known::Value(PacketCapture { not_kept, ..summary })
    }
}

impl Drop for FarFile {
    fn drop(&mut self) {
        if self.file.is_some() && self.is_new {
            // It is empty, and in nobody's way.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn not_asked<T>() -> Known<T> {
    Known::missing("the far end was not asked")
}

fn packet(head: PacketHead<'_>) -> Option<Packet> {
    Packet::read(head.head, head.bytes, head.at_ns)
}

fn write(file: File, device: &str, captured: &FarHeads) -> io::Result<()> {
    let mut writer = Writer::begin(BufWriter::new(file), device)?;
    let (mut last_ns, mut packets) = (0, 0);
    for PacketHead { at_ns, bytes, is_outgoing, head } in captured.heads.iter() {
        writer.packet(&Frame { at_ns, head, bytes, is_outgoing, is_loopback: false })?;
        (last_ns, packets) = (at_ns, packets + 1);
    }
    writer.end(last_ns, packets + captured.dropped, captured.dropped).map(drop)
}

/// Why the capture is missing or may mislead, if so.
fn doubt(captured: &Known<PacketCapture>) -> Option<String> {
    let own = match captured {
        Known::Value(own) => own,
        Known::Missing(why) => return Some(format!("the far host captured nothing: {why}")),
    };
    let PacketCapture { file, dropped, packets, not_kept, .. } = own;
    if let Some(why) = &own.failure {
        return Some(format!("the capture in {file} is not whole: {why}"));
    }
    if *not_kept > 0 {
        return Some(format!(
            "the capture in {file} lacks the last {not_kept} packets: the far host keeps a limited number"
        ));
    }
    (*dropped > 0).then(|| {
        format!(
            "the capture in {file} lacks {dropped} of {} packets: the far host could not keep up, so its gaps are not the path's",
            packets + dropped
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads(ports: &[(u16, u16)]) -> FarHeads {
        let mut found = FarHeads::default();
        for (at_ns, (from, to)) in (1..).zip(ports) {
            // Headers of IPv4 and UDP, with 72 bytes of payload.
            let mut head =
                vec![0x45, 0, 0, 100, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            head.extend([*from, *to, 80, 0].iter().flat_map(|half| half.to_be_bytes()));
            let head = PacketHead { at_ns, bytes: 100, is_outgoing: false, head: &head };
            assert!(found.heads.push(&head, usize::MAX));
        }
        found
    }

    fn run(port: u16, far: Known<FarHeads>) -> CapturedRun {
        let flow = Connection {
            flow: 0,
            local: ([10, 0, 0, 1], port).into(),
            remote: ([10, 0, 0, 2], 7487).into(),
            expected_queue: None,
        };
        let far = far.map(|heads| FarCaptured { device: "eth1".into(), heads });
        CapturedRun { flows: vec![flow], far: Some(far) }
    }

    fn written(path: &Path, runs: Vec<CapturedRun>) -> Known<PacketCapture> {
        let flows: Vec<_> = runs.iter().flat_map(|run| run.flows.clone()).collect();
        FarFile::open(path).unwrap().write(runs, &flows)
    }

    #[test]
    fn what_the_far_host_captured_is_in_the_file_and_in_the_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("far.pcapng");
        std::fs::write(&path, [7; 5000]).unwrap();
        let runs = vec![
            run(4000, Known::Value(heads(&[(4000, 7487), (4000, 7487)]))),
            run(4001, Known::Value(heads(&[(4001, 7487)]))),
        ];
        let written = written(&path, runs);
        let capture = written.value().unwrap();
        assert_eq!((capture.packets, &*capture.device), (3, "eth1"));
        assert_eq!(capture.payload[0].packets, 3);
        assert_eq!(doubt(&written), None);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
        assert!(bytes.len() < 1000, "what was there before is gone: {}", bytes.len());
    }

    #[test]
    fn a_refusal_leaves_files_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
        std::fs::write(&old, "mine").unwrap();
        for path in [&old, &new] {
            let refused = written(path, vec![run(4000, Known::missing("not permitted"))]);
            let why = doubt(&refused).unwrap();
            assert_eq!(why, "the far host captured nothing: not permitted");
        }
        assert_eq!(std::fs::read(&old).unwrap(), b"mine");
        assert!(!new.exists());
    }

    #[test]
    fn what_is_missing_is_a_doubt() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("far.pcapng");
        let whole = heads(&[(4000, 7487)]);
        let one = |heads| doubt(&written(&path, vec![run(4000, Known::Value(heads))])).unwrap();
        assert!(one(FarHeads { dropped: 7, ..whole.clone() }).contains("lacks 7 of 8 packets"));
        assert!(one(FarHeads { not_kept: 9, ..whole.clone() }).contains("the last 9 packets"));
        let runs = vec![run(4000, Known::missing("busy")), run(4001, Known::Value(whole))];
        assert!(doubt(&written(&path, runs)).unwrap().contains("is not whole: busy"));
        assert!(FarFile::open(Path::new("/absent/far.pcapng")).is_err());
    }
}
