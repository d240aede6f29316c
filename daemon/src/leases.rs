//! Who pins which revision; time is an argument.
