//! The rules of the lock one by one: tables of every border, and properties
//! over random records, requests and times.

mod beat_and_free;
mod claim;
mod claimant;
mod holder;
mod holder_random;
mod lease;
mod make;
mod rules_random;
