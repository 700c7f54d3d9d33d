//! The settings of a test, as a client writes them in front of its payload: at the beginning of a
//! TCP stream, and behind the number and the time of every datagram. All integers are big-endian.
//!
//! ```text
//!  0 flags       4 threads    8 port          12 length of a write   16 window   20 amount
//! 24 type 0     28 length 0  32 upper flags   34 lower flags         36 version  40 release
//! 44 reserved   46 ToS       48 rate, low     52 rate, high << 8     56 TCP write prefetch
//! 60 reserved (2.1) or barrier (2.2)          64 start time, s       68 µs       72 fq rate
//! ```
//!
//! The first line is `client_hdr_v1`, the next two `client_hdrext`, which 2.2 made a word longer.

use goodput_model::Length;

/// Bytes of `client_hdr_v1`.
pub(super) const BASE_BYTES: usize = 24;
/// Bytes up to the end of `client_hdrext` of 2.1.
pub(super) const EXTENDED_BYTES: usize = 60;
/// Bytes up to the end of the time of sending, which trip times need.
const TIMED_BYTES: usize = 72;
/// Bytes of the extension in 2.0.10 to 2.0.13, as announced at byte 28: the extension ends before the upper half of
/// the rate.
const SHORT_EXTENSION_BYTES: u32 = 28;
/// What these versions leave in the window field if no window was requested: payload.
const NO_WINDOW: u32 = 0x3233_3435;
/// Bytes up to the end of the time of sending and the pacing rate, as in 2.1.
const WITH_TIMES_BYTES: usize = 80;
/// Longest header that a client can announce in 8 bits.
const MAX_HEADER_BYTES: usize = 255;
/// Longest permit key (`MAX_PERMITKEY_LEN`).
const MAX_KEY_BYTES: usize = 128;

/// `HEADER_VERSION1`: `-d` or `-r`, unless [`VERSION2`] is set as well.
pub(super) const VERSION1: u32 = 0x8000_0000;
/// `HEADER_EXTEND`: the extension is there.
pub(super) const EXTEND: u32 = 0x4000_0000;
/// `HEADER_UDPTESTS`.
pub(super) const UDP_TESTS: u32 = 0x2000_0000;
/// `HEADER_KEYCHECK`: a permit key follows.
const KEY_CHECK: u32 = 0x1000_0000;
/// `HEADER_SEQNO64B`: datagrams have 64-bit numbers.
pub(super) const WIDE_NUMBERS: u32 = 0x0800_0000;
/// `HEADER_VERSION2`: `-R`, `--full-duplex` or a request for an answer; in 2.0.14a every header.
pub(super) const VERSION2: u32 = 0x0400_0000;
/// `HEADER_V2PEERDETECT`: the client waits for an answer.
pub(super) const PEER_DETECT: u32 = 0x0200_0000;
/// `HEADER_BOUNCEBACK`: another header, see [`super::bounceback`].
pub(super) const BOUNCEBACK: u32 = 0x0080_0000;
/// `HEADER_LEN_BIT`: bits 1 to 8 are the length of the header.
pub(super) const LENGTH_PRESENT: u32 = 0x0001_0000;
/// The flags of every header of 2.0.14a, which doesn't announce its extension.
const OF_2_0_14: u32 = VERSION2 | WIDE_NUMBERS | LENGTH_PRESENT;
/// `HEADER_LEN_MASK`.
const LENGTH_MASK: u32 = 0x0000_01fe;
/// `RUN_NOW`: `-d` rather than `-r`.
const RUN_NOW: u32 = 0x0000_0001;
/// Every flag that a header may have: those above, the flags of trip times in small datagrams, and 2.0's
/// `HEADER_UDPAVOID1`.
const KNOWN_FLAGS: u32 = 0xff03_01ff;

/// `HEADER_NOUDPFIN` of the upper flags: the end of datagrams is not answered.
pub(super) const NO_UDP_FIN: u16 = 0x0008;
/// `HEADER_TRIPTIME` of the upper flags.
const TRIP_TIMES: u16 = 0x0010;
/// `HEADER_REVERSE` of the upper flags.
pub(super) const REVERSE: u16 = 0x0400;
/// `HEADER_FULLDUPLEX` of the upper flags.
pub(super) const FULL_DUPLEX: u16 = 0x0800;

/// The bit in a 2.2 client's number of threads which says that bits 20 to 30 are a transfer's id.
const TRANSFER_ID: u32 = 0x8000_0000;
/// The bits of this number that count threads.
const THREADS_MASK: u32 = 0x000f_ffff;

/// Directions of payload, besides from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PayloadDirection {
    /// Only from the client.
    Normal,
    /// Only to the client (`-R`).
    Reverse,
    /// Also to the client, on the same connection (`--full-duplex`).
    FullDuplex,
    /// Also to the client, at once, on a connection back to this port of the client (`-d`).
    Dual(u16),
    /// The same, after the client's payload has ended (`-r`).
    TradeOff(u16),
}

/// A client's description of its test.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Header {
    pub(super) flags: u32,
    pub(super) upper: u16,
    pub(super) direction: PayloadDirection,
    /// Bytes of one write or datagram; 0 if the client does not say.
    pub(super) buffer: u32,
    /// Bytes of the client's socket buffer; 0 if the client does not say.
    pub(super) window: u32,
    /// `None` if the client does not say, or wants no limit.
    pub(super) length: Option<Length>,
    /// Version and release, as in the extension.
    pub(super) version: Option<(u32, u32)>,
    /// Type of service of the server's packets.
    pub(super) tos: u8,
    /// Bits per second; 0 if there is no limit.
    pub(super) rate: u64,
    /// Seconds and microseconds since 1970 at which the client sent this; only with trip times.
    pub(super) sent: Option<(u32, u32)>,
}

impl Header {
    /// Whether the server's payload on the client's connection carries its time: with trip times a client treats a
    /// stream without it as broken, and crashes (2.1.8, Server.cpp).
    pub(super) fn wants_times(&self) -> bool {
        self.upper & TRIP_TIMES != 0
            && matches!(self.direction, PayloadDirection::Reverse | PayloadDirection::FullDuplex)
    }
}

/// Classifies bytes that may begin with a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Extent {
    /// Something else.
    None,
    /// At least this many bytes are needed to decide.
    Needs(usize),
    /// A complete header of this many bytes.
    Whole(usize),
}

/// The word at `at`.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*word))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let half = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*half))
}

/// The length of the header at the beginning of `bytes`, if `before` bytes of a datagram precede them. Strict: payload
/// must not pass for a header.
pub(super) fn extent(bytes: &[u8], before: usize) -> Extent {
    let Some(flags) = word(bytes, 0) else {
        return if may_begin(bytes) { Extent::Needs(4) } else { Extent::None };
    };
    let Some(length) = announced(flags, before) else { return Extent::None };
    let Some(base) = bytes.get(..BASE_BYTES) else { return Extent::Needs(length.max(BASE_BYTES)) };
    if !is_plausible(base) {
        return Extent::None;
    }
    let key = match flags & KEY_CHECK {
        0 => 0,
        // The length of the key ends the announced header.
        _ => match half(bytes, length - 2).map(usize::from) {
            None => return Extent::Needs(length),
            Some(key @ 0..=MAX_KEY_BYTES) => key,
            Some(_) => return Extent::None,
        },
    };
    match bytes.len() >= length + key {
        true => Extent::Whole(length + key),
        false => Extent::Needs(length + key),
    }
}

/// Whether fewer than four bytes may begin a header's flags.
fn may_begin(bytes: &[u8]) -> bool {
    let [kinds, ..] = (VERSION1 | EXTEND).to_be_bytes();
    let [of_2_0_14, ..] = OF_2_0_14.to_be_bytes();
    let known = KNOWN_FLAGS.to_be_bytes();
    let is_kind = |first: &u8| first & kinds != 0 || first & of_2_0_14 == of_2_0_14;
    bytes.first().is_none_or(is_kind)
        && bytes.iter().zip(known).all(|(byte, known)| byte & !known == 0)
}

/// The length of a header with these flags; `None` if no header has them.
fn announced(flags: u32, before: usize) -> Option<usize> {
    let is_2_0_14 = flags & OF_2_0_14 == OF_2_0_14;
    if flags & (VERSION1 | EXTEND) == 0 && !is_2_0_14 || flags & !KNOWN_FLAGS != 0 {
        return None;
    }
    if flags & LENGTH_PRESENT != 0 {
        let length = ((flags & LENGTH_MASK) >> 1) as usize;
        return length
            .checked_sub(before)
            .filter(|length| (BASE_BYTES..=MAX_HEADER_BYTES).contains(length));
    }
    let extension = if flags & EXTEND != 0 { EXTENDED_BYTES - BASE_BYTES } else { 0 };
    (flags & LENGTH_MASK == 0).then_some(BASE_BYTES + extension)
}

/// Whether a client could have written the numbers after the flags.
fn is_plausible(base: &[u8]) -> bool {
    let numbers = word(base, 4).zip(word(base, 8)).zip(word(base, 12));
    let Some(((threads, port), buffer)) = numbers else { return false };
    let threads = if threads & TRANSFER_ID != 0 { threads & THREADS_MASK } else { threads };
    (1..=0xffff).contains(&threads) && (1..=0xffff).contains(&port) && buffer <= 1 << 30
}

/// Whether these 24 bytes are the base header of 2.0.4 and 2.0.5, whose flags are 0 in a normal test.
pub(super) fn is_plain_base(base: &[u8]) -> bool {
    base.len() >= BASE_BYTES && word(base, 0) == Some(0) && is_plausible(base)
}

/// Reads a header that is complete according to [`extent`].
pub(super) fn read(bytes: &[u8]) -> Option<Header> {
    let flags = word(bytes, 0)?;
    let port = u16::try_from(word(bytes, 8)?).ok()?;
    let extended = flags & (EXTEND | LENGTH_PRESENT) != 0 && bytes.len() >= EXTENDED_BYTES;
    let extension = |at| if extended { word(bytes, at).unwrap_or(0) } else { 0 };
    let upper = (extension(32) >> 16) as u16;
    let rate_high = if extension(28) == SHORT_EXTENSION_BYTES { 0 } else { extension(52) >> 8 };
    let sent = (upper & TRIP_TIMES != 0 && bytes.len() >= TIMED_BYTES)
        .then(|| Some((word(bytes, 64)?, word(bytes, 68)?)))
        .flatten();
    Some(Header {
        flags,
        upper,
        direction: direction(flags, upper, port),
        buffer: word(bytes, 12)?,
        window: word(bytes, 16).filter(|window| *window != NO_WINDOW).unwrap_or(0),
        length: length(word(bytes, 20)?.cast_signed()),
        version: extended.then(|| (extension(36), extension(40))),
        tos: extension(44) as u8,
        rate: u64::from(extension(48)) | u64::from(rate_high) << 32,
        sent,
    })
}

fn direction(flags: u32, upper: u16, port: u16) -> PayloadDirection {
    match () {
        () if flags & VERSION2 != 0 && upper & FULL_DUPLEX != 0 => PayloadDirection::FullDuplex,
        () if flags & VERSION2 != 0 && upper & REVERSE != 0 => PayloadDirection::Reverse,
        () if flags & VERSION1 == 0 || flags & VERSION2 != 0 => PayloadDirection::Normal,
        () if flags & RUN_NOW != 0 => PayloadDirection::Dual(port),
        () => PayloadDirection::TradeOff(port),
    }
}

/// Positive: bytes; negative: hundredths of a second.
fn length(amount: i32) -> Option<Length> {
    match amount {
        0 => None,
        1.. => Some(Length::Bytes(goodput_model::Bytes(amount.unsigned_abs().into()))),
        ..0 => Some(Length::Seconds(f64::from(amount.unsigned_abs()) / 100.0)),
    }
}

/// The header of 80 bytes that begins a stream with times, to the client that sent `asked`; `at_us` are microseconds
/// since 1970.
pub(super) fn write_timed(asked: &Header, at_us: u64) -> Vec<u8> {
    let plain = Header { flags: 0, upper: TRIP_TIMES, ..asked.clone() };
    let mut bytes = write(&plain, 1, WITH_TIMES_BYTES - EXTENDED_BYTES);
    bytes.resize(WITH_TIMES_BYTES, 0);
    let (seconds, us) = ((at_us / 1_000_000) as u32, (at_us % 1_000_000) as u32);
    bytes[64..68].copy_from_slice(&seconds.to_be_bytes());
    bytes[68..72].copy_from_slice(&us.to_be_bytes());
    bytes
}

/// Writes a header of 60 bytes, as 2.1 does, for a flow whose datagrams have `before` bytes ahead of it.
pub(super) fn write(header: &Header, threads: u16, before: usize) -> Vec<u8> {
    let length = ((EXTENDED_BYTES + before) as u32) << 1 & LENGTH_MASK;
    let flags = header.flags | EXTEND | LENGTH_PRESENT | length;
    let (version, release) = header.version.unwrap_or_default();
    let amount = match header.length {
        Some(Length::Bytes(bytes)) => i32::try_from(bytes.0).unwrap_or(0),
        Some(Length::Seconds(s)) => -((s * 100.0).ceil().clamp(1.0, f64::from(i32::MAX)) as i32),
        Some(Length::Auto { .. } | Length::Source) | None => 0,
    };
    let words = [
        flags,
        threads.into(),
        super::PORT.into(),
        header.buffer,
        header.window,
        amount.cast_unsigned(),
        0,
        0,
        u32::from(header.upper) << 16,
        version,
        release,
        header.tos.into(),
        header.rate as u32,
        ((header.rate >> 32) as u32) << 8,
        0,
    ];
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}
