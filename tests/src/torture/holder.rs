//! A client that holds things for longer: detached leases and pins.
//!
//! Owns: acquiring, renewing and releasing detached leases, pinning and unpinning, each in the account
//! before it is asked for.

use semaprax_client::Client;
use semaprax_protocol::request::{LeaseAcquire, LeaseRelease, LeaseRenew, Pin, Unpin};
use semaprax_protocol::{Code, LeaseId, Refusal};

use super::account::{Lease, is_unknown};
use super::chance::Chance;
use super::crew::Crew;
use super::lab::{pause, read_tree};
use super::{locked, story};

/// Leases held at once, at most.
const LEASES: usize = 5;
const TTL_MS: u64 = 3_600_000;
const REST: std::time::Duration = std::time::Duration::from_millis(2);

pub(super) fn hold(crew: &Crew<'_>, chance: Chance) {
    let Some(client) = crew.client() else { return };
    let mut holder = Holder {
        crew,
        chance,
        client,
    };
    while !crew.is_over() {
        match holder.act() {
            Ok(()) => {}
            // Content that is asked for by number may be beyond ACTIVE by a hair.
            Err(refusal) if crew.survives("a holder", &refusal) => {}
            Err(_) => return,
        }
        pause(REST, || crew.is_over());
    }
}

struct Holder<'crew> {
    crew: &'crew Crew<'crew>,
    chance: Chance,
    client: Client,
}

impl Holder<'_> {
    fn act(&mut self) -> Result<(), Refusal> {
        let held: Vec<LeaseId> = {
            let account = locked(self.crew.account);
            account.leases.keys().copied().collect()
        };
        match self.chance.below(10) {
            0..4 if held.len() < LEASES => self.acquire(),
            4..6 => self.renew(&held),
            6 => self.pin(),
            7 => self.unpin(),
            _ => self.release(&held),
        }
    }

    fn acquire(&mut self) -> Result<(), Refusal> {
        let revision = match self.chance.below(4) {
            0 => Some("@-1".to_owned()),
            1 => Some("@1".to_owned()),
            _ => None,
        };
        let grant = match self.client.call(LeaseAcquire {
            revision,
            ttl_ms: Some(TTL_MS),
            owner: "holder".to_owned(),
        }) {
            // There is no `@-1` before the second publication, and old content may be let go of.
            Err(refusal)
                if matches!(
                    refusal.code(),
                    Code::UnknownRevision | Code::ContentCollected
                ) =>
            {
                return Ok(());
            }
            other => other?,
        };
        let lease = Lease {
            seq: grant.seq.get(),
            revision: grant.revision,
            path: Some(grant.path.clone()),
            in_doubt: false,
        };
        let mut account = locked(self.crew.account);
        account.leases.insert(grant.lease, lease);
        drop(account);
        let found = read_tree(&grant.path).map_err(|error| error.to_string());
        if let Err(mix) = found.and_then(|files| story::read(&files)) {
            let what = format!("under a detached lease of @{}: {mix}", grant.seq);
            locked(self.crew.account).violate(what);
        }
        Ok(())
    }

    fn renew(&mut self, held: &[LeaseId]) -> Result<(), Refusal> {
        let Some(&lease) = self.chance.pick(held) else {
            return Ok(());
        };
        let renew = LeaseRenew {
            lease,
            ttl_ms: None,
        };
        match self.client.call(renew) {
            Ok(grant) => {
                let mut account = locked(self.crew.account);
                if !grant.path.is_dir() {
                    account.violate(format!("the renewed lease {lease} has no tree"));
                }
                Ok(())
            }
            Err(refusal) if refusal.code() == Code::LeaseUnknown => {
                let mut account = locked(self.crew.account);
                match account.leases.remove(&lease) {
                    Some(held) if !held.in_doubt => {
                        account.violate(format!("the lease {lease} is gone: {held:?}"));
                    }
                    _ => {}
                }
                Ok(())
            }
            Err(refusal) => Err(refusal),
        }
    }

    fn release(&mut self, held: &[LeaseId]) -> Result<(), Refusal> {
        let Some(&lease) = self.chance.pick(held) else {
            return Ok(());
        };
        let was_in_doubt = {
            let mut account = locked(self.crew.account);
            account
                .leases
                .get_mut(&lease)
                .is_some_and(|held| std::mem::replace(&mut held.in_doubt, true))
        };
        match self.client.call(LeaseRelease { lease }) {
            Ok(_) => {}
            // Released before, by a request whose answer was lost; or by this one, which was repeated.
            Err(refusal)
                if refusal.code() == Code::LeaseUnknown && (was_in_doubt || self.crew.restarts) => {
            }
            Err(refusal) => return Err(refusal),
        }
        let mut account = locked(self.crew.account);
        account.leases.remove(&lease);
        account.released.insert(lease);
        Ok(())
    }

    fn pin(&mut self) -> Result<(), Refusal> {
        let seen = {
            let account = locked(self.crew.account);
            account.seen.last().map(|seen| seen.revision)
        };
        let Some(revision) = seen else { return Ok(()) };
        let before = locked(self.crew.account).pins.insert(revision, None);
        let answer = self.client.call(Pin {
            revision: revision.to_string(),
            reason: "held".to_owned(),
        });
        if let Err(refusal) = &answer
            && refusal.code() == Code::ContentCollected
        {
            let mut account = locked(self.crew.account);
            if before == Some(Some(true)) {
                account.violate(format!("the content of the pinned {revision} is gone"));
            }
            account.pins.insert(revision, Some(false));
            return Ok(());
        }
        self.pinned(revision, answer.map(drop), true)
    }

    fn unpin(&mut self) -> Result<(), Refusal> {
        let pinned: Vec<_> = {
            let account = locked(self.crew.account);
            account.pins.keys().copied().collect()
        };
        let Some(&revision) = self.chance.pick(&pinned) else {
            return Ok(());
        };
        locked(self.crew.account).pins.insert(revision, None);
        let answer = self.client.call(Unpin {
            revision: revision.to_string(),
        });
        self.pinned(revision, answer.map(drop), false)
    }

    fn pinned(
        &mut self,
        revision: semaprax_protocol::Revision,
        answer: Result<(), Refusal>,
        now: bool,
    ) -> Result<(), Refusal> {
        match answer {
            Ok(()) => {
                locked(self.crew.account).pins.insert(revision, Some(now));
                Ok(())
            }
            Err(refusal) if is_unknown(refusal.code()) => Err(refusal),
            Err(refusal) => {
                locked(self.crew.account).violate(format!(
                    "{revision} cannot be pinned or unpinned: {refusal}"
                ));
                Ok(())
            }
        }
    }
}
