//! Draws of faults that few programs survive in any number: a scenario names each that it wants.

use super::super::Kind;
use super::super::bit_rot::BitRot;
use super::super::disk_error::{DiskFails, DiskOperation};
use super::super::latent_sector_error::LatentSectorError;
use super::super::misdirected_write::MisdirectedWrite;
use super::super::open_files::OpenFiles;
use super::super::quota::Quota;
use super::super::stale_read::StaleRead;
use proptest::option;
use proptest::sample::select;
use proptest::strategy::{BoxedStrategy, Strategy};

/// A fault of that kind on one of the victims. `open_error`, `read_error` and `write_error` are faults of kind `disk_error` that strike
/// one operation soon or all.
pub(super) fn kind(kind: &str, victims: &[String]) -> Option<BoxedStrategy<Kind>> {
    let victim = select(victims.to_vec());
    Some(match kind {
        "open_error" => fails(victim, DiskOperation::Open),
        "read_error" => fails(victim, DiskOperation::Read),
        "write_error" => fails(victim, DiskOperation::Write),
        "latent_sector_error" => (victim, 1..64_u64)
            .prop_map(|(node, sectors)| {
                Kind::LatentSectorError(LatentSectorError { node, path_contains: None, sectors })
            })
            .boxed(),
        "bit_rot" => (victim, 1..16_u32)
            .prop_map(|(node, bits)| Kind::BitRot(BitRot { node, path_contains: None, bits }))
            .boxed(),
        "misdirected_write" => {
            victim.prop_map(|node| Kind::MisdirectedWrite(MisdirectedWrite { node, path_contains: None })).boxed()
        }
        "stale_read" => victim.prop_map(|node| Kind::StaleRead(StaleRead { node, path_contains: None })).boxed(),
        "open_files" => (victim, 0..8_u64).prop_map(|(node, max)| Kind::OpenFiles(OpenFiles { node, max })).boxed(),
        "quota" => {
            let full = |node| Quota { node, directory: "/".into(), bytes: 0 };
            victim.prop_map(move |node| Kind::Quota(full(node))).boxed()
        }
        _ => return None,
    })
}

fn fails(victim: impl Strategy<Value = String> + 'static, operation: DiskOperation) -> BoxedStrategy<Kind> {
    (victim, option::of(1..20_u64))
        .prop_map(move |(node, nth)| Kind::DiskFails(DiskFails { node, operation, path_contains: None, nth }))
        .boxed()
}

#[cfg(test)]
mod tests {
    use super::kind;
    use crate::fault::Kind;
    use crate::scenario::draw;

    #[test]
    fn each_kind_is_drawn_and_survives_a_file() {
        let victims = ["a".to_owned(), "b".to_owned()];
        let names = [
            ("open_error", "disk_error"),
            ("read_error", "disk_error"),
            ("write_error", "disk_error"),
            ("latent_sector_error", "latent_sector_error"),
            ("bit_rot", "bit_rot"),
            ("misdirected_write", "misdirected_write"),
            ("stale_read", "stale_read"),
            ("open_files", "open_files"),
            ("quota", "quota"),
        ];
        for (drawn, name) in names {
            let strategy = kind(drawn, &victims).expect("it can be drawn");
            for seed in 0..20 {
                let fault = draw(&strategy, drawn, seed);
                assert_eq!((fault.name(), fault.nodes().len()), (name, 1));
                let text = serde_json::to_string(&fault).expect("plain data");
                assert_eq!(serde_json::from_str::<Kind>(&text).expect("just written"), fault);
            }
        }
        assert!(kind("crash", &victims).is_none());
    }
}
