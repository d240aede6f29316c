//! Keeping spare trees, away from the writer: looking through them, bringing them up to date, making new
//! ones while the writer has nothing to do.
//!
//! Owns: a thread for it. Where there is none, the idle writer does the same. Never: touches what is not
//! a spare.
//!
//! Keeps invariants 5 and 7: a spare is used only after it was looked through.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::STACK_BYTES;
use crate::store::database::{Database, ReadMode};
use crate::store::spares::{Chore, Pool, Spare, build, refresh};
use crate::store::{Layout, Store, StoreResult, own};
use crate::world::World;

/// The thread. Dropping it ends it; what lies in `staging/` is cleared by the next opening.
#[derive(Debug)]
pub(super) struct Keeper {
    pool: Arc<Pool>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(super) fn start(world: World, layout: Layout, pool: Arc<Pool>) -> io::Result<Self> {
        pool.set_kept();
        let shared = Arc::clone(&pool);
        let thread = std::thread::Builder::new()
            .name("keeper".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || run(&world, &layout, &shared));
        if thread.is_err() {
            pool.close();
        }
        Ok(Self {
            pool,
            thread: Some(thread?),
        })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.pool.close();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("keeping spare trees panicked");
        }
    }
}

fn run(world: &World, layout: &Layout, pool: &Pool) {
    let mut store = None;
    while let Some((chore, epoch)) = pool.next_chore() {
        if store.is_none() {
            store = open(world, layout)
                .inspect_err(|error| tracing::warn!(%error, "no spare trees are kept"))
                .ok();
        }
        let Some(store) = &store else {
            // Without it nothing can be made sure of: everybody makes trees anew.
            pool.close();
            return;
        };
        let pace = || {
            while !pool.is_undisturbed() {
                match pool.unwalked() {
                    Some((chore, epoch)) => finish(store, pool, chore, epoch, None),
                    None if !pool.pause() => return false,
                    None => {}
                }
            }
            !pool.is_closing()
        };
        finish(store, pool, chore, epoch, Some(&pace));
    }
}

fn open(world: &World, layout: &Layout) -> StoreResult<Store> {
    own::check(world, layout)?;
    Ok(Store {
        world: world.clone(),
        layout: layout.clone(),
        database: Database::open_reader(&layout.database(), ReadMode::Shared)?,
    })
}

/// Does everything that is to be done, on this thread.
pub(super) fn keep(store: &Store, pool: &Pool) {
    while let Some((chore, epoch)) = pool.chore() {
        finish(store, pool, chore, epoch, None);
    }
}

fn finish(store: &Store, pool: &Pool, chore: Chore, epoch: u64, pace: Option<&dyn Fn() -> bool>) {
    // Whatever happens, the writer must not wait in vain.
    let late = match chore {
        Chore::Refresh(spare, current, walked) => {
            let work = || refresh(store, *spare, &current, walked.is_none());
            pool.walked(caught(work), epoch, walked)
        }
        Chore::Build(current) => {
            let work = || {
                build(store, &current, pace)
                    .inspect_err(|error| tracing::info!(%error, "no spare tree was made"))
                    .ok()
            };
            pool.built(caught(work), epoch)
        }
    };
    if let Some(late) = late {
        late.discard(store);
    }
}

fn caught(work: impl FnOnce() -> Option<Spare>) -> Option<Spare> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        // A panic's own drop may panic again.
        std::mem::forget(panic);
        tracing::error!("work on a spare tree panicked");
        None
    })
}
