//! What only some far ends understand, and what proves to them who asks.

use std::path::PathBuf;

use clap::Args;
use goodput_model::{Direction, Plan};
use goodput_wire::keys::PublicKey;

use super::words::Words;
use crate::args::values::number::whole;
use crate::args::values::path::path;
use crate::args::values::resolve::Resolve;

/// Options for far ends of one kind.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Far end")]
pub struct PeerArgs {
    #[command(flatten)]
    pub credentials: CredentialArgs,
    /// Also print what an iperf3 server would have printed
    ///
    /// The record keeps this output.
    #[arg(long, hide_short_help = true)]
    pub peer_output: bool,
    /// Port of the first data connection at a nuttcp server
    ///
    /// More connections take the next ports.
    #[arg(long, value_name = "PORT", value_parser = whole("a port", 1..=u16::MAX), hide_short_help = true)]
    pub data_port: Option<u16>,
    /// Port of the server that is started for ssh://HOST [default: any free one; of iperf3 5201]
    ///
    /// For a firewall on the way that lets only this port through.
    #[arg(long, value_name = "PORT", value_parser = whole("a port", 1..=u16::MAX), hide_short_help = true)]
    pub far_port: Option<u16>,
    // Last, or the options behind it would stand under its heading.
    #[command(flatten)]
    pub files: FileServerArgs,
}

impl PeerArgs {
    /// Those of a plan that say what is measured, of a `file` at a file server or on a mount too.
    pub fn words(plan: &Plan, file: bool) -> Words {
        Words::default()
            .value("data-port", plan.data_port)
            .flag("write", file && plan.direction == Direction::Send)
    }
}

/// What proves to the far end who this is.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Far end")]
pub struct CredentialArgs {
    /// File with the far end's token, to change its settings
    #[arg(long, value_name = "FILE", env = "GOODPUT_TOKEN_FILE", value_parser = path("GOODPUT_TOKEN_FILE"), hide_short_help = true)]
    pub token_file: Option<PathBuf>,
    /// File of your private key, as `goodput key` makes it [default: goodput/key in the configuration
    /// directory]
    ///
    /// goodput shows the default key only to servers that you know, and to servers that refuse unknown clients.
    #[arg(long, value_name = "FILE", env = "GOODPUT_KEY_FILE", value_parser = path("GOODPUT_KEY_FILE"), hide_short_help = true)]
    pub key: Option<PathBuf>,
    /// Show no key, not even the default one or that of GOODPUT_KEY_FILE
    ///
    /// goodput refuses a known server that does not prove its key. Use this option if the server has no keys any more.
    #[arg(long, conflicts_with = "server_key", hide_short_help = true)]
    pub no_key: bool,
    /// Public key that the server must have, x25519:… [default: the one from the first visit]
    #[arg(long, value_name = "KEY", hide_short_help = true)]
    pub server_key: Option<PublicKey>,
    /// Name to log in with at an iperf3 server
    ///
    /// The password comes from --password-file or $IPERF3_PASSWORD; otherwise goodput asks for it on the terminal.
    #[arg(long, value_name = "NAME", requires = "rsa_public_key", hide_short_help = true)]
    pub username: Option<String>,
    /// File whose first line is the password
    #[arg(long, value_name = "FILE", requires = "username", hide_short_help = true)]
    pub password_file: Option<PathBuf>,
    /// Public key of the iperf3 server, in PEM
    #[arg(long, value_name = "FILE", requires = "username", hide_short_help = true)]
    pub rsa_public_key: Option<PathBuf>,
    /// Encrypt the password like iperf3 before 3.17
    #[arg(long, requires = "username", hide_short_help = true)]
    pub pkcs1_padding: bool,
}

/// By whom web servers are reached.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "File servers")]
pub struct ProxyArgs {
    /// Reach http:// and https:// through this HTTP proxy [default: http_proxy, https_proxy, all_proxy]
    ///
    /// As in curl, HTTP_PROXY in upper case is ignored, https goes through a tunnel (CONNECT), and an empty value means
    /// no proxy. With a proxy, goodput measures the path to the proxy.
    #[arg(long, value_name = "URL", hide_short_help = true)]
    pub proxy: Option<String>,
    /// Reach these hosts, domains and networks without the proxy [default: no_proxy]
    ///
    /// Separate them by commas; * stands for all.
    #[arg(long, value_name = "LIST", hide_short_help = true)]
    pub noproxy: Option<String>,
}

/// How far to trust file servers, and where they are.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "File servers")]
pub struct FileServerArgs {
    /// Write instead of reading
    ///
    /// goodput stores scratch files beside the named file, and removes them at the end. Each flow stores a file of 64
    /// MiB again and again, or the file of --source or --size. Their names begin with .goodput-write-. To name a
    /// folder, end the path with a slash. On a mount, goodput writes past the page cache or up to the fsync. The next
    /// test of the same server or folder, or `goodput settings undo`, removes what an interrupted run left.
    #[arg(long, conflicts_with_all = ["reverse", "both", "udp", "sink"])]
    pub write: bool,
    /// Follow redirects to other hosts, and from https to http
    ///
    /// Without this option, nothing is sent to a host that you did not name. A password is never sent to another host.
    #[arg(long, hide_short_help = true)]
    pub follow: bool,
    /// Trust the authorities in this file (PEM) instead of the system's
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub cacert: Option<PathBuf>,
    /// Accept any certificate; the server may then be anyone
    #[arg(long, conflicts_with = "cacert", hide_short_help = true)]
    pub insecure: bool,
    /// Use this address for a host and port, as in curl
    #[arg(long, value_name = "HOST:PORT:ADDRESS", hide_short_help = true)]
    pub resolve: Vec<Resolve>,
    #[command(flatten)]
    pub proxy: ProxyArgs,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::args::Cli;

    #[test]
    fn options_stand_under_the_heading_of_the_far_ends_that_they_are_for() {
        let all = Cli::command();
        for verb in ["test", "compare"] {
            let verb = all.find_subcommand(verb).unwrap();
            let heading = |id: &str| {
                verb.get_arguments().find(|arg| arg.get_id() == id).unwrap().get_help_heading()
            };
            for id in ["token_file", "username", "peer_output", "data_port"] {
                assert_eq!(heading(id), Some("Far end"), "{id}");
            }
            for id in ["cacert", "resolve", "rsize", "slots"] {
                assert_eq!(heading(id), Some("File servers"), "{id}");
            }
            assert_eq!(heading("latency"), Some("Observing"));
        }
    }
}
