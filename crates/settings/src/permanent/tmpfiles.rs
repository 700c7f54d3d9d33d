//! Lines of tmpfiles.d(5), which writes files of /sys when the host starts.

use goodput_model::Permanent;

use super::entry;

/// One line.
pub(crate) fn tmpfile(line: &str) -> Permanent {
    entry("/etc/tmpfiles.d/90-goodput.conf", line)
}
