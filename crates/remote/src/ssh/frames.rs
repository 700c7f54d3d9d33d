//! Finds the lines of a session in a host's output: all begin with a mark that nobody can know in advance.

/// A line of a session, and the output before it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Everything since the line before, the line break in front of the mark left out.
    pub(super) text: String,
    /// The words after the mark.
    pub(super) words: Vec<String>,
}

/// One stream of a session, split at its marks.
#[derive(Debug)]
pub(super) struct Frames {
    mark: Vec<u8>,
    bytes: Vec<u8>,
    /// No mark begins before this.
    searched: usize,
}

impl Frames {
    /// A stream in which `mark` begins every line of the session.
    pub(super) fn new(mark: &str) -> Self {
        Self { mark: format!("\n{mark} ").into(), bytes: Vec::new(), searched: 0 }
    }

    /// Adds the next output.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// How many bytes wait for a line of the session.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The waiting bytes as text, for an error.
    pub(super) fn rest(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim().to_owned()
    }

    /// The next line of the session, once it is complete.
    pub(super) fn next(&mut self) -> Option<Frame> {
        let found = find(&self.bytes[self.searched..], &self.mark);
        let Some(begin) = found.map(|at| at + self.searched) else {
            self.searched = self.bytes.len().saturating_sub(self.mark.len());
            return None;
        };
        self.searched = begin;
        let words = begin + self.mark.len();
        let end = words + self.bytes[words..].iter().position(|byte| *byte == b'\n')?;
        let text = String::from_utf8_lossy(&self.bytes[..begin]).into_owned();
        let words = String::from_utf8_lossy(&self.bytes[words..end]);
        let words = words.split(' ').map(str::to_owned).collect();
        self.bytes.drain(..=end);
        self.searched = 0;
        Some(Frame { text, words })
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_whole_lines_with_the_mark_count() {
        let mut frames = Frames::new("m1");
        frames.add(b"Welcome!\nm1x no\n m1 no\n\nm1 ready");
        assert_eq!(frames.next(), None);
        frames.add(b"\nout");
        let frame = frames.next().unwrap();
        assert_eq!(frame.text, "Welcome!\nm1x no\n m1 no\n");
        assert_eq!(frame.words, ["ready"]);
        assert_eq!((frames.next(), frames.waiting_bytes()), (None, 3));
    }

    proptest! {
        #[test]
        fn wherever_the_stream_is_cut_the_same_is_found(
            texts in prop::collection::vec("[a-z \n]{0,20}", 1..4), size in 1_usize..9
        ) {
            let stream: String = texts.iter().map(|text| format!("{text}\nm1 a 0\n")).collect();
            let mut frames = Frames::new("m1");
            let mut found = Vec::new();
            for bytes in stream.as_bytes().chunks(size) {
                frames.add(bytes);
                found.extend(std::iter::from_fn(|| frames.next()).map(|frame| frame.text));
            }
            prop_assert_eq!(found, texts);
        }
    }
}
