//! Memory aligned for `O_DIRECT`.

/// Alignment of address, length and offset that `O_DIRECT` requires on any disk of today, bytes (open(2); 512 is the
/// minimum, 4096 fits all).
pub(crate) const ALIGNMENT_BYTES: usize = 4096;

/// A page-aligned buffer.
pub(crate) struct AlignedBuffer {
    bytes: Vec<u8>,
    start: usize,
    room: usize,
}

impl AlignedBuffer {
    /// Room for `room` bytes, rounded up to whole pages.
    pub(crate) fn new(room: usize) -> Self {
        let room = room.next_multiple_of(ALIGNMENT_BYTES);
        // Longer than the room, so that it contains an aligned part of the wanted length.
        let bytes = vec![0; room + ALIGNMENT_BYTES];
        let start = bytes.as_ptr().align_offset(ALIGNMENT_BYTES).min(ALIGNMENT_BYTES);
        Self { bytes, start, room }
    }

    /// The whole buffer.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.room]
    }
}
