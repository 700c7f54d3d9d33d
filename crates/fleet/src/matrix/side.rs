//! One side of the two-way model: what the paths from a site, or those to it, have in common.

use std::f64::consts::PI;

use goodput_model::median;

/// A site's effect needs as many cells: among three, the median survives one path that is slow alone.
pub(super) const MIN_CELLS: usize = 3;

/// The sites on one side of the model.
pub(super) struct Side {
    /// Where the values of each site begin in its `order`, and where the last ones end.
    begins: Vec<usize>,
    /// The values of all sites, one site after the other; absent: they stand so already.
    order: Option<Vec<u32>>,
    /// The effect of each site, as a logarithm; 0 if it can't be known.
    pub effects: Vec<f64>,
}

impl Side {
    /// `of` has the site of each value, which rise.
    pub fn in_order(sites: usize, of: impl Iterator<Item = usize>) -> Self {
        let mut begins = vec![0; sites + 1];
        of.for_each(|site| begins[site + 1] += 1);
        (1..=sites).for_each(|site| begins[site] += begins[site - 1]);
        Self { begins, order: None, effects: vec![0.0; sites] }
    }

    /// `of` has the site of each value.
    pub fn new(sites: usize, of: impl Iterator<Item = usize> + Clone) -> Self {
        let side = Self::in_order(sites, of.clone());
        let mut next = side.begins.clone();
        let mut order = vec![0; side.begins[sites]];
        for (value, site) in of.enumerate() {
            // A mesh has far fewer than 2^32.
            order[next[site]] = value as u32;
            next[site] += 1;
        }
        Self { order: Some(order), ..side }
    }

    /// How many values a site has.
    pub fn count(&self, site: usize) -> usize {
        self.begins[site + 1] - self.begins[site]
    }

    /// The values of a site.
    fn values(&self, site: usize) -> impl Iterator<Item = usize> + Clone {
        let value = move |at: usize| self.order.as_ref().map_or(at, |order| order[at] as usize);
        (self.begins[site]..self.begins[site + 1]).map(value)
    }

    pub fn is_judged(&self, site: usize) -> bool {
        self.count(site) >= MIN_CELLS
    }

    /// The sites whose effect can be known.
    fn judged(&self) -> impl Iterator<Item = usize> {
        (0..self.effects.len()).filter(|site| self.is_judged(*site))
    }

    pub fn known(&self) -> usize {
        self.judged().count()
    }

    /// Moves each site's median from what is left to its effect, and the median effect to `typical`. Returns the largest
    /// move.
    pub fn polish(&mut self, left: &mut [f64], typical: &mut f64) -> f64 {
        let mut most: f64 = 0.0;
        let judged: Vec<usize> = self.judged().collect();
        for site in &judged {
            let moved = median(self.values(*site).map(|value| left[value])).unwrap_or_default();
            self.values(*site).for_each(|value| left[value] -= moved);
            self.effects[*site] += moved;
            most = most.max(moved.abs());
        }
        let common = median(judged.iter().map(|site| self.effects[*site])).unwrap_or_default();
        for site in judged {
            self.effects[site] -= common;
        }
        // A site without an effect of its own has all of its difference left.
        for site in (0..self.effects.len()).filter(|site| !self.is_judged(*site)) {
            self.values(site).for_each(|value| left[value] -= common);
        }
        *typical += common;
        most
    }

    /// Variance of a site's effect, in squares of the scale: that of a median, PI/2 times that of a mean.
    pub fn variance(&self, site: usize) -> f64 {
        if self.is_judged(site) { PI / 2.0 / self.count(site) as f64 } else { 0.0 }
    }
}
