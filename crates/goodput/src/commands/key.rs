//! `goodput key`: make a key, or print the public line of the existing key.

use anyhow::{Result, bail};
use goodput_wire::keys::KeyFile;

use crate::args::KeyArgs;
use crate::exit::Exit;
use crate::{key_files, screen};

/// Makes the key if there is none, and prints its line for `serve --authorized-keys`.
pub fn run(args: &KeyArgs) -> Result<Exit> {
    let file = match &args.output {
        Some(file) => file.clone(),
        None => {
            let usual = key_files::default_key()?;
            key_files::make_directory(&usual)?;
            usual
        }
    };
    let shown = file.display();
    let name = args.name.clone().unwrap_or_else(key_files::usual_name);
    let (key, made) = if args.replace {
        let key = KeyFile::new(&name, rand::random())?;
        let made = key_files::keep(&file, &key, true)?;
        (key, made)
    } else {
        key_files::read_or_make(&file, &name)?
    };
    if !made && args.name.as_ref().is_some_and(|name| *name != key.name) {
        bail!("{shown} already has a key, of {}; --replace makes a new one", key.name);
    }
    if made {
        screen::say(format_args!(
            "goodput: made a private key in {shown}; anyone who reads it can act as {}",
            key.name
        ));
        screen::say(
            "Give this line to the operator of the server, for `goodput serve --authorized-keys`:",
        );
    }
    let role = args.role.word();
    screen::line(format!("{} {role} {}", key.name, key.key.public()))?;
    Ok(Exit::Fine)
}
