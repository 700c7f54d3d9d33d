//! The corpus of a fuzz target in one file: thousands of small files would be most of the repository's files.
//!
//! Each seed is its length in four bytes, big-endian, followed by its bytes.

/// One file of all `seeds`, independent of their order.
///
/// # Panics
///
/// If a seed has 4 GiB or more.
pub fn pack(mut seeds: Vec<Vec<u8>>) -> Vec<u8> {
    seeds.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    seeds.dedup();
    let mut packed = Vec::new();
    for seed in seeds {
        let length = u32::try_from(seed.len()).expect("fuzzers make no input of 4 GiB");
        packed.extend(length.to_be_bytes());
        packed.extend(seed);
    }
    packed
}

/// The seeds in a file; `None` if it is truncated.
pub fn unpack(mut packed: &[u8]) -> Option<Vec<&[u8]>> {
    let mut seeds = Vec::new();
    while !packed.is_empty() {
        let (length, rest) = packed.split_first_chunk()?;
        let (seed, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        seeds.push(seed);
        packed = rest;
    }
    Some(seeds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_come_back_once_each_in_one_order() {
        let seeds = [&b"longer"[..], b"", b"b", b"a", b"b"].map(<[u8]>::to_vec);
        let packed = pack(seeds.to_vec());
        assert_eq!(unpack(&packed).unwrap(), [&b""[..], b"a", b"b", b"longer"]);
        assert_eq!(pack(seeds.into_iter().rev().collect()), packed);
    }

    #[test]
    fn a_file_that_is_cut_short_is_no_corpus() {
        let packed = pack(vec![b"seed".to_vec()]);
        assert!((1..packed.len()).all(|length| unpack(&packed[..length]).is_none()));
    }
}
