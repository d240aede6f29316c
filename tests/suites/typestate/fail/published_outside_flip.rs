//! A publication that never was.

use semaprax_daemon::pipeline::flip::Published;
use semaprax_protocol::documents::Receipt;

fn make(receipt: Receipt) -> Published {
    Published { receipt }
}

fn main() {
    let _ = make;
}
