//! Targets that are files: how the options and the environment configure access to their servers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use goodput_engine::{EngineError, FileTarget, Meeting, Target};
use goodput_files::{Login, Options, Place, Proxy};

use crate::args::{FileServerArgs, ProxyArgs};
use crate::data_dirs::state_dir;
use crate::{proxies, screen};

/// The user, without a file of logins.
const USER_VARIABLE: &str = "GOODPUT_FILE_USER";
/// The password, which never appears on the command line.
const PASSWORD_VARIABLE: &str = "GOODPUT_FILE_PASSWORD";
/// The path of the file of logins, if not in the home directory (curl(1)).
const NETRC_VARIABLE: &str = "NETRC";

/// The target of this name, with the options applied if it is a file; files stored at its server are noted below
/// `state`.
pub fn target(text: &str, args: &FileServerArgs, state: Option<PathBuf>) -> Result<Target> {
    let mut target: Target = text.parse()?;
    if args.write && target.file.is_none() && target.mounted.is_none() {
        bail!("{text}: --write is for servers of files and for paths; this target is neither");
    }
    if let Some(mounted) = &mut target.mounted {
        mounted.write = args.write;
        mounted.notes = state_dir(state.clone()).ok().map(|state| uploads(&state));
    }
    if let Some(FileTarget { place, options, resolved, write, notes, .. }) = &mut target.file {
        let proxy = proxies::proxy(place, &args.proxy, |name| std::env::var(name).ok())?;
        *write = args.write;
        *notes = state_dir(state).ok().map(|state| uploads(&state));
        *options = Arc::new(Options {
            login: login(place)?,
            authorities: args.cacert.clone(),
            insecure: args.insecure,
            follow: args.follow,
            proxy: proxy.clone(),
            ..Options::default()
        });
        goodput_files::check_authorities(options)?;
        let (host, port) =
            proxy.as_ref().map_or((place.host(), place.port()), |p| (p.host.as_str(), p.port));
        let fits = args.resolve.iter().filter(|resolve| resolve.is_for(host, port));
        *resolved = fits.map(|resolve| resolve.address).collect();
        if let Some(Proxy { host, port, .. }) = proxy {
            // goodput connects to the proxy, and observes the path to the proxy.
            (target.host, target.port) = (host, port);
        }
    }
    Ok(target)
}

/// The directory of notes on files stored at servers.
pub fn uploads(state: &Path) -> PathBuf {
    state.join("uploads")
}

/// The target whose file an earlier run stored at a place, with the settings of this run, and the login in ~/.netrc
/// for its host.
pub fn left_target(place: &Place, met: &Meeting) -> Result<Target, EngineError> {
    let mut target: Target = place.to_string().parse()?;
    if let Some(FileTarget { place, options, resolved, .. }) = &mut target.file {
        let unfit = |why: anyhow::Error| EngineError::Target(format!("{why:#}"));
        let proxy = met.proxy.as_deref().map(|noted| noted_proxy(place, noted)).transpose();
        // The environment's password is meant for the server that a command names, but a note may name any other.
        let (login, proxy) = (login_of_netrc(place).map_err(unfit)?, proxy.map_err(unfit)?);
        if let Some(Proxy { host, port, .. }) = &proxy {
            (target.host, target.port) = (host.clone(), *port);
        }
        resolved.clone_from(&met.addresses);
        *options = Arc::new(Options {
            login,
            authorities: met.authorities.clone(),
            insecure: met.insecure,
            proxy,
            ..Options::default()
        });
    }
    Ok(target)
}

/// A proxy noted by host and port only, with its login from the environment.
fn noted_proxy(place: &Place, noted: &str) -> Result<Proxy> {
    let usual = ProxyArgs { proxy: None, noproxy: None };
    let known = proxies::proxy(place, &usual, |name| std::env::var(name).ok());
    match known.ok().flatten().filter(|known| known.to_string() == noted) {
        Some(known) => Ok(known),
        None => Ok(Proxy::parse(noted)?),
    }
}

/// The login, if servers of this kind may want one: from the environment, or else from ~/.netrc.
fn login(place: &Place) -> Result<Option<Login>> {
    if !place.scheme().password {
        return Ok(None);
    }
    let user = std::env::var(USER_VARIABLE).ok().or_else(|| place.user().map(str::to_owned));
    if let (Some(user), Ok(password)) = (user, std::env::var(PASSWORD_VARIABLE)) {
        return Ok(Some(Login::new(user, password)));
    }
    login_of_netrc(place)
}

/// The login in ~/.netrc, which has one per host. If nothing asks for that file, an unreadable one is a warning.
fn login_of_netrc(place: &Place) -> Result<Option<Login>> {
    let named = std::env::var_os(NETRC_VARIABLE).map(PathBuf::from);
    let is_named = named.is_some();
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".netrc"));
    let Some(file) = named.or_else(home).filter(|_| place.scheme().password) else {
        return Ok(None);
    };
    match std::fs::read_to_string(&file) {
        Ok(text) => Ok(Login::of_netrc(&text, place)),
        Err(cause) if !is_named && cause.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(cause) if is_named || place.user().is_some() => {
            Err(cause).with_context(|| format!("can't read the logins in {}", file.display()))
        }
        Err(cause) => {
            let file = file.display();
            screen::say(format_args!(
                "warning: continuing without a login: can't read {file}: {cause}"
            ));
            Ok(None)
        }
    }
}
