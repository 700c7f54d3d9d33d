//! Whether packets are captured.

use anyhow::{Result, bail};
use clap::Args;
use goodput_engine::CaptureFiles;
use goodput_model::EndName;

use crate::args::values::capture_file::CaptureFile;

/// What is kept of packets.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Observing")]
pub struct CaptureArgs {
    /// Write the headers of packets to and from the target to this file
    ///
    /// The file is pcapng, which Wireshark reads. goodput captures on this host, at the device towards the target. Packets
    /// have the kernel's times: outgoing ones are captured after the queueing discipline. The report shows the sizes and
    /// gaps of the test's own packets. This needs CAP_NET_RAW.
    ///
    /// With far: the far host captures its own side of the test's flows, and goodput writes the file here. The server there
    /// needs --allow-capture and CAP_NET_RAW, and this client a token or a key. It keeps the first 8 MiB of headers. If
    /// the far host can't capture, the test goes on and says so. Give --pcap twice to capture on both hosts.
    #[arg(long, value_name = "[far:]FILE", hide_short_help = true)]
    pub pcap: Vec<CaptureFile>,
}

impl CaptureArgs {
    /// The files.
    ///
    /// # Errors
    /// If there are two for the same host, or one for both.
    pub fn files(&self) -> Result<CaptureFiles> {
        let mut files = CaptureFiles::default();
        for CaptureFile { end, path } in &self.pcap {
            let place = match end {
                EndName::Near => &mut files.near,
                EndName::Far => &mut files.far,
            };
            if place.replace(path.clone()).is_some() {
                bail!("--pcap names two files for the {end} host; give one");
            }
        }
        match &files.near {
            Some(near) if files.far.as_ref() == Some(near) => {
                bail!("--pcap names {} for both hosts; give each a file of its own", near.display())
            }
            _ => Ok(files),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(texts: &[&str]) -> Result<CaptureFiles> {
        CaptureArgs { pcap: texts.iter().map(|text| text.parse().unwrap()).collect() }.files()
    }

    #[test]
    fn each_host_has_one_file_of_its_own() {
        let both = files(&["far:b", "a"]).unwrap();
        let expected = CaptureFiles { near: Some("a".into()), far: Some("b".into()) };
        assert_eq!(both, expected);
        assert_eq!(files(&[]).unwrap(), CaptureFiles::default());
        for wrong in [&["a", "b"], &["far:a", "far:b"], &["a", "far:a"]] {
            assert!(files(wrong).is_err(), "{wrong:?}");
        }
    }
}
