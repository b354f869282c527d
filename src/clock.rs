//! The seam to time: wall clock, boot time and sleeping until an instant.
