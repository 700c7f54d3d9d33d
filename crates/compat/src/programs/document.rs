//! The tables in words, for `docs/old-names.md`.

use std::fmt::Write;

use super::ALL;
use super::option::Opt;
use super::program::Program;

/// What stands above the tables.
const HEAD: &str = "\
# Old names

goodput can run under the names of the programs it replaces. Called as `iperf3`, `iperf`,
`nuttcp` or `ttcp`, it takes that program's options, speaks its protocol, prints its output and
returns its exit code: 0, or 1 on failure.

    goodput as --install ~/old-names     # links of all four names; then put it first in $PATH
    goodput as iperf3 -c host -P 4       # the same without a link
    goodput as --show iperf3 -c host -P 4   # what it comes to, without running it

A host that names its scheme keeps it: `goodput as iperf3 -c goodput://host` measures with goodput's own
protocol and prints as iperf3. Results are not kept in the history. Options that goodput can't follow
are refused by name; what changes nothing that is measured is accepted without effect. A server says
that it listens as the program does; iperf3's and iperf's print each measurement as this end sees it.

Numbers are in the format's own places: the receiver's count where the program has the receiver's, the
sender's where it has the sender's. What is not known is left out where the format allows it; else it
is what the program itself prints when it does not know.
";

/// The document.
pub fn document() -> String {
    let mut text = HEAD.to_string();
    text += "\n## Formats\n\n`goodput test --format` prints any measurement as one of these, and `goodput history` any \
             result\nthat was kept.\n\n| format | prints |\n|---|---|\n";
    for format in crate::formats::ALL {
        let _ = writeln!(text, "| `{}` | {} |", format.id, format.summary);
    }
    ALL.iter().for_each(|program| section(&mut text, program));
    text
}

fn section(text: &mut String, program: &Program) {
    let [client, server] = program.usage;
    // Writing to a String cannot fail, here and below.
    let _ = write!(
        text,
        "\n## {}\n\nThe options are those of {}; it speaks `{}`.\n\n    {client}\n    {server}\n\n\
         | option | of a client | of a server |\n|---|---|---|\n",
        program.name, program.version, program.protocol
    );
    program.options.iter().for_each(|option| row(text, option));
}

fn row(text: &mut String, option: &Opt) {
    let cells = [format!("`{}`", option.spelling()), option.client.text(), option.server.text()];
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}
