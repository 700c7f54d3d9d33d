//! nuttcp's `-v -fparse`: what each end reports about itself, as keys with values.

use super::Format;
use super::nuttcp::lines::Lines;
use super::nuttcp::verbose::Verbose;

/// The format.
pub const FORMAT: Format = Format {
    id: "nuttcp-verbose-parse",
    summary: "the lines of nuttcp -v -fparse, of both ends: key=value",
    refuses: |_| None,
    writer: |context| {
        let lines = Lines::new(context.clone(), &super::nuttcp_parse::PARSE);
        Box::new(Verbose::new(context, lines, true))
    },
};
