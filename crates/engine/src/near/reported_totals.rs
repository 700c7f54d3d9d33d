//! What a far end that sends no report says about its counts, whatever the source.

use goodput_model::{FlowTotals, Host, Known, Totals};
use goodput_wire::far_end::FarEnd;

/// The totals of a far end as they come in.
pub struct ReportedTotals(Option<Totals>);

impl ReportedTotals {
    /// Only the far end's identity so far; a far end with a whole report needs no totals.
    pub fn of(peer: &Host, far_end: &FarEnd) -> Self {
        let totals = Totals {
            program: peer.name.clone(),
            cpu_percent: Known::missing("it does not report its CPU time"),
            cpu_user_percent: None,
            cpu_system_percent: None,
            congestion: None,
            cookie: None,
            flows: Vec::new(),
            text: None,
        };
        Self((!far_end.reports).then_some(totals))
    }

    /// Adds what came on the flows themselves.
    pub fn came_on_flows(&mut self, flows: Vec<FlowTotals>) {
        if let Some(totals) = &mut self.0
            && !flows.is_empty()
        {
            totals.flows = flows;
        }
    }

    /// Adds the session's totals from the conversation, beside those from the flows.
    pub fn came(&mut self, totals: Totals) {
        let on_flows = self.0.take().map_or(Vec::new(), |totals| totals.flows);
        let flows = if totals.flows.is_empty() { on_flows } else { totals.flows };
        self.0 = Some(Totals { flows, ..totals });
    }

    /// All of them.
    pub fn into_totals(self) -> Option<Totals> {
        self.0
    }
}
