//! The embedded store on a real file system.

#[path = "store/history.rs"]
mod history;
#[path = "store/ops.rs"]
mod ops;
mod support;

use history::{History, Reply, Step};
use ops::{KEEP, WITHIN, beat_of, end_of, firing, granted, once, run, whole_run};
use rustix::fs::{FlockOperation, flock};
use solocron::lock::rules::{Extent, Verdict};
use solocron::lock::{Free, FreeReply, Owner, StoreTime};
use solocron::store::file::{FileStore, default_dir, host_time};
use solocron::store::redis::tls::TlsOptions;
use solocron::store::{Class, Location, Store, StoreError, StoreOptions};
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use support::long;
use support::wait::ms;
use tempfile::{TempDir, tempdir};

fn place() -> (TempDir, PathBuf) {
    let parent = tempdir().expect("directory");
    let dir = parent.path().join("a/locks");
    (parent, dir)
}

fn refusal(dir: &Path) -> StoreError {
    let store = FileStore::open(dir, "job");
    let claim = once(7);
    run(async { store.claim(&claim, WITHIN).await }).expect_err("refused")
}

#[test]
fn a_whole_run_leaves_private_files() {
    let (_parent, dir) = place();
    let store = FileStore::open(&dir, "job/ä.b");
    run(whole_run(&store, 1));
    let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o7777;
    assert_eq!(mode(&dir), 0o700);
    let mut names: Vec<_> = fs::read_dir(&dir)
        .expect("directory")
        .map(|entry| {
            entry
                .expect("entry")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    names.sort();
    assert_eq!(names, ["job%2F%C3%A4%2Eb.json", "job%2F%C3%A4%2Eb.lock"]);
    for name in names {
        assert_eq!(mode(&dir.join(name)), 0o600);
    }
}

#[test]
fn the_general_constructor_leads_here() {
    let (_parent, dir) = place();
    let tls = TlsOptions::default();
    let options = StoreOptions {
        lock_name: "job",
        key_prefix: "solocron",
        tls: &tls,
        local_dir: Some(&dir),
    };
    let store = solocron::store::open(&Location::Local, &options).expect("store");
    run(whole_run(store.as_ref(), 1));
    let text = format!("file://{}", dir.display());
    let same =
        solocron::store::open(&Location::parse(&text).expect("address"), &options).expect("store");
    let (record, _) = run(same.read(WITHIN)).expect("read");
    assert_eq!(record.expect("the same record").owner, Some(Owner(1)));
    let cert = TlsOptions {
        cert: Some("c".into()),
        ..TlsOptions::default()
    };
    let options = StoreOptions {
        tls: &cert,
        ..options
    };
    assert!(
        solocron::store::open(&Location::Local, &options)
            .is_err_and(|text| text.contains("rediss"))
    );
}

#[test]
fn the_usual_place_follows_the_user() {
    let os = |text: &'static str| Some(OsStr::new(text));
    let dir = |root, xdg, home| default_dir(root, xdg, home).map(|dir| dir.display().to_string());
    assert_eq!(
        dir(true, os("/x"), os("/h")).as_deref(),
        Ok("/var/lib/solocron")
    );
    assert_eq!(dir(false, os("/x"), os("/h")).as_deref(), Ok("/x/solocron"));
    assert_eq!(
        dir(false, os("x"), os("/h")).as_deref(),
        Ok("/h/.local/state/solocron")
    );
    assert_eq!(
        dir(false, None, os("/h")).as_deref(),
        Ok("/h/.local/state/solocron")
    );
    assert!(dir(false, os(""), None).is_err_and(|text| text.contains("HOME is not set")));
}

#[test]
fn long_and_odd_names_have_files_of_their_own() {
    let (_parent, dir) = place();
    let long = "ä".repeat(100);
    let names = [
        "a",
        "A",
        "%61",
        "a.json",
        ".",
        "..",
        "a/b",
        &long,
        &long[2..],
    ];
    run(async {
        for (name, owner) in names.iter().zip(1..) {
            granted(
                &FileStore::open(&dir, name)
                    .claim(&once(owner), WITHIN)
                    .await
                    .expect("claim"),
            );
        }
    });
    let records = fs::read_dir(&dir).expect("directory").filter(|entry| {
        let name = entry.as_ref().expect("entry").file_name();
        Path::new(&name)
            .extension()
            .is_some_and(|ending| ending == "json")
    });
    assert_eq!(records.count(), names.len());
}

#[test]
fn reading_makes_nothing() {
    let (_parent, dir) = place();
    let (record, now) = run(FileStore::open(&dir, "job").read(WITHIN)).expect("read");
    assert_eq!(record, None);
    assert!((now.wall_ms() - host_time().wall_ms()).abs() < 2_000);
    assert!(!dir.exists());
}

#[test]
fn links_and_foreign_files_are_refused() {
    let (parent, dir) = place();
    run(whole_run(&FileStore::open(&dir, "job"), 1));
    let other = parent.path().join("other");
    symlink(&dir, &other).expect("link");
    let err = refusal(&other);
    assert!(
        err.class == Class::Permission && err.message.contains("is a link or no directory"),
        "{err}"
    );
    assert!(
        refusal(&dir.join("job.json"))
            .message
            .contains("is a link or no directory")
    );

    fs::set_permissions(&dir, Permissions::from_mode(0o770)).expect("chmod");
    let err = refusal(&dir);
    assert!(
        err.class == Class::Permission
            && err
                .message
                .contains("can be written to by others: chmod 700"),
        "{err}"
    );
    fs::set_permissions(&dir, Permissions::from_mode(0o700)).expect("chmod");

    let victim = parent.path().join("victim");
    for name in ["job.json", "job.lock"] {
        let path = dir.join(name);
        fs::rename(&path, &victim).expect("rename");
        symlink(&victim, &path).expect("link");
        let err = refusal(&dir);
        assert!(
            err.class == Class::Permission && err.message.contains("links are not followed"),
            "{err}"
        );
        fs::remove_file(&path).expect("remove");
        fs::hard_link(&victim, &path).expect("link");
        assert!(
            refusal(&dir).message.contains("has a second name"),
            "{name}"
        );
        fs::remove_file(&victim).expect("remove");
    }
    // What lies in the way of the next write is removed, not followed.
    fs::write(&victim, "precious").expect("write");
    symlink(&victim, dir.join("job.tmp")).expect("link");
    run(whole_run(&FileStore::open(&dir, "job"), 2));
    assert_eq!(fs::read_to_string(&victim).expect("read"), "precious");
}

#[test]
fn a_directory_of_another_user_is_refused() {
    let (_parent, mut dir) = place();
    if rustix::process::geteuid().is_root() {
        fs::create_dir_all(&dir).expect("directory");
        std::os::unix::fs::chown(&dir, Some(12_345), None).expect("chown");
    } else {
        dir = PathBuf::from("/usr");
    }
    let err = refusal(&dir);
    assert_eq!(err.class, Class::Permission);
    assert!(
        err.message.contains("belongs to user") && err.message.contains("run as its owner"),
        "{err}"
    );
}

#[test]
fn a_damaged_record_is_never_taken_for_none() {
    let (_parent, dir) = place();
    run(whole_run(&FileStore::open(&dir, "job"), 1));
    let path = dir.join("job.json");
    let good = fs::read_to_string(&path).expect("record");
    let half = &good[..good.len() / 2];
    let newer = good.replace("\"version\":1", "\"version\":2");
    let odd = good.replace("\"state\":\"done\"", "\"state\":\"x\"");
    let extra = good.replace("\"token\"", "\"tokem\"");
    for text in [
        "",
        half,
        "{}",
        "null",
        &newer,
        &odd,
        &extra,
        &format!("{good}x"),
    ] {
        fs::write(&path, text).expect("write");
        let err = refusal(&dir);
        assert_eq!(err.class, Class::KeyMisuse, "{text:?}: {err}");
        assert!(err.message.contains(&path.display().to_string()), "{err}");
        assert!(
            err.message
                .contains("nothing is started under this name until it is removed"),
            "{err}"
        );
        assert_eq!(fs::read_to_string(&path).expect("record"), text);
        assert!(run(FileStore::open(&dir, "job").read(WITHIN)).is_err());
    }
    fs::write(&path, good).expect("write");
    run(whole_run(&FileStore::open(&dir, "job"), 2));
}

#[test]
fn after_another_boot_the_lease_is_over_and_the_memory_stays() {
    let (_parent, dir) = place();
    let time = Arc::new(|| StoreTime {
        wall_us: 1_760_000_000_000_000,
        lease_ms: 9_000_000,
    });
    let before = FileStore::open_with(&dir, "job", "boot-1", time);
    let claim = firing(1, 1_760_000_000_000);
    run(async {
        granted(&before.claim(&claim, WITHIN).await.expect("claim"));
    });
    // A short while after the boot the old lease end still looks ahead.
    let later = Arc::new(|| StoreTime {
        wall_us: 1_760_000_020_000_000,
        lease_ms: 8_999_999,
    });
    run(async {
        let same = FileStore::open_with(&dir, "job", "boot-1", later.clone());
        let reply = same.claim(&once(2), WITHIN).await.expect("claim");
        assert_eq!(reply.verdict, Verdict::Busy);
        let other = FileStore::open_with(&dir, "job", "boot-2", later);
        let mut again = claim.clone();
        again.owner = Owner(3);
        let reply = other.claim(&again, WITHIN).await.expect("claim");
        assert_eq!(reply.verdict, Verdict::Orphaned);
        granted(&other.claim(&once(4), WITHIN).await.expect("claim"));
    });
}

#[test]
fn one_at_a_time_wins_and_waiting_for_the_file_is_bounded() {
    let (_parent, dir) = place();
    run(whole_run(&FileStore::open(&dir, "job"), 1));
    let lock = File::open(dir.join("job.lock")).expect("lock");
    flock(&lock, FlockOperation::LockExclusive).expect("lock");
    run(async {
        let store = FileStore::open(&dir, "job");
        let start = std::time::Instant::now();
        let err = store.claim(&once(2), ms(120)).await.expect_err("locked");
        assert!(
            start.elapsed() >= ms(118) && start.elapsed() < ms(400),
            "{:?}",
            start.elapsed()
        );
        assert_eq!((err.class, err.unsettled), (Class::Unreachable, false));
        assert!(
            err.message
                .contains("another process keeps its .lock file locked"),
            "{err}"
        );
        // It is not carried out later either.
        flock(&lock, FlockOperation::Unlock).expect("unlock");
        tokio::time::sleep(ms(50)).await;
        let (record, _) = store.read(WITHIN).await.expect("read");
        assert_eq!(record.expect("record").owner, Some(Owner(1)));
    });
    let winners = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for owner in 10..40 {
            let (dir, winners) = (&dir, &winners);
            scope.spawn(move || {
                let store = FileStore::open(dir, "job");
                let claim = once(owner);
                let reply = run(store.claim(&claim, WITHIN)).expect("claim");
                if let Verdict::Granted(_) = reply.verdict {
                    winners.lock().expect("winners").push(owner);
                }
            });
        }
    });
    assert_eq!(winners.lock().expect("winners").len(), 1);
}

#[test]
fn a_claim_that_was_given_up_is_refused_later() {
    let (_parent, dir) = place();
    run(async {
        let store = FileStore::open(&dir, "job");
        let give_up = Free {
            owner: Owner(5),
            run: None,
            keep: KEEP,
        };
        assert_eq!(store.free(&give_up, WITHIN).await, Ok(FreeReply::Voided));
        let reply = store.claim(&once(5), WITHIN).await.expect("claim");
        assert_eq!(reply.verdict, Verdict::Void);
        let claim = firing(6, host_time().wall_ms());
        let grant = granted(&store.claim(&claim, WITHIN).await.expect("claim"));
        fs::remove_file(dir.join("job.json")).expect("remove");
        let beat = store
            .beat(&beat_of(&claim, &grant), WITHIN)
            .await
            .expect("beat");
        assert!(beat.held.is_ok_and(|(_, extent)| extent == Extent::Healed));
        assert_eq!(
            store.free(&end_of(&claim, &grant), WITHIN).await,
            Ok(FreeReply::Freed)
        );
    });
}

/// Mounts a file system at `dir` inside a mount namespace and runs a test of
/// this file there by name.
fn in_namespace(setup: &str, name: &str, dir: &Path) {
    let exe = std::env::current_exe().expect("own path");
    let script = format!("{setup}; exec \"$EXE\" --exact --nocapture {name}");
    let out = Command::new("unshare")
        .args(["-rm", "sh", "-ec", &script])
        .env("DIR", dir)
        .env("EXE", exe)
        .output()
        .expect("unshare");
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
    assert!(out.status.success() && text.contains("1 passed"), "{text}");
}

/// The directory that [`in_namespace`] prepared; none in an ordinary run.
fn prepared_dir() -> Option<PathBuf> {
    std::env::var_os("DIR").map(PathBuf::from)
}

#[test]
fn a_full_disk_is_told_and_harms_nothing() {
    let Some(dir) = prepared_dir() else {
        let parent = tempdir().expect("directory");
        let setup = "mount -t tmpfs -o size=64k,mode=700 none \"$DIR\"";
        return in_namespace(
            setup,
            "a_full_disk_is_told_and_harms_nothing",
            parent.path(),
        );
    };
    let store = FileStore::open(&dir, "job");
    run(whole_run(&store, 1));
    let before = fs::read_to_string(dir.join("job.json")).expect("record");
    let mut filler = vec![0_u8; 1 << 20];
    while fs::write(dir.join("filler"), &filler).is_err() && filler.len() > 1 {
        let half = filler.len() / 2;
        filler.truncate(half);
    }
    // What is left of the last page goes too.
    for number in 0..64 {
        let _ = fs::write(dir.join(format!("f{number}")), [0; 4096]);
    }
    let err = refusal(&dir);
    assert_eq!(
        (err.class, err.unsettled),
        (Class::CannotStore, false),
        "{err}"
    );
    assert!(
        err.message
            .contains("job.json: No space left on device: free some space"),
        "{err}"
    );
    assert_eq!(
        fs::read_to_string(dir.join("job.json")).expect("record"),
        before
    );
    assert!(!dir.join("job.tmp").exists());
    for number in 0..64 {
        let _ = fs::remove_file(dir.join(format!("f{number}")));
    }
    run(whole_run(&store, 2));
}

#[test]
fn a_read_only_file_system_is_told() {
    let Some(dir) = prepared_dir() else {
        let parent = tempdir().expect("directory");
        let setup = "mount -t tmpfs -o mode=700 none \"$DIR\"; mount -o remount,ro \"$DIR\"";
        return in_namespace(setup, "a_read_only_file_system_is_told", parent.path());
    };
    for dir in [dir.clone(), dir.join("new")] {
        let err = refusal(&dir);
        assert_eq!(err.class, Class::CannotStore, "{err}");
        assert!(
            err.message
                .contains("Read-only file system: name another place with --store file:///DIR"),
            "{err}"
        );
    }
}

#[test]
fn the_file_store_says_what_the_rules_say() {
    let (_parent, dir) = place();
    let (wall, lease) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let time = {
        let (wall, lease) = (Arc::clone(&wall), Arc::clone(&lease));
        Arc::new(move || StoreTime {
            wall_us: wall.load(Ordering::Relaxed),
            lease_ms: lease.load(Ordering::Relaxed),
        })
    };
    let store = FileStore::open_with(&dir, "job", "boot", time);
    let mut history = History::new(11);
    run(async {
        for number in 0..if long() { 50_000 } else { 1_500 } {
            let (step, now) = history.next();
            wall.store(now.wall_us, Ordering::Relaxed);
            lease.store(now.lease_ms, Ordering::Relaxed);
            let expected = history.apply(&step, now);
            let reply = match &step {
                Step::Claim(claim) => {
                    Reply::Claim(store.claim(claim, WITHIN).await.expect("claim"))
                }
                Step::Beat(beat) => Reply::Beat(store.beat(beat, WITHIN).await.expect("beat")),
                Step::Free(free) => Reply::Free(store.free(free, WITHIN).await.expect("free")),
                Step::Wipe => {
                    let _ = fs::remove_file(dir.join("job.json"));
                    Reply::Wiped
                }
            };
            assert_eq!(reply, expected, "step {number}: {step:?}");
            let (record, _) = store.read(WITHIN).await.expect("read");
            assert_eq!(record, history.record, "step {number}: {step:?}");
        }
    });
}
