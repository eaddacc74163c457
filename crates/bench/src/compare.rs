//! A/B comparison of two binaries: scenarios alternate between them within one run, so that noise of the machine
//! affects both. A number counts as unchanged if the 90 % intervals overlap.

use std::collections::BTreeMap;

use crate::report::{Report, digits, markdown};
use crate::stats::Estimate;

/// The binary of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Old,
    New,
}

/// The turns, in alternating order: the second may find a warmer machine.
pub fn turns(count: usize) -> impl Iterator<Item = Side> {
    (0..count).flat_map(|turn| match turn % 2 {
        0 => [Side::Old, Side::New],
        _ => [Side::New, Side::Old],
    })
}

/// Measured values by scenario and number.
#[derive(Debug, Default)]
pub struct Comparison(BTreeMap<(&'static str, String), [Vec<f64>; 2]>);

impl Comparison {
    /// Adds the values of one turn.
    pub fn take(&mut self, side: Side, report: &mut Report) {
        for measure in report.measures.drain(..) {
            let name = if measure.unit.is_empty() {
                measure.what
            } else {
                format!("{} ({})", measure.what, measure.unit)
            };
            let sides = self.0.entry((measure.scenario, name)).or_default();
            sides[side as usize].push(measure.value.median);
        }
    }

    /// The numbers side by side, and whether their intervals overlap.
    pub fn summary(&self) -> (String, bool) {
        let mut all_overlap = true;
        let mut rows = Vec::new();
        for ((scenario, what), [old, new]) in &self.0 {
            if old.is_empty() || new.is_empty() {
                continue;
            }
            let (old, new) = (Estimate::of(old), Estimate::of(new));
            let overlap = old.low <= new.high && new.low <= old.high;
            all_overlap &= overlap;
            let shown =
                |one: Estimate| format!("{} ({}–{})", digits(one.median), digits(one.low), digits(one.high));
            let verdict = if overlap { "yes" } else { "NO" };
            rows.push(vec![
                (*scenario).to_owned(),
                what.clone(),
                shown(old),
                shown(new),
                digits(new.median / old.median),
                verdict.to_owned(),
            ]);
        }
        let columns =
            ["scenario", "number", "old (90 % interval)", "new (90 % interval)", "new / old", "overlap"];
        (markdown(&columns.map(str::to_owned), &rows), all_overlap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_alternate_in_their_order() {
        let sides: Vec<Side> = turns(2).collect();
        assert_eq!(sides, [Side::Old, Side::New, Side::New, Side::Old]);
    }

    #[test]
    fn intervals_that_lie_apart_are_a_difference() {
        let with = |old: &[f64], new: &[f64]| {
            let sides = [old.to_vec(), new.to_vec()];
            Comparison(BTreeMap::from([(("poll", "µs".to_owned()), sides)])).summary().1
        };
        assert!(with(&[1.0, 1.1, 1.2], &[1.1, 1.2, 1.3]));
        assert!(!with(&[1.0, 1.1, 1.2], &[2.1, 2.2, 2.3]));
    }
}
