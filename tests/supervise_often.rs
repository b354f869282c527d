//! Repetitions: what must hold every time, at whatever moment. A seeded sample,
//! or all of it with `SOLOCRON_LONG=1`.

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use support::fleet::EACH_SECOND;
use support::{Place, Signal, Solocron, proc};
use support::{long, secs};

/// Pseudo-random numbers from a seed (`splitmix64`).
fn random(seed: u64, below: u64) -> u64 {
    let mut z = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) % below
}

/// Runs `each` with the numbers up to `full`, or a sample of them, on a few
/// threads.
fn repeat(sample: u64, full: u64, threads: u64, each: impl Fn(u64) + Sync) {
    let count = if long() { full } else { sample };
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    each(number);
                }
            });
        }
    });
}

fn local() -> Place {
    let [_, place] = Place::each();
    place
}

/// Leaves orphans that end while it runs, in sessions of their own and in its
/// group; ends with 3, or with 4 when one of them stays a zombie for a second.
const ORPHANS: &str = r#"
for i in 1 2 3; do (setsid sleep 0.01 &); (sleep 0.01 &); done
zombies() {
    cat /proc/[0-9]*/status 2>/dev/null | awk -v p="$PPID" -v one="$AS_PID_1" \
        '/^State:/ { s = $2 } /^PPid:/ { if (s == "Z" && ($2 == p || ($2 == 1 && one))) n++ } END { print n + 0 }'
}
sleep 0.02
for i in 1 2 3 4 5 6 7 8 9 10; do
    [ "$(zombies)" != 0 ] || exit 3
    sleep 0.1
done
exit 4"#;

fn with_orphans(run: Solocron) {
    let out = run.sh(ORPHANS).run();
    out.assert_code(3);
    assert!(!out.stderr.contains("No child"), "{}", out.stderr);
}

#[test]
fn orphans_never_spoil_the_status() {
    let place = local();
    repeat(15, 2000, 4, |number| {
        let lock = format!("x{number}");
        with_orphans(place.run(&lock));
        place.assert_free(&lock);
    });
}

#[test]
fn orphans_never_spoil_the_status_of_process_1() {
    let place = local();
    repeat(15, 2000, 4, |number| {
        let lock = format!("x{number}");
        with_orphans(place.run(&lock).env("AS_PID_1", "1").in_pid_namespace());
        place.assert_free(&lock);
    });
}

/// Sends TERM after `delay` and sees to it that all ends.
fn term_after(run: Solocron, delay: Duration) -> i32 {
    let mut run = run.spawn();
    std::thread::sleep(delay);
    run.signal(Signal::TERM);
    let out = run.wait(secs(5));
    out.assert_clean();
    out.code()
}

/// A command that does not end by itself: a lost signal is a hang.
#[test]
fn a_term_from_the_start_on_ends_a_single_run() {
    let place = local();
    repeat(12, 250, 4, |number| {
        let lock = format!("x{number}");
        let run = place.run(&lock).sh("sleep 60; true");
        let delay = Duration::from_micros(random(number, 100_000));
        assert_eq!(term_after(run, delay), 143, "{number} after {delay:?}");
        place.assert_free(&lock);
    });
}

/// A command that ends at about the time of the signal.
#[test]
fn a_term_around_the_end_gives_the_one_status_or_the_other() {
    let place = local();
    repeat(12, 250, 4, |number| {
        let lock = format!("x{number}");
        let run = place.run(&lock).sh("sleep 0.05; exit 3");
        let delay = Duration::from_micros(30_000 + random(number, 120_000));
        let code = term_after(run, delay);
        assert!([3, 143].contains(&code), "{number} after {delay:?}: {code}");
        place.assert_free(&lock);
    });
}

#[test]
fn a_term_at_any_moment_ends_a_schedule() {
    let place = local();
    repeat(16, 500, 8, |number| {
        let lock = format!("x{number}");
        let run = place.run(&lock).args(EACH_SECOND).sh("sleep 0.3; true");
        // Before the program catches signals it dies of them like any other.
        let delay = Duration::from_micros(random(number, 2_500_000));
        let code = term_after(run, delay);
        let early = delay < Duration::from_millis(300) && code == 143;
        assert!(code == 0 || early, "{number} after {delay:?}: {code}");
        place.assert_free(&lock);
    });
    assert!(proc::with_args(&["sh", "-c", "sleep 0.3; true"]).is_empty());
}
