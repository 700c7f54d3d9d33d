//! The functions of the kernel and their addresses (/proc/kallsyms; kernel/kallsyms.c).

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use goodput_model::{Missing, plain_char};

use crate::Root;

/// Names of all functions, without a leading slash.
const FILE: &str = "proc/kallsyms";

/// Most bytes that are read; a kernel with all its modules has some 20 MB.
const MAX_BYTES: u64 = 128 << 20;

/// A function of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    address: u64,
    /// Its name, without what compilers append to parts and copies, such as `.isra.0`.
    pub name: Box<str>,
    /// The module that it is in, if it is in one.
    pub module: Option<Box<str>>,
}

#[cfg(test)]
impl Symbol {
    /// A function at an address that no test asks for.
    pub fn made_up(name: &str, module: Option<&str>) -> Self {
        Self { address: 1, name: name.into(), module: module.map(Into::into) }
    }
}

/// All functions of the kernel, by address.
#[derive(Debug, Clone, Default)]
pub struct Symbols(Vec<Symbol>);

impl Symbols {
    /// Reads the names. Fails if the kernel hides the addresses, with what permits them.
    pub fn read(root: &Root) -> Result<Self, Missing> {
        let file = File::open(root.file(FILE))
            .map_err(|cause| Missing::because(format!("can't read /{FILE}: {cause}")))?;
        let mut lines = BufReader::new(file.take(MAX_BYTES));
        let (mut symbols, mut line) = (Vec::new(), Vec::new());
        loop {
            line.clear();
            match lines.read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(_) => symbols.extend(parse(&String::from_utf8_lossy(&line))),
                Err(cause) => {
                    return Err(Missing::because(format!("can't read /{FILE}: {cause}")));
                }
            }
        }
        Self::of(symbols)
    }

    fn of(mut symbols: Vec<Symbol>) -> Result<Self, Missing> {
        // Hidden addresses are all zero.
        symbols.retain(|symbol| symbol.address != 0);
        if symbols.is_empty() {
            return Err(Missing::because(
                "the kernel hides the addresses of its functions; CAP_SYSLOG or root, and a kernel.kptr_restrict below 2, show them",
            ));
        }
        symbols.sort_by_key(|symbol| symbol.address);
        Ok(Self(symbols))
    }

    /// The function that `address` is in.
    pub fn at(&self, address: u64) -> Option<&Symbol> {
        let after = self.0.partition_point(|symbol| symbol.address <= address);
        self.0.get(after.checked_sub(1)?)
    }
}

/// `ffffffff81000000 T _text`, and the module in brackets for some. `None` for data, and for lines of another form.
fn parse(line: &str) -> Option<Symbol> {
    let mut words = line.split_whitespace();
    let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
    // Text, also weak and local (nm(1)).
    if !matches!(kind, "T" | "t" | "W" | "w") {
        return None;
    }
    let address = u64::from_str_radix(address, 16).ok()?;
    let module = words.next().and_then(|word| word.strip_prefix('[')?.strip_suffix(']'));
    Some(Symbol { address, name: plain(whole(name)), module: module.map(plain) })
}

/// The name of the function that a compiler has split or copied.
fn whole(name: &str) -> &str {
    match name.find('.') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// A module may have any name.
fn plain(name: &str) -> Box<str> {
    name.chars().map(plain_char).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "ffffffff81000000 T _text\nffffffff82000000 D some_data\n\
        ffffffff81000200 t tcp_push.isra.0\nffffffffc0000000 t veth_xmit\t[veth]\n";

    fn read(text: &str) -> Result<Symbols, Missing> {
        let host = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(host.path().join("proc")).unwrap();
        std::fs::write(host.path().join(FILE), text).unwrap();
        Symbols::read(&Root::at(host.path()))
    }

    #[test]
    fn an_address_has_the_function_that_begins_before_it() {
        let symbols = read(TEXT).unwrap();
        let name = |address| symbols.at(address).map(|symbol| &*symbol.name);
        assert_eq!(name(0xffff_ffff_8100_01ff), Some("_text"));
        assert_eq!(name(0xffff_ffff_8100_0200), Some("tcp_push"));
        assert_eq!(name(0xffff_ffff_8200_0001), Some("tcp_push"), "data is no function");
        assert_eq!(name(0x1000), None);
        let last = symbols.at(u64::MAX).unwrap();
        assert_eq!((&*last.name, last.module.as_deref()), ("veth_xmit", Some("veth")));
    }

    #[test]
    fn hidden_addresses_are_a_reason_and_no_names() {
        let hidden = read("0000000000000000 T _text\n0000000000000000 T tcp_push\n").unwrap_err();
        assert!(hidden.missing.contains("kptr_restrict"), "{hidden}");
        let absent = Symbols::read(&Root::at("/nonexistent")).unwrap_err();
        assert!(absent.missing.starts_with("can't read /proc/kallsyms"), "{absent}");
    }

    proptest! {
        #[test]
        fn any_line_is_a_function_or_none(line in "\\PC*") {
            if let Some(symbol) = parse(&line) {
                prop_assert!(!symbol.name.is_empty());
            }
        }
    }
}
