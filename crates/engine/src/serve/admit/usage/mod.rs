//! What clients use of the server's resources. Each resource has a limit for all clients together, a smaller one for each
//! client and for the networks around it, and one for clients that have proven nothing.
//!
//! A charge is booked on all quotas that it concerns, or on none. Dropping it takes it back.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use goodput_model::Bytes;

use super::quotas::{Limit, Quota, whose};

/// What clients share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Connections that have not proven themselves as flows, and conversations over UDP.
    Connections,
    /// Conversations over UDP alone.
    Conversations,
    /// Simultaneous measurements.
    Measurements,
    /// File descriptors.
    Descriptors,
    /// Threads.
    Threads,
    /// Memory of this process and of the kernel, bytes.
    Memory,
}

use Resource::{Connections, Conversations, Descriptors, Measurements, Memory, Threads};

impl Resource {
    /// Every resource, in the order in which a shortage is reported.
    pub const ALL: [Self; 6] =
        [Connections, Conversations, Measurements, Descriptors, Threads, Memory];

    /// This amount, without the resource's name.
    fn number(self, amount: u64) -> String {
        match self {
            Memory => Bytes(amount).to_string(),
            _ => amount.to_string(),
        }
    }

    /// This amount, in words.
    fn amount(self, amount: u64) -> String {
        match self {
            Memory => self.number(amount) + " of memory",
            Connections => counted(amount, "connection"),
            Conversations => counted(amount, "conversation") + " over UDP",
            Measurements => counted(amount, "measurement"),
            Descriptors => counted(amount, "file descriptor"),
            Threads => counted(amount, "thread"),
        }
    }

    /// What a client can do to need less of the resource.
    fn advice(self) -> &'static str {
        match self {
            Connections => "close other measurements first",
            Conversations | Measurements => "wait until other measurements end",
            Descriptors | Threads => "use fewer flows",
            Memory => {
                "use fewer flows, a smaller chunk, a smaller --size or smaller socket buffers"
            }
        }
    }
}

fn counted(amount: u64, what: &str) -> String {
    format!("{amount} {what}{}", if amount == 1 { "" } else { "s" })
}

/// An amount of each resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts([u64; Resource::ALL.len()]);

impl Amounts {
    /// The same with this amount of one resource.
    pub fn with(mut self, resource: Resource, amount: u64) -> Self {
        self.0[resource as usize] = amount;
        self
    }

    /// The amount of a resource.
    pub fn of(&self, resource: Resource) -> u64 {
        self.0[resource as usize]
    }

    fn add(&mut self, more: &Self) {
        self.0.iter_mut().zip(more.0).for_each(|(own, more)| *own = own.saturating_add(more));
    }

    fn remove(&mut self, less: &Self) {
        self.0.iter_mut().zip(less.0).for_each(|(own, less)| *own = own.saturating_sub(less));
    }
}

/// Why a charge was not booked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    resource: Resource,
    quota: Quota,
    wanted: u64,
    in_use: u64,
    most: u64,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, quota, wanted, in_use, most } = *self;
        let (wants, has) = (resource.amount(wanted), resource.number(most));
        let (used, advice) = (resource.number(in_use), resource.advice());
        let when = if quota.unproven { " before its flows have come" } else { "" };
        if wanted > most {
            return write!(f, "this takes {wants}, and {quota} may have {has}{when}; {advice}");
        }
        write!(
            f,
            "busy: this takes {wants}, and {quota} may have {has}{when}, of which {used} {} in use; \
             try again later, or {advice}",
            if in_use == 1 { "is" } else { "are" }
        )
    }
}

type Book = HashMap<Quota, Amounts>;

/// What is in use, by quota.
pub struct Usage {
    limits: [Limit; Resource::ALL.len()],
    book: Arc<Mutex<Book>>,
}

/// A charge; dropping it takes it back.
pub struct Charge {
    quotas: Vec<Quota>,
    amounts: Amounts,
    book: Arc<Mutex<Book>>,
}

impl Usage {
    /// Nothing is used yet, with these limits; other resources have no limit.
    pub fn new(limits: &[(Resource, Limit)]) -> Self {
        let mut all = [Limit::NONE; Resource::ALL.len()];
        limits.iter().for_each(|(resource, limit)| all[*resource as usize] = *limit);
        Self { limits: all, book: Arc::default() }
    }

    /// The limit of a resource.
    pub fn limit(&self, resource: Resource) -> Limit {
        self.limits[resource as usize]
    }

    /// Charges a client, which may have `proven` that it is serious; or says what is missing.
    pub fn charge(
        &self,
        address: IpAddr,
        proven: bool,
        amounts: Amounts,
    ) -> Result<Charge, Refusal> {
        let whose = whose(address);
        let on = |unproven| whose.iter().map(move |whose| Quota { whose: *whose, unproven });
        let quotas: Vec<_> =
            if proven { on(false).collect() } else { on(true).chain(on(false)).collect() };
        let mut book = lock(&self.book);
        // A quota without bookings does not exist.
        let quotas = if amounts == Amounts::default() { Vec::new() } else { quotas };
        for quota in &quotas {
            self.fits(&book, quota, &amounts)?;
        }
        for quota in &quotas {
            book.entry(*quota).or_default().add(&amounts);
        }
        Ok(Charge { quotas, amounts, book: Arc::clone(&self.book) })
    }

    fn fits(&self, book: &Book, quota: &Quota, amounts: &Amounts) -> Result<(), Refusal> {
        let used = book.get(quota).copied().unwrap_or_default();
        for resource in Resource::ALL {
            let (wanted, in_use) = (amounts.of(resource), used.of(resource));
            let most = self.limit(resource).most(quota);
            if wanted > 0 && in_use.checked_add(wanted).is_none_or(|sum| sum > most) {
                return Err(Refusal { resource, quota: *quota, wanted, in_use, most });
            }
        }
        Ok(())
    }
}

impl Charge {
    /// The client has proven that it is serious: from now on only its share as a proven client is charged.
    pub fn prove(&mut self) {
        self.take_back(|quota| quota.unproven);
    }

    fn take_back(&mut self, which: impl Fn(&Quota) -> bool) {
        let mut book = lock(&self.book);
        self.quotas.retain(|quota| {
            if !which(quota) {
                return true;
            }
            if let Some(used) = book.get_mut(quota) {
                used.remove(&self.amounts);
                if *used == Amounts::default() {
                    book.remove(quota);
                }
            }
            false
        });
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.take_back(|_| true);
    }
}

fn lock(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
