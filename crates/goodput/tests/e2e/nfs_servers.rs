//! Files of a real NFS server, from the command line: what it gives, what it refuses, and the exit codes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use goodput_testing::{in_namespace, skip, wait_for};

use crate::common::{Home, record, set_mode, stderr};

/// The servers, until this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn export(id: u32, path: &Path, squash: &str) -> String {
    format!(
        "EXPORT {{ Export_Id = {id}; Path = {path}; Pseudo = /{id}; Protocols = 3; Access_Type = RO; \
         Squash = {squash}; SecType = sys; Transports = TCP; FSAL {{ Name = VFS; }} }}\n",
        path = path.display()
    )
}

/// The port mapper and nfs-ganesha. Both talk over a socket in `/run`, which is therefore their own; in a process
/// namespace, so that all of them end with the first.
fn start(home: &Home, exports: &str) -> Running {
    let core = "NFS_CORE_PARAM { Protocols = 3; NFS_Port = 22049; MNT_Port = 22050; Enable_NLM = false; \
                Enable_RQUOTA = false; }\n";
    let configuration = home.file("ganesha.conf", &format!("{core}{exports}"));
    let at = home.path().display();
    let script = format!(
        "mount -t tmpfs tmpfs /run && /usr/sbin/rpcbind && \
         exec /usr/bin/ganesha.nfsd -F -f {} -L {at}/ganesha.log -p {at}/ganesha.pid",
        configuration.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", &script]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Running(command.spawn().expect("util-linux is there"))
}

fn test(home: &Home, place: &str, more: &[&str]) -> Output {
    let target = format!("nfs://127.0.0.1{}/{place}", home.path().display());
    let arguments = ["test", &target, "--json", "--no-store", "-n", "1M"];
    home.run(&[&arguments[..], more].concat())
}

#[test]
fn what_an_nfs_server_gives_and_refuses_is_told_by_the_exit_code() {
    let there = |program: &str| Path::new(program).exists();
    if !there("/usr/bin/ganesha.nfsd") || !there("/usr/sbin/rpcbind") {
        return skip("nfs-ganesha, nfs-ganesha-vfs and rpcbind");
    }
    in_namespace(|| {
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
        assert!(up.expect("ip is there").success());
        let home = Home::new();
        for name in ["open", "squashed"] {
            let directory = home.path().join(name);
            fs::create_dir(&directory).expect("the home is writable");
            set_mode(&directory, 0o755);
            fs::write(directory.join("file"), vec![7; 3_000_001]).expect("it is writable");
        }
        let secret = home.path().join("squashed/file");
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("it is our own");
        let open = export(1, &home.path().join("open"), "None");
        let squashed = export(2, &home.path().join("squashed"), "All");
        let _servers = start(&home, &(open + &squashed));
        wait_for("ganesha", || test(&home, "open/file", &[]).status.success());
        let read = record(&test(&home, "open/file", &[]));
        assert!(read.result.goodput_bits_per_s.0 > 0.0);
        for (place, more, code, words) in [
            ("open/none", &[][..], 2, "no such file"),
            ("none/file", &[], 3, "exports no part"),
            ("squashed/file", &[], 3, "permission denied"),
            ("open/file", &["--receive-mover", "discard"], 2, "mover discard can't receive"),
        ] {
            let output = test(&home, place, more);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(code), "{place}: {said}");
            assert!(said.contains(words), "{place}: {said}");
        }
    });
}
