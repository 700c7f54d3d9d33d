//! Simulated meshes of twelve sites: planted senders, receivers and paths are named, and little else.
//!
//! Each mesh has up to 15 % of its cells without tests, sites and paths that differ by a few percent, 1 to 28 tests of
//! each cell in a week (at least 3 of a planted path: fewer can't be told from bad tests), noise of 2 to 8 % (normal, or
//! with heavy tails), and one bad test in fifty.

use goodput_fleet::{Cause, Matrix, Observation, Part, Question, matrix};
use goodput_model::{BitRate, Known};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

const SITES: usize = 12;
const MESHES: u64 = 100;
/// Goodput of a healthy path, bits per second.
const RATE: f64 = 9.4e8;

/// What was planted: what a sender, a receiver and a path let through, as shares of the rate.
struct Planted {
    sender: (usize, f64),
    receiver: (usize, f64),
    path: ([usize; 2], f64),
}

struct Mesh {
    random: Xoshiro256PlusPlus,
    noise: f64,
    heavy: bool,
    sides: [Vec<f64>; 2],
    planted: Option<Planted>,
}

impl Mesh {
    fn new(seed: u64, faulty: bool) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let noise = 0.02 + 0.06 * random.random::<f64>();
        let mut mesh =
            Self { random, noise, heavy: seed % 2 == 1, sides: [vec![], vec![]], planted: None };
        mesh.sides = [0, 1].map(|_| (0..SITES).map(|_| 0.02 * mesh.normal()).collect());
        mesh.planted = faulty.then(|| mesh.plant());
        mesh
    }

    /// A normal variable, by the central limit theorem.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.random.random::<f64>()).sum::<f64>() - 6.0
    }

    fn plant(&mut self) -> Planted {
        let mut sites: Vec<usize> = (0..SITES).collect();
        let mut draw = || sites.swap_remove(self.random.random_range(0..sites.len()));
        // A path behind a slow site is no slower than the site: that could not be seen.
        let [sender, receiver, from, to] = [draw(), draw(), draw(), draw()];
        let mut share = || 0.2 + 0.5 * self.random.random::<f64>();
        let [one, two, three] = [share(), share(), share()];
        Planted { sender: (sender, one), receiver: (receiver, two), path: ([from, to], three) }
    }

    /// What a path lets through on average, as a share of the rate: its narrowest part.
    fn share(&self, from: usize, to: usize) -> f64 {
        let Some(planted) = &self.planted else { return 1.0 };
        let parts = [
            (planted.sender.0 == from, planted.sender.1),
            (planted.receiver.0 == to, planted.receiver.1),
            (planted.path.0 == [from, to], planted.path.1),
        ];
        parts.into_iter().filter(|(here, _)| *here).map(|(_, share)| share).fold(1.0, f64::min)
    }

    fn noise(&mut self) -> f64 {
        let bad = if self.random.random_bool(0.02) { -0.5 } else { 0.0 };
        let normal = self.noise * self.normal();
        if !self.heavy {
            return normal + bad;
        }
        // Student's t with three degrees of freedom, whose variance is 3.
        let square: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
        normal / (square / 3.0).sqrt() / 3.0_f64.sqrt() + bad
    }

    fn tests(&mut self) -> Vec<Observation> {
        let missing = 0.15 * self.random.random::<f64>();
        let mut all = Vec::new();
        for (from, to) in (0..SITES).flat_map(|from| (0..SITES).map(move |to| (from, to))) {
            let path = 0.03 * self.normal() + self.sides[0][from] + self.sides[1][to];
            let planted = self.planted.as_ref().is_some_and(|p| p.path.0 == [from, to]);
            if from == to || (!planted && self.random.random_bool(missing)) {
                continue;
            }
            let mean = (RATE * self.share(from, to)).ln() + path;
            let fewest = if planted { 3 } else { 1 };
            for _ in 0..self.random.random_range(fewest..=28) {
                let at_s = 6.0 * 86_400.0 * self.random.random::<f64>();
                let goodput = BitRate((mean + self.noise()).exp());
                all.push(Observation {
                    record: all.len() as i64,
                    sender: format!("s{from}"),
                    receiver: format!("s{to}"),
                    at_s,
                    goodput,
                    rtt_us: Known::missing("not simulated"),
                    limit: "none".into(),
                    limit_at: Part::Path,
                    share_of_limit: None,
                    is_partial: false,
                });
            }
        }
        all
    }

    fn matrix(&mut self) -> Matrix {
        let sites = (0..SITES).map(|n| format!("s{n}")).collect();
        matrix(sites, &self.tests(), Question { now_s: 7.0 * 86_400.0, slow_percent: 10.0 })
    }
}

/// The causes that were named, in one form.
fn named(matrix: &Matrix) -> Vec<(Part, Option<String>, Option<String>)> {
    let causes = &matrix.explanation.get().expect("there are twelve sites").causes;
    let form = |cause: &Cause| (cause.part, cause.sender.clone(), cause.receiver.clone());
    causes.iter().map(form).collect()
}

fn expected(planted: &Planted) -> [(Part, Option<String>, Option<String>); 3] {
    let name = |site: usize| Some(format!("s{site}"));
    let [from, to] = planted.path.0;
    [
        (Part::Sender, name(planted.sender.0), None),
        (Part::Receiver, None, name(planted.receiver.0)),
        (Part::Path, name(from), name(to)),
    ]
}

#[test]
fn planted_faults_are_named() {
    let (mut found, mut wrong, mut alone) = ([0; 3], 0, 0);
    for seed in 0..MESHES {
        let mut mesh = Mesh::new(seed, true);
        let named = named(&mesh.matrix());
        let expected = expected(mesh.planted.as_ref().expect("it was planted"));
        let hits = expected.clone().map(|cause| usize::from(named.contains(&cause)));
        (0..3).for_each(|part| found[part] += hits[part]);
        let others = named.iter().filter(|cause| !expected.contains(cause)).count();
        wrong += usize::from(others > 0);
        alone += usize::from(hits == [1, 1, 1] && others == 0);
    }
    println!("of {MESHES} each: senders, receivers, paths {found:?}");
    println!("{alone} meshes with all three and nothing else, {wrong} with something else");
    assert!(found.iter().all(|found| *found >= 95), "{found:?}");
    assert!(wrong <= 5, "{wrong} meshes with a wrong cause");
}

#[test]
fn healthy_meshes_have_no_cause() {
    let alarms =
        (0..MESHES).filter(|seed| !named(&Mesh::new(1000 + seed, false).matrix()).is_empty());
    let alarms = alarms.count();
    println!("{alarms} of {MESHES} healthy meshes with a cause");
    assert!(alarms <= 5, "{alarms}");
}
