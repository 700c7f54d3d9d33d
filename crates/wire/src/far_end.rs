//! What the far end of a protocol does beside moving payload. The engine asks for one of these, never for a
//! protocol by its name.

/// The capabilities of a protocol's far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FarEnd {
    /// It sends samples while payload moves, and in the end what it observed of its host. The session of
    /// another one may give totals ([`crate::session::Action::PeerTotals`]).
    pub reports: bool,
    /// It measures repeatedly in one conversation.
    pub measures_again: bool,
    /// It changes settings of its host for clients that may.
    pub changes_settings: bool,
    /// It reads and writes files of its own.
    pub has_files: bool,
    /// It chooses for itself how it moves payload, and knows goodput's names for that.
    pub chooses_movers: bool,
    /// It knows shared tokens and keys.
    pub knows_keys: bool,
    /// Its server makes the cookies by which data connections prove themselves. Other proofs are the
    /// client's.
    pub makes_cookies: bool,
    /// It answers echoes, and takes a connection that says nothing for a probe.
    pub answers_probes: bool,
    /// Its clock can be compared with this end's.
    pub compares_clocks: bool,
    /// It carries out any plan that makes sense. The session of another one says what its protocol can't.
    pub takes_any_plan: bool,
    /// Its senders wait until both ends are ready. Those of others send as soon as they have their flows.
    pub awaits_begin: bool,
    /// It ends at the plan's length. Others learn of the end from the control connection or from the flows.
    pub ends_as_planned: bool,
    /// It knows an end after which receivers hardly wait for what is still on its way.
    pub finishes_soon: bool,
    /// It sends datagrams only while it hears that the other end lives.
    pub needs_life_signs: bool,
    /// What this end reports of its own counts leaves the warm-up out; the session takes this from its
    /// samples.
    pub is_told_without_warm_up: bool,
}

impl FarEnd {
    /// One that moves payload, and gets the counts of the other end.
    pub const PLAIN: Self = Self {
        reports: false,
        measures_again: false,
        changes_settings: false,
        has_files: false,
        chooses_movers: false,
        knows_keys: false,
        makes_cookies: false,
        answers_probes: false,
        compares_clocks: false,
        takes_any_plan: false,
        awaits_begin: false,
        ends_as_planned: false,
        finishes_soon: false,
        needs_life_signs: false,
        is_told_without_warm_up: true,
    };
}
