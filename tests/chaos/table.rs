//! The table at the end.

use crate::facts::{Facts, Us};
use crate::judge::{Figures, stamp};
use crate::lines::LINES;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Findings of each kind that are shown in full.
const SHOWN: usize = 20;

/// How often each fault was injected.
pub fn faults(facts: &Facts) -> String {
    let mut counts = BTreeMap::<&str, u64>::new();
    for fault in &facts.faults {
        *counts.entry(fault.kind).or_default() += 1;
    }
    let mut text = format!("{} faults\n", facts.faults.len());
    for (kind, count) in counts {
        let _ = writeln!(text, "  {count:4} {kind}");
    }
    text
}

/// The figures of the jobs side by side, and their sum.
pub fn figures(facts: &Facts, all: &[Figures]) -> String {
    let mut text = format!("{:56}", "");
    for job in &facts.jobs {
        let _ = write!(text, "{:>8}", job.name);
    }
    let _ = writeln!(text, "{:>8}", "all");
    for line in LINES {
        let counts: Vec<u64> = all.iter().map(|figures| figures.of(line)).collect();
        let _ = write!(text, "{line:56}");
        for count in &counts {
            let _ = write!(text, "{count:8}");
        }
        let _ = writeln!(text, "{:8}", counts.iter().sum::<u64>());
    }
    text
}

/// What was found, with the faults around it.
pub fn findings(facts: &Facts, all: &[Figures]) -> String {
    let mut text = String::new();
    let broken = all.iter().flat_map(|figures| &figures.broken);
    let outside = all.iter().flat_map(|figures| &figures.outside);
    for (head, list) in [
        ("broken", broken.collect::<Vec<_>>()),
        ("outside the promises", outside.collect()),
    ] {
        for finding in list.iter().take(SHOWN) {
            let _ = writeln!(
                text,
                "{head}: {}: {} {}: {}",
                stamp(finding.at),
                finding.job,
                finding.what.trim(),
                finding.text
            );
            text.push_str(&around(facts, finding.at));
        }
        if list.len() > SHOWN {
            let _ = writeln!(text, "{head}: {} more", list.len() - SHOWN);
        }
    }
    text
}

fn around(facts: &Facts, at: Us) -> String {
    let near = |from: Us, to: Us| from - 2_000_000 <= at && at <= to + 8_000_000;
    let mut text = String::new();
    for fault in &facts.faults {
        if near(fault.span.from, fault.span.to) {
            let _ = writeln!(
                text,
                "        {} to {} {} {}",
                stamp(fault.span.from),
                stamp(fault.span.to),
                fault.kind,
                fault.text
            );
        }
    }
    text
}
