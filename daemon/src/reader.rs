//! Answers that need no writer.
