//! nuttcp's one line, as version 6.1.2 prints it without `-v`, and lines for intervals if requested
//! (`-i`). 8.x adds the congestion window, which scripts for 6.1.2 do not expect.

pub mod classic;
pub mod lines;
pub mod verbose;

use goodput_engine::Event;
use goodput_model::Record;

use self::classic::CLASSIC;
use self::lines::Lines;
use super::{Format, Writer};

/// The format.
pub const FORMAT: Format = Format {
    id: "nuttcp",
    summary: "the one line of nuttcp, with -i one more for each interval",
    refuses: |_| None,
    writer: |context| Box::new(Lines::new(context, &CLASSIC)),
};

/// The format for `-fparse` and `-v`.
pub fn format(parse: bool, verbose: bool) -> &'static Format {
    match (parse, verbose) {
        (false, false) => &FORMAT,
        (true, false) => &super::nuttcp_parse::FORMAT,
        (false, true) => &super::nuttcp_verbose::FORMAT,
        (true, true) => &super::nuttcp_verbose_parse::FORMAT,
    }
}

impl Writer for Lines {
    fn event(&mut self, event: &Event) -> String {
        self.happened(event)
    }

    fn finish(&mut self, record: &Record) -> String {
        self.total(record)
    }
}
