//! What `goodput serve` gives up once its sockets are open, before it answers anybody.

use anyhow::Result;
use goodput_sandbox::{Keep, User, check_open, enter};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::args::ServeArgs;
use crate::authorized::Authorized;

/// Share of this host's memory that may be locked, as a divisor: what the flows of all measurements may
/// take together.
const LOCKED_SHARE: u64 = 4;

/// Becomes a process without privileges, unless the options keep it from that. What this kernel cannot
/// take away is a warning.
pub fn become_so(args: &ServeArgs, keys: Option<&Authorized>) -> Result<()> {
    if args.process.no_sandbox {
        return Ok(());
    }
    raise_locked_memory();
    let (user, mut lacks) = user(args)?;
    let keep = Keep {
        user,
        read: args
            .files
            .files
            .clone()
            .into_iter()
            .chain(keys.map(|k| k.directory().into()))
            .collect(),
        write: args.files.sinks.clone().into_iter().collect(),
        resolves_names: !args.clients.third_party.is_empty(),
    };
    lacks.extend(enter(&keep)?);
    for lack in lacks {
        eprintln!("warning: {lack}");
    }
    if let Some(keys) = keys {
        keys.check()?;
    }
    let closed = args.files.files.iter().map(|dir| check_open(dir, false));
    Ok(closed
        .chain(keep.write.iter().map(|dir| check_open(dir, true)))
        .collect::<Result<_, _>>()?)
}

/// Who to become, and why it is nobody else if root stays root.
fn user(args: &ServeArgs) -> Result<(Option<User>, Vec<String>)> {
    let user = User::choose(args.process.user.as_deref())?;
    let obstacle = user.as_ref().and_then(User::obstacle).filter(|_| args.process.user.is_none());
    match obstacle {
        Some(why) => {
            let lack = format!("{why}, so the server stays root, without its capabilities");
            Ok((None, vec![lack]))
        }
        None => Ok((user, Vec::new())),
    }
}

/// Lets an unprivileged server pin what MSG_ZEROCOPY sends and io_uring registers, which root may without
/// a limit (getrlimit(2), RLIMIT_MEMLOCK). Refused to all but root.
fn raise_locked_memory() {
    let system = rustix::system::sysinfo();
    let share = system.totalram as u64 * u64::from(system.mem_unit) / LOCKED_SHARE;
    let now = getrlimit(Resource::Memlock);
    // `None` is no limit.
    if now.current.is_some_and(|current| current < share) {
        let maximum = now.maximum.map(|maximum| maximum.max(share));
        let raised = Rlimit { current: Some(share), maximum };
        if let Err(cause) = setrlimit(Resource::Memlock, raised) {
            tracing::debug!("cannot raise the limit of locked memory: {cause}");
        }
    }
}
