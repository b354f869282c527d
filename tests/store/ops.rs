//! Short words for what tests ask of a store.

// Each test file is a crate of its own and uses a part of this.
#![allow(dead_code)]

use solocron::lock::rules::{Grant, Verdict, Wanted};
use solocron::lock::{
    Beat, Claim, ClaimReply, EndedRun, Free, OnRunnerLost, Outcome, Overlap, Owner,
};
use solocron::store::Store;
use std::future::Future;
use std::time::Duration;

/// A limit that only a broken store reaches.
pub const WITHIN: Duration = Duration::from_secs(5);
pub const KEEP: i64 = 86_400_000;

/// Runs a future as the binary does, on one thread.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("runtime")
        .block_on(future)
}

/// A claim without schedule.
pub fn once(owner: u128) -> Claim {
    Claim {
        owner: Owner(owner),
        wanted: Wanted::Once { per: None },
        ttl: 30_000,
        keep: KEEP,
        info: format!("{{\"owner\":{owner}}}"),
    }
}

/// A claim for a firing.
pub fn firing(owner: u128, at: i64) -> Claim {
    let wanted = Wanted::Firing {
        at,
        start_deadline: 60_000,
        overlap: Overlap::Skip,
        on_runner_lost: OnRunnerLost::Skip,
    };
    Claim {
        wanted,
        ..once(owner)
    }
}

/// The grant, or a failed test.
pub fn granted(reply: &ClaimReply) -> Grant {
    match reply.verdict {
        Verdict::Granted(grant) => grant,
        other => panic!("not granted: {other:?}"),
    }
}

/// The beat of a run.
pub fn beat_of(claim: &Claim, grant: &Grant) -> Beat {
    Beat {
        owner: claim.owner,
        token: grant.token,
        until_told: grant.until,
        mark_told: grant.mark,
        firing: claim.wanted.firing(),
        attempt: grant.attempt,
        grants: grant.grants,
        started: grant.started,
        once: false,
        ttl: claim.ttl,
        keep: claim.keep,
        info: claim.info.clone(),
    }
}

/// The end of a run.
pub fn end_of(claim: &Claim, grant: &Grant) -> Free {
    let run = EndedRun {
        token: grant.token,
        mark_told: grant.mark,
        firing: claim.wanted.firing(),
        attempt: grant.attempt,
        grants: grant.grants,
        started: grant.started,
        once: false,
        outcome: Outcome::Done,
        code: Some(0),
        info: claim.info.clone(),
    };
    Free {
        owner: claim.owner,
        run: Some(run),
        keep: claim.keep,
    }
}

/// Claims, extends, ends and reads, as an undisturbed run does.
pub async fn whole_run(store: &dyn Store, owner: u128) {
    let claim = once(owner);
    store.prepare(WITHIN).await.expect("prepare");
    let grant = granted(&store.claim(&claim, WITHIN).await.expect("claim"));
    assert!(store.grant_stands(WITHIN).await.expect("grant stands"));
    let beat = store
        .beat(&beat_of(&claim, &grant), WITHIN)
        .await
        .expect("beat");
    assert!(beat.held.is_ok(), "{beat:?}");
    let (record, _) = store.read(WITHIN).await.expect("read");
    assert_eq!(record.and_then(|record| record.owner), Some(claim.owner));
    store
        .free(&end_of(&claim, &grant), WITHIN)
        .await
        .expect("free");
    let (record, now) = store.read(WITHIN).await.expect("read");
    assert!(record.is_some_and(|record| !record.alive(now)));
}
