//! Questions to another host's clock. Datagrams or the control connection carry them.
//!
//! Pure: times are arguments. Each number is asked once and its answer is taken once, so a repeated or unasked answer
//! is ignored. The other clock's time isn't checked: code that uses it must accept any number.

use std::collections::VecDeque;

use goodput_model::Exchange;

/// At most this many questions wait for their answers; then the oldest is forgotten.
const MAX_UNANSWERED: usize = 1024;

/// Questions of one conversation, numbered from 1.
#[derive(Debug, Default)]
pub struct ClockQuestions {
    last: u64,
    /// Unanswered questions, and when each left, nanoseconds.
    out: VecDeque<(u64, u64)>,
}

impl ClockQuestions {
    /// Asks one more question, which leaves at `sent_ns` of the asker's clock; returns its number.
    pub fn ask(&mut self, sent_ns: u64) -> u64 {
        self.last += 1;
        self.out.push_back((self.last, sent_ns));
        if self.out.len() > MAX_UNANSWERED {
            self.out.pop_front();
        }
        self.last
    }

    /// Number of the last question; 0 before the first.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Question `number` was answered, or wasn't sent after all. Returns when it was asked, nanoseconds; `None` if it
    /// doesn't wait for an answer.
    pub fn answered(&mut self, number: u64) -> Option<u64> {
        let place = self.out.iter().position(|(asked, _)| *asked == number)?;
        self.out.remove(place).map(|(_, sent_ns)| sent_ns)
    }

    /// The same, for an answer that reports when the other clock received the question and when it answered. The
    /// answer arrived here at `back_ns`.
    pub fn compared(
        &mut self,
        number: u64,
        (received_ns, answered_ns): (u64, u64),
        back_ns: u64,
    ) -> Option<Exchange> {
        let sent_ns = self.answered(number)?;
        Some(Exchange { sent_ns, received_ns, answered_ns, back_ns })
    }

    /// Whether a question after number `after` waits for its answer.
    pub fn is_waiting_since(&self, after: u64) -> bool {
        self.out.iter().any(|(number, _)| *number > after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_is_taken_once_and_only_if_it_was_asked_for() {
        let mut questions = ClockQuestions::default();
        assert_eq!((questions.ask(10), questions.ask(20)), (1, 2));
        assert_eq!(questions.compared(2, (500, 501), 30), Some([20, 500, 501, 30].into()));
        assert_eq!(questions.compared(2, (700, 701), 40), None, "replayed");
        assert_eq!(questions.compared(3, (0, 0), 40), None, "never asked");
        assert!(questions.is_waiting_since(0) && !questions.is_waiting_since(1));
        assert_eq!(questions.answered(1), Some(10));
    }

    #[test]
    fn who_never_answers_costs_no_memory() {
        let mut questions = ClockQuestions::default();
        for at in 0..10_000 {
            questions.ask(at);
        }
        assert_eq!(questions.out.len(), MAX_UNANSWERED);
        assert_eq!((questions.answered(1), questions.answered(10_000)), (None, Some(9_999)));
    }
}
