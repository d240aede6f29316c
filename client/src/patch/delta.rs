//! git's delta format.
//!
//! Owns: making a content from another one and a delta, with every size and range checked.
//!
//! Never: makes a delta.

/// Why a delta does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DeltaError {
    /// The delta ends within an instruction, or holds the reserved one.
    #[error("the delta is malformed")]
    Malformed,
    /// The delta was made for a content of another length.
    #[error("the delta was made for {expected} bytes, not for {found}")]
    WrongOldSize {
        /// The length it was made for.
        expected: u64,
        /// The length there is.
        found: u64,
    },
    /// The delta copies from outside the old content, or makes another length than it says.
    #[error("the delta does not make what it says")]
    WrongNewSize,
    /// The delta says it makes more than the limit.
    #[error("the delta makes {size} bytes, more than {max}")]
    TooLarge {
        /// What it says it makes.
        size: u64,
        /// The most allowed.
        max: u64,
    },
}

/// Makes the new content.
pub(super) fn apply(old: &[u8], delta: &[u8], max: u64) -> Result<Vec<u8>, DeltaError> {
    let mut rest = delta;
    let expected = size(&mut rest)?;
    if expected != old.len() as u64 {
        let found = old.len() as u64;
        return Err(DeltaError::WrongOldSize { expected, found });
    }
    let new_size = size(&mut rest)?;
    if new_size > max {
        return Err(DeltaError::TooLarge {
            size: new_size,
            max,
        });
    }
    let mut new = Vec::new();
    while let Some((&instruction, after)) = rest.split_first() {
        rest = after;
        let bytes = if instruction & 0x80 != 0 {
            let offset = number(&mut rest, instruction, 4)?;
            let count = number(&mut rest, instruction >> 4, 3)?;
            let count = if count == 0 { 0x1_0000 } else { count };
            old.get(offset..offset.saturating_add(count))
                .ok_or(DeltaError::WrongNewSize)?
        } else {
            let count = usize::from(instruction);
            let (bytes, after) = rest.split_at_checked(count).ok_or(DeltaError::Malformed)?;
            if count == 0 {
                return Err(DeltaError::Malformed);
            }
            rest = after;
            bytes
        };
        if (new.len() + bytes.len()) as u64 > new_size {
            return Err(DeltaError::WrongNewSize);
        }
        new.extend_from_slice(bytes);
    }
    if new.len() as u64 == new_size {
        Ok(new)
    } else {
        Err(DeltaError::WrongNewSize)
    }
}

/// A size in groups of seven bits, the lowest first.
fn size(rest: &mut &[u8]) -> Result<u64, DeltaError> {
    let mut value: u64 = 0;
    for shift in (0..63).step_by(7) {
        let (&byte, after) = rest.split_first().ok_or(DeltaError::Malformed)?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(DeltaError::Malformed)
}

/// A number of which only the bytes with a bit in `present` are there, the lowest first.
fn number(rest: &mut &[u8], present: u8, bytes: u8) -> Result<usize, DeltaError> {
    let mut value = 0;
    for place in (0..bytes).filter(|place| present & (1 << place) != 0) {
        let (&byte, after) = rest.split_first().ok_or(DeltaError::Malformed)?;
        *rest = after;
        value |= usize::from(byte) << (8 * place);
    }
    Ok(value)
}
