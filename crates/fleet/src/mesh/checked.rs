//! A mesh that can be tested: what its file means, once all of its names and values fit together.

use std::collections::BTreeMap;
use std::ops::Range;

use goodput_model::{BitRate, Bytes, is_plain, meant};
use toml::Spanned;

use super::by_ssh::SshServer;
use super::error::MeshError;
use super::file::{Directions, File, PairTable, SiteTable, Which};
use super::server::{called, host_of};
use super::values::Window;
use crate::span::span;

/// Most sites: a full mesh of them has two million pairs.
const MAX_SITES: usize = 2000;
/// Longest name, characters: that of a host (RFC 1035, section 2.3.4: 255 octets) fits.
const MAX_NAME_CHARS: usize = 255;

/// What a site that names more than one place is told.
const ONE_PLACE: &str = "a site has a target if it runs an agent, a server if one stands open there, or ssh if agents are to start \
    one; keep one";

/// Sites, and how their pairs are tested.
#[derive(Debug, Clone, PartialEq)]
pub struct Mesh {
    /// The sites, as the file orders them; at least two.
    pub sites: Vec<Site>,
    /// Names of the lines that sites share.
    pub uplinks: Vec<String>,
    /// The pairs that are tested, each once, in the order of their sites in the file; at least one.
    pub pairs: Vec<Pair>,
    /// Whether each end of a pair sends in turn; otherwise the first site sends.
    pub both_directions: bool,
    /// How often the mesh is tested, seconds; absent: once.
    pub every_s: Option<f64>,
    /// Length of one test of one direction, seconds.
    pub length_s: f64,
    /// Time between two tests, seconds.
    pub pause_s: f64,
    /// What all tests may cost in any 24 hours, payload and headers.
    pub budget: Option<Bytes>,
    /// When tests may run, in the order of their beginnings; none: always.
    pub windows: Vec<Window>,
}

/// A site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Its name.
    pub name: String,
    /// What `goodput test` calls it; absent: nobody can call it.
    pub target: Option<String>,
    /// Whether it runs no agent: `target` names a server that stands open, or where one is started by SSH. It can then not
    /// call.
    pub is_foreign: bool,
    /// What is started there, if `target` is reached by SSH.
    pub by_ssh: Option<SshServer>,
    /// The name of its host in records.
    pub host: String,
    /// Index of the line that it shares.
    pub uplink: Option<usize>,
    /// What its tests may cost in any 24 hours.
    pub budget: Option<Bytes>,
}

/// Two sites that are tested.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Indexes of the sites. At least one can be called.
    pub sites: [usize; 2],
    /// Pairs of a higher priority come first.
    pub priority: i32,
    /// Rate that a test is expected to reach on the line, headers included.
    pub rate: Option<BitRate>,
}

impl Site {
    /// Whether it can call another one.
    pub fn can_call(&self, other: &Self) -> bool {
        !self.is_foreign && other.target.is_some()
    }
}

impl Mesh {
    /// Reads the text of a mesh file; `origin` names it in errors.
    ///
    /// # Errors
    /// The line, what it says, and what is allowed there.
    pub fn parse(origin: &str, text: &str) -> Result<Self, MeshError> {
        let file: File = toml::from_str(text)
            .map_err(|error| MeshError::at(origin, text, error.span(), error.message()))?;
        let found = Check { file: &file }.mesh();
        found.map_err(|(span, problem)| MeshError::at(origin, text, span, problem))
    }

    /// Length of one round, seconds: a test in each direction, and the pauses.
    pub fn round_s(&self) -> f64 {
        f64::from(self.directions()) * (self.length_s + self.pause_s)
    }

    /// Whether the site of this name runs no agent.
    pub fn is_foreign(&self, name: &str) -> bool {
        self.sites.iter().any(|site| site.name == name && site.is_foreign)
    }

    /// The numbers of the sender and the receiver of each test, in their order; none if each site sends to each other one.
    pub(crate) fn directed_pairs(&self) -> Option<Vec<[u32; 2]>> {
        let all = self.sites.len() * (self.sites.len() - 1);
        if self.pairs.len() * self.directions() as usize == all {
            return None;
        }
        let ways = |pair: &Pair| {
            let [one, two] = pair.sites.map(|site| site as u32);
            [Some([one, two]), self.both_directions.then_some([two, one])].into_iter().flatten()
        };
        let mut pairs: Vec<_> = self.pairs.iter().flat_map(ways).collect();
        pairs.sort_unstable();
        Some(pairs)
    }

    /// Whether tests from the first of these sites to the second one are part of the mesh.
    pub(crate) fn has_pair(&self, names: [&str; 2]) -> bool {
        let site = |name: &str| self.sites.iter().position(|site| site.name == name);
        let [Some(from), Some(to)] = names.map(site) else { return false };
        let ordered = |mut sites: [usize; 2]| {
            sites.sort_unstable();
            sites
        };
        let found = self
            .pairs
            .binary_search_by_key(&ordered([from, to]), |Pair { sites, .. }| ordered(*sites));
        found.is_ok_and(|pair| self.both_directions || self.pairs[pair].sites == [from, to])
    }

    /// Tests of one pair in a round: one for each direction.
    pub fn directions(&self) -> u32 {
        if self.both_directions { 2 } else { 1 }
    }
}

/// Where something is wrong, and what.
type Problem = (Option<Range<usize>>, String);

/// The file while it is checked.
struct Check<'a> {
    file: &'a File,
}

impl Check<'_> {
    fn mesh(&self) -> Result<Mesh, Problem> {
        let uplinks = self.uplinks()?;
        let sites = self.sites(&uplinks)?;
        let test = &self.file.test;
        let mesh = Mesh {
            pairs: self.pairs(&sites)?,
            sites,
            uplinks,
            both_directions: test.directions == Directions::Both,
            every_s: test.every.map(|every| every.0),
            length_s: test.length.0,
            pause_s: test.pause.0,
            budget: test.budget.as_ref().map(|budget| budget.get_ref().0),
            windows: self.windows()?,
        };
        self.windows_hold_a_round(&mesh)?;
        self.budgets_have_rates(&mesh)?;
        Ok(mesh)
    }

    fn uplinks(&self) -> Result<Vec<String>, Problem> {
        let mut uplinks = Vec::new();
        for name in &self.file.uplinks {
            fits_as_name(name, "an uplink")?;
            if uplinks.contains(name.get_ref()) {
                return Err((Some(name.span()), "this uplink is named twice; name it once".into()));
            }
            uplinks.push(name.get_ref().clone());
        }
        Ok(uplinks)
    }

    fn sites(&self, uplinks: &[String]) -> Result<Vec<Site>, Problem> {
        let tables = &self.file.site.0;
        if !(2..=MAX_SITES).contains(&tables.len()) {
            let sites = match tables.len() {
                1 => "1 site".into(),
                count => format!("{count} sites"),
            };
            let write = "a mesh has 2 to 2000: write a table [site.NAME] for each";
            return Err((None, format!("the file has {sites}, but {write}")));
        }
        let sites: Vec<_> = tables
            .iter()
            .map(|(name, table)| site(name, table, uplinks))
            .collect::<Result<_, _>>()?;
        each_once(tables, &sites)?;
        Ok(sites)
    }

    fn pairs(&self, sites: &[Site]) -> Result<Vec<Pair>, Problem> {
        let named = self.named_pairs(sites)?;
        let rate = self.file.test.rate.map(|rate| rate.0);
        let pairs: Vec<Pair> = match self.file.test.pairs {
            Which::Named if named.is_empty() => {
                let why =
                    "pairs = \"named\" needs at least one [[pair]], like: sites = [\"a\", \"b\"]";
                return Err((None, why.into()));
            }
            Which::Named => named.into_values().collect(),
            Which::All => {
                let second = |first: usize| (first + 1..sites.len()).map(move |two| [first, two]);
                let all = (0..sites.len()).flat_map(second);
                let one_calls =
                    |pair: &[usize; 2]| !pair.iter().all(|site| sites[*site].is_foreign);
                let plain = |sites: [usize; 2]| Pair { sites, priority: 0, rate };
                let found =
                    |sites: [usize; 2]| named.get(&sites).copied().unwrap_or_else(|| plain(sites));
                // Two foreign sites that are named are said below.
                all.filter(|pair| one_calls(pair) || named.contains_key(pair)).map(found).collect()
            }
        };
        if pairs.is_empty() {
            let why =
                "no site runs an agent (all have a server or ssh), so nobody can test the others";
            return Err((None, why.into()));
        }
        let why = pairs.iter().find_map(|pair| neither_calls(pair.sites.map(|site| &sites[site])));
        why.map_or(Ok(pairs), |why| Err((None, why)))
    }

    /// The pairs with a table of their own, by their sites in the order of the file.
    fn named_pairs(&self, sites: &[Site]) -> Result<BTreeMap<[usize; 2], Pair>, Problem> {
        let mut named = BTreeMap::new();
        for table in &self.file.pair {
            let pair = self.named_pair(table, sites)?;
            let mut key = pair.sites;
            key.sort_unstable();
            if named.insert(key, pair).is_some() {
                let why =
                    "this pair has two tables [[pair]], in either order of its sites; keep one";
                return Err((Some(table.sites.span()), why.into()));
            }
        }
        Ok(named)
    }

    fn named_pair(&self, table: &PairTable, sites: &[Site]) -> Result<Pair, Problem> {
        let [one, two] = &table.sites.get_ref()[..] else {
            let why = "a pair has two sites, like: sites = [\"a\", \"b\"]";
            return Err((Some(table.sites.span()), why.into()));
        };
        let index = |name: &Spanned<String>| {
            let found = sites.iter().position(|site| site.name == *name.get_ref());
            let names = || sites.iter().map(|site| site.name.as_str());
            found.ok_or_else(|| (Some(name.span()), unknown("site", name.get_ref(), names)))
        };
        let pair = [index(one)?, index(two)?];
        if pair[0] == pair[1] {
            let why = "a pair needs two different sites";
            return Err((Some(table.sites.span()), why.into()));
        }
        let rate = table.rate.or(self.file.test.rate).map(|rate| rate.0);
        Ok(Pair { sites: pair, priority: table.priority, rate })
    }

    fn windows(&self) -> Result<Vec<Window>, Problem> {
        let typed = &self.file.test.windows;
        for (number, window) in typed.iter().enumerate() {
            let mut before = typed[..number].iter();
            if before.any(|other| other.get_ref().overlaps(*window.get_ref())) {
                let why = "this window overlaps one before it; join them";
                return Err((Some(window.span()), why.into()));
            }
        }
        let mut windows: Vec<_> = typed.iter().map(|window| *window.get_ref()).collect();
        windows.sort_by_key(|window| window.from_min);
        Ok(windows)
    }

    fn windows_hold_a_round(&self, mesh: &Mesh) -> Result<(), Problem> {
        let round_s = mesh.round_s();
        let Some(first) = self.file.test.windows.first() else { return Ok(()) };
        if mesh.windows.iter().any(|window| window.length_s() >= round_s) {
            return Ok(());
        }
        let round = span(round_s);
        let why = format!(
            "no window has room for a round, which takes {round}; make a window longer, or the tests shorter (length)"
        );
        Err((Some(first.span()), why))
    }

    fn budgets_have_rates(&self, mesh: &Mesh) -> Result<(), Problem> {
        if mesh.pairs.iter().all(|pair| pair.rate.is_some()) {
            return Ok(());
        }
        let site = self.file.site.0.iter().find(|(_, table)| table.budget.is_some());
        let of_site = site.map(|(name, _)| name.span());
        let span = self.file.test.budget.as_ref().map(Spanned::span).or(of_site);
        let Some(span) = span else { return Ok(()) };
        let why = "a budget needs to know what a test moves: write [test] rate, like \"1gbit\"";
        Err((Some(span), why.into()))
    }
}

/// Why neither of two sites can call the other, if neither can.
pub(crate) fn neither_calls([one, two]: [&Site; 2]) -> Option<String> {
    if one.can_call(two) || two.can_call(one) {
        return None;
    }
    let [first, second] = [one, two].map(|site| site.name.as_str());
    Some(if one.is_foreign {
        format!(
            "{first} and {second} run no agent (server or ssh), so neither can call the other; leave the pair out, or run an \
             agent at one of them"
        )
    } else {
        format!(
            "{first} and {second} have no target, so neither can call the other; give one of them a target, or leave the \
             pair out (pairs = \"named\")"
        )
    })
}

fn site(name: &Spanned<String>, table: &SiteTable, uplinks: &[String]) -> Result<Site, Problem> {
    fits_as_name(name, "a site")?;
    let uplink = table.uplink.as_ref().map(|wanted| {
        let found = uplinks.iter().position(|uplink| uplink == wanted.get_ref());
        let names = || uplinks.iter().map(String::as_str);
        found.ok_or_else(|| (Some(wanted.span()), unknown("uplink", wanted.get_ref(), names)))
    });
    let (target, by_ssh) = place(table)?;
    let is_foreign = table.server.is_some() || by_ssh.is_some();
    let called = target.as_deref().filter(|_| is_foreign);
    let own = || called.map_or_else(|| name.get_ref().clone(), |target| host_of(target).into());
    Ok(Site {
        name: name.get_ref().clone(),
        host: table.host.as_ref().map_or_else(own, |host| host.0.clone()),
        target,
        is_foreign,
        by_ssh,
        uplink: uplink.transpose()?,
        budget: table.budget.map(|budget| budget.0),
    })
}

/// Refuses a host without an agent that two sites name: it would be in two tests at once, and count as two sites.
fn each_once(tables: &[(Spanned<String>, SiteTable)], sites: &[Site]) -> Result<(), Problem> {
    let mut named = BTreeMap::new();
    for ((name, table), site) in tables.iter().zip(sites) {
        let Some(target) = site.target.as_deref().filter(|_| site.is_foreign) else { continue };
        if let Some(first) = named.insert(called(target), &site.name) {
            let server = table.server.as_ref().map(Spanned::span);
            let span = server.or(table.ssh.as_ref().map(Spanned::span));
            let why = format!(
                "the sites {first} and {} are the same server; keep one of them, or correct its address",
                site.name
            );
            return Err((span.or(Some(name.span())), why));
        }
    }
    Ok(())
}

/// Where a site is called, and what is started there by SSH.
fn place(table: &SiteTable) -> Result<(Option<String>, Option<SshServer>), Problem> {
    let target = table.target.as_ref().map(|target| target.0.clone());
    let server = table.server.as_ref().map(|server| (server.span(), &server.get_ref().0));
    let login = table.ssh.as_ref().map(|login| (login.span(), &login.get_ref().0));
    let (program, port) = (table.program.as_ref(), table.port.as_ref());
    let Some((span, login)) = login else {
        let alone = program.map(Spanned::span).or(port.map(Spanned::span));
        if let Some(span) = alone {
            let why = "program and port are of a server that agents start by SSH; name its host: ssh = \"USER@HOST\"";
            return Err((Some(span), why.into()));
        }
        return match (target, server) {
            (Some(_), Some((span, _))) => Err((Some(span), ONE_PLACE.into())),
            (target, server) => Ok((target.or(server.map(|(_, server)| server.clone())), None)),
        };
    };
    if target.is_some() || server.is_some() {
        return Err((Some(span), ONE_PLACE.into()));
    }
    let program = program.map(|program| program.get_ref().0.clone());
    let port = port.map(|port| port.get_ref().get());
    Ok((Some(login.clone()), Some(SshServer { program, port })))
}

fn fits_as_name(name: &Spanned<String>, noun: &str) -> Result<(), Problem> {
    fits(name.get_ref(), noun).map_err(|why| (Some(name.span()), why))
}

/// Refuses what no mesh file can name a site.
///
/// # Errors
/// A sentence that says how names are.
pub fn check_site_name(name: &str) -> Result<(), String> {
    fits(name, "a site")
}

fn fits(name: &str, noun: &str) -> Result<(), String> {
    let fits = |c: char| is_plain(c) && !c.is_whitespace();
    if (1..=MAX_NAME_CHARS).contains(&name.chars().count()) && name.chars().all(fits) {
        return Ok(());
    }
    Err(format!("the name of {noun} has 1 to {MAX_NAME_CHARS} visible characters and no blanks"))
}

/// An unknown name, what may be meant, and what there is.
fn unknown<'a, N: Iterator<Item = &'a str>>(
    noun: &str,
    name: &str,
    names: impl Fn() -> N,
) -> String {
    /// More names say no more.
    const SHOWN: usize = 8;
    let hint = meant(name, names()).map_or_else(String::new, |meant| format!("; {meant}"));
    let all: Vec<_> = names().take(SHOWN + 1).collect();
    let known = match all.len() {
        0 if noun == "uplink" => "declare it: uplinks = [\"NAME\"] at the top of the file".into(),
        0 => format!("the file has no {noun}"),
        n if n > SHOWN => format!("the file has {}, and others", all[..SHOWN].join(", ")),
        _ => format!("the file has {}", all.join(", ")),
    };
    format!("there is no {noun} {name:?}{hint}; {known}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_that_no_file_can_give_a_site_is_refused_in_words() {
        assert_eq!(check_site_name("site-A.1"), Ok(()));
        for wrong in ["", "x y", "a\n", "a\u{202e}", &"a".repeat(256)] {
            let why = check_site_name(wrong).unwrap_err();
            assert!(why.contains("1 to 255 visible characters"), "{wrong:?}: {why}");
        }
    }

    const WHOLE: &str = r#"
uplinks = ["berlin"]

[test]
every = "6h"
length = "10s"
rate = "1gbit"
budget = "2TB/day"
windows = ["22:00-06:00", "12:00-13:00"]

[site.a]
target = "a.example.net"
uplink = "berlin"

[site.b]
target = "b.example.net:7487"
uplink = "berlin"
budget = "20GB/day"

[site.c]
host = "c-lab"

[[pair]]
sites = ["c", "a"]
priority = 5
rate = "100mbit"
"#;

    fn problem(text: &str) -> String {
        Mesh::parse("mesh.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn a_whole_file_is_read() {
        let mesh = Mesh::parse("mesh.toml", WHOLE).unwrap();
        let names: Vec<_> = mesh.sites.iter().map(|site| site.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(mesh.sites[2].host, "c-lab");
        assert_eq!((mesh.sites[0].uplink, mesh.sites[2].uplink), (Some(0), None));
        let pairs: Vec<_> = mesh.pairs.iter().map(|pair| (pair.sites, pair.priority)).collect();
        assert_eq!(pairs, [([0, 1], 0), ([2, 0], 5), ([1, 2], 0)]);
        assert_eq!(mesh.pairs[1].rate, Some(BitRate(1e8)));
        assert_eq!(mesh.windows[0].from_min, 720, "in the order of the day");
        assert_eq!((mesh.round_s(), mesh.every_s), (24.0, Some(21_600.0)));
    }

    #[test]
    fn errors_have_the_line_the_key_and_what_is_allowed() {
        let with = |from: &str, to: &str| problem(&WHOLE.replace(from, to));
        for (from, to, words) in [
            ("every = \"6h\"", "every = \"often\"", &["line 5", "every", "often", "15m"][..]),
            ("every = \"6h\"", "evry = \"6h\"", &["line 5", "evry", "every", "windows"]),
            ("every = \"6h\"", "every = 6", &["line 5", "every = 6", "string"]),
            ("every = \"6h\"", "pairs = \"some\"", &["line 5", "some", "all", "named"]),
            ("22:00-06:00", "22:00-12:30", &["line 9", "overlaps"]),
            ("uplink = \"berlin\"\nbudget", "uplink = \"berln\"\nbudget", &["line 17", "berlin"]),
            ("[\"c\", \"a\"]", "[\"c\", \"x\"]", &["line 24", "\"x\"", "a, b, c"]),
            ("[\"c\", \"a\"]", "[\"c\", \"c\"]", &["line 24", "two different"]),
            ("[\"c\", \"a\"]", "[\"c\"]", &["line 24", "two sites"]),
            ("[\"c\", \"a\"]", "[\"c\", \"a\", \"b\"]", &["line 24", "two sites"]),
            ("[site.c]", "[site.\"c d\"]", &["line 20", "no blanks"]),
            ("[site.c]", "[site.a]", &["line 20", "duplicate"]),
            ("rate = \"1gbit\"\n", "", &["line 7", "budget", "rate"]),
            ("length = \"10s\"", "length = \"10h\"", &["line 6", "at most 1h", "10s"]),
            ("length = \"10s\"", "length = \"1h\"\npause = \"8h\"", &["line 10", "no window"]),
            ("a.example.net", "a.example.net:0", &["line 12", "target", "1 to 65535", "HOST:PORT"]),
            ("a.example.net", "iperf3://a", &["line 12", "target", "server"]),
            ("\"c-lab\"", "\"\"", &["line 21", "host", "1 to 255"]),
            ("\"100mbit\"", "\"9000000gbit\"", &["line 26", "rate", "100mbit"]),
            ("uplinks = [\"berlin\"]", "", &["uplinks = "]),
            ("target = \"a.example.net\"", "", &["c and a", "target"]),
        ] {
            let why = with(from, to);
            assert!(why.starts_with("mesh.toml"), "{why}");
            words.iter().for_each(|word| assert!(why.contains(word), "{word:?} in {why}"));
        }
        assert!(problem("").contains("0 sites"));
        let twice = format!("{WHOLE}[[pair]]\nsites = [\"a\", \"c\"]\n");
        assert!(problem(&twice).contains("line 28"), "{}", problem(&twice));
    }

    #[test]
    fn a_site_without_goodput_is_only_called_and_two_of_them_are_no_pair() {
        let three = "[site.a]\n[site.x]\nserver = \"iperf3://x.example:7\"\n[site.y]\nserver = \"nuttcp://y\"\n";
        let mesh = Mesh::parse("x", three).unwrap();
        let pairs: Vec<_> = mesh.pairs.iter().map(|pair| pair.sites).collect();
        assert_eq!(pairs, [[0, 1], [0, 2]]);
        let [a, x, _] = &mesh.sites[..] else { panic!("{mesh:?}") };
        assert_eq!((x.target.as_deref(), &*x.host), (Some("iperf3://x.example:7"), "x.example"));
        assert!(a.can_call(x) && !x.can_call(a));
        assert!(mesh.is_foreign("x") && !mesh.is_foreign("a"));
        for (more, words) in [
            ("[[pair]]\nsites = [\"y\", \"x\"]", &["y and x run no agent", "agent"][..]),
            ("target = \"y\"", &["line 5", "keep one"]),
            ("ssh = \"y\"", &["line 6", "keep one"]),
            ("port = 7", &["line 6", "by SSH", "ssh = "]),
            ("[site.z]\nssh = \"-oProxyCommand=x\"", &["line 7", "ssh", "plain name"]),
            ("[site.z]\nssh = \"z\"\nprogram = \"nc\"", &["line 8", "nc", "goodput or iperf3"]),
            ("[site.z]\nssh = \"z\"\nport = 0", &["line 8", "port"]),
            (
                "[site.z]\nserver = \"iperf3://z:99999\"",
                &["line 7", "server", "99999", "1 to 65535"],
            ),
            ("[site.z]\nserver = \"iperf2://z\"", &["line 7", "iperf2://z", "nuttcp://HOST:PORT"]),
            (
                "[site.z]\nserver = \"iperf3://X.example:7\"",
                &["line 7", "x and z are the same server"],
            ),
            ("[site.b]", &["a and b have no target"]),
        ] {
            let why = problem(&format!("{three}{more}"));
            words.iter().for_each(|word| assert!(why.contains(word), "{word:?} in {why}"));
        }
        let foreign = three.replace("[site.a]\n", "");
        assert!(problem(&foreign).contains("no site runs an agent"), "{}", problem(&foreign));
    }

    #[test]
    fn a_site_by_ssh_is_only_called_and_says_what_is_started_there() {
        let text = "[site.a]\n[site.x]\nssh = \"me@x.example:2222\"\nprogram = \"iperf3\"\nport = 5201\n[site.y]\nssh = \"y\"\n";
        let mesh = Mesh::parse("x", text).unwrap();
        let pairs: Vec<_> = mesh.pairs.iter().map(|pair| pair.sites).collect();
        assert_eq!(pairs, [[0, 1], [0, 2]]);
        let [a, x, y] = &mesh.sites[..] else { panic!("{mesh:?}") };
        assert_eq!((x.target.as_deref(), &*x.host), (Some("ssh://me@x.example:2222"), "x.example"));
        let iperf3 = SshServer { program: Some("iperf3".into()), port: Some(5201) };
        assert_eq!(
            (x.by_ssh.as_ref(), y.by_ssh.as_ref()),
            (Some(&iperf3), Some(&SshServer::default()))
        );
        assert!(a.can_call(x) && !x.can_call(a) && a.by_ssh.is_none());
    }

    #[test]
    fn little_is_needed() {
        let mesh = Mesh::parse("x", "[site.a]\ntarget = \"a\"\n[site.b]\n").unwrap();
        assert_eq!((mesh.pairs.len(), mesh.every_s, mesh.windows.len()), (1, None, 0));
    }

    proptest! {
        #[test]
        fn any_text_is_a_mesh_or_an_error(text in "(\\PC|\n){0,200}") {
            let _ = Mesh::parse("x", &text);
        }

        #[test]
        fn a_file_cut_short_is_no_panic(cut in 0..WHOLE.len()) {
            let _ = Mesh::parse("x", &WHOLE[..cut]);
        }
    }
}
