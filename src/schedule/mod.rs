//! Schedules: crontab expressions, zones, and the next firing.
