//! `goodput as` and `goodput shim`: in place of other programs.

use anyhow::{Error, Result};

use crate::args::{AsArgs, ShimWork};
use crate::exit::Exit;
use crate::screen;
use crate::shims;

/// Does as the program that the line begins with.
pub fn run_as(args: &AsArgs) -> Result<Exit> {
    let (program, arguments) = args.line.split_first().map_or(("", &[][..]), |(p, a)| (p, a));
    let shim = shims::find(program).map_err(Error::msg)?;
    Ok(shims::run(shim, arguments, args.show))
}

/// Makes the links, or lists.
pub fn run(what: ShimWork) -> Result<Exit> {
    match what {
        ShimWork::Install { directory } => {
            for link in shims::install(&directory)? {
                screen::line(link.display())?;
            }
        }
        ShimWork::List { program } => shims::list(program.as_deref())?,
    }
    Ok(Exit::Fine)
}
