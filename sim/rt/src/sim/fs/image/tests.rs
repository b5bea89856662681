use super::{Image, PAGE, Rng, SECTOR};

#[test]
fn a_gap_reads_zero() {
    let mut image = Image::default();
    image.write_at(10_000, b"x", u64::MAX);
    let bytes = image.cached_bytes();
    assert_eq!(bytes.len(), 10_001);
    assert!(bytes[..10_000].iter().all(|byte| *byte == 0));
}

#[test]
fn a_cut_and_an_extension_show_zeros_even_after_power_loss() {
    for seed in 0..50 {
        let mut image = Image::default();
        image.plant(&[7; 3 * PAGE]);
        image.set_len(100);
        image.set_len(3 * PAGE as u64);
        assert!(image.cached_bytes()[100..].iter().all(|byte| *byte == 0));
        image.begin_sync(1);
        assert!(image.complete_sync(1));
        image.power_loss(&mut Rng::new(seed, "cut"));
        assert!(image.cached_bytes()[100..].iter().all(|byte| *byte == 0));
        assert_eq!(image.cached_bytes()[..100], [7; 100]);
        image.check_invariants();
    }
}

#[test]
fn a_full_disk_takes_what_fits() {
    let mut image = Image::default();
    assert_eq!(image.write_at(0, &[1; 3 * PAGE], 2), (2 * PAGE, 2));
    assert_eq!(image.len(), 2 * PAGE as u64);
    assert_eq!(image.write_at(10, &[2; PAGE], 0), (PAGE, 0), "an overwrite needs no room");
}

#[test]
fn bytes_written_while_a_sync_runs_are_not_covered_by_it() {
    let mut lost_some = false;
    for seed in 0..50 {
        let mut image = Image::default();
        image.write_at(0, &[1; SECTOR], u64::MAX);
        image.begin_sync(1);
        image.write_at(0, &[2; SECTOR], u64::MAX);
        assert!(image.complete_sync(1));
        image.power_loss(&mut Rng::new(seed, "during"));
        let first = image.cached_bytes()[0];
        assert!(first == 1 || first == 2);
        lost_some |= first == 1;
    }
    assert!(lost_some);
}

#[test]
fn a_failed_sync_drops_what_was_dirty_and_every_sync_under_way() {
    let mut image = Image::default();
    image.plant(&[1; PAGE]);
    image.write_at(0, &[2; SECTOR], u64::MAX);
    image.begin_sync(1);
    image.write_at(SECTOR as u64, &[3; SECTOR], u64::MAX);
    image.begin_sync(2);
    assert_eq!(image.fail_sync(2, false), 2);
    assert_eq!(image.cached_bytes(), [1; PAGE]);
    assert!(!image.complete_sync(1));
    image.begin_sync(3);
    assert!(image.complete_sync(3));
    image.check_invariants();
}

#[test]
fn pages_that_stay_after_a_failed_sync_are_gone_with_the_power_unless_their_page_is_written_again() {
    let mut written = vec![2; 2 * PAGE];
    let mut image = Image::default();
    image.plant(&[1; 2 * PAGE]);
    image.write_at(0, &written, u64::MAX);
    image.begin_sync(1);
    assert_eq!(image.fail_sync(1, true), 16);
    assert!(!image.complete_sync(1));
    assert_eq!(image.cached_bytes(), written);
    image.write_at(0, &[3], u64::MAX);
    image.begin_sync(2);
    assert!(image.complete_sync(2));
    image.check_invariants();
    written[0] = 3;
    assert_eq!(image.cached_bytes(), written);
    image.power_loss(&mut Rng::new(1, "image"));
    assert_eq!(image.cached_bytes(), [&written[..PAGE], &[1; PAGE]].concat(), "a page goes to the platter as a whole");
}
