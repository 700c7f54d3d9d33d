//! The far end that a command line names: a server that stands open, a file, or a server that is started by SSH for this
//! run.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use goodput_engine::{Credentials, Target};
use goodput_remote::{Access, Address, FarServer};
use goodput_wire::session::Token;

use crate::args::PeerArgs;
use crate::credentials::credentials;
use crate::file_servers;

/// How a host on which to start a server is named.
const BY_SSH: &str = "ssh://";

/// Who is measured with.
pub struct FarEnd {
    /// Who it is.
    pub target: Target,
    /// What is shown to it.
    pub credentials: Credentials,
    /// A server that ends when this is dropped.
    pub started: Option<FarServer>,
}

impl FarEnd {
    /// The far end named `text`. Logs in and starts a server if that is what `text` asks for.
    pub fn of(
        text: &str,
        args: &PeerArgs,
        access: &Access,
        state: Option<PathBuf>,
    ) -> Result<Self> {
        match text.starts_with(BY_SSH) {
            true => Self::started(text, args, access),
            false => Self::standing(text, args, state),
        }
    }

    /// The same for a far end that is there without our doing.
    pub fn standing(text: &str, args: &PeerArgs, state: Option<PathBuf>) -> Result<Self> {
        if args.far_port.is_some() {
            bail!("{text}: --far-port is for servers that goodput starts by SSH (ssh://HOST)");
        }
        let target = file_servers::target(text, &args.files, state)?;
        let credentials = credentials(&args.credentials, &target)?;
        Ok(Self { target, credentials, started: None })
    }

    fn started(text: &str, args: &PeerArgs, access: &Access) -> Result<Self> {
        let address: Address = text.parse()?;
        if args.files.write {
            bail!("{text}: --write is for servers of files and for paths; this target is neither");
        }
        let credentials = &args.credentials;
        if credentials.server_key.is_some() || credentials.username.is_some() {
            bail!("{text}: --server-key and --username are for servers that stand open");
        }
        let server = FarServer::start(&address, access, None, args.far_port)?;
        let (target, credentials) = of_started(text, &server)?;
        Ok(Self { target, credentials, started: Some(server) })
    }
}

/// Where a server is that was started by SSH, and what is shown to it. Results are listed, and compared with later ones,
/// under `text`.
pub fn of_started(text: &str, server: &FarServer) -> Result<(Target, Credentials)> {
    let place = match server.host_name.contains(':') {
        true => format!("[{}]", server.host_name),
        false => server.host_name.clone(),
    };
    let target: Target = format!("{}://{place}:{}", server.protocol, server.port).parse()?;
    let target = Target { text: text.into(), ..target };
    let token = server.secret.clone().map(|secret| Token::new(secret.into_bytes())).transpose();
    let token = token.context("the secret of the server that was started")?;
    Ok((target, Credentials { token, login: None, key: None }))
}
