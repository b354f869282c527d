//! Schedules: crontab expressions, zones, and the next firing.
//!
//! Syntax and meaning are those of crontab(5) and cron(8) of Vixie cron and
//! cronie. Everything is pure but for [`zone`], which reads time zone rules.
//!
//! - [`Schedule`]: one or more expressions, each in its zone
//! - [`Agenda`]: what the waiting loop is to do at an instant
//! - [`text`]: how firings are printed, and how `--from` is read

mod agenda;
mod days;
mod error;
mod field;
mod hash;
mod naive;
mod next;
mod parse;
mod span;
mod term;
pub mod text;
mod union;
pub mod zone;
mod zone_names;

pub use agenda::{Agenda, Due, Missed};
pub use error::{Problem, ScheduleError};
pub use field::{Field, FieldError};
pub use span::Count;
pub use union::{Schedule, ZoneChoice};
pub use zone::{Zone, ZoneDb, ZoneError};
