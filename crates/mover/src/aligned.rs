//! Memory as `O_DIRECT` asks for it.

/// Alignment that `O_DIRECT` asks of address, length and offset on any disk of today, bytes (open(2);
/// 512 is the least, 4096 fits all).
pub(crate) const ALIGNMENT_BYTES: usize = 4096;

/// A buffer that begins where a page does.
pub(crate) struct AlignedBuffer {
    bytes: Vec<u8>,
    start: usize,
    room: usize,
}

impl AlignedBuffer {
    /// Room for `room` bytes, rounded up to whole pages.
    pub(crate) fn new(room: usize) -> Self {
        let room = room.next_multiple_of(ALIGNMENT_BYTES);
        // Longer than its room, so that an aligned part of that length is in it.
        let bytes = vec![0; room + ALIGNMENT_BYTES];
        let start = bytes.as_ptr().align_offset(ALIGNMENT_BYTES).min(ALIGNMENT_BYTES);
        Self { bytes, start, room }
    }

    /// All of it.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.room]
    }
}
