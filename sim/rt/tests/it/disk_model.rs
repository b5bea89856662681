//! Random operations, then a power loss, against a reference that only remembers every content since the last sync.
mod crash_states;

use proptest::prelude::{Just, Strategy, any, prop};
use proptest::{prop_oneof, proptest};
use rt::fs::OpenOptions;
use rt::world::{self, WorldConfig, disk};

const SECTOR: usize = 512;

#[derive(Clone, Debug)]
enum Step {
    Write { offset: usize, length: usize, byte: u8 },
    SetLength(usize),
    Sync,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0..12_000_usize, 1..5_000_usize, 1..=255_u8).prop_map(|(offset, length, byte)| Step::Write { offset, length, byte }),
        2 => (0..14_000_usize).prop_map(Step::SetLength),
        2 => Just(Step::Sync),
    ]
}

/// What may be left of a file after a power loss.
#[derive(Clone, Debug)]
struct Reference {
    /// Every content that the file had since its last sync, that of the sync first.
    contents: Vec<Vec<u8>>,
    /// The shortest length since then.
    cut: usize,
}

impl Reference {
    fn new(synced: Vec<u8>) -> Reference {
        Reference { cut: synced.len(), contents: vec![synced] }
    }

    fn last(&self) -> &Vec<u8> {
        self.contents.last().expect("there is always one")
    }

    fn apply(&mut self, step: &Step) {
        let mut content = self.last().clone();
        match step {
            Step::Write { offset, length, byte } => {
                content.resize(content.len().max(offset + length), 0);
                content[*offset..offset + length].fill(*byte);
            }
            Step::SetLength(length) => content.resize(*length, 0),
            Step::Sync => return *self = Reference::new(content),
        }
        self.cut = self.cut.min(content.len());
        self.contents.push(content);
    }

    /// Why this must not be left, if so. Each sector of what survived is that sector of one of the contents, or of the synced one
    /// cut off; the length is between their lengths.
    fn refusal(&self, survived: &[u8]) -> Option<String> {
        let lengths = self.contents.iter().map(Vec::len);
        let (shortest, longest) = (lengths.clone().min().unwrap(), lengths.max().unwrap());
        if !(shortest..=longest).contains(&survived.len()) {
            return Some(format!("length {} is not in {shortest}..={longest}", survived.len()));
        }
        let cut = &self.contents[0][..self.cut];
        let unknown = survived.chunks(SECTOR).enumerate().find(|(at, sector)| {
            let from = at * SECTOR;
            !self.contents.iter().map(Vec::as_slice).chain([cut]).any(|content| {
                let byte = |offset: usize| content.get(from + offset).copied().unwrap_or(0);
                (0..sector.len()).all(|offset| sector[offset] == byte(offset))
            })
        });
        unknown.map(|(at, _)| format!("sector {at} was never like this"))
    }

    fn check(&self, survived: &[u8]) {
        assert_eq!(self.refusal(survived), None);
    }
}

#[test]
fn a_cut_may_survive_without_what_was_written_behind_it() {
    let mut reference = Reference::new(vec![1; 3]);
    reference.apply(&Step::SetLength(1));
    reference.apply(&Step::Write { offset: 0, length: 2, byte: 2 });
    for possible in [&[1, 1, 1][..], &[1], &[1, 0], &[2, 2], &[2, 2, 0]] {
        reference.check(possible);
    }
}

proptest! {
    #[test]
    fn a_power_loss_leaves_old_or_new_sectors(seed in any::<u64>(), lives in prop::collection::vec(prop::collection::vec(step(), 0..12), 1..4)) {
        world::run_test_with(WorldConfig { seed, ..WorldConfig::default() }, move || async move {
            let node = world::add_node("broker");
            disk::write_file(node, "/f", b"").unwrap();
            let mut reference = Reference::new(Vec::new());
            for steps in lives {
                let program = steps.clone();
                world::spawn_on(node, async move {
                    let file = OpenOptions::new().write(true).open("/f").unwrap();
                    for step in program {
                        match step {
                            Step::Write { offset, length, byte } => file.write_at(&vec![byte; length], offset as u64).unwrap(),
                            Step::SetLength(length) => file.set_len(length as u64).unwrap(),
                            Step::Sync => file.sync_data().await.unwrap(),
                        }
                    }
                })
                .await
                .unwrap();
                steps.iter().for_each(|step| reference.apply(step));
                assert_eq!(&disk::read_file(node, "/f").unwrap(), reference.last());
                disk::check_invariants(node);
                world::power_loss(node);
                disk::check_invariants(node);
                let survived = disk::read_file(node, "/f").unwrap();
                reference.check(&survived);
                reference = Reference::new(survived);
            }
        });
    }
}
