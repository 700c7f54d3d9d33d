//! nginx with one server, plain and encrypted.

use std::net::Ipv4Addr;
use std::path::Path;

use super::{Running, certificate, free_port, has_v6, start, write};

/// Directories for data that doesn't fit into its memory.
const TEMPORARY: [&str; 5] = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];

/// A server until it is dropped.
pub struct Nginx {
    /// Dropping this ends the server.
    pub running: Running,
    /// Its port without encryption, at 127.0.0.1, and at ::1 if this host has it.
    pub plain: u16,
    /// Its port with TLS, at 127.0.0.1.
    pub encrypted: u16,
}

/// Serves `root` with a certificate from [`certificate`], and with `more` directives in its block `server`. All its
/// files are in `folder`.
pub fn nginx(folder: &Path, root: &Path, is_authority: bool, more: &str) -> Nginx {
    let (plain, encrypted) = (free_port(), free_port());
    let v6 = if has_v6() { format!("listen [::1]:{plain};") } else { String::new() };
    certificate(folder, is_authority);
    let (at, root) = (folder.display(), root.display());
    let temporary: String =
        TEMPORARY.iter().map(|of| format!("{of}_temp_path {at}/{of};")).collect();
    let text = format!(
        "daemon off; master_process off; pid {at}/nginx.pid; error_log {at}/nginx.log;
         events {{}}
         http {{ access_log off; {temporary} client_max_body_size 0; server {{
             listen 127.0.0.1:{plain}; {v6} listen 127.0.0.1:{encrypted} ssl; root {root};
             ssl_certificate {at}/cert.pem; ssl_certificate_key {at}/key.pem;
             {more}
         }} }}"
    );
    let configuration = write(folder, "nginx.conf", &text);
    let address = (Ipv4Addr::LOCALHOST, plain).into();
    let running = start("/usr/sbin/nginx", &["-c", &configuration], address);
    Nginx { running, plain, encrypted }
}
