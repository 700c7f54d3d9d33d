//! `goodput serve`: answer clients.

use std::path::PathBuf;

use anyhow::Result;
use goodput_engine::serve::{Config, Sockets, serve};
use goodput_wire::session::Limits;

use super::measured::{self, Signals};
use crate::args::ServeArgs;
use crate::credentials;
use crate::exit::Exit;
use crate::storage::state_dir;

/// Serves until a signal comes.
pub fn run(args: ServeArgs, state: Option<PathBuf>) -> Result<Exit> {
    let token = credentials::token(args.token_file.as_deref())?;
    let (users, key) = (args.users_file.as_deref(), args.rsa_private_key.as_deref());
    let accounts = credentials::accounts(users, key)?;
    let config = Config {
        bind: args.bind,
        port: args.port,
        limits: Limits {
            duration_s: args.max_duration,
            flows: args.max_flows,
            rate_bits_per_s: args.max_rate.map(|rate| rate.0).filter(|rate| *rate > 0.0),
            chunk_bytes: args.max_chunk.0,
            socket_buffer_bytes: args.max_buffer.0,
            unproven_udp: args.allow_unproven_udp,
        },
        max_clients: args.max_clients,
        max_connections_per_address: args.max_connections,
        one_off: args.one_off,
        token_required: args.require_token,
        token,
        accounts,
        private: args.private,
        state_dir: state_dir(state)?,
    };
    raise_open_files();
    let sockets = match Sockets::from_systemd()? {
        Some(sockets) => sockets,
        None => Sockets::open(config.bind, config.port)?,
    };
    let address = sockets.address()?;
    measured::runtime()?.block_on(async {
        // Before anybody is told that the server is there, and so may stop it.
        let mut signals = Signals::listen()?;
        println!("goodput {} listening on {address}", env!("CARGO_PKG_VERSION"));
        // Not under systemd, there is nobody to tell.
        let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
        let served = serve(config, sockets, signals.next()).await;
        let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
        anyhow::Ok(served?)
    })?;
    Ok(Exit::Fine)
}

/// Lets this process open as many files as its hard limit allows: each flow and each client takes
/// one, and the soft limit is often 1024.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(cause) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!("cannot raise the limit of open files: {cause}");
    }
}
