//! The tables in words, for `docs/old-names.md`.

use std::fmt::Write;

use super::ALL;
use super::option::Opt;
use super::program::Program;

/// The text above the tables.
const HEAD: &str = "\
# Old names

goodput can run under the names of the programs it replaces. Called as `iperf3`, `iperf`,
`nuttcp` or `ttcp`, it takes that program's options, speaks its protocol, prints its output and
returns its exit code: 0, or 1 on failure.

    goodput as --install ~/old-names     # links of all four names; then put it first in $PATH
    goodput as iperf3 -c host -P 4       # the same without a link
    goodput as --show iperf3 -c host -P 4   # what it comes to, without running it

A host that names its scheme keeps it: `goodput as iperf3 -c goodput://host` measures with goodput's own
protocol and prints as iperf3. Results are not kept in the history. goodput refuses options that it can't
follow, and names them. It accepts options that do not change the measurement, without effect. A server
announces that it listens as the program does. As a server of iperf3 or iperf, goodput prints each
measurement as this end sees it.

Each number stands where the program puts it: the receiver's count in the receiver's place, the sender's in
the sender's. An unknown value is left out if the format allows it. Otherwise goodput prints what the
program prints for an unknown value.
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
    // Writing to a String can't fail, here and below.
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
