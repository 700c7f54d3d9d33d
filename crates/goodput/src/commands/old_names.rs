//! `goodput as`: in place of other programs.

use anyhow::{Error, Result};

use crate::args::AsArgs;
use crate::exit::Exit;
use crate::screen;
use crate::shims;

/// Does as the program that the line begins with; or makes the links, or lists.
pub fn run(args: &AsArgs) -> Result<Exit> {
    if let Some(directory) = &args.install {
        for link in shims::install(directory)? {
            screen::line(link.display())?;
        }
        return Ok(Exit::Fine);
    }
    if let Some(program) = &args.list {
        shims::list(program.as_deref())?;
        return Ok(Exit::Fine);
    }
    let (program, arguments) = args.line.split_first().map_or(("", &[][..]), |(p, a)| (p, a));
    let shim = shims::find(program).map_err(Error::msg)?;
    Ok(shims::run(shim, arguments, args.show))
}
