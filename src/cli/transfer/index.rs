//! The keys of an import: fingerprints instead of the names, so that millions fit into memory.

use std::hash::{BuildHasher as _, RandomState};

/// The fingerprints of the names of records, each with the number of its record: 20 bytes a record.
#[derive(Default)]
pub(super) struct Index {
    entries: Vec<Entry>,
    /// Two hashes with random keys make a fingerprint of 128 bits: two names with one fingerprint cannot be found.
    random: [RandomState; 2],
    is_sorted: bool,
}

type Fingerprint = [[u8; 8]; 2];

/// A fingerprint, and the number of the record.
type Entry = (Fingerprint, u32);

impl Index {
    fn fingerprint(&self, name: &str) -> Fingerprint {
        self.random
            .each_ref()
            .map(|random| random.hash_one(name).to_ne_bytes())
    }

    /// Adds the name of a record.
    pub(super) fn push(&mut self, name: &str, record: u32) {
        let entry = (self.fingerprint(name), record);
        self.entries.push(entry);
        self.is_sorted = false;
    }

    /// Sorts the entries, and calls `found` for each record whose name an earlier one has, with the number of the first.
    pub(super) fn find_repeated(&mut self, mut found: impl FnMut(u32, u32)) {
        self.entries.sort_unstable();
        self.is_sorted = true;
        for repeated in self.entries.chunk_by(|one, other| one.0 == other.0) {
            if let [(_, first), others @ ..] = repeated {
                others.iter().for_each(|(_, record)| found(*record, *first));
            }
        }
    }

    /// Whether a record has this name; [`Self::find_repeated`] comes first.
    pub(super) fn contains(&self, name: &str) -> bool {
        debug_assert!(self.is_sorted, "the entries are searched in their order");
        let wanted = self.fingerprint(name);
        let found = self.entries.binary_search_by(|(it, _)| it.cmp(&wanted));
        found.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_names_that_repeat_and_the_first_of_each() {
        let mut index = Index::default();
        for (record, name) in (0..).zip(["a", "b", "a", "c", "a", "b"]) {
            index.push(name, record);
        }
        let mut found = Vec::new();
        index.find_repeated(|record, first| found.push((record, first)));
        found.sort_unstable();
        assert_eq!(found, [(2, 0), (4, 0), (5, 1)]);
        assert!(index.contains("c") && !index.contains("d"));
    }

    #[test]
    fn a_record_takes_20_bytes() {
        // A vector has room for at most twice its entries, and the rank of each record is one byte more. Room that was
        // never used is not resident.
        assert_eq!(size_of::<Entry>(), 20);
    }
}
