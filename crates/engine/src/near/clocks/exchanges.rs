//! Queries of the far end's clock during a measurement: UDP echoes that report when they were received and answered
//! (`wire/src/datagram/echo.rs`).

use std::io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use goodput_model::{Exchange, Missing, SocketOptions};
use goodput_mover::socket::{enable_arrival_times, receive_with_ancillary, udp_socket};
use goodput_mover::{Arrivals, LastHeard, monotonic_ns};
use goodput_wire::clock_questions::ClockQuestions;
use goodput_wire::datagram::echo::{Echoed, echo, echoed};
use goodput_wire::datagram::{Nonce, ServerReply, from_server, hello};
use goodput_wire::session::Cookie;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::sync::Notify;

/// Questions before and after the payload; the fastest of this many hardly met a queue.
pub const IDLE_EXCHANGES: usize = 16;
/// Longest time between two of these questions: an earlier answer brings the next one.
const IDLE_INTERVAL: Duration = Duration::from_millis(4);
/// Time between two questions while payload moves.
const LOADED_INTERVAL: Duration = Duration::from_millis(50);
/// Most exchanges that are kept: two minutes of them. Beyond that, every second one is dropped, and half as many are
/// made.
const MAX_KEPT_EXCHANGES: usize = 2400;
/// Time after which a hello is repeated.
const REPEAT_INTERVAL: Duration = Duration::from_millis(200);
/// How long a server may leave hellos unanswered.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// An answer that takes this many times as long as the slowest one of an idle time is lost.
const LOST_AFTER_ANSWER_TIMES: u32 = 2;
/// How long to wait for the last answers at most.
const MAX_LAST_ANSWERS_TIME: Duration = Duration::from_secs(1);

/// The phase of the measurement, for the thread that asks, and that thread's progress.
#[derive(Debug, Default)]
pub struct ClockProgress {
    stage: AtomicU8,
    answered: AtomicUsize,
    /// The questions before the payload are answered, or no answer comes any more.
    first: Notify,
    heard: LastHeard,
    /// Whether to ask nothing while payload moves.
    is_quiet: bool,
}

const PHASE_AFTER: u8 = 1;
const PHASE_ENDED: u8 = 2;
const PHASE_ABANDONED: u8 = 3;

impl ClockProgress {
    /// Nothing is asked yet. If `is_quiet`, nothing will be while payload moves.
    pub fn new(is_quiet: bool) -> Self {
        Self { is_quiet, ..Self::default() }
    }

    /// No payload moves any more: asks the last questions.
    pub fn finish(&self) {
        self.stage.fetch_max(PHASE_AFTER, Ordering::Relaxed);
    }

    /// The same, but there are no last questions.
    pub fn end(&self) {
        self.stage.fetch_max(PHASE_ENDED, Ordering::Relaxed);
    }

    /// Nobody waits for an answer any more.
    pub fn abandon(&self) {
        self.stage.fetch_max(PHASE_ABANDONED, Ordering::Relaxed);
    }

    /// Waits until the questions before the payload are answered, or no answer comes any more.
    pub async fn first(&self) {
        self.first.notified().await;
    }

    /// Nobody needs to wait for an answer any more.
    pub fn end_first(&self) {
        self.first.notify_one();
    }

    /// When the last answer came.
    pub fn last_heard(&self) -> LastHeard {
        self.heard.clone()
    }

    fn add_answer(&self) {
        if self.answered.fetch_add(1, Ordering::Relaxed) + 1 == IDLE_EXCHANGES {
            self.end_first();
        }
        self.heard.mark();
    }

    fn is_over(&self) -> bool {
        self.stage.load(Ordering::Relaxed) >= PHASE_AFTER
    }

    fn has_ended(&self) -> bool {
        self.stage.load(Ordering::Relaxed) >= PHASE_ENDED
    }

    fn is_abandoned(&self) -> bool {
        self.stage.load(Ordering::Relaxed) >= PHASE_ABANDONED
    }
}

/// Asks until the measurement is over. Returns the exchanges in the order of the answers.
pub fn exchange(
    to: SocketAddr,
    cookie: Cookie,
    options: &SocketOptions,
    progress: &ClockProgress,
) -> Result<Vec<Exchange>, Missing> {
    let failed =
        |cause: std::io::Error| Missing::because(format!("clock exchange with {to}: {cause}"));
    let socket = udp_socket(None, to, options, false);
    let socket: UdpSocket = socket.map_err(|why| Missing::because(why.to_string()))?.into();
    socket.set_nonblocking(true).map_err(failed)?;
    // Without arrival times, an answer counts from when this thread reads it: later, but still valid.
    let _ = enable_arrival_times(&socket);
    let nonce = proven(&socket, &cookie, progress).map_err(failed)?.ok_or_else(|| {
        let port = to.port();
        Missing::because(format!("no UDP echo from {to}; a firewall may drop UDP to port {port}"))
    })?;
    let mut asking = PendingRequests::new(&socket, cookie, nonce, progress);
    asking.run().map_err(failed)?;
    asking.into_exchanges()
}

/// Questions in progress.
struct PendingRequests<'a> {
    socket: &'a UdpSocket,
    cookie: Cookie,
    nonce: Nonce,
    progress: &'a ClockProgress,
    arrivals: Arrivals,
    questions: ClockQuestions,
    answers: Answers,
    /// The slowest answer to the questions before the payload.
    slowest: Option<Duration>,
    /// How many answers did not report the clock.
    untimed: usize,
}

/// The answers, thinned if there are many, and therefore how often it is worth asking.
struct Answers {
    exchanges: Vec<Exchange>,
    every: Duration,
}

impl Default for Answers {
    fn default() -> Self {
        Self { exchanges: Vec::new(), every: LOADED_INTERVAL }
    }
}

impl Answers {
    fn push(&mut self, exchange: Exchange) {
        self.exchanges.push(exchange);
        if self.exchanges.len() >= MAX_KEPT_EXCHANGES {
            let mut place = 0;
            self.exchanges.retain(|_| {
                place += 1;
                place <= IDLE_EXCHANGES || place % 2 == 0
            });
            self.every *= 2;
        }
    }
}

impl<'a> PendingRequests<'a> {
    fn new(
        socket: &'a UdpSocket,
        cookie: Cookie,
        nonce: Nonce,
        progress: &'a ClockProgress,
    ) -> Self {
        Self {
            socket,
            cookie,
            nonce,
            progress,
            arrivals: Arrivals::default(),
            questions: ClockQuestions::default(),
            answers: Answers::default(),
            slowest: None,
            untimed: 0,
        }
    }

    fn run(&mut self) -> std::io::Result<()> {
        self.ask_often(|_| false)?;
        let asked = Instant::now();
        while !self.progress.is_over() {
            if !self.progress.is_quiet {
                self.ask();
            }
            self.hear_until(Instant::now() + self.answers.every, |own| own.progress.is_over())?;
            if self.slowest.is_some() && asked.elapsed() >= patience(self.slowest) {
                self.progress.end_first();
            }
        }
        let loaded = self.questions.last();
        self.ask_often(ClockProgress::has_ended)?;
        let until = Instant::now() + patience(self.slowest);
        while self.questions.is_waiting_since(loaded)
            && Instant::now() < until
            && !self.progress.has_ended()
        {
            let soon = (Instant::now() + IDLE_INTERVAL).min(until);
            self.hear_until(soon, |own| own.progress.has_ended())?;
        }
        Ok(())
    }

    /// Asks as many questions as a time without payload is worth.
    fn ask_often(&mut self, is_over: fn(&ClockProgress) -> bool) -> std::io::Result<()> {
        for _ in 0..IDLE_EXCHANGES {
            if is_over(self.progress) {
                break;
            }
            let earlier = self.questions.last();
            self.ask();
            self.hear_until(Instant::now() + IDLE_INTERVAL, |own| {
                is_over(own.progress) || !own.questions.is_waiting_since(earlier)
            })?;
        }
        Ok(())
    }

    fn ask(&mut self) {
        let number = self.questions.ask(monotonic_ns());
        if self.socket.send(&echo(&self.cookie, &self.nonce, number)).is_err() {
            // A question that can't be sent is one question less.
            self.questions.answered(number);
        }
    }

    /// Takes answers until the time is over or `is_over` holds.
    fn hear_until(
        &mut self,
        until: Instant,
        is_over: impl Fn(&Self) -> bool,
    ) -> std::io::Result<()> {
        while !is_over(self) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            if let Some((datagram, wall_ns)) = receive(self.socket, left)? {
                self.heard(&datagram, wall_ns);
            }
        }
        Ok(())
    }

    fn heard(&mut self, datagram: &[u8], wall_ns: Option<u64>) {
        let now_ns = monotonic_ns();
        let Some(Echoed { number, times_ns }) = echoed(&self.cookie, datagram) else { return };
        let back_ns = match wall_ns {
            Some(wall_ns) => self.arrivals.monotonic_ns(wall_ns),
            None => Some(now_ns),
        };
        let Some(sent_ns) = self.questions.answered(number) else { return };
        if number <= IDLE_EXCHANGES as u64 {
            let took = Duration::from_nanos(now_ns.saturating_sub(sent_ns));
            self.slowest = self.slowest.max(Some(took));
        }
        self.progress.add_answer();
        match (times_ns, back_ns) {
            (Some((received_ns, answered_ns)), Some(back_ns)) => {
                self.answers.push(Exchange { sent_ns, received_ns, answered_ns, back_ns });
            }
            (Some(_), None) => {}
            (None, _) => self.untimed += 1,
        }
    }

    fn into_exchanges(self) -> Result<Vec<Exchange>, Missing> {
        if !self.answers.exchanges.is_empty() {
            return Ok(self.answers.exchanges);
        }
        let asked = self.questions.last();
        Err(match self.untimed {
            0 => Missing::because(format!("none of {asked} clock queries was answered")),
            _ => Missing::because(
                "the far end does not report its clock: its goodput is older, or started with --private",
            ),
        })
    }
}

/// How long an answer is waited for after the last question of an idle time, if the `slowest` one took this long: one
/// lost datagram must not take as long as a path without answers.
fn patience(slowest: Option<Duration>) -> Duration {
    let lost = slowest.map(|slowest| slowest * LOST_AFTER_ANSWER_TIMES);
    // Threads wake up late on a busy host.
    let lost = lost.map(|lost| lost.max(LOADED_INTERVAL));
    lost.unwrap_or(MAX_LAST_ANSWERS_TIME).min(MAX_LAST_ANSWERS_TIME)
}

/// Proves this address; `None` if the server does not answer.
fn proven(
    socket: &UdpSocket,
    cookie: &Cookie,
    progress: &ClockProgress,
) -> std::io::Result<Option<Nonce>> {
    let (least, until) = (Instant::now() + MAX_LAST_ANSWERS_TIME, Instant::now() + ANSWER_TIMEOUT);
    // A measurement that ends soon waits for a late answer; a longer one does not.
    let goes_on = |now: Instant| {
        now < if progress.is_over() { least } else { until } && !progress.is_abandoned()
    };
    while goes_on(Instant::now()) {
        // A lost hello is repeated.
        let _ = socket.send(&hello(cookie));
        let again = Instant::now() + REPEAT_INTERVAL;
        while let Some(left) = again.checked_duration_since(Instant::now())
            && !left.is_zero()
            && goes_on(Instant::now())
        {
            let heard = receive(socket, left.min(LOADED_INTERVAL))?;
            let said = heard.and_then(|(datagram, _)| from_server(&datagram));
            if let Some(ServerReply::Challenge(nonce)) = said {
                return Ok(Some(nonce));
            }
        }
    }
    Ok(None)
}

/// The next datagram and its time of arrival, if one comes in time.
fn receive(socket: &UdpSocket, time: Duration) -> std::io::Result<Option<(Vec<u8>, Option<u64>)>> {
    // The kernel rounds a socket's timeout (SO_RCVTIMEO) up to jiffies: 4 ms would be up to 12. poll's is exact.
    let time = Timespec::try_from(time).map_err(std::io::Error::other)?;
    match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&time)) {
        Ok(0) | Err(Errno::INTR) => return Ok(None),
        polled => polled?,
    };
    let mut datagram = [0; 128];
    match receive_with_ancillary(socket, &mut datagram) {
        Ok(received) => Ok(Some((datagram[..received.length].to_vec(), received.wall_ns))),
        Err(cause) if matches!(cause.kind(), TimedOut | WouldBlock | Interrupted) => Ok(None),
        // An ICMP error for an earlier question, which counts as lost.
        Err(cause) if cause.kind() == ConnectionRefused => Ok(None),
        Err(cause) => Err(cause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_sign_of_life_and_anything_else_is_not() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(socket.local_addr().unwrap()).unwrap();
        let (cookie, progress) = (Cookie([3; 16]), ClockProgress::default());
        let mut asking = PendingRequests::new(&socket, cookie, Nonce([0; 16]), &progress);
        asking.ask();
        let mut answer = [b"goodputr".as_slice(), &cookie.0, &2u64.to_be_bytes()].concat();
        asking.heard(&answer, None);
        assert_eq!(progress.last_heard().ago_ms(), None, "nobody asked that");
        answer[24..32].copy_from_slice(&asking.questions.last().to_be_bytes());
        asking.heard(&answer, None);
        assert!(progress.last_heard().ago_ms().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_the_first_answers_hears_of_the_last_of_them_and_of_the_end() {
        let waits_for = async |progress: &ClockProgress| {
            tokio::time::timeout(Duration::from_secs(1), progress.first()).await.is_ok()
        };
        let progress = ClockProgress::default();
        (1..IDLE_EXCHANGES).for_each(|_| progress.add_answer());
        assert!(!waits_for(&progress).await);
        progress.add_answer();
        assert!(waits_for(&progress).await);
        let progress = ClockProgress::default();
        progress.end_first();
        assert!(waits_for(&progress).await);
    }

    #[test]
    fn an_answer_is_given_up_by_how_long_others_took() {
        let patience_ms =
            |slowest_ms| patience(Some(Duration::from_millis(slowest_ms))).as_millis();
        assert_eq!([1, 240, 3000].map(patience_ms), [50, 480, 1000]);
        assert_eq!(patience(None), MAX_LAST_ANSWERS_TIME, "nothing is known of the path");
    }

    #[test]
    fn a_day_of_answers_is_thinned_evenly_and_the_first_are_kept() {
        let mut answers = Answers::default();
        let (mut at_ns, day_ns) = (0, 86_400_000_000_000);
        let mut most = 0;
        while at_ns < day_ns {
            answers.push(Exchange::from([at_ns, at_ns, at_ns, at_ns + 1]));
            at_ns += answers.every.as_nanos() as u64;
            most = most.max(answers.exchanges.len());
        }
        assert!(most <= MAX_KEPT_EXCHANGES, "{most}");
        let every_ns = LOADED_INTERVAL.as_nanos() as u64;
        let first: Vec<_> =
            answers.exchanges.iter().take(IDLE_EXCHANGES).map(|e| e.sent_ns).collect();
        assert_eq!(first, (0..IDLE_EXCHANGES as u64).map(|n| n * every_ns).collect::<Vec<_>>());
        let gaps =
            answers.exchanges[IDLE_EXCHANGES..].windows(2).map(|e| e[1].sent_ns - e[0].sent_ns);
        assert!(gaps.max() <= Some(2 * answers.every.as_nanos() as u64));
    }
}
