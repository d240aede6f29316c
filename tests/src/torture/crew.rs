//! Clients at work while the daemon lives.
//!
//! Owns: the threads of a round: writers, readers with a daemon and without, a holder of leases and pins,
//! a collector that never rests. Each ends when the daemon does not answer any more, or goes on with the
//! next daemon, as the round wants it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use semaprax_client::Client;
use semaprax_protocol::request::Collect;
use semaprax_protocol::{Code, Refusal};

use super::account::{Account, is_unknown};
use super::chance::Chance;
use super::deeds::Writer;
use super::lab::{Lab, pause};
use super::readers::Guard;
use super::rounds::Place;
use super::story::WRITERS;
use super::{holder, locked, readers};

/// A pause of the collector, so that the one writer of the daemon has time for others.
const REST: Duration = Duration::from_millis(3);

/// What all share.
#[derive(Debug)]
pub(crate) struct Crew<'lab> {
    pub(super) lab: &'lab Lab,
    pub(super) account: &'lab Mutex<Account>,
    /// Whether clients start the next daemon themselves.
    pub(super) restarts: bool,
    /// Whether content may be collected between two requests.
    pub(super) forgets: bool,
    pub(super) stop: AtomicBool,
    /// Deeds done, so that a round can wait for work.
    pub(crate) done: AtomicU64,
}

impl<'lab> Crew<'lab> {
    pub(crate) fn new(place: &'lab Place, restarts: bool) -> Self {
        let Place {
            lab,
            account,
            forgets,
            ..
        } = place;
        Self {
            forgets: *forgets,
            lab,
            account,
            restarts,
            stop: AtomicBool::new(false),
            done: AtomicU64::new(0),
        }
    }

    /// Puts everybody to work, does `meanwhile`, then lets them end; answers the file leases still held.
    pub(crate) fn work<T>(
        &self,
        chance: &mut Chance,
        meanwhile: impl FnOnce(&Self) -> T,
    ) -> (T, Vec<Guard>) {
        std::thread::scope(|scope| {
            for number in 0..WRITERS {
                let chance = chance.part(number as u64);
                scope.spawn(move || self.write(number, chance));
            }
            scope.spawn(|| readers::with_daemon(self));
            let guards = {
                let chance = chance.part(100);
                scope.spawn(|| readers::without_daemon(self, chance))
            };
            let chance = chance.part(101);
            scope.spawn(|| holder::hold(self, chance));
            scope.spawn(|| self.collect());
            let outcome = meanwhile(self);
            self.stop.store(true, Ordering::Release);
            let guards = guards.join().unwrap_or_default();
            (outcome, guards)
        })
    }

    pub(super) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(super) fn client(&self) -> Option<Client> {
        let client = if self.restarts {
            self.lab.client()
        } else {
            self.lab.modest_client()
        };
        match client {
            Ok(client) => client.daemon().is_some().then_some(client),
            Err(refusal) => {
                self.complain("a client cannot connect", &refusal);
                None
            }
        }
    }

    /// Takes note of a refusal; answers whether the daemon is there still.
    pub(super) fn survives(&self, what: &str, refusal: &Refusal) -> bool {
        if is_unknown(refusal.code()) {
            return self.restarts;
        }
        self.complain(what, refusal);
        true
    }

    /// A refusal that nobody can explain is a violation.
    fn complain(&self, what: &str, refusal: &Refusal) {
        let collected = self.forgets && refusal.code() == Code::ContentCollected;
        let explained = collected || is_unknown(refusal.code());
        if !explained {
            locked(self.account).violate(format!("{what}: {}: {refusal}", refusal.code()));
        }
    }

    fn write(&self, number: usize, chance: Chance) {
        let Some(client) = self.client() else { return };
        let account = self.account;
        let mut writer = Writer {
            number,
            chance,
            client,
            account,
        };
        while !self.is_over() {
            match writer.act() {
                Ok(true) => {
                    self.done.fetch_add(1, Ordering::Relaxed);
                }
                Ok(false) if self.restarts => {}
                Err(refusal) if self.survives("a writer reads", &refusal) => {}
                Ok(false) | Err(_) => return,
            }
        }
    }

    fn collect(&self) {
        let Some(mut client) = self.client() else {
            return;
        };
        while !self.is_over() {
            let before = locked(self.account).leases.clone();
            let asked = client.call(Collect {
                dry_run: false,
                min_age_ms: Some(0),
                keep: Some(1),
            });
            match asked {
                Ok(collection) => {
                    let mut account = locked(self.account);
                    account.counts.collections += 1;
                    account.counts.collected += collection.removed.len() as u64;
                    let held: Vec<_> = before
                        .iter()
                        .filter(|(id, lease)| {
                            !lease.in_doubt && account.leases.get(id) == Some(lease)
                        })
                        .map(|(_, lease)| lease.revision)
                        .collect();
                    for revision in &collection.removed {
                        if held.contains(revision) {
                            account.violate(format!("{revision} was collected under a lease"));
                        }
                    }
                }
                Err(refusal) if refusal.code() == Code::Io => {
                    self.complain("the collector", &refusal);
                }
                Err(refusal) if self.survives("the collector", &refusal) => {}
                Err(_) => return,
            }
            pause(REST, || self.is_over());
        }
    }
}
