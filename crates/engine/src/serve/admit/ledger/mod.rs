//! A ledger of the server's resources. Each resource has a limit for all clients together, a smaller one for each
//! client and for the networks around it, and one for clients that have proven nothing.
//!
//! A charge is booked on all the accounts that it concerns, or on none. Dropping its ticket takes it back.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use goodput_model::Bytes;

use super::accounts::{Account, Limit, whose};

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
    account: Account,
    wanted: u64,
    in_use: u64,
    most: u64,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, account, wanted, in_use, most } = *self;
        let (wants, has) = (resource.amount(wanted), resource.number(most));
        let (used, advice) = (resource.number(in_use), resource.advice());
        let when = if account.unproven { " before its flows have come" } else { "" };
        if wanted > most {
            return write!(f, "this takes {wants}, and {account} may have {has}{when}; {advice}");
        }
        write!(
            f,
            "busy: this takes {wants}, and {account} may have {has}{when}, of which {used} {} in use; \
             try again later, or {advice}",
            if in_use == 1 { "is" } else { "are" }
        )
    }
}

type Book = HashMap<Account, Amounts>;

/// The book.
pub struct Ledger {
    limits: [Limit; Resource::ALL.len()],
    book: Arc<Mutex<Book>>,
}

/// A charge; dropping it takes it back.
pub struct Ticket {
    accounts: Vec<Account>,
    amounts: Amounts,
    book: Arc<Mutex<Book>>,
}

impl Ledger {
    /// A ledger with these limits; other resources have no limit.
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
    ) -> Result<Ticket, Refusal> {
        let whose = whose(address);
        let on = |unproven| whose.iter().map(move |whose| Account { whose: *whose, unproven });
        let accounts: Vec<_> =
            if proven { on(false).collect() } else { on(true).chain(on(false)).collect() };
        let mut book = lock(&self.book);
        // An account without bookings does not exist.
        let accounts = if amounts == Amounts::default() { Vec::new() } else { accounts };
        for account in &accounts {
            self.fits(&book, account, &amounts)?;
        }
        for account in &accounts {
            book.entry(*account).or_default().add(&amounts);
        }
        Ok(Ticket { accounts, amounts, book: Arc::clone(&self.book) })
    }

    fn fits(&self, book: &Book, account: &Account, amounts: &Amounts) -> Result<(), Refusal> {
        let used = book.get(account).copied().unwrap_or_default();
        for resource in Resource::ALL {
            let (wanted, in_use) = (amounts.of(resource), used.of(resource));
            let most = self.limit(resource).most(account);
            if wanted > 0 && in_use.checked_add(wanted).is_none_or(|sum| sum > most) {
                return Err(Refusal { resource, account: *account, wanted, in_use, most });
            }
        }
        Ok(())
    }
}

impl Ticket {
    /// The client has proven that it is serious: from now on only its share as a proven client is charged.
    pub fn prove(&mut self) {
        self.take_back(|account| account.unproven);
    }

    fn take_back(&mut self, which: impl Fn(&Account) -> bool) {
        let mut book = lock(&self.book);
        self.accounts.retain(|account| {
            if !which(account) {
                return true;
            }
            if let Some(used) = book.get_mut(account) {
                used.remove(&self.amounts);
                if *used == Amounts::default() {
                    book.remove(account);
                }
            }
            false
        });
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.take_back(|_| true);
    }
}

fn lock(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
