//! vsftpd for anonymous users, plain and encrypted.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use super::{Running, certificate, free_port, start, write};

/// Serves `root` at `host`, with `more` lines of configuration; returns the server and its port. It encrypts with a
/// certificate from [`certificate`]. All its files are in `folder`. Root must start it.
pub fn vsftpd(folder: &Path, root: &Path, host: IpAddr, more: &str) -> (Running, u16) {
    let port = free_port();
    let listen = match host {
        IpAddr::V4(host) => format!("listen=YES\nlisten_address={host}"),
        IpAddr::V6(host) => format!("listen_ipv6=YES\nlisten_address6={host}"),
    };
    certificate(folder, false);
    let empty = folder.join("empty");
    fs::create_dir_all(&empty).expect("the folder is writable");
    let (at, root, empty) = (folder.display(), root.display(), empty.display());
    let text = format!(
        "{listen}\nlisten_port={port}\nbackground=NO\nanonymous_enable=YES\nanon_root={root}\nlocal_enable=NO\n\
         secure_chroot_dir={empty}\nseccomp_sandbox=NO\nssl_enable=YES\nallow_anon_ssl=YES\n\
         force_local_data_ssl=NO\nforce_local_logins_ssl=NO\nrsa_cert_file={at}/cert.pem\n\
         rsa_private_key_file={at}/key.pem\nssl_ciphers=HIGH\n{more}"
    );
    let configuration = write(folder, &format!("vsftpd-{port}.conf"), &text);
    let running = start("/usr/sbin/vsftpd", &[&configuration], SocketAddr::new(host, port));
    (running, port)
}
