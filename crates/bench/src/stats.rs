//! Statistics: medians with 90 % bootstrap intervals, and least-squares slopes.

use serde::Serialize;

use crate::random::Random;

/// Number of bootstrap resamples.
const RESAMPLES: usize = 2_000;

/// A median with its 90 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Median of the rounds.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// Estimates by the bootstrap: resamples the rounds with replacement. Assumes no distribution.
    pub fn of(rounds: &[f64]) -> Self {
        let mut random = Random::new(1);
        let mut medians: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let drawn: Vec<f64> = rounds.iter().map(|_| rounds[random.below(rounds.len())]).collect();
                median(&drawn)
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        let at = |part: f64| medians[(part * (RESAMPLES - 1) as f64) as usize];
        Self { median: median(rounds), low: at(0.05), high: at(0.95) }
    }
}

/// Median; the mean of the middle two for an even number, 0 for none.
pub fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Slope of the least-squares line through the points.
pub fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let (sum_x, sum_y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (middle_x, middle_y) = (sum_x / count, sum_y / count);
    let rise: f64 = points.iter().map(|(x, y)| (x - middle_x) * (y - middle_y)).sum();
    let run: f64 = points.iter().map(|(x, _)| (x - middle_x).powi(2)).sum();
    rise / run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_and_its_interval() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        let one = Estimate::of(&[5.0]);
        assert_eq!((one.low, one.median, one.high), (5.0, 5.0, 5.0));
        let some = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
        assert_eq!(some.median, 5.5);
        assert!(some.low >= 2.0 && some.low < 5.0 && some.high > 6.0 && some.high <= 9.0, "{some:?}");
    }

    #[test]
    fn the_line_through_points() {
        assert_eq!(slope(&[(0.0, 7.0), (1.0, 9.0), (2.0, 11.0)]), 2.0);
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 0.0), (2.0, 1.0)]), 0.0);
    }
}
