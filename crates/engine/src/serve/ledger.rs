//! A book of what a server lends: each resource has a limit for all clients together, a smaller one for
//! each client and for the networks around it, and one for those who have proven nothing.
//!
//! A charge is booked on every account that it concerns at once, or on none. Its ticket takes it back.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use goodput_model::{BitRate, Bytes};
use ipnet::IpNet;

/// What is lent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Connections that have not proven themselves as flows, and conversations over UDP.
    Connections,
    /// The latter alone.
    Conversations,
    /// Measurements at the same time.
    Measurements,
    /// File descriptors.
    Descriptors,
    /// Threads.
    Threads,
    /// Memory of this process and of the kernel, bytes.
    Memory,
    /// Bits per second, each direction.
    Rate,
}

use Resource::{Connections, Conversations, Descriptors, Measurements, Memory, Rate, Threads};

impl Resource {
    /// Every one, in the order in which a lack of it is told.
    pub const ALL: [Self; 7] =
        [Connections, Conversations, Measurements, Rate, Descriptors, Threads, Memory];

    /// So much of it, without its name.
    fn number(self, amount: u64) -> String {
        match self {
            Memory => Bytes(amount).to_string(),
            Rate => BitRate(amount as f64).to_string(),
            _ => amount.to_string(),
        }
    }

    /// So much of it, in words.
    fn amount(self, amount: u64) -> String {
        match self {
            Memory => self.number(amount) + " of memory",
            Rate => self.number(amount),
            Connections => counted(amount, "connection"),
            Conversations => counted(amount, "conversation") + " over UDP",
            Measurements => counted(amount, "measurement"),
            Descriptors => counted(amount, "file descriptor"),
            Threads => counted(amount, "thread"),
        }
    }

    /// What a client can do that needs less of it.
    fn advice(self) -> &'static str {
        match self {
            Connections => "close others first",
            Conversations | Measurements => "wait until others end",
            Descriptors | Threads => "use fewer flows",
            Memory => {
                "use fewer flows, a smaller chunk, a smaller --size or smaller socket buffers"
            }
            Rate => "ask for a lower rate",
        }
    }
}

fn counted(amount: u64, what: &str) -> String {
    format!("{amount} {what}{}", if amount == 1 { "" } else { "s" })
}

/// How much of each resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts([u64; Resource::ALL.len()]);

impl Amounts {
    /// The same with so much of one resource.
    pub fn with(mut self, resource: Resource, amount: u64) -> Self {
        self.0[resource as usize] = amount;
        self
    }

    /// How much of a resource.
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

/// How much there is of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// For all clients together.
    pub all: u64,
    /// For one client.
    pub client: u64,
    /// Share of both, percent, that those have who have proven nothing.
    pub unproven_percent: u64,
}

impl Limit {
    /// There is no limit.
    pub const NONE: Self = Self { all: u64::MAX, client: u64::MAX, unproven_percent: 100 };

    /// `all`, of which one client gets so many percent at most, and those who have proven nothing half.
    pub fn shared(all: u64, percent: u64) -> Self {
        Self { all, client: part(all, percent), unproven_percent: 50 }
    }

    /// What may be booked on an account.
    fn most(&self, account: &Account) -> u64 {
        let percent = if account.unproven { self.unproven_percent } else { 100 };
        let all = part(self.all, percent);
        let client = part(self.client, percent).min(all);
        match account.whose {
            Whose::All => all,
            Whose::Client(_) => client,
            Whose::Around(_, left) => client + (all - client) / left,
        }
    }
}

/// So many percent of it, rounded up.
fn part(all: u64, percent: u64) -> u64 {
    u64::try_from((u128::from(all) * u128::from(percent)).div_ceil(100)).unwrap_or(u64::MAX)
}

/// What a charge is booked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Account {
    whose: Whose,
    /// Whether only what has proven nothing is booked here.
    unproven: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Whose {
    /// One client.
    Client(IpNet),
    /// A network around it: of what a client does not get, it may have this fraction, by its divisor.
    Around(IpNet, u64),
    /// Everybody.
    All,
}

/// The IPv4 address, or the IPv6 network of 64 bits: a host has all addresses of such a network for the
/// asking (RFC 4291 section 2.5.4).
pub fn client_of(address: IpAddr) -> IpNet {
    let address = address.to_canonical();
    network(address, if address.is_ipv4() { 32 } else { 64 })
}

fn network(address: IpAddr, bits: u8) -> IpNet {
    IpNet::new(address, bits).map_or(IpNet::from(address), |network| network.trunc())
}

/// Whose share a charge of `address` is taken from, the smallest share first. A site is given a network
/// of 56 or 48 bits (RFC 6177), and an IPv4 address is rarely alone in its 24.
fn whose(address: IpAddr) -> Vec<Whose> {
    let address = address.to_canonical();
    let around = |bits, left| Whose::Around(network(address, bits), left);
    let mut all = vec![Whose::Client(client_of(address))];
    all.extend(match address {
        IpAddr::V4(_) => vec![around(24, 2)],
        IpAddr::V6(_) => vec![around(56, 4), around(48, 2)],
    });
    all.push(Whose::All);
    all
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

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.whose {
            Whose::Client(_) => f.write_str("one client"),
            Whose::Around(network, _) => write!(f, "the network {network}"),
            Whose::All => f.write_str("all clients together"),
        }
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
    /// With these limits; what is not named has none.
    pub fn new(limits: &[(Resource, Limit)]) -> Self {
        let mut all = [Limit::NONE; Resource::ALL.len()];
        limits.iter().for_each(|(resource, limit)| all[*resource as usize] = *limit);
        Self { limits: all, book: Arc::default() }
    }

    /// The limit of a resource.
    pub fn limit(&self, resource: Resource) -> Limit {
        self.limits[resource as usize]
    }

    /// Charges a client, which may have `proven` that it means it; or says what is lacking.
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
        // An account that nothing is booked on is none.
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
    /// The client has proven that it means it: only its share as one that has is charged from now on.
    pub fn prove(&mut self) {
        self.take_back(|account| account.unproven);
    }

    /// What it is for.
    pub fn amounts(&self) -> Amounts {
        self.amounts
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
