//! The servers of files: nginx, vsftpd and nfs-ganesha.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::FILE_BYTES;
use crate::bench::net::address;
use crate::bench::stage::Stage;
use goodput_tools::shell::{command, run};

/// A program that serves files.
pub struct FileServer {
    program: &'static str,
    url: fn(&Path, &str, u16) -> String,
    /// Number of ports on which it listens, starting with the first.
    ports: u16,
    arguments: fn(&Path) -> Vec<String>,
    configuration: fn(&Path, &str, u16) -> String,
    /// Whether it proves itself by a certificate, which is made for it.
    encrypts: bool,
}

pub static NGINX: FileServer = FileServer {
    program: "nginx",
    url: |_, address, port| format!("http://{address}:{port}/file"),
    ports: 1,
    arguments: |file| vec!["-c".into(), file.display().to_string()],
    configuration: |folder, address, port| nginx(folder, &format!("listen {address}:{port};")),
    encrypts: false,
};

/// The same, encrypted: TLS 1.3, so that every client uses the same cipher.
pub static NGINX_TLS: FileServer = FileServer {
    url: |_, address, port| format!("https://{address}:{port}/file"),
    configuration: |folder, address, port| {
        let at = folder.display();
        let tls = format!(
            "listen {address}:{port} ssl; ssl_certificate {at}/{CERTIFICATE}; ssl_certificate_key {at}/{KEY}; \
             ssl_protocols TLSv1.3;"
        );
        nginx(folder, &tls)
    },
    encrypts: true,
    ..NGINX
};

/// nginx's configuration, with these directives in its block `server`.
fn nginx(folder: &Path, server: &str) -> String {
    let folder = folder.display();
    format!(
        "daemon off; master_process off; pid {folder}/pid; error_log {folder}/log;
         events {{}}
         http {{ access_log off; sendfile on; tcp_nopush on; client_body_temp_path {folder}/a;
                 proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d;
                 scgi_temp_path {folder}/e;
                 server {{ {server} root {folder}/files; }} }}"
    )
}

/// The server's certificate, and its key.
const CERTIFICATE: &str = "cert.pem";
const KEY: &str = "key.pem";

pub static VSFTPD: FileServer = FileServer {
    program: "vsftpd",
    url: |_, address, port| format!("ftp://{address}:{port}/file"),
    ports: 1,
    arguments: |file| vec![file.display().to_string()],
    configuration: |folder, address, port| {
        let folder = folder.display();
        format!(
            "listen=YES\nlisten_address={address}\nlisten_port={port}\nbackground=NO\nanonymous_enable=YES\n\
             anon_root={folder}/files\nlocal_enable=NO\nsecure_chroot_dir={folder}/empty\nseccomp_sandbox=NO\n"
        )
    },
    encrypts: false,
};

/// Keeps ganesha from returning memory to the kernel with each READ (mallopt(3); 32 MiB is the most for the first).
const GANESHA_MEMORY: &str =
    "MALLOC_MMAP_THRESHOLD_=16777216 MALLOC_TRIM_THRESHOLD_=1073741824 MALLOC_TOP_PAD_=67108864";

/// It requires a port mapper, and talks to it over a socket in `/run`, which is therefore private to them. They run in
/// their own process namespace, so that both end with the first.
pub static GANESHA: FileServer = FileServer {
    program: "unshare",
    url: |folder, address, port| {
        let mount_port = mount_port(port);
        format!("nfs://{address}:{port}{}/files/file?mountport={mount_port}", folder.display())
    },
    ports: 2,
    arguments: |file| {
        let file = file.display();
        let script = format!(
            "mount -t tmpfs tmpfs /run && rpcbind && exec env {GANESHA_MEMORY} ganesha.nfsd -F -f {file} -L {file}.log -p {file}.pid"
        );
        let namespaces = ["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", &script];
        namespaces.map(str::to_owned).to_vec()
    },
    configuration: |folder, address, port| {
        let (folder, mount_port) = (folder.display(), mount_port(port));
        format!(
            "NFS_CORE_PARAM {{ Protocols = 3; Bind_addr = {address}; NFS_Port = {port}; MNT_Port = {mount_port}; \
             Enable_NLM = false; Enable_UDP = false; Enable_RQUOTA = false; }}
             EXPORT {{ Export_Id = 1; Path = {folder}/files; Pseudo = /1; Protocols = 3; Access_Type = RO; \
             Squash = None; SecType = sys; Transports = TCP; FSAL {{ Name = VFS; }} }}"
        )
    },
    encrypts: false,
};

/// The MOUNT port, beside NFS.
pub fn mount_port(port: u16) -> u16 {
    port + 1
}

/// A running server, and the file that it serves.
pub struct Serving {
    child: Child,
    pub folder: TempDir,
    pub url: String,
    encrypts: bool,
}

impl Serving {
    pub fn start(stage: &Stage<'_>, server: &FileServer) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let at = folder.path();
        let files = at.join("files");
        fs::create_dir(&files)?;
        fs::create_dir(at.join("empty"))?;
        File::create(files.join("file"))?.set_len(FILE_BYTES)?;
        fs::set_permissions(at, fs::Permissions::from_mode(0o755))?;
        fs::set_permissions(&files, fs::Permissions::from_mode(0o555))?;
        let (address, configuration) = (address(stage.place), at.join("configuration"));
        if server.encrypts {
            make_certificate(at, address)?;
        }
        let text = (server.configuration)(at, address, stage.port);
        File::create(&configuration)?.write_all(text.as_bytes())?;
        let child = stage
            .net
            .at_server(stage.place, server.program)
            .args((server.arguments)(&configuration))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("can't start {}", server.program))?;
        let url = (server.url)(at, address, stage.port);
        let mut serving = Self { child, folder, url, encrypts: server.encrypts };
        for port in stage.port..stage.port + server.ports {
            stage.net.wait_for_listener(stage.place, &mut serving.child, port)?;
        }
        Ok(serving)
    }

    /// The options by which goodput and curl trust the server.
    pub fn trust(&self) -> Vec<String> {
        let certificate = self.folder.path().join(CERTIFICATE).display().to_string();
        if self.encrypts { vec!["--cacert".into(), certificate] } else { Vec::new() }
    }
}

/// Makes a certificate for a server at this address, which is its own authority.
fn make_certificate(folder: &Path, address: &str) -> Result<()> {
    let mut openssl = command("openssl");
    openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]);
    openssl.args(["-subj", "/CN=bench", "-keyout", KEY, "-out", CERTIFICATE]);
    openssl.args(["-addext", &format!("subjectAltName=IP:{address}")]);
    openssl.current_dir(folder).stderr(Stdio::null());
    run(&mut openssl)
}

impl Drop for Serving {
    fn drop(&mut self) {
        // If this fails, it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
