//! What a server's error replies mean.

use super::error::Scene;
use crate::store::{Class, StoreError};

impl Scene {
    /// Puts a server's error reply into our words.
    #[must_use]
    pub fn explain_reply(&self, code: &str, detail: &str, script: Option<&str>) -> StoreError {
        let at = &self.at;
        // Up to Redis 6.2 a script wraps the error of a command in one of its own.
        let code = if code == "ERR" {
            inner_code(detail).unwrap_or(code)
        } else {
            code
        };
        let said = said(detail);
        let (class, message) = match code {
            "NOAUTH" => (
                Class::Auth,
                format!(
                    "{at} requires a password: write the store address as redis://USER:PASSWORD@HOST, best in a file for --store-file"
                ),
            ),
            "WRONGPASS" => return self.wrong_login(),
            "NOPERM" => return self.no_permission(detail, script),
            "LOADING" => (Class::NotReady, format!("{at} is still loading its data")),
            "MASTERDOWN" => (
                Class::NotReady,
                format!("{at} is a replica that has lost its master"),
            ),
            "CLUSTERDOWN" => (
                Class::NotReady,
                format!("{at} is part of a cluster that is down: {said}"),
            ),
            "TRYAGAIN" => (
                Class::NotReady,
                format!("{at} is moving data between nodes: {said}"),
            ),
            "BUSY" => (
                Class::NotReady,
                format!("{at} is busy with a script of another program"),
            ),
            "READONLY" => (
                Class::Failover,
                format!(
                    "{at} is a replica and takes no writes: the store address must lead to the master"
                ),
            ),
            "OOM" => (
                Class::CannotStore,
                format!(
                    "{at} refuses writes because its memory is full: raise maxmemory or free some"
                ),
            ),
            "MISCONF" => (
                Class::CannotStore,
                format!("{at} refuses writes because it cannot save to disk: see its log"),
            ),
            "NOREPLICAS" => (
                Class::CannotStore,
                format!(
                    "{at} refuses writes because too few replicas are connected (min-replicas-to-write)"
                ),
            ),
            "WRONGTYPE" => (
                Class::KeyMisuse,
                format!(
                    "the key {} on {at} holds something else: another program uses it, choose another --key-prefix",
                    self.key
                ),
            ),
            "MOVED" | "ASK" if self.cluster => (
                Class::NotReady,
                format!("{at} is just moving this lock to another node"),
            ),
            "MOVED" | "ASK" => {
                let node = detail.rsplit(' ').next().unwrap_or_default();
                (
                    Class::Topology,
                    format!(
                        "{at} is part of a Redis Cluster (this lock is on {node}): write the store address as {}://{}",
                        self.scheme("cluster"),
                        self.address
                    ),
                )
            }
            _ => return self.other(code, detail, &said, script),
        };
        self.error(class, message)
    }

    fn scheme(&self, kind: &str) -> String {
        format!("redis{}-{kind}", if self.tls { "s" } else { "" })
    }

    fn other(&self, code: &str, detail: &str, said: &str, script: Option<&str>) -> StoreError {
        let at = &self.at;
        if detail.contains("unauthenticated") {
            // It refuses to read a long request before a login.
            return self.explain_reply("NOAUTH", "", script);
        }
        let (class, message) = if detail.contains("ACL failure in script")
            || detail.contains("user executing the script can't")
        {
            return self.no_permission(detail, script);
        } else if detail.contains("cluster support disabled") {
            (
                Class::Topology,
                format!(
                    "{at} is no cluster: write the store address as redis{}://{}",
                    if self.tls { "s" } else { "" },
                    self.address
                ),
            )
        } else if detail.contains("without any password configured") {
            (
                Class::Auth,
                format!("{at} has no password set: leave it out of the store address"),
            )
        } else if detail.contains("DB index is out of range")
            || detail.contains("invalid DB index")
            || detail.contains("SELECT is not allowed in cluster")
        {
            (
                Class::Topology,
                format!("{at} has no such database: {said}"),
            )
        } else if detail.contains("max number of clients") {
            (
                Class::NotReady,
                format!("{at} has reached its maximum number of clients"),
            )
        } else if detail.contains("unknown command")
            && detail.to_ascii_lowercase().contains("sentinel")
        {
            (
                Class::Topology,
                format!(
                    "{at} is no sentinel: give the sentinels' ports, or write redis://{}",
                    self.address
                ),
            )
        } else if script.is_some()
            && (detail.contains("attempt to ") || detail.contains("bad argument"))
        {
            (
                Class::KeyMisuse,
                format!(
                    "the record {} on {at} is damaged, somebody changed it by hand: delete it (DEL) when nothing runs under this lock",
                    self.key
                ),
            )
        } else if detail.contains("unknown command") && detail.to_ascii_lowercase().contains("eval")
        {
            (
                Class::Topology,
                format!("{at} does not run scripts (EVAL), which the lock needs: {said}"),
            )
        } else {
            (Class::Other, format!("{at} answered: {code} {said}"))
        };
        self.error(class, message)
    }

    fn no_permission(&self, detail: &str, script: Option<&str>) -> StoreError {
        let (at, user) = (&self.at, &self.user);
        let may_not = if detail.contains(" key") {
            format!("has no permission for the key {}", self.key)
        } else if let Some(command) = quoted(detail).or_else(|| called_at(detail, script?)) {
            format!("has no permission to run {}", command.to_ascii_uppercase())
        } else {
            format!("lacks a permission ({})", said(detail))
        };
        self.error(
            Class::Permission,
            format!(
                "user {user} of {at} {may_not}: grant it with ACL SETUSER {user} {}",
                self.rights
            ),
        )
    }
}

/// The code inside an error that a script of Redis 6.2 and before passes on,
/// with or without the dash that it has on the wire.
fn inner_code(detail: &str) -> Option<&str> {
    const CODES: [&str; 8] = [
        "READONLY",
        "OOM",
        "NOREPLICAS",
        "MISCONF",
        "MASTERDOWN",
        "WRONGTYPE",
        "NOPERM",
        "LOADING",
    ];
    let mut words = detail.split([' ', '-']);
    words.find(|word| CODES.contains(word))
}

/// The text without the place in a script, which means nothing to a user.
fn said(detail: &str) -> String {
    let end = detail.find(" script: ").unwrap_or(detail.len());
    let text: String = detail[..end]
        .chars()
        .filter(|c| !c.is_control())
        .take(200)
        .collect();
    text.trim().to_owned()
}

/// A command named as `run the 'hset' command`.
fn quoted(detail: &str) -> Option<String> {
    let rest = detail.split("run the '").nth(1)?;
    rest.split('\'').next().map(str::to_owned)
}

/// The command called on the line of the script that the error names.
fn called_at(detail: &str, script: &str) -> Option<String> {
    let digits = detail.rsplit("@user_script:").next()?.trim_start();
    let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
    let line = script
        .lines()
        .nth(digits.parse::<usize>().ok()?.checked_sub(1)?)?;
    let mut calls = line
        .split("redis.call('")
        .skip(1)
        .filter_map(|rest| rest.split('\'').next());
    match (calls.next(), calls.next()) {
        (Some(one), None) => Some(one.to_owned()),
        (Some(one), Some(other)) => Some(format!("{one} or {other}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::Scene;
    use super::Class;

    fn class(code: &str, detail: &str) -> Class {
        let scene = Scene {
            at: "redis h:1".to_owned(),
            address: "h:1".to_owned(),
            tls: false,
            cluster: false,
            user: "u".to_owned(),
            key: "k".to_owned(),
            rights: "+eval".to_owned(),
        };
        scene.explain_reply(code, detail, None).class
    }

    #[test]
    fn a_code_counts_also_inside_a_script_s_error() {
        let old = "Error running script (call to f_1): @user_script:3: @user_script: 3: -OOM command not allowed when used memory > 'maxmemory'.";
        assert_eq!(class("ERR", old), Class::CannotStore);
        assert_eq!(class("OOM", "command not allowed"), Class::CannotStore);
        assert_eq!(
            class("MISCONF", "Redis is configured to save"),
            Class::CannotStore
        );
        assert_eq!(
            class("TRYAGAIN", "Multiple keys request during rehashing of slot"),
            Class::NotReady
        );
        assert_eq!(
            class("CLUSTERDOWN", "Hash slot not served"),
            Class::NotReady
        );
        assert_eq!(class("MOVED", "1 h:2"), Class::Topology);
        assert_eq!(class("ERR", "something of the new kind"), Class::Other);
        assert_eq!(class("NEWCODE", "something"), Class::Other);
    }
}
