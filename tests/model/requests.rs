//! What an instance writes to the store.

use solocron::lock::rules::{Beat, Claim, EndedRun, Free, Outcome, Wanted};
use solocron::lock::{Grant, Ms, Owner};

use super::setup::Role;
use super::world::{Claiming, Ctx, Holding, World};

const KEEP: Ms = 86_400_000;

fn ttl(ctx: &Ctx) -> Ms {
    i64::try_from(ctx.setup.ttl).unwrap()
}

fn is_once_per(ctx: &Ctx, i: usize) -> bool {
    matches!(ctx.setup.hosts[i].role, Role::Once { per: Some(_), .. })
}

pub fn claim_of(ctx: &Ctx, i: usize, claiming: &Claiming) -> Claim {
    let wanted = match (ctx.setup.hosts[i].role, claiming.firing) {
        (
            Role::Schedule {
                overlap,
                on_runner_lost,
            },
            Some(k),
        ) => Wanted::Firing {
            at: World::firing_ms(ctx, k),
            start_deadline: i64::try_from(ctx.setup.start_deadline).unwrap(),
            overlap,
            on_runner_lost,
        },
        (Role::Once { per, .. }, _) => Wanted::Once { per },
        (Role::Schedule { .. }, None) => unreachable!("a schedule claims firings"),
    };
    Claim {
        owner: claiming.owner,
        wanted,
        ttl: ttl(ctx),
        keep: KEEP,
        info: String::new(),
    }
}

pub fn beat_of(ctx: &Ctx, i: usize, holding: &Holding) -> Beat {
    Beat {
        owner: holding.owner,
        token: holding.grant.token,
        until_told: holding.holder.until_told(),
        mark_told: holding.holder.mark_told(),
        firing: holding.firing.map(|k| World::firing_ms(ctx, k)),
        attempt: holding.grant.attempt,
        grants: holding.grant.grants,
        started: holding.grant.started,
        once: is_once_per(ctx, i),
        ttl: ttl(ctx),
        keep: KEEP,
        info: String::new(),
    }
}

/// The end of a run that was granted.
pub fn free_of(
    ctx: &Ctx,
    i: usize,
    owner: Owner,
    firing: Option<usize>,
    grant: &Grant,
    mark_told: Ms,
    outcome: Outcome,
) -> Free {
    let run = EndedRun {
        token: grant.token,
        mark_told,
        firing: firing.map(|k| World::firing_ms(ctx, k)),
        attempt: grant.attempt,
        grants: grant.grants,
        started: grant.started,
        once: is_once_per(ctx, i),
        outcome,
        code: None,
        info: String::new(),
    };
    Free {
        owner,
        run: Some(run),
        keep: KEEP,
    }
}

/// The end of a claim that was never answered.
pub const fn give_up(owner: Owner) -> Free {
    Free {
        owner,
        run: None,
        keep: KEEP,
    }
}
