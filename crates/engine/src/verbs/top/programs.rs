//! Which program holds which socket. Looking that up reads all of /proc, so answers are kept.

use std::collections::{BTreeSet, HashMap};

use goodput_kernel::holders_of;
use goodput_model::{Known, Program};

/// The programs that hold sockets, by the sockets' inode numbers.
#[derive(Default)]
pub struct Programs {
    known: HashMap<u64, Known<Program>>,
}

impl Programs {
    /// Looks up the holders of these sockets as far as they are new, and forgets all other sockets. All sockets that no
    /// process holds have the number 0, and are not looked up.
    pub fn learn(&mut self, inodes: impl Iterator<Item = u64>) {
        let mut earlier = std::mem::take(&mut self.known);
        let mut new = BTreeSet::new();
        for inode in inodes.filter(|inode| *inode > 0) {
            match earlier.remove(&inode) {
                Some(program) => drop(self.known.insert(inode, program)),
                None => drop(new.insert(inode)),
            }
        }
        if new.is_empty() {
            return;
        }
        let mut found = holders_of(&new);
        for inode in new {
            let program =
                found.remove(&inode).map(|owner| Program { pid: owner.pid, name: owner.name });
            let program = program.map_or_else(|| Known::missing(why_unknown(inode)), Known::Value);
            self.known.insert(inode, program);
        }
    }

    /// The program that holds a socket.
    pub fn of(&self, inode: u64) -> Known<Program> {
        self.known.get(&inode).cloned().unwrap_or_else(|| Known::missing(why_unknown(inode)))
    }
}

fn why_unknown(inode: u64) -> &'static str {
    match inode {
        0 => "no process holds it any more",
        _ => "its process is not visible; run as its user or as root",
    }
}
