//! What single kinds of work would allow on this host, how near the goodput comes to that, and where the CPU time of
//! this end's threads went.

use goodput_model::{
    BitRate, CpuGroup, CpuProfile, CpuShare, HostLimits, HostWork, Known, ProfileClock,
};

/// Groups that the line about the rest names at most.
const MAX_REST: usize = 3;
/// Functions that are shown of each group, and how many for experts. One fits into a line of 80 characters.
const FUNCTIONS: usize = 1;
const ALL_FUNCTIONS: usize = 8;
/// Width of the name of a kind of work, or of a group.
const NAME_CHARS: usize = 23;

/// Labels and their lines, for a test that reached `goodput`.
pub fn lines(
    limits: &HostLimits,
    goodput: BitRate,
    verbose: bool,
) -> Vec<(&'static str, Vec<String>)> {
    let works = [HostWork::Copying, HostWork::PageReferences, HostWork::EmptyCalls];
    let mut host = vec!["one CPU could carry, if it did only one kind of work:".to_string()];
    host.extend(works.iter().map(|work| of_work(limits, *work)));
    host.push(compared(limits, goodput));
    host.extend(limits.profile.value().and_then(|profile| rest(limits, profile)));
    let cpu = match &limits.profile {
        Known::Value(profile) => of_profile(profile, verbose),
        Known::Missing(why) => vec![format!("unknown: {why}")],
    };
    vec![("host limits", host), ("cpu time", cpu)]
}

fn of_work(limits: &HostLimits, work: HostWork) -> String {
    let name = work.name();
    match limits.of(work) {
        Known::Value(limit) => {
            let piece = limit.piece_bytes;
            format!("{name:NAME_CHARS$} {}, {piece} at a time", limit.bits_per_s)
        }
        Known::Missing(why) => format!("{name:NAME_CHARS$} unknown: {why}"),
    }
}

fn compared(limits: &HostLimits, goodput: BitRate) -> String {
    match (limits.bound(), limits.bounded_by.value()) {
        (Ok(bound), Some(work)) if bound.0 > 0.0 => {
            let percent = goodput.0 / bound.0 * 100.0;
            let cpus = match limits.cpus {
                1 => "one CPU".into(),
                several => format!("{several} CPUs"),
            };
            let digits = if percent < 1.0 { 2 } else { 0 };
            format!(
                "{goodput} is {percent:.digits$} % of what {} alone would allow on {cpus} of this host",
                work.name()
            )
        }
        (Err(why), _) => format!("no comparison: {why}"),
        _ => "no comparison".into(),
    }
}

/// The groups of the profile beside that of the bounding work.
fn rest(limits: &HostLimits, profile: &CpuProfile) -> Option<String> {
    let own = limits.bounded_by.value()?.group();
    if profile.unnamed.is_some() {
        return None;
    }
    let others = profile.groups.iter().filter(|share| share.group != own).take(MAX_REST);
    let others: Vec<_> = others.map(named_share).collect();
    (!others.is_empty())
        .then(|| format!("most of the rest of the CPU time is in {}", others.join(", ")))
}

fn named_share(share: &CpuShare) -> String {
    format!("{} ({:.0} %)", share.group.name(), share.percent)
}

fn of_profile(profile: &CpuProfile, verbose: bool) -> Vec<String> {
    let most = if verbose { ALL_FUNCTIONS } else { FUNCTIONS };
    let mut lines: Vec<_> = profile.groups.iter().map(|share| of_group(share, most)).collect();
    lines.push(basis(profile));
    if let Some(why) = &profile.unnamed {
        lines.push(format!("the kernel's functions have no names: {why}"));
    }
    lines
}

fn of_group(share: &CpuShare, most: usize) -> String {
    let name = share.group.name();
    let functions = share.functions.iter().take(most);
    let functions: Vec<_> =
        functions.map(|one| format!("{} {:.1} %", one.name, one.percent)).collect();
    let shown = if share.group == CpuGroup::Program { String::new() } else { functions.join(", ") };
    let line = format!("{name:NAME_CHARS$} {:4.1} %  {shown}", share.percent);
    line.trim_end().into()
}

/// What the shares are made of.
fn basis(profile: &CpuProfile) -> String {
    let clock = match profile.clock {
        ProfileClock::Cycles => "cycles",
        ProfileClock::CpuClock => "a timer",
    };
    let mut text =
        format!("{} samples of {} threads, by {clock}", profile.samples, profile.threads);
    if profile.unsampled_threads > 0 {
        text += &format!(", {} threads not sampled", profile.unsampled_threads);
    }
    if profile.lost_samples > 0 {
        text += &format!(", {} samples lost", profile.lost_samples);
    }
    text
}

#[cfg(test)]
mod tests {
    use goodput_model::{Bytes, FunctionShare, Missing, WorkLimit};

    use super::*;

    fn limits() -> HostLimits {
        let limit = |ns| {
            WorkLimit::of(Bytes(128 << 10), ns).map_or_else(|| Known::missing("x"), Known::Value)
        };
        let share = |group, percent, names: &[&str]| CpuShare {
            group,
            percent,
            functions: names
                .iter()
                .map(|name| FunctionShare { name: (*name).into(), percent: percent / 2.0 })
                .collect(),
        };
        HostLimits {
            copying: limit(21_845.0),
            page_references: limit(1000.0),
            empty_calls: Known::missing("no clock"),
            bounded_by: Known::Value(HostWork::Copying),
            cpus: 1,
            profile: Known::Value(CpuProfile {
                clock: ProfileClock::CpuClock,
                samples_per_s: 499,
                samples: 2000,
                lost_samples: 3,
                threads: 4,
                unsampled_threads: 0,
                unnamed: None,
                groups: vec![
                    share(CpuGroup::Copying, 60.0, &["rep_movs_alternative"]),
                    share(CpuGroup::Stack, 30.0, &["tcp_sendmsg_locked", "tcp_ack", "tcp_push"]),
                    share(CpuGroup::Program, 10.0, &[]),
                ],
            }),
        }
    }

    fn shown(limits: &HostLimits, verbose: bool) -> String {
        let lines = lines(limits, BitRate(34.2e9), verbose);
        lines.into_iter().flat_map(|(_, lines)| lines).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_goodput_is_compared_with_what_bounds_it() {
        let text = shown(&limits(), false);
        let sentence =
            "34.2 Gbit/s is 71 % of what copying alone would allow on one CPU of this host";
        assert!(text.contains(sentence), "{text}");
        assert!(text.contains("is in TCP/IP stack (30 %), goodput itself (10 %)"), "{text}");
        assert!(text.contains("unknown: no clock"), "{text}");
        assert!(text.contains("2000 samples of 4 threads, by a timer, 3 samples lost"), "{text}");
        let two = HostLimits { cpus: 2, ..limits() };
        assert!(shown(&two, false).contains(" 36 % of what copying alone would allow on 2 CPUs"));
    }

    #[test]
    fn experts_see_more_functions() {
        assert!(!shown(&limits(), false).contains("tcp_push"));
        assert!(shown(&limits(), true).contains("tcp_ack 15.0 %, tcp_push 15.0 %"));
    }

    #[test]
    fn what_is_missing_has_its_reason_and_no_number() {
        let mut none = limits();
        none.bounded_by = Known::missing("no mover");
        none.profile = Known::missing("not permitted");
        let text = shown(&none, false);
        assert!(text.contains("no comparison: no mover") && !text.contains(" is 71 %"), "{text}");
        assert!(text.ends_with("unknown: not permitted"), "{text}");
        let mut unnamed = limits();
        if let Known::Value(profile) = &mut unnamed.profile {
            profile.unnamed = Some(Missing::because("hidden"));
        }
        let text = shown(&unnamed, false);
        assert!(text.contains("no names: hidden") && !text.contains("the rest"), "{text}");
    }
}
