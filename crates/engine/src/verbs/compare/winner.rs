//! The arm that won, and how to make its values survive a reboot.

use goodput_model::{ArmResult, Comparison, EndName, Judgement, Permanent, Response, SettingRef};
use goodput_settings::to_keep;

/// The address of the host that stands for an end, if it is changed by SSH.
type Host<'a> = &'a dyn Fn(EndName) -> Option<String>;

/// Adds to the best arm that is better than the baseline how to keep what differs from it. Does nothing
/// if none is better.
pub fn keep_for_good(comparison: &mut Comparison, host: Host<'_>) {
    let Some(base) = comparison.arms.first().map(|arm| arm.values.clone()) else { return };
    if let Some(winner) = winner(&mut comparison.arms) {
        winner.permanent = files(&comparison.settings, &winner.values, &base, host);
    }
}

fn winner(arms: &mut [ArmResult]) -> Option<&mut ArmResult> {
    let primary = arms.first().and_then(|arm| arm.responses.first());
    let response = primary.map_or(Response::Throughput, |result| result.response);
    let sign = if response.more_is_better() { 1.0 } else { -1.0 };
    let gain = |arm: &ArmResult| match arm.primary() {
        Some(effect) if effect.judgement == Judgement::Better => sign * effect.percent,
        _ => f64::NEG_INFINITY,
    };
    let best = arms.iter_mut().max_by(|a, b| gain(a).total_cmp(&gain(b)))?;
    (gain(best) > f64::NEG_INFINITY).then_some(best)
}

fn files(
    settings: &[SettingRef],
    values: &[String],
    base: &[String],
    host: Host<'_>,
) -> Vec<Permanent> {
    let differ = settings.iter().zip(values).zip(base).filter(|((_, now), was)| now != was);
    to_keep(differ.map(|((setting, value), _)| (setting, value.as_str())), host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use goodput_model::Effect;

    fn arm(values: [&str; 2], percent: f64, judgement: Judgement) -> ArmResult {
        let effect = Effect {
            percent,
            low_percent: percent,
            high_percent: percent,
            confidence_percent: 95.0,
            n: 6,
            adjusted_for: Vec::new(),
            judgement,
        };
        ArmResult { n: 6, goodput: Some(effect), ..ArmResult::new(values.map(Into::into).to_vec()) }
    }

    fn compared(arms: Vec<ArmResult>, host: Option<&str>) -> Comparison {
        let settings = ["far:sysctl.net.ipv4.tcp_sack", "far:sysctl.net.ipv4.tcp_ecn"];
        let settings = settings.map(|s| s.parse().unwrap()).to_vec();
        let mut comparison = Comparison::new(settings, arms);
        keep_for_good(&mut comparison, &|_| host.map(Into::into));
        comparison
    }

    #[test]
    fn only_the_best_arm_is_kept_and_only_what_differs() {
        let base = ArmResult { goodput: None, ..arm(["0", "2"], 0.0, Judgement::NoDifference) };
        let better = arm(["1", "2"], 20.0, Judgement::Better);
        let best = arm(["1", "1"], 30.0, Judgement::Better);
        let arms = compared(vec![base.clone(), better.clone(), best.clone()], None).arms;
        assert!(arms[0].permanent.is_empty() && arms[1].permanent.is_empty());
        let file = &arms[2].permanent[0];
        assert_eq!(file.file, "a root shell at the far end");
        let save = "goodput settings set --save sysctl.net.ipv4.";
        assert_eq!(file.lines, format!("{save}tcp_sack=1\n{save}tcp_ecn=1"));
        let by_ssh =
            &compared(vec![base.clone(), better, best], Some("ssh://root@b")).arms[2].permanent[0];
        assert_eq!(by_ssh.file, "a shell here");
        let on = "--on ssh://root@b";
        assert_eq!(by_ssh.lines, format!("{save}tcp_sack=1 {on}\n{save}tcp_ecn=1 {on}"));

        let unsure = arm(["1", "2"], 90.0, Judgement::Inconclusive);
        assert!(compared(vec![base, unsure], None).arms[1].permanent.is_empty());
    }
}
