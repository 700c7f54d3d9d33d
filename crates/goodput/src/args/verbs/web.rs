//! What `goodput web` takes.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::args::values::unfit;

/// `goodput web`
#[derive(Debug, Args)]
pub struct WebArgs {
    /// Address and port of the pages
    ///
    /// Browsers of other hosts need --tls-cert, and log in with the token.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7488", value_parser = listen)]
    pub listen: SocketAddr,
    /// Ask for the token before anything is shown
    ///
    /// On loopback, everyone on this host may otherwise read the pages. Changes always need the token.
    #[arg(long)]
    pub login: bool,
    /// File of the token [default: goodput/web-token in $XDG_CONFIG_HOME or ~/.config]
    ///
    /// goodput makes the file if it does not exist.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificate of this host for TLS, with its chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Mesh file whose sites are the rows and columns of the matrix [default: all hosts]
    #[arg(long, value_name = "MESH.toml")]
    pub mesh: Option<PathBuf>,
    /// Another name of this host in browsers; may be repeated
    ///
    /// Addresses, localhost and this host's own name are always accepted.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub name: Vec<String>,
}

/// An address with a port.
fn listen(text: &str) -> Result<SocketAddr, String> {
    let like = "it like 127.0.0.1:7488 or [2001:db8::1]:7488";
    text.parse().map_err(|_| unfit(text, "an IP address with a port", like))
}
