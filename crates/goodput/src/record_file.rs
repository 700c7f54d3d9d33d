//! The file of `--record`: opened before the measurement, written after it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use goodput_model::Record;

/// A writable file. Until the write, an old file keeps its content; a new file is removed if nothing is written.
#[derive(Debug)]
pub struct RecordFile {
    path: PathBuf,
    /// `None`: a named pipe, which is opened when there is something to write.
    file: Option<File>,
    is_new: bool,
}

impl RecordFile {
    /// Opens the file, and creates it if necessary.
    pub fn open(path: &Path) -> Result<Self> {
        let (file, is_new) =
            open(path).with_context(|| format!("can't write the record to {}", path.display()))?;
        Ok(Self { path: path.into(), file, is_new })
    }

    /// Writes the record, and nothing else.
    pub fn write(mut self, record: &Record) -> Result<()> {
        self.put(record)
            .with_context(|| format!("can't write the record to {}", self.path.display()))
    }

    /// Written while it is serialised: as text, the record of a long measurement takes several times as much memory.
    fn put(&mut self, record: &Record) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => OpenOptions::new().write(true).open(&self.path)?,
        };
        // Half a record is more useful than none.
        self.is_new = false;
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        let mut out = BufWriter::new(file);
        record.write_json(&mut out)?;
        out.flush()
    }
}

impl Drop for RecordFile {
    fn drop(&mut self) {
        if self.is_new {
            // The file is empty, and the measurement's error must be reported instead.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn open(path: &Path) -> io::Result<(Option<File>, bool)> {
    let made = OpenOptions::new().write(true).create_new(true).open(path);
    match made {
        Ok(file) => return Ok((Some(file), true)),
        Err(cause) if cause.kind() != ErrorKind::AlreadyExists => return Err(cause),
        Err(_) => {}
    }
    // The target of a dangling link is created as well.
    let found = path.metadata();
    match found {
        Ok(found) if found.file_type().is_fifo() => Ok((None, false)),
        _ => {
            let mut options = OpenOptions::new();
            let file = options.write(true).create(true).truncate(false).open(path)?;
            Ok((Some(file), false))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        serde_json::from_str(include_str!("report/example/record.json")).unwrap()
    }

    #[test]
    fn a_file_that_can_not_be_written_is_an_error_before_the_measurement() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().join("none/record"), folder.path().into()] {
            let why = RecordFile::open(&path).unwrap_err().to_string();
            assert!(why.contains("can't write the record to"), "{why}");
        }
    }

    #[test]
    fn an_old_record_stays_until_there_is_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        std::fs::write(&path, "x".repeat(1 << 20)).unwrap();
        drop(RecordFile::open(&path).unwrap());
        assert_eq!(path.metadata().unwrap().len(), 1 << 20);
        RecordFile::open(&path).unwrap().write(&record()).unwrap();
        let written: Record = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(written, record());
    }

    #[test]
    fn without_a_result_there_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        let opened = RecordFile::open(&path).unwrap();
        assert!(path.exists());
        drop(opened);
        assert!(!path.exists());
        RecordFile::open(&path).unwrap().write(&record()).unwrap();
        assert!(path.exists());
    }

    #[test]
    fn what_is_no_file_is_written_as_well() {
        RecordFile::open("/dev/null".as_ref()).unwrap().write(&record()).unwrap();
        let full = RecordFile::open("/dev/full".as_ref()).unwrap().write(&record()).unwrap_err();
        assert!(full.to_string().contains("/dev/full"), "{full}");
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        )
        .unwrap();
        // Nobody reads the pipe yet, and opening must not wait for a reader.
        let opened = RecordFile::open(&pipe).unwrap();
        let reader = std::thread::spawn(move || std::fs::read(pipe).unwrap());
        opened.write(&record()).unwrap();
        let read: Record = serde_json::from_slice(&reader.join().unwrap()).unwrap();
        assert_eq!(read, record());
    }
}
