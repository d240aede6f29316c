//! Trouble with the disk: what is on it is damaged, lost or not ours, and there is no room.
//!
//! After each damage every reading command gives the right answer or a refusal that names what is wrong, and
//! there is a way to put it right.

mod cases;
mod clock;
mod damage;
mod flips;
mod pages;
mod scene;
