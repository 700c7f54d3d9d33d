//! `goodput serve`: answer clients.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::Result;
use goodput_engine::serve::{
    Access, CaptureHelper, Config, Counts, Exclusive, Host, Keys, ServedFiles, ServerLimits, Sinks,
    Sockets, serve,
};
use goodput_engine::{EngineError, share_heaps};
use goodput_model::Bytes;
use goodput_settings::GuardProgram;
use goodput_settings::allowlist::AllowedSettings;
use goodput_settings::helper::Helper;
use goodput_web::{Listening, Metrics};
use goodput_wire::keys::PrivateKey;
use goodput_wire::protocols;
use goodput_wire::session::{Limits, Protocol};
use jiff::Timestamp;

use super::measured::{self, Signals};
use super::notifier::Notifier;
use super::serve_cost::ServedCost;
use super::serve_metrics;
use super::serve_results::LastResults;
use super::served;
use super::settings::{settle_leftovers, warn_of_leftovers};
use super::third_party;
use super::unprivileged;
use crate::args::{LocalAddress, ServeArgs, ServedFileArgs, WhenBusy};
use crate::authorized::Authorized;
use crate::dashboard::ServerView;
use crate::data_dirs::state_dir;
use crate::exit::Exit;
use crate::{credentials, key_files, screen};

/// Serves until a signal comes.
pub fn run(args: ServeArgs, state: Option<PathBuf>) -> Result<Exit> {
    // Until it has dropped its privileges, which requires a single-threaded process.
    screen::stay_alone(true);
    share_heaps();
    let state = state_dir(state)?;
    tend_leftovers(&args, &state);
    let known = KnownClients::of(&args, &state)?;
    let view = args.format.live.then(ServerView::new);
    let mut config = config(&args, &state, known.as_ref())?;
    config.watcher = config.watcher.or_else(|| view.as_ref().map(ServerView::watcher));
    let results = args.listen.metrics.map(|_| LastResults::default());
    if let Some(results) = &results {
        config.watcher = Some(results.watching(config.watcher.take()));
    }
    let cost = args.listen.max_cost.map(|most| (most, ServedCost::default()));
    if let Some((_, cost)) = &cost {
        config.watcher = Some(cost.watching(config.watcher.take()));
    }
    let counts = Arc::clone(&config.counts);
    let bind = args.listen.bind.as_ref().map(LocalAddress::scoped).transpose()?;
    let (mut sockets, usual) = match Sockets::from_systemd()? {
        // A parent that passes sockets has chosen the ports.
        Some(sockets) => (sockets, !args.listen.protocols.is_empty()),
        None => {
            let usual = !args.listen.protocols.is_empty() || args.listen.port == OWN.port;
            (Sockets::open(bind, args.listen.port)?, usual)
        }
    };
    let mut listening =
        vec![format!("goodput {} listening on {}", env!("CARGO_PKG_VERSION"), sockets.address()?)];
    if usual {
        listening.extend(open_usual(&args, bind, &mut sockets)?);
    }
    listening.extend(known.as_ref().map(|known| format!("key {}", known.own.public())));
    if let Some(text) = &args.listen.announce {
        listening = text.lines().map(Into::into).collect();
    }
    let notifier = Notifier::connect();
    measured::runtime()?.block_on(async {
        let metrics = match args.listen.metrics {
            Some(address) => Some(goodput_web::listen(address, "--metrics", None).await?),
            None => None,
        };
        unprivileged::become_so(&args, known.as_ref().map(|known| &*known.clients))?;
        screen::stay_alone(false);
        if let Some(known) = &known {
            known.clients.watch()?;
        }
        // Before the server announces that it is ready, because it may be stopped from then on.
        let mut signals = Signals::listen()?;
        let mut full_screen = None;
        if let (Some(listening), Some(results)) = (metrics, results) {
            tell_metrics(listening, results, Arc::clone(&counts))?;
        }
        let ready = || {
            // The parent process may have gone without waiting for this.
            let _ = listening.iter().try_for_each(screen::line);
            full_screen = view.as_ref().and_then(|view| view.open(&listening));
            notifier.notify("READY=1");
        };
        let stop = async {
            tokio::select! {
                () = signals.next() => {}
                () = asked_to_quit(view.as_ref()) => {}
                () = input_ended(args.listen.end_with_input) => {}
                () = used_up(cost.as_ref(), &counts) => {}
            }
        };
        let served = serve(config, sockets, ready, stop).await;
        drop(full_screen);
        if let Some((_, cost)) = &cost {
            cost.tell(&counts);
        }
        notifier.notify("STOPPING=1");
        anyhow::Ok(served?)
    })?;
    Ok(Exit::Fine)
}

/// Serves metrics as long as this process runs.
fn tell_metrics(listening: Listening, results: LastResults, counts: Arc<Counts>) -> Result<()> {
    screen::say(format_args!("metrics on {}metrics", listening.url()?));
    let read = move || serve_metrics::text(counts.read(), &results.read(Timestamp::now()));
    tokio::spawn(listening.serve(Metrics::new(read)));
    Ok(())
}

/// Waits until someone who watches ends the server; for ever, if nobody watches.
async fn asked_to_quit(view: Option<&ServerView>) {
    match view {
        Some(view) => view.quit().await,
        None => std::future::pending().await,
    }
}

/// Waits until measurements have cost what they may; for ever, if they may cost anything.
async fn used_up(cost: Option<&(Bytes, ServedCost)>, counts: &Counts) {
    match cost {
        Some((most, cost)) => cost.used_up(*most, counts).await,
        None => std::future::pending().await,
    }
}

/// Waits until standard input ends, if the server ends with it; for ever otherwise.
async fn input_ended(asked: bool) {
    let (ended, wait) = tokio::sync::oneshot::channel::<()>();
    let reader = asked.then(|| measured::at_end_of_input(move || drop(ended)));
    match reader {
        Some(Ok(_)) => drop(wait.await),
        Some(Err(cause)) => {
            tracing::warn!("this server goes on if the program that started it ends: {cause}");
            std::future::pending().await
        }
        None => std::future::pending().await,
    }
}

/// Restores what interrupted runs left changed if clients may change settings here: the first such client would cause
/// this anyway. Otherwise only warns.
fn tend_leftovers(args: &ServeArgs, state: &Path) {
    match args.clients.allow_settings.is_empty() {
        true => warn_of_leftovers(state),
        false => settle_leftovers(state),
    }
}

/// The server's own key in its state directory.
const SERVER_KEY: &str = "server.key";

/// The protocol whose port is the server's own.
const OWN: &Protocol = &protocols::goodput::PROTOCOL;

/// How the server authenticates clients by their own keys.
struct KnownClients {
    own: PrivateKey,
    clients: Arc<Authorized>,
}

impl KnownClients {
    /// Reads the keys, if there are any; the server's own key is made on first use.
    fn of(args: &ServeArgs, state: &Path) -> Result<Option<Self>> {
        let Some(file) = &args.clients.authorized_keys else { return Ok(None) };
        let clients = Arc::new(Authorized::open(file)?);
        let own = match &args.clients.key {
            Some(own) => key_files::read(own)?,
            None => {
                let file = state.join(SERVER_KEY);
                key_files::make_directory(&file)?;
                key_files::read_or_make(&file, &key_files::usual_name())?.0
            }
        };
        Ok(Some(Self { own: own.key, clients }))
    }

    fn keys(&self) -> Keys {
        Keys::new(self.own.clone(), self.clients.clients().clone())
    }
}

fn config(args: &ServeArgs, state: &Path, known: Option<&KnownClients>) -> Result<Config> {
    let (users, key) =
        (args.clients.users_file.as_deref(), args.clients.rsa_private_key.as_deref());
    let chosen: Vec<_> = args.listen.protocols.iter().map(|spoken| spoken.protocol).collect();
    Ok(Config {
        protocols: if chosen.is_empty() { protocols::ALL.to_vec() } else { chosen },
        exclusive: args.listen.exclusive.map(|others| match others {
            WhenBusy::Busy => Exclusive::Busy,
            WhenBusy::Queue => Exclusive::Queue,
        }),
        limits: Limits {
            duration_s: args.limits.max_duration,
            flows: args.limits.max_flows,
            rate_bits_per_s: None,
            chunk_bytes: args.limits.max_chunk.0,
            socket_buffer_bytes: args.limits.max_buffer.0,
            dscp: args.limits.max_dscp,
            unproven_udp: args.clients.allow_unproven_udp,
        },
        access: Access { allow: args.clients.allow.clone(), deny: args.clients.deny.clone() },
        host: Host::here(),
        allowed: ServerLimits {
            measurements: args.limits.max_clients,
            connections_per_client: args.limits.max_connections,
            client_percent: args.limits.client_share,
            client_rate: args.limits.max_rate.of_direction(1),
            total_rate: args.limits.max_total_rate.of_direction(1),
        },
        min_progress: args.limits.min_progress,
        one_off: args.listen.one_off,
        credential_required: args.clients.require_credential || args.clients.users_file.is_some(),
        settings: AllowedSettings::new(args.clients.allow_settings.clone()),
        token: credentials::token(args.clients.token_file.as_deref())?,
        keys: known.map(KnownClients::keys),
        users: credentials::users(users, key, args.clients.pkcs1_padding)?,
        private: args.clients.private,
        files: served_files(&args.files),
        settings_helper: settings_helper(args, state)?,
        capture_helper: capture_helper(args)?,
        shows_qdiscs: args.clients.allow_qdiscs,
        third_party: third_party::runner(args),
        watcher: served::watcher(args),
        counts: Arc::default(),
    })
}

fn served_files(args: &ServedFileArgs) -> ServedFiles {
    let sinks = |directory| Sinks::new(directory, args.max_sink.0, args.max_sink_total.0);
    ServedFiles { files: args.files.clone(), sinks: args.sinks.clone().map(sinks) }
}

/// Starts the process that keeps root's privileges, if clients may change settings.
fn settings_helper(args: &ServeArgs, state: &Path) -> Result<Option<Arc<Helper>>> {
    if args.clients.allow_settings.is_empty() {
        return Ok(None);
    }
    let mut program = GuardProgram::this_executable(["settings", "helper"]);
    program.args.push(state.into());
    program
        .args
        .extend(args.clients.allow_settings.iter().map(|pattern| pattern.to_string().into()));
    Ok(Some(Arc::new(Helper::start(&program)?)))
}

/// Starts the process that keeps CAP_NET_RAW, if clients may have packets captured.
fn capture_helper(args: &ServeArgs) -> Result<Option<Arc<CaptureHelper>>> {
    if !args.clients.allow_capture {
        return Ok(None);
    }
    let GuardProgram { exe, args } = GuardProgram::this_executable(["capture-helper"]);
    let mut program = Command::new(exe);
    program.args(args);
    Ok(Some(Arc::new(CaptureHelper::start(program)?)))
}

/// Opens the usual ports of the protocols; returns a line for each.
fn open_usual(
    args: &ServeArgs,
    bind: Option<SocketAddr>,
    sockets: &mut Sockets,
) -> Result<Vec<String>, EngineError> {
    let mut lines = Vec::new();
    for (port, protocols) in usual_ports(args) {
        let names: Vec<_> = protocols.iter().map(|protocol| protocol.id).collect();
        let names = names.join(" and ");
        match sockets.open_usual(bind, port, protocols) {
            Ok(address) => lines.push(format!("{names} on {address}")),
            Err(why) if args.listen.strict => return Err(why),
            Err(why) => screen::say(format_args!(
                "warning: {names} is served only on goodput's port: {why}"
            )),
        }
    }
    Ok(lines)
}

/// The ports besides goodput's own, in the order of the list, with the protocols that share each.
fn usual_ports(args: &ServeArgs) -> Vec<(u16, Vec<&'static Protocol>)> {
    let all = protocols::ALL.iter().map(|protocol| (protocol.port, *protocol));
    let chosen =
        args.listen.protocols.iter().map(|s| (s.port.unwrap_or(s.protocol.port), s.protocol));
    let wanted: Vec<_> =
        if args.listen.protocols.is_empty() { all.collect() } else { chosen.collect() };
    let mut ports: Vec<(u16, Vec<&'static Protocol>)> = Vec::new();
    for (port, protocol) in wanted.into_iter().filter(|(_, protocol)| protocol.id != OWN.id) {
        match ports.iter_mut().find(|(other, _)| *other == port && port != 0) {
            Some((_, sharing)) => sharing.push(protocol),
            None => ports.push((port, vec![protocol])),
        }
    }
    ports
}
