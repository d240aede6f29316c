//! Who is next: round robin between connections, first in first out within one.
//!
//! Owns: the order of waiting submissions. A connection that was served goes to the back, so none is
//! served twice while another waits.
//! Never: knows what a submission is, or whether it may wait.

use std::collections::{BTreeMap, VecDeque};

use super::{ConnectionId, Ticket};

/// The waiting tickets in a fair order.
#[derive(Debug, Default)]
pub(super) struct Rotation {
    /// Connections with something waiting, the next one first.
    turns: VecDeque<ConnectionId>,
    /// What each of them waits for, oldest first; never empty.
    lines: BTreeMap<ConnectionId, VecDeque<Ticket>>,
}

impl Rotation {
    /// Puts a ticket behind those of its connection.
    pub(super) fn push(&mut self, connection: ConnectionId, ticket: Ticket) {
        let line = self.lines.entry(connection).or_default();
        if line.is_empty() {
            self.turns.push_back(connection);
        }
        line.push_back(ticket);
    }

    /// Takes the next ticket.
    pub(super) fn pop(&mut self) -> Option<Ticket> {
        let connection = self.turns.pop_front()?;
        let line = self.lines.get_mut(&connection)?;
        let ticket = line.pop_front();
        if line.is_empty() {
            self.lines.remove(&connection);
        } else {
            self.turns.push_back(connection);
        }
        ticket
    }

    /// Takes a ticket out of the middle.
    pub(super) fn remove(&mut self, connection: ConnectionId, ticket: Ticket) {
        let Some(line) = self.lines.get_mut(&connection) else {
            return;
        };
        line.retain(|&other| other != ticket);
        if line.is_empty() {
            self.lines.remove(&connection);
            self.turns.retain(|&other| other != connection);
        }
    }

    /// How many tickets of a connection wait.
    pub(super) fn waiting(&self, connection: ConnectionId) -> usize {
        self.lines.get(&connection).map_or(0, VecDeque::len)
    }

    /// The connection with the most, and how many.
    pub(super) fn longest(&self) -> Option<(ConnectionId, usize)> {
        let lengths = self.lines.iter().map(|(&owner, line)| (owner, line.len()));
        lengths.max_by_key(|&(_, length)| length)
    }

    /// What a connection put in last.
    pub(super) fn newest(&self, connection: ConnectionId) -> Option<Ticket> {
        self.lines.get(&connection)?.back().copied()
    }

    /// All tickets, the next one first, as they would be served if nothing else came.
    pub(super) fn in_order(&self) -> Vec<Ticket> {
        let longest = self.lines.values().map(VecDeque::len).max().unwrap_or(0);
        (0..longest)
            .flat_map(|round| {
                self.turns
                    .iter()
                    .filter_map(move |turn| self.lines.get(turn)?.get(round))
            })
            .copied()
            .collect()
    }

    /// The place of a ticket, 1 for the next one.
    pub(super) fn position(&self, connection: ConnectionId, ticket: Ticket) -> Option<u64> {
        let round = self
            .lines
            .get(&connection)?
            .iter()
            .position(|&other| other == ticket)?;
        let turn = self.turns.iter().position(|&other| other == connection)?;
        let before: usize = self
            .turns
            .iter()
            .enumerate()
            .filter_map(|(index, other)| {
                let rounds = if index < turn { round + 1 } else { round };
                Some(self.lines.get(other)?.len().min(rounds))
            })
            .sum();
        u64::try_from(before).ok().map(|before| before + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_agree_with_the_order() {
        let mut rotation = Rotation::default();
        for (ticket, connection) in [1, 1, 1, 2, 3, 3, 2].into_iter().enumerate() {
            rotation.push(ConnectionId::new(connection), Ticket::new(ticket as u64));
        }
        rotation.pop();
        rotation.remove(ConnectionId::new(3), Ticket::new(4));
        let owner = |ticket: Ticket| [1, 1, 1, 2, 3, 3, 2][usize::try_from(ticket.get()).unwrap()];
        let order = rotation.in_order();
        for (index, &ticket) in order.iter().enumerate() {
            let position = rotation.position(ConnectionId::new(owner(ticket)), ticket);
            assert_eq!(position, Some(index as u64 + 1), "{ticket:?}");
        }
        let served: Vec<u64> = std::iter::from_fn(|| rotation.pop()).map(owner).collect();
        assert_eq!(served, [2, 3, 1, 2, 1]);
        assert_eq!(order.len(), served.len());
    }
}
