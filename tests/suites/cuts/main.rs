//! Power cuts of real file systems, in the form that fits into every run of the tests.

mod images;
