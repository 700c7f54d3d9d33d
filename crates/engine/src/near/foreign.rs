//! What a far end that is not goodput tells of itself, from wherever it tells it.

use goodput_model::{FlowTotals, Host, Known, Totals};

/// The account of a far end as it comes in.
pub struct Account(Option<Totals>);

impl Account {
    /// Nothing yet but who it is; goodput's own gives none.
    pub fn of(peer: &Host) -> Self {
        let totals = Totals {
            program: peer.name.clone(),
            cpu_percent: Known::missing("it does not tell its CPU time"),
            cpu_user_percent: None,
            cpu_system_percent: None,
            congestion: None,
            cookie: None,
            flows: Vec::new(),
            text: None,
        };
        Self((!peer.is_goodput()).then_some(totals))
    }

    /// What it told on the flows themselves.
    pub fn told_on_flows(&mut self, flows: Vec<FlowTotals>) {
        if let Some(totals) = &mut self.0
            && !flows.is_empty()
        {
            totals.flows = flows;
        }
    }

    /// What the session made of the conversation; it stands beside what came on the flows.
    pub fn told(&mut self, told: Totals) {
        let on_flows = self.0.take().map_or(Vec::new(), |totals| totals.flows);
        let flows = if told.flows.is_empty() { on_flows } else { told.flows };
        self.0 = Some(Totals { flows, ..told });
    }

    /// All of it.
    pub fn into_totals(self) -> Option<Totals> {
        self.0
    }
}
