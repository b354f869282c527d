//! A record as it lies in a file: JSON with a version and the id of the boot
//! that `until` counts from.

use serde::{Deserialize, Serialize};

use crate::lock::record::{Ms, Owner, Record, State};

/// The version that is written, and the only one that is read.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Versioned {
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    boot: String,
    record: Stored,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    owner: Option<String>,
    token: u64,
    firing: Option<Ms>,
    state: String,
    attempt: u32,
    grants: u32,
    until: Ms,
    ttl: Ms,
    mark: Ms,
    born: Ms,
    once: Option<Ms>,
    void: Vec<String>,
    keep: Ms,
    started: Ms,
    ended: Option<Ms>,
    code: Option<i32>,
    info: String,
}

/// The text for a record that was changed during the boot of this id.
pub fn write(record: &Record, boot: &str) -> Result<Vec<u8>, serde_json::Error> {
    let stored = Stored {
        owner: record.owner.map(|owner| owner.to_string()),
        token: record.token,
        firing: record.firing,
        state: record.state.as_str().to_owned(),
        attempt: record.attempt,
        grants: record.grants,
        until: record.until,
        ttl: record.ttl,
        mark: record.mark,
        born: record.born,
        once: record.once,
        void: record.void.iter().map(ToString::to_string).collect(),
        keep: record.keep,
        started: record.started,
        ended: record.ended,
        code: record.code,
        info: record.info.clone(),
    };
    let mut text = serde_json::to_vec(&File {
        version: VERSION,
        boot: boot.to_owned(),
        record: stored,
    })?;
    text.push(b'\n');
    Ok(text)
}

/// Reads a record. A lease of another boot is over, as nothing that ran then
/// runs now.
///
/// # Errors
///
/// What is wrong with the text. It is never taken for an empty record: what was
/// started could be started again.
pub fn read(text: &[u8], boot: &str) -> Result<Record, String> {
    let damaged = |err: &dyn std::fmt::Display| format!("is damaged ({err})");
    let version: Versioned = serde_json::from_slice(text).map_err(|err| damaged(&err))?;
    if version.version != VERSION {
        return Err(format!(
            "is of version {}, but this solocron knows version {VERSION}",
            version.version
        ));
    }
    let file: File = serde_json::from_slice(text).map_err(|err| damaged(&err))?;
    let stored = file.record;
    let owner = |text: &String| text.parse::<Owner>().map_err(|err| damaged(&err));
    let state: State = stored
        .state
        .parse()
        .map_err(|_| damaged(&"an unknown state"))?;
    Ok(Record {
        owner: stored.owner.as_ref().map(owner).transpose()?,
        token: stored.token,
        firing: stored.firing,
        state,
        attempt: stored.attempt,
        grants: stored.grants,
        until: if file.boot == boot { stored.until } else { 0 },
        ttl: stored.ttl,
        mark: stored.mark,
        born: stored.born,
        once: stored.once,
        void: stored.void.iter().map(owner).collect::<Result<_, _>>()?,
        keep: stored.keep,
        started: stored.started,
        ended: stored.ended,
        code: stored.code,
        info: stored.info,
    })
}
