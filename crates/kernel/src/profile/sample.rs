//! One record of a perf event's buffer (perf_event_open(2), "Overflow handling").

/// `PERF_RECORD_LOST`: samples that did not fit into the buffer.
const RECORD_LOST: u32 = 2;
/// `PERF_RECORD_SAMPLE`.
const RECORD_SAMPLE: u32 = 9;
/// Bits of the header that say where the CPU was (`PERF_RECORD_MISC_CPUMODE_MASK`).
const CPU_MODE_MASK: u16 = 7;
/// `PERF_RECORD_MISC_KERNEL`.
const IN_KERNEL: u16 = 1;
/// Numbers from here on separate the parts of a call chain, and are no addresses (`PERF_CONTEXT_MAX`).
const FIRST_MARKER: u64 = -4095_i64 as u64;

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sample {
    /// The thread ran the program.
    Program,
    /// The thread ran the kernel: the address of the function, then of those that called it.
    Kernel(Vec<u64>),
    /// This many samples were lost.
    Lost(u64),
}

impl Sample {
    /// Reads a record of type `kind` whose samples have an address and a call chain. `None` for records of other types,
    /// and for those that are too short.
    pub fn parse(kind: u32, misc: u16, body: &[u8]) -> Option<Self> {
        let mut words = body.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
        match kind {
            RECORD_LOST => words.nth(1).map(Self::Lost),
            RECORD_SAMPLE if misc & CPU_MODE_MASK != IN_KERNEL => Some(Self::Program),
            RECORD_SAMPLE => {
                let (at, length) = (words.next()?, words.next()?);
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                let callers = words.take(length).filter(|address| *address < FIRST_MARKER);
                // The chain begins with the address itself.
                let callers = callers.enumerate().filter(|one| *one != (0, at));
                let callers = callers.map(|(_, address)| address);
                Some(Self::Kernel(std::iter::once(at).chain(callers).collect()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn body(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_chain_is_read_without_its_markers() {
        let kernel = -128_i64 as u64;
        let chain = body(&[0xff01, 4, kernel, 0xff01, 0xff02, 0xff03]);
        let read = Sample::parse(RECORD_SAMPLE, IN_KERNEL, &chain);
        assert_eq!(read, Some(Sample::Kernel(vec![0xff01, 0xff02, 0xff03])));
        let alone = Sample::parse(RECORD_SAMPLE, IN_KERNEL, &body(&[7, 0]));
        assert_eq!(alone, Some(Sample::Kernel(vec![7])));
    }

    #[test]
    fn other_records_are_told_apart() {
        assert_eq!(Sample::parse(RECORD_SAMPLE, 2, &body(&[7, 0])), Some(Sample::Program));
        assert_eq!(Sample::parse(RECORD_LOST, 0, &body(&[1, 33])), Some(Sample::Lost(33)));
        assert_eq!(Sample::parse(RECORD_LOST, 0, &body(&[1])), None);
        assert_eq!(Sample::parse(5, IN_KERNEL, &body(&[7, 0])), None, "PERF_RECORD_THROTTLE");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_record_or_none(kind in 0_u32..12, misc in any::<u16>(), body: Vec<u8>) {
            if let Some(Sample::Kernel(chain)) = Sample::parse(kind, misc, &body) {
                prop_assert!(!chain.is_empty() && chain.len() <= body.len() / 8);
            }
        }
    }
}
