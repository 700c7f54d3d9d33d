//! The targets, one file each.

use crate::Target;

/// Makes the modules and the list of them.
macro_rules! targets {
    ($($id:ident),* $(,)?) => {
        $(pub mod $id;)*

        /// Every target, in order of their names.
        pub const ALL: &[Target] = &[$(Target { id: stringify!($id), run: $id::run }),*];
    };
}

targets!(
    datagrams,
    file_servers,
    files,
    fleet,
    frames,
    host_texts,
    journals,
    keys,
    messages,
    netlink,
    packets,
    protocols,
    records,
    scenarios,
    trains
);
