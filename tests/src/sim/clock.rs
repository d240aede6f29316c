//! Time and chance of a simulated machine.
//!
//! Owns: the two clocks, the boot id, the identifiers. Nothing here depends on the machine.

use std::time::Duration;

use semaprax_daemon::world::{Clock, Entropy};
use semaprax_protocol::Timestamp;

use super::disk::Sim;

/// 2030-01-01T00:00:00Z.
const START_NANOS: i64 = 1_893_456_000_000_000_000;
/// What goes by with each look at the wall clock.
const TICK: Duration = Duration::from_millis(1);

/// The time of a machine.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    wall: i64,
    since_boot: Duration,
    boot: u64,
    tells_boot: bool,
    identifiers: u64,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            wall: START_NANOS,
            since_boot: Duration::from_secs(1000),
            boot: 1,
            tells_boot: true,
            identifiers: 0,
        }
    }
}

impl Times {
    /// A machine that does not tell which boot this is.
    pub fn without_boot_id() -> Self {
        Self {
            tells_boot: false,
            ..Self::default()
        }
    }

    /// Time goes by.
    pub fn advance(&mut self, time: Duration) {
        self.wall += i64::try_from(time.as_nanos()).unwrap();
        self.since_boot += time;
    }

    /// The machine starts again a minute later.
    pub fn reboot(&mut self) {
        self.advance(Duration::from_mins(1));
        self.since_boot = Duration::from_secs(10);
        self.boot += 1;
    }

    /// The wall clock.
    pub fn wall(&self) -> i64 {
        self.wall
    }
}

impl Clock for Sim {
    fn now(&self) -> Timestamp {
        // Between two looks at the clock there may be a transaction and nothing else.
        self.note_database();
        self.times(|times| {
            times.advance(TICK);
            Timestamp::from_nanos(times.wall)
        })
    }

    fn since_boot(&self) -> Duration {
        self.times(|times| times.since_boot)
    }

    fn pause(&self, time: Duration) {
        self.times(|times| times.advance(time));
    }

    fn boot_id(&self) -> Option<String> {
        self.times(|times| times.tells_boot.then(|| format!("boot-{}", times.boot)))
    }
}

impl Entropy for Sim {
    fn uuid(&self) -> uuid::Uuid {
        self.times(|times| {
            times.identifiers += 1;
            uuid::Uuid::from_u128(0x7000_8000_0000_0000_0000 << 48 | u128::from(times.identifiers))
        })
    }
}
