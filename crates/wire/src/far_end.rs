//! What the far end of a protocol does besides moving payload. The engine asks for a capability, never for a
//! protocol's name.

/// The capabilities of a protocol's far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FarEnd {
    /// It sends samples while payload moves, and finally what it observed of its host. A session without this
    /// capability may give totals ([`crate::session::Action::PeerTotals`]).
    pub reports: bool,
    /// Its receivers report what they counted, at least in the end.
    pub counts: bool,
    /// It measures repeatedly in one conversation.
    pub measures_again: bool,
    /// It captures packets for clients that have permission.
    pub captures: bool,
    /// It changes settings of its host for clients that have permission.
    pub changes_settings: bool,
    /// It reads and writes files of its own.
    pub has_files: bool,
    /// It chooses its own mover, and knows goodput's names for movers.
    pub chooses_movers: bool,
    /// It knows shared tokens and keys.
    pub knows_keys: bool,
    /// Its server makes the cookies that data connections present. Otherwise the client makes them.
    pub makes_cookies: bool,
    /// Its flows may come in any order: it knows each by its cookie, or makes no difference between them. Otherwise it
    /// takes one flow after the other, and numbers them as they come.
    pub takes_flows_in_any_order: bool,
    /// It answers echoes, and treats a silent connection as a probe.
    pub answers_probes: bool,
    /// Its clock can be compared with this end's.
    pub compares_clocks: bool,
    /// It carries out any plan that makes sense. Otherwise the session reports what its protocol can't do.
    pub takes_any_plan: bool,
    /// Its senders wait until both ends are ready. Otherwise senders start as soon as their flows are connected.
    pub awaits_begin: bool,
    /// It ends at the plan's length. Otherwise it learns of the end from the control connection or from the flows.
    pub ends_as_planned: bool,
    /// It knows an end after which receivers wait only briefly for payload in flight.
    pub finishes_soon: bool,
    /// It reports that its senders have stopped ([`crate::session::Action::PeerStopped`]). Until then, a silence is not
    /// the end of their flows.
    pub announces_its_stop: bool,
    /// It sends datagrams only while it hears from the other end.
    pub needs_life_signs: bool,
    /// This end reports its own counts without the warm-up; the session takes the warm-up from its samples.
    pub gets_counts_without_warm_up: bool,
}

impl FarEnd {
    /// A far end that moves payload and receives the other end's counts.
    pub const PLAIN: Self = Self {
        reports: false,
        counts: true,
        measures_again: false,
        captures: false,
        changes_settings: false,
        has_files: false,
        chooses_movers: false,
        knows_keys: false,
        makes_cookies: false,
        takes_flows_in_any_order: false,
        answers_probes: false,
        compares_clocks: false,
        takes_any_plan: false,
        awaits_begin: false,
        ends_as_planned: false,
        finishes_soon: false,
        announces_its_stop: false,
        needs_life_signs: false,
        gets_counts_without_warm_up: true,
    };
}
