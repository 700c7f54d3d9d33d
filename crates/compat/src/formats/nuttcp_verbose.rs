//! nuttcp's `-v`: what each end reports about itself, this end first.

use super::Format;
use super::nuttcp::classic::CLASSIC;
use super::nuttcp::lines::Lines;
use super::nuttcp::verbose::Verbose;

/// The format.
pub const FORMAT: Format = Format {
    id: "nuttcp-verbose",
    summary: "the lines of nuttcp -v, of both ends",
    refuses: |_| None,
    writer: |context| {
        let lines = Lines::new(context.clone(), &CLASSIC);
        Box::new(Verbose::new(context, lines, false))
    },
};
