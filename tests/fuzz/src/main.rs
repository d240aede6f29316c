//! The program that looks for bytes that break a target: libFuzzer around what `SEMAPRAX_FUZZ` names.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use semaprax_fuzz::{Target, by_name};

fuzz_target!(|bytes: &[u8]| {
    static CHOSEN: OnceLock<Target> = OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| {
        let name = std::env::var("SEMAPRAX_FUZZ").unwrap_or_default();
        by_name(&name).unwrap_or_else(|| panic!("SEMAPRAX_FUZZ={name} names no target"))
    });
    chosen(bytes);
});
