//! Times, and what is said of them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Times of one kind of work.
#[derive(Debug, Default, Clone)]
pub struct Samples {
    times: Vec<Duration>,
}

impl Samples {
    /// Does the work and keeps how long it took.
    pub fn take<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.times.push(start.elapsed());
        result
    }

    /// Keeps a time.
    pub fn add(&mut self, time: Duration) {
        self.times.push(time);
    }

    /// The newest one; zero when there are none.
    pub fn last(&self) -> Duration {
        self.times.last().copied().unwrap_or_default()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.times.len()
    }

    /// The time that this share of all does not exceed; zero when there are none.
    pub fn quantile(&self, share: f64) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of a small count"
        )]
        let place = ((times.len() as f64 * share).ceil() as usize).max(1) - 1;
        times.get(place).copied().unwrap_or_default()
    }

    /// The middle one.
    pub fn median(&self) -> Duration {
        self.quantile(0.5)
    }

    /// As a document.
    pub fn document(&self) -> Value {
        json!({
            "count": self.count(),
            "medianUs": micros(self.median()),
            "p99Us": micros(self.quantile(0.99)),
        })
    }
}

/// A time in microseconds.
pub fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// How many times `one` is in `other`, to two digits.
pub fn ratio(other: Duration, one: Duration) -> f64 {
    rounded(other.as_secs_f64() / one.as_secs_f64().max(1e-9))
}

/// To two digits.
pub fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_taken() {
        let mut samples = Samples::default();
        assert_eq!(samples.median(), Duration::ZERO);
        for millis in [5, 1, 3, 2, 4] {
            samples.add(Duration::from_millis(millis));
        }
        let check = |share: f64, expect: u64| {
            assert_eq!(samples.quantile(share), Duration::from_millis(expect));
        };
        check(0.5, 3);
        check(0.99, 5);
        check(0.01, 1);
        assert!((ratio(samples.quantile(0.99), samples.median()) - 1.67).abs() < 1e-9);
    }
}
