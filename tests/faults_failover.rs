//! A schedule while its master changes: behind sentinels and in a cluster.

#[path = "store/cluster.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod cluster;
mod support;
#[path = "store/watched.rs"]
mod watched;

use cluster::Cluster;
use support::fleet::{sleep_until, soon};
use support::witness::f64_of;
use support::{Entry, Fleet, Solocron, Value, Witness};
use support::{now_ms, secs, wait_until};
use watched::Watched;

/// From one firing to the next.
const STEP: i64 = 3_000;
/// A failover takes no longer than that, detection included.
const FAILOVER: i64 = 5_000;

/// How the master goes.
#[derive(Clone, Copy, PartialEq, Debug)]
enum How {
    Killed,
    Planned,
}

fn make(url: &str, lock: &str, witness: &Witness, takes: &str) -> Solocron {
    let run = Solocron::at(url, lock).args(["--tz", "UTC", "--cron", "*/3 * * * * *"]);
    run.args(["--ttl", "9s", "--kill-after", "500ms"])
        .command(witness.job(takes))
}

/// Waits for `lead` into a firing that started, lets the master go, and sees
/// that no firing is started twice or lost and only those within the failover are late.
fn follow(url: &str, lock: &str, takes: &str, lead: i64, go: impl FnOnce()) {
    let witness = Witness::default();
    let fleet = Fleet::of(&["a", "b", "c"], || make(url, lock, &witness, takes));
    let first = soon(secs(2)) / STEP * STEP + STEP;
    sleep_until(first + STEP + lead);
    assert!(
        witness
            .starts()
            .iter()
            .any(|start| start.firing == Some(first + STEP)),
        "{lock}: not yet started: {}",
        fleet.messages()
    );
    let gone = now_ms();
    go();
    let last = (gone + FAILOVER) / STEP * STEP + STEP;
    sleep_until(last + STEP - 300);
    let messages = fleet.messages();
    fleet.stop();
    let starts = witness.starts();
    let of = |firing: i64| -> Vec<&Entry> {
        starts
            .iter()
            .filter(|start| start.firing == Some(firing))
            .collect()
    };
    let mut late = Vec::new();
    for firing in (0..=(last - first) / STEP).map(|n| first + n * STEP) {
        let all = of(firing);
        let within = firing > gone - STEP && firing <= gone + FAILOVER;
        assert!(
            all.len() <= 1,
            "{lock}: started twice: {all:#?}\n{messages}"
        );
        match all.first() {
            // A newer one took its place, or an earlier one ran when its turn came.
            None => assert!(within, "{lock}: {firing} was not started\n{messages}"),
            Some(start) if start.at > f64_of(firing + 1_000) => {
                assert!(within, "{lock}: late: {start:?}\n{messages}");
                late.push(start.at - f64_of(firing));
            }
            Some(_) => {}
        }
    }
    println!("{lock}: late by {late:?} ms");
    witness.assert_no_overlap();
    witness.assert_tokens_rise();
    assert_eq!(
        witness.of("end").len(),
        starts.len(),
        "{lock}: a run was stopped\n{messages}"
    );
}

fn behind_sentinels(how: How, lock: &str, takes: &str, lead: i64) {
    let mut watched = Watched::start();
    watched.wait_until_ready();
    let url = watched.url();
    follow(&url, lock, takes, lead, || match how {
        How::Killed => watched.servers[0].kill(),
        How::Planned => {
            let reply = watched.sentinels[0].call(&["SENTINEL", "FAILOVER", "mymaster"]);
            assert_eq!(reply, Some(Value::Status("OK".into())));
        }
    });
}

#[test]
fn a_killed_master_in_mid_run() {
    behind_sentinels(How::Killed, "killed-run", "sleep 2", 800);
}

#[test]
fn a_killed_master_between_firings() {
    behind_sentinels(How::Killed, "killed-idle", ":", 2_300);
}

#[test]
fn a_planned_failover_in_mid_run() {
    behind_sentinels(How::Planned, "planned-run", "sleep 2", 800);
}

#[test]
fn a_planned_failover_between_firings() {
    behind_sentinels(How::Planned, "planned-idle", ":", 2_300);
}

#[test]
fn a_killed_master_of_the_shard() {
    let mut cluster = Cluster::start();
    let (url, lock) = (cluster.url(), cluster.name_on(0));
    wait_until(secs(5), "the replica follows", || {
        let info = cluster.nodes[3].call(&["INFO", "replication"]).text();
        info.contains("master_link_status:up")
    });
    follow(&url, &lock, "sleep 2", 800, || cluster.nodes[0].kill());
}
