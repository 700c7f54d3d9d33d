//! Control messages of each datagram of a batch: when it came, and whether it is several in one (cmsg(3)). Parsed here,
//! because `recvmmsg` of nix gives a message only the room that the previous one left, and rustix has no recvmmsg.
//! These libraries read and write all other control messages.

/// Room for the control messages of one datagram, bytes: `CMSG_SPACE` of a `struct timespec` and of
/// an int, 56 on 64-bit Linux, and a little more.
pub(crate) const CONTROL_BYTES: usize = 64;

/// `struct cmsghdr` on 64-bit Linux: length with the header, level, type.
const CMSG_HEADER_BYTES: usize = 16;

/// Room for control messages, with the alignment of `struct cmsghdr`.
#[derive(Clone, Copy)]
#[repr(align(8))]
pub(crate) struct Control(pub(crate) [u8; CONTROL_BYTES]);

/// The content of the control messages.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AncillaryData {
    /// When the kernel received it, nanoseconds since 1970 (`SCM_TIMESTAMPNS`, socket(7)).
    pub(crate) received_ns: Option<u64>,
    /// Bytes of each datagram except the last, if the kernel joined several (`UDP_GRO`, udp(7)).
    pub(crate) segment: Option<usize>,
}

impl Control {
    /// Empty, as it must be before each call.
    pub(crate) const EMPTY: Self = Self([0; CONTROL_BYTES]);

    /// Reads what the kernel wrote; a length of zero ends it.
    pub(crate) fn notes(&self) -> AncillaryData {
        let (mut notes, mut rest) = (AncillaryData::default(), &self.0[..]);
        while let Some((content, level, kind, next)) = first(rest) {
            match (level, kind) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => notes.received_ns = time(content),
                (libc::SOL_UDP, libc::UDP_GRO) => notes.segment = length(content),
                _ => {}
            }
            rest = next;
        }
        notes
    }
}

/// The first message's content, level and type, and what follows it.
fn first(bytes: &[u8]) -> Option<(&[u8], i32, i32, &[u8])> {
    let (header, _) = bytes.split_first_chunk::<CMSG_HEADER_BYTES>()?;
    let len = usize::from_ne_bytes(*header.first_chunk()?);
    let level = i32::from_ne_bytes(header[8..12].try_into().ok()?);
    let kind = i32::from_ne_bytes(header[12..].try_into().ok()?);
    let content = bytes.get(CMSG_HEADER_BYTES..len)?;
    let next = bytes.get(len.next_multiple_of(align_of::<usize>())..).unwrap_or_default();
    Some((content, level, kind, next))
}

/// From a `struct timespec`; no time before 1970.
fn time(content: &[u8]) -> Option<u64> {
    let (seconds, nanoseconds) = content.split_first_chunk()?;
    let number = |bytes| u64::try_from(i64::from_ne_bytes(bytes)).ok();
    let seconds = number(*seconds)?.checked_mul(1_000_000_000)?;
    seconds.checked_add(number(*nanoseconds.first_chunk()?)?)
}

/// From an int; zero is not a length.
fn length(content: &[u8]) -> Option<usize> {
    usize::try_from(i32::from_ne_bytes(*content.first_chunk()?)).ok().filter(|len| *len > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(level: i32, kind: i32, content: &[u8]) -> Vec<u8> {
        let len = (CMSG_HEADER_BYTES + content.len()).to_ne_bytes();
        let mut bytes = [&len[..], &level.to_ne_bytes(), &kind.to_ne_bytes(), content].concat();
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    fn notes(messages: &[Vec<u8>]) -> AncillaryData {
        let mut control = Control::EMPTY;
        let bytes = messages.concat();
        control.0[..bytes.len()].copy_from_slice(&bytes);
        control.notes()
    }

    #[test]
    fn time_and_length_are_read_in_any_order() {
        let time = [5i64.to_ne_bytes(), 7i64.to_ne_bytes()].concat();
        let time = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &time);
        let length = message(libc::SOL_UDP, libc::UDP_GRO, &1400i32.to_ne_bytes());
        let both = AncillaryData { received_ns: Some(5_000_000_007), segment: Some(1400) };
        assert_eq!(notes(&[time.clone(), length.clone()]), both);
        assert_eq!(notes(&[length, time]), both);
        assert_eq!(notes(&[]), AncillaryData::default());
    }

    /// The kernel cuts short a message that does not fit (`put_cmsg`, net/core/scm.c).
    #[test]
    fn a_part_of_a_message_is_none() {
        let time = [5i64.to_ne_bytes(), 7i64.to_ne_bytes()].concat();
        for (level, kind, content) in [
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, time),
            (libc::SOL_UDP, libc::UDP_GRO, 1400i32.to_ne_bytes().to_vec()),
        ] {
            for len in 0..content.len() {
                let cut = notes(&[message(level, kind, &content[..len])]);
                assert_eq!(cut, AncillaryData::default(), "{len} bytes");
            }
            // A length beyond the room, or less than the header, ends the list.
            for len in [CMSG_HEADER_BYTES - 1, CONTROL_BYTES + 1, usize::MAX] {
                let mut whole = message(level, kind, &content);
                whole[..8].copy_from_slice(&len.to_ne_bytes());
                assert_eq!(notes(&[whole]), AncillaryData::default(), "a length of {len}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes: [[u8; 32]; 2], len in 0usize..80) {
            let mut control = Control(bytes.concat().try_into().expect("64 bytes"));
            control.0[..8].copy_from_slice(&len.to_ne_bytes());
            prop_assert_ne!(control.notes().segment, Some(0));
        }
    }
}
