//! The store's side of the world, and the promises that show there.

use solocron::lock::rules::{Beat, Claim, Extent, Free, FreeReply, Outcome};
use solocron::lock::{Grant, Owner, Record, State, Verdict};

use super::rules::Change;
use super::trace::{self, note};
use super::world::{Body, Ctx, Mode, Msg, World};

impl World {
    pub fn deliver(&mut self, ctx: &Ctx, msg: Msg) {
        note(|| format!("arrives: {}", trace::message(&msg)));
        let reply = match &msg.body {
            Body::Claim(claim) => self.store_claims(ctx, claim),
            Body::Beat(beat) => self.store_beats(ctx, beat),
            Body::Free(free) => {
                self.store_frees(ctx, free);
                return;
            }
            Body::Claimed(..) | Body::Beaten(..) => {
                self.on_reply(ctx, msg);
                return;
            }
        };
        if self.insts[msg.inst].cut {
            return;
        }
        self.msgs.push(Msg {
            held: None,
            body: reply,
            ..msg
        });
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Keep => {}
            Change::Write(record) => self.write(Some(*record)),
            Change::Delete => self.write(None),
        }
        note(|| format!("  the store has {}", trace::record(self.record.as_ref())));
    }

    fn store_claims(&mut self, ctx: &Ctx, claim: &Claim) -> Body {
        let now = self.store_time();
        let before = self.record.clone();
        let (reply, change) = ctx.rules.claim(before.as_ref(), claim, now);
        note(|| format!("  the store says {}", trace::verdict(&reply.verdict)));
        self.change(change);
        if let Verdict::Granted(grant) = reply.verdict {
            self.granted(ctx, before.as_ref(), claim, &grant);
        }
        Body::Claimed(claim.owner, reply)
    }

    fn granted(&mut self, ctx: &Ctx, before: Option<&Record>, claim: &Claim, grant: &Grant) {
        if self.ghost.freed.contains(&claim.owner) {
            self.break_promise("a claim is granted although it was freed before: nobody is there");
        }
        let firing = claim.wanted.firing().and_then(|at| Self::index(ctx, at));
        self.ghost.lease_end = self.ghost.lease_end.max(grant.until);
        self.ghost.lease_for = firing;
        let again = before
            .is_some_and(|record| record.owner == Some(claim.owner) && record.state == State::Run);
        if again {
            return;
        }
        // Also across a loss, as long as the clock is not set back as well.
        let promised = self.losses == 0 || self.back == 0;
        if grant.token <= self.ghost.token && promised {
            self.break_promise("the fencing token only rises");
        }
        self.ghost.token = self.ghost.token.max(grant.token);
        if let Some(k) = firing {
            self.ghost.grants[k] += 1;
        }
    }

    pub fn index(ctx: &Ctx, at: i64) -> Option<usize> {
        (0..ctx.setup.firings.len()).find(|k| Self::firing_ms(ctx, *k) == at)
    }

    fn store_beats(&mut self, ctx: &Ctx, beat: &Beat) -> Body {
        let now = self.store_time();
        let before = self.record.clone();
        let (reply, change) = ctx.rules.beat(before.as_ref(), beat, now);
        note(|| format!("  the store says {:?}", reply.held));
        self.change(change);
        if let Ok((until, extent)) = reply.held {
            // A lease that was over is not in its right when the record of it
            // is made up.
            if extent != Extent::Healed || self.ghost.lease_end > now.lease_ms {
                self.extends(ctx, until);
                self.ghost.lease_for = beat.firing.and_then(|at| Self::index(ctx, at));
            }
            if extent == Extent::Healed {
                self.shake(before.as_ref(), beat.token);
            }
        }
        Body::Beaten(beat.owner, reply)
    }

    /// After a loss a holder may have been told that it still holds the lock
    /// before one with a larger token came: its next heartbeat tells it.
    fn shake(&mut self, before: Option<&Record>, token: u64) {
        let owner = before
            .filter(|record| record.token < token)
            .and_then(|record| record.owner);
        let since = self.store_time().lease_ms;
        for inst in &mut self.insts {
            if matches!(&inst.mode, Mode::Holding(holding) if Some(holding.owner) == owner) {
                inst.shaken = Some(since);
            }
        }
    }

    fn extends(&mut self, ctx: &Ctx, until: i64) {
        self.ghost.lease_end = self.ghost.lease_end.max(until);
        for k in 0..ctx.setup.firings.len() {
            if ctx.setup.firings[k] <= self.now && self.ghost.starts[k] == 0 {
                self.ghost.held[k] = true;
            }
        }
    }

    fn store_frees(&mut self, ctx: &Ctx, free: &Free) {
        let now = self.store_time();
        let before = self.record.clone();
        let (reply, change) = ctx.rules.free(before.as_ref(), free, now);
        note(|| format!("  the store says {reply:?}"));
        self.change(change);
        if !self.ghost.freed.contains(&free.owner) {
            self.ghost.freed.push(free.owner);
        }
        if reply == FreeReply::Freed {
            self.ghost.freed_at = now.wall_ms();
        }
        if reply == FreeReply::Freed
            && let Some(run) = &free.run
            && matches!(run.outcome, Outcome::Done | Outcome::Failed)
            && let Some(k) = run.firing.and_then(|at| Self::index(ctx, at))
        {
            self.ghost.ended[k] = true;
        }
    }

    /// Whether the store knows of a live lease of `owner`.
    pub fn holds(&self, owner: Owner) -> bool {
        let now = self.store_time();
        self.record.as_ref().is_some_and(|record| {
            record.owner == Some(owner) && record.state == State::Run && record.until > now.lease_ms
        })
    }
}
