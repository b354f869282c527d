//! Every order of events, shortest first.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use super::events::Event;
use super::rules::Rules;
use super::setup::Setup;
use super::trace;
use super::world::{Ctx, World};

/// A quick hash: states are many and nobody attacks them.
#[derive(Default)]
pub struct Fast(u64);

impl Fast {
    const fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Fast {
    fn finish(&self) -> u64 {
        let mut h = self.0;
        h ^= h >> 32;
        h = h.wrapping_mul(0xd6e8_feb8_6659_fd93);
        h ^ (h >> 32)
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, i: u8) {
        self.mix(i.into());
    }
    fn write_u32(&mut self, i: u32) {
        self.mix(i.into());
    }
    fn write_u64(&mut self, i: u64) {
        self.mix(i);
    }
    fn write_usize(&mut self, i: usize) {
        self.mix(i as u64);
    }
}

/// Digests are spread already.
#[derive(Default)]
pub struct Digest(u64);

impl Hasher for Digest {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("only digests are kept");
    }
    fn write_u64(&mut self, i: u64) {
        self.0 = i;
    }
}

/// What an exploration found.
pub struct Found {
    /// How many different worlds there are.
    pub worlds: usize,
    /// The promise that is broken, and the shortest way there.
    pub broken: Option<(String, Vec<String>)>,
}

impl Found {
    pub fn story(&self) -> String {
        self.broken
            .as_ref()
            .map_or_else(String::new, |(what, trace)| {
                format!("{what}\n{}", trace.join("\n"))
            })
    }
}

struct Step {
    from: u32,
    event: Event,
}

/// Explores everything that can follow from a store without record and from
/// one with an old one.
pub fn explore(setup: &Setup, rules: &dyn Rules) -> Found {
    let ctx = Ctx { setup, rules };
    let roots = [
        World::new(setup, None),
        World::new(setup, Some(World::old_record())),
    ];
    let mut seen: HashSet<u64, BuildHasherDefault<Digest>> = HashSet::default();
    let mut steps: Vec<Step> = Vec::new();
    let mut queue: VecDeque<(World, u32)> = VecDeque::new();
    for (number, root) in roots.iter().enumerate() {
        seen.insert(root.digest());
        queue.push_back((root.clone(), u32::try_from(number).unwrap()));
    }
    let base = u32::try_from(roots.len()).unwrap();
    while let Some((world, at)) = queue.pop_front() {
        let events = world.events(&ctx);
        if events.is_empty() {
            let mut last = world.clone();
            last.check_end(&ctx);
            if let Some(what) = last.broken {
                return found(&ctx, &roots, &steps, at, seen.len(), what);
            }
        }
        for event in events {
            let next = world.apply(&ctx, event);
            let digest = next.digest();
            if !seen.insert(digest) {
                if digest == world.digest() {
                    let what = format!("a step that changes nothing: {event:?}");
                    return found(&ctx, &roots, &steps, at, seen.len(), what);
                }
                continue;
            }
            steps.push(Step { from: at, event });
            let number = base + u32::try_from(steps.len()).unwrap() - 1;
            if let Some(what) = next.broken {
                return found(&ctx, &roots, &steps, number, seen.len(), what);
            }
            assert!(steps.len() < setup.limit, "too many worlds for this bound");
            queue.push_back((next, number));
        }
    }
    Found {
        worlds: seen.len(),
        broken: None,
    }
}

fn found(
    ctx: &Ctx,
    roots: &[World],
    steps: &[Step],
    last: u32,
    worlds: usize,
    what: String,
) -> Found {
    let mut events = Vec::new();
    let mut at = last as usize;
    while at >= roots.len() {
        let step = &steps[at - roots.len()];
        events.push(step.event);
        at = step.from as usize;
    }
    events.reverse();
    let mut world = roots[at].clone();
    let mut story = vec![format!(
        "0 ms  the store has {}",
        trace::record(world.record.as_ref())
    )];
    for event in events {
        let now = world.now;
        let (next, notes) = trace::listen(|| world.apply(ctx, event));
        world = next;
        story.extend(notes.into_iter().map(|line| format!("{now} ms  {line}")));
    }
    Found {
        worlds,
        broken: Some((what, story)),
    }
}
