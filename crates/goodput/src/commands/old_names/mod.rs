//! `goodput as`: replaces other programs.

mod run;
#[cfg(test)]
mod tests;

use anyhow::{Error, Result};
use goodput_compat::programs;

pub use run::run as act_as;

use crate::args::AsArgs;
use crate::exit::Exit;
use crate::report::table::Table;
use crate::screen;

/// Acts as the program at the beginning of the command line; or makes the links, or lists.
pub fn run(args: &AsArgs) -> Result<Exit> {
    if let Some(directory) = &args.install {
        for link in programs::install(directory)? {
            screen::line(link.display())?;
        }
        return Ok(Exit::Fine);
    }
    if let Some(program) = &args.list {
        list(program.as_deref())?;
        return Ok(Exit::Fine);
    }
    let (program, arguments) = args.line.split_first().map_or(("", &[][..]), |(p, a)| (p, a));
    let program = programs::find(program).map_err(Error::msg)?;
    Ok(act_as(program, arguments, args.show))
}

/// Prints the table of one program, or the names of all.
fn list(name: Option<&str>) -> Result<()> {
    let Some(name) = name else {
        let mut table = Table::new(&["name", "speaks", "takes the options of"]);
        for program in programs::ALL {
            table.row(&[program.name, program.protocol, program.version]);
        }
        table.print()?;
        return Ok(screen::line(
            "`goodput as --list NAME` shows what each of its options becomes",
        )?);
    };
    let program = programs::find(name).map_err(Error::msg)?;
    let mut table = Table::new(&["option", "of a client", "of a server"]);
    for option in program.options {
        let plain = |text: String| text.replace('`', "");
        let [client, server] = [option.client.text(), option.server.text()].map(plain);
        table.row(&[&option.spelling(), &client, &server]);
    }
    Ok(table.print()?)
}
