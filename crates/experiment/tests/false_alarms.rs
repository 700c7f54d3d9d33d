//! How often comparisons of an arm with itself claim a difference, and how often real ones do.

use goodput_experiment::conditions::REFERENCE_COPY;
use goodput_experiment::{Design, Step, TimeLeft, WARM_UP, analyse};
use goodput_model::{BitRate, Effect, Judgement, Known, Trial};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

const COMPARISONS: u32 = 1000;

/// 5 % of 1000, and three standard deviations of a binomial count.
const ALLOWED: f64 = 50.0 + 3.0 * 6.9;

/// Runs whose noise has memory: log T(i) = correlation * log T(i-1) + shock, and drifts.
struct Path {
    rng: Xoshiro256PlusPlus,
    shock: fn(&mut Xoshiro256PlusPlus) -> f64,
    correlation: f64,
    drift: f64,
    level: f64,
    runs: u32,
}

impl Path {
    fn new(seed: u64, noise: &Noise) -> Self {
        Self {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            shock: noise.shock,
            correlation: noise.correlation,
            drift: noise.drift,
            level: 0.0,
            runs: 0,
        }
    }

    fn run(&mut self) -> f64 {
        self.runs += 1;
        self.level = self.correlation * self.level + 0.15 * (self.shock)(&mut self.rng);
        1e9 * (self.level + self.drift * f64::from(self.runs)).exp()
    }
}

struct Noise {
    name: &'static str,
    shock: fn(&mut Xoshiro256PlusPlus) -> f64,
    correlation: f64,
    drift: f64,
}

fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}

/// Student's t with 2 degrees of freedom: no finite variance.
fn heavy(rng: &mut Xoshiro256PlusPlus) -> f64 {
    let chi = (0..2).map(|_| normal(rng).powi(2)).sum::<f64>() / 2.0;
    0.3 * normal(rng) / chi.sqrt().max(1e-3)
}

/// A quiet path on which one run in seven loses most of its goodput.
fn outliers(rng: &mut Xoshiro256PlusPlus) -> f64 {
    let quiet = 0.3 * normal(rng);
    if rng.random_bool(0.15) { quiet - 5.0 } else { quiet }
}

/// Two speeds, as when flows hash to one queue or another.
fn two_speeds(rng: &mut Xoshiro256PlusPlus) -> f64 {
    0.1 * normal(rng) + if rng.random_bool(0.5) { 1.0 } else { -1.0 }
}

const NOISES: [Noise; 7] = [
    Noise { name: "normal", shock: normal, correlation: 0.0, drift: 0.0 },
    Noise { name: "correlated", shock: normal, correlation: 0.41, drift: 0.0 },
    Noise { name: "heavy-tailed", shock: heavy, correlation: 0.41, drift: 0.0 },
    Noise { name: "outliers", shock: outliers, correlation: 0.0, drift: 0.0 },
    Noise { name: "two speeds", shock: two_speeds, correlation: 0.9, drift: 0.0 },
    Noise { name: "drifting", shock: normal, correlation: 0.41, drift: 0.05 },
    // As turns within one connection: each has nearly all in common with the one before.
    Noise { name: "turns", shock: heavy, correlation: 0.97, drift: 0.05 },
];

fn trial(block: u32, arm: usize, goodput: f64, warm_up: bool) -> Trial {
    Trial {
        discarded: warm_up.then(|| WARM_UP.into()),
        ..Trial::new(block, arm, Known::Value(BitRate(goodput)))
    }
}

/// The number of a block, and its arms in their order.
type Block = (u32, Vec<usize>);

/// The blocks to run before anything can change, in order, and whether they are the warm-up. `None` at the end.
fn next_blocks(design: &Design, done: &[Trial], left: TimeLeft) -> Option<(Vec<Block>, bool)> {
    match design.next(done, left) {
        Step::RunBlock { block, order, warm_up: true } => Some((vec![(block, order)], true)),
        Step::RunBlock { block, order, .. } => {
            Some((design.up_to_look(done, left, block, &order), false))
        }
        Step::Stop(_) => None,
    }
}

/// Block and arm of each run.
fn runs_of(blocks: Vec<Block>) -> impl Iterator<Item = (u32, usize)> {
    blocks.into_iter().flat_map(|(block, order)| order.into_iter().map(move |arm| (block, arm)))
}

/// The whole sequential procedure over `path`; arm 1 is `factor` times as fast as the others.
/// Returns the judgements of all arms but the baseline, and the runs it took.
fn compare(design: &Design, path: &mut Path, factor: f64, runs: u32) -> (Vec<Judgement>, usize) {
    let mut done: Vec<Trial> = Vec::new();
    let mut left = runs;
    while let Some((blocks, warm_up)) = next_blocks(design, &done, TimeLeft { runs: left }) {
        for (block, arm) in runs_of(blocks) {
            left -= 1;
            let goodput = path.run() * if arm == 1 { factor } else { 1.0 };
            done.push(trial(block, arm, goodput, warm_up));
        }
    }
    let arms = analyse(design, &done);
    let judgement = |effect: &Effect| effect.judgement;
    (arms[1..].iter().filter_map(|arm| arm.goodput.as_ref().map(judgement)).collect(), done.len())
}

fn false_alarms(noise: &Noise, arms: usize, runs: u32) -> u32 {
    let claims = |judgement: &Judgement| matches!(judgement, Judgement::Better | Judgement::Worse);
    let alarm = |seed: u32| {
        let design =
            Design { arms, threshold_percent: 0.0, seed: seed.into(), ..Design::default() };
        let mut path = Path::new(u64::from(seed) << 32, noise);
        compare(&design, &mut path, 1.0, runs).0.iter().any(claims)
    };
    (0..COMPARISONS).map(|seed| u32::from(alarm(seed))).sum()
}

/// Without a threshold, the hardest case: every interval that excludes zero is a false alarm.
#[test]
fn comparing_an_arm_with_itself_rarely_shows_a_difference() {
    for noise in &NOISES {
        let alarms = false_alarms(noise, 2, 200);
        println!("{}: {alarms} of {COMPARISONS}", noise.name);
        assert!(f64::from(alarms) <= ALLOWED, "{}: {alarms}", noise.name);
    }
}

#[test]
fn several_arms_share_the_same_5_percent() {
    let alarms = false_alarms(&NOISES[1], 4, 400);
    assert!(f64::from(alarms) <= ALLOWED, "{alarms}");
}

#[test]
fn running_out_of_time_spends_no_more() {
    let alarms = false_alarms(&NOISES[1], 2, 28);
    assert!(f64::from(alarms) <= ALLOWED, "{alarms}");
}

#[test]
fn a_large_effect_is_found_early_and_equal_arms_on_a_quiet_path_are_called_equal() {
    let quiet = |rng: &mut Xoshiro256PlusPlus| 0.02 * normal(rng);
    let noise = Noise { name: "quiet", shock: quiet, correlation: 0.0, drift: 0.0 };
    for seed in 0..100 {
        let design = Design { seed, ..Design::default() };
        let found = compare(&design, &mut Path::new(seed, &noise), 1.25, 200);
        assert_eq!(found, (vec![Judgement::Better], 2 * 7), "seed {seed}");
        let same = compare(&design, &mut Path::new(seed, &noise), 1.0, 200);
        assert_eq!(same, (vec![Judgement::NoDifference], 2 * 7), "seed {seed}");
    }
}

fn spread(name: &'static str, shock: fn(&mut Xoshiro256PlusPlus) -> f64) -> Noise {
    Noise { name, shock, correlation: 0.0, drift: 0.0 }
}

/// Runs that spread by 3 %.
fn three_percent(rng: &mut Xoshiro256PlusPlus) -> f64 {
    0.03 / 0.15 * normal(rng)
}

/// Of this many comparisons, so that the tests that go through every noise end in time.
const FEWER: u32 = 600;

fn share(factor: f64, noise: &Noise, of: impl Fn(Judgement) -> bool) -> f64 {
    let hit = |seed: u32| {
        let design = Design { seed: seed.into(), ..Design::default() };
        let mut path = Path::new(u64::from(seed) << 32, noise);
        u32::from(compare(&design, &mut path, factor, 200).0.iter().any(|found| of(*found)))
    };
    f64::from((0..FEWER).map(hit).sum::<u32>()) / f64::from(FEWER)
}

#[test]
fn an_arm_compared_with_itself_ends_in_no_difference() {
    let noise = spread("3 %", three_percent);
    let open = share(1.0, &noise, |found| found == Judgement::Inconclusive);
    println!("inconclusive: {open}");
    assert!(open < 0.10, "{open}");
}

#[test]
fn a_true_5_percent_is_found_and_an_effect_that_counts_rarely_denied() {
    let noise = spread("3 %", three_percent);
    let better =
        |found| matches!(found, Judgement::Better | Judgement::BetterPerhapsBelowThreshold);
    let found = share(1.05, &noise, better);
    println!("found: {found}");
    assert!(found > 0.90, "{found}");
    // At the threshold itself, the hardest case.
    for noise in NOISES.iter().chain([&noise]) {
        for factor in [1.03, 0.97] {
            let denied = share(factor, noise, |found| found == Judgement::NoDifference);
            println!("{}, {factor}: denied {denied}", noise.name);
            // 5 % of 600, and three standard deviations of a binomial count.
            assert!(denied <= 0.05 + 3.0 * 0.009, "{}: {denied}", noise.name);
        }
    }
}

/// Arm 1 is decided early and leaves its share of the error to the two others, which are equal.
#[test]
fn a_decided_arm_does_not_make_alarms_at_the_others_more_frequent() {
    let noise = &NOISES[1];
    let alarm = |seed: u32| {
        let design =
            Design { arms: 4, threshold_percent: 0.0, seed: seed.into(), ..Design::default() };
        let mut path = Path::new(u64::from(seed) << 32, noise);
        let found = compare(&design, &mut path, 3.0, 400).0;
        assert_eq!(found[0], Judgement::Better);
        u32::from(found[1..].iter().any(|found| *found != Judgement::Inconclusive))
    };
    let alarms = (0..COMPARISONS).map(alarm).sum::<u32>();
    println!("{alarms} of {COMPARISONS}");
    assert!(f64::from(alarms) <= ALLOWED, "{alarms}");
}

/// A host whose speed wanders, as measured on a CPU-bound path: runs spread by 15 % with a correlation of .4
/// from one to the next. A copy of memory beside the run shows the speed, not exactly.
struct Host {
    path: Path,
    own: Xoshiro256PlusPlus,
    /// Spread of what each run and each copy has for itself.
    own_spread: f64,
}

impl Host {
    fn new(seed: u64, own_spread: f64) -> Self {
        let noise = &NOISES[1];
        Self {
            path: Path::new(seed, noise),
            own: Xoshiro256PlusPlus::seed_from_u64(!seed),
            own_spread,
        }
    }

    /// Goodput, and seconds per GB of the copy.
    fn run(&mut self) -> (f64, f64) {
        let speed = self.path.run();
        let mut own = || (self.own_spread * normal(&mut self.own)).exp();
        (speed * own(), own() * 1e9 / speed)
    }
}

/// One comparison on such a host: what it found, and blocks.
fn compare_beside(design: &Design, host: &mut Host, factor: f64, copies: bool) -> (Judgement, u32) {
    let effect = effect_beside(design, host, factor, copies.then_some(1.0));
    (effect.judgement, effect.n as u32)
}

/// The same, if the arm makes each copy cost `copies` times as much; without copies if there is no such number.
fn effect_beside(design: &Design, host: &mut Host, factor: f64, copies: Option<f64>) -> Effect {
    let mut done: Vec<Trial> = Vec::new();
    while let Some((blocks, warm_up)) = next_blocks(design, &done, TimeLeft { runs: 200 }) {
        for (block, arm) in runs_of(blocks) {
            let (goodput, copy) = host.run();
            let mut trial = trial(block, arm, goodput * [1.0, factor][arm], warm_up);
            if let Some(arms) = copies {
                trial.conditions.insert(REFERENCE_COPY.into(), copy * [1.0, arms][arm]);
            }
            done.push(trial);
        }
    }
    analyse(design, &done)[1].goodput.clone().expect("two blocks at least")
}

#[test]
fn an_arm_that_changes_the_copy_keeps_its_whole_effect() {
    let percents = (0..FEWER).map(|seed| {
        let design = Design { seed: seed.into(), ..Design::default() };
        let mut host = Host::new(u64::from(seed) << 32, 0.03);
        effect_beside(&design, &mut host, 1.15, Some(1.0 / 1.15)).percent
    });
    let mean = percents.sum::<f64>() / f64::from(FEWER);
    println!("{mean}");
    assert!((13.0..17.0).contains(&mean), "{mean}");
}

#[test]
fn the_copy_beside_each_run_makes_no_alarms() {
    // From a copy that says all to one that says nothing.
    for own_spread in [0.02, 0.1, 1.0] {
        let alarm = |seed: u32| {
            let design = Design { threshold_percent: 0.0, seed: seed.into(), ..Design::default() };
            let mut host = Host::new(u64::from(seed) << 32, own_spread);
            u32::from(compare_beside(&design, &mut host, 1.0, true).0 != Judgement::Inconclusive)
        };
        let alarms = (0..COMPARISONS).map(alarm).sum::<u32>();
        println!("{own_spread}: {alarms} of {COMPARISONS}");
        assert!(f64::from(alarms) <= ALLOWED, "{own_spread}: {alarms}");
        let denied = |seed: u32| {
            let design = Design { seed: seed.into(), ..Design::default() };
            let mut host = Host::new(u64::from(seed) << 32, own_spread);
            u32::from(compare_beside(&design, &mut host, 1.03, true).0 == Judgement::NoDifference)
        };
        let denied = (0..FEWER).map(denied).sum::<u32>();
        println!("{own_spread}: denied {denied} of {FEWER}");
        assert!(f64::from(denied) <= f64::from(FEWER) * (0.05 + 3.0 * 0.009), "{denied}");
    }
}

#[test]
fn the_copy_beside_each_run_halves_the_blocks() {
    let with = |copies: bool| {
        let compared = (0..FEWER).map(|seed| {
            let design = Design { seed: seed.into(), ..Design::default() };
            let mut host = Host::new(u64::from(seed) << 32, 0.03);
            let (found, blocks) = compare_beside(&design, &mut host, 1.15, copies);
            (u32::from(found == Judgement::Better), blocks)
        });
        compared.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    };
    let ((found, blocks), (found_without, blocks_without)) = (with(true), with(false));
    let mean = |blocks: u32| f64::from(blocks) / f64::from(FEWER);
    println!("{found} in {}, {found_without} in {}", mean(blocks), mean(blocks_without));
    assert!(2 * blocks <= blocks_without, "{blocks} of {blocks_without}");
    assert!(found > found_without, "{found}, {found_without}");
}

/// Runs of a host that spread by 3 %, beside copies that say nothing of them and spread by half. Those of the baseline
/// cost twice as much, as when it always runs beside something else. The first arm after the baseline is 13 times as fast, and
/// the others are equal to it.
fn beside_useless_copies(arms: usize, blocks: u32, seed: u64, baseline_log: f64) -> Vec<Trial> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let of_block = |block: u32| {
        let run = |arm: usize| {
            let factor = if arm == 1 { 13.0 } else { 1.0 };
            let copy = 0.5 * normal(&mut rng) + if arm == 0 { baseline_log } else { 0.0 };
            let goodput = 1e9 * factor * (0.15 * three_percent(&mut rng)).exp();
            let mut trial = trial(block, arm, goodput, false);
            trial.conditions.insert(REFERENCE_COPY.into(), 0.1 * copy.exp());
            trial
        };
        (0..arms).map(run).collect::<Vec<_>>()
    };
    (1..=blocks).flat_map(of_block).collect()
}

/// The width of an interval, in logarithms.
fn width(effect: &Effect) -> f64 {
    (effect.high_percent / 100.0).ln_1p() - (effect.low_percent / 100.0).ln_1p()
}

/// With ten arms the first look comes with ten blocks, enough to adjust.
#[test]
fn copies_that_say_nothing_make_no_interval_wider() {
    let design = Design { arms: 11, ..Design::default() };
    for baseline_log in [0.0, 0.35, 0.7] {
        let (mut adjusted, mut ratios) = (0, Vec::new());
        for seed in 0..100 {
            let trials = beside_useless_copies(11, 10, seed, baseline_log);
            let mut bare = trials.clone();
            bare.iter_mut().for_each(|trial| trial.conditions.clear());
            let effects = |trials: &[Trial]| {
                let arms = analyse(&design, trials).into_iter().skip(1);
                arms.map(|arm| arm.goodput.expect("ten blocks")).collect::<Vec<_>>()
            };
            let (beside, alone) = (effects(&trials), effects(&bare));
            assert_eq!(beside[0].judgement, Judgement::Better, "{:?}", beside[0]);
            adjusted += beside.iter().filter(|effect| !effect.adjusted_for.is_empty()).count();
            ratios.extend(beside.iter().zip(&alone).map(|(one, other)| width(one) / width(other)));
        }
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        let worst = ratios.iter().copied().fold(0.0, f64::max);
        println!(
            "{baseline_log}: {adjusted} adjusted, width {mean} of that without, at most {worst}"
        );
        assert!(mean < 1.005 && worst < 2.0, "{mean}, {worst}");
    }
}
