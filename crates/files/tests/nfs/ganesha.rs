//! Reading a file from nfs-ganesha, found by the port mapper, in a network namespace of the test's own.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use goodput_files::{FileError, Options, Ready, Wait, schemes};
use goodput_testing::servers::has_v6;
use goodput_testing::{in_namespace, skip, wait_for};

use crate::{Patient, Plain};

const FILE_BYTES: usize = 3_000_001;

/// A program until it is dropped.
struct Running(Child);

impl Running {
    fn start(program: &str, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(args).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("it starts"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn configuration(directory: &Path) -> String {
    let path = directory.display();
    format!(
        "NFS_CORE_PARAM {{ Protocols = 3; NFS_Port = 22049; MNT_Port = 22050; Enable_NLM = false; \
         Enable_RQUOTA = false; }}\n\
         EXPORT {{ Export_Id = 1; Path = {path}; Pseudo = /export; Protocols = 3; Access_Type = RO; \
         Squash = None; SecType = sys; Transports = TCP; FSAL {{ Name = VFS; }} }}\n"
    )
}

/// The port mapper, and ganesha once that listens. Both talk over a socket in `/run`, which is therefore their own;
/// in a process namespace, so that all of them end with the first.
fn start_servers(configuration: &str, log: &str, pid: &str) -> Running {
    let script = format!(
        "mount -t tmpfs tmpfs /run && /usr/sbin/rpcbind && \
         exec /usr/bin/ganesha.nfsd -F -f {configuration} -L {log} -p {pid}"
    );
    let namespaces = ["--mount", "--pid", "--fork", "--kill-child"];
    Running::start("unshare", &[&namespaces[..], &["sh", "-c", &script]].concat())
}

/// Ganesha listens before it is registered, and rpcbind answers before either.
fn is_unknown_to_the_port_mapper(read: &Result<usize, FileError>) -> bool {
    match read {
        Err(FileError::Refused(why)) => why.contains("port mapper"),
        Err(FileError::Io { .. }) => true,
        _ => false,
    }
}

fn read(place: &str) -> Result<usize, FileError> {
    let place = schemes::parse(place)?;
    let mut conversation =
        (schemes::nfs::NFS.open)(place, Arc::new(Options::default()), Box::new(Plain));
    conversation.fetch(&Patient)?;
    let (mut room, mut bytes) = (vec![0; 100_000], 0);
    loop {
        match conversation.read(&mut room) {
            Ok(0) => return Ok(bytes),
            Ok(read) => {
                assert!(room[..read].iter().all(|byte| *byte == 7), "only payload comes");
                bytes += read;
            }
            Err(why) if why.kind() == ErrorKind::WouldBlock => {
                let socket = conversation.socket().expect("there is one").as_fd();
                Patient.wait(socket, Ready::Read, Instant::now())?;
            }
            Err(why) => panic!("{why}"),
        }
    }
}

#[test]
fn ganesha_gives_all_of_a_file() {
    let there = |program: &str| Path::new(program).exists();
    if !there("/usr/bin/ganesha.nfsd") || !there("/usr/sbin/rpcbind") {
        return skip("nfs-ganesha, nfs-ganesha-vfs and rpcbind");
    }
    in_namespace(|| {
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
        assert!(up.expect("ip is there").success());
        let directory = tempfile::tempdir().expect("there is room");
        let export = directory.path().join("export");
        std::fs::create_dir(&export).expect("there is room");
        std::fs::write(export.join("file"), vec![7; FILE_BYTES]).expect("there is room");
        let file = |name: &str| directory.path().join(name).display().to_string();
        std::fs::write(file("conf"), configuration(&export)).expect("there is room");
        let _servers = start_servers(&file("conf"), &file("log"), &file("pid"));
        let place = format!("nfs://127.0.0.1{}/file", export.display());
        wait_for("ganesha at the port mapper", || !is_unknown_to_the_port_mapper(&read(&place)));
        assert_eq!(read(&place).expect("it gives the file"), FILE_BYTES);
        // Over IPv6 the port mapper is asked in another version.
        if has_v6() {
            let place = place.replace("127.0.0.1", "[::1]");
            assert_eq!(read(&place).expect("it gives the file"), FILE_BYTES);
        }
        let none = read(&format!("nfs://127.0.0.1{}/none", export.display()));
        assert!(none.expect_err("it is not there").to_string().contains("no such file"));
    });
}
