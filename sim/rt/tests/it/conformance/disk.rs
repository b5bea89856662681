//! Files as a program sees them.
use super::stage::{Stage, until};
use rt::fs::{
    File, Metadata, OpenOptions, create_dir, create_dir_all, free_bytes, metadata, read, read_dir, read_or_backup,
    remove_dir, remove_file, rename, replace, sync_dir,
};
use rt::sync::oneshot;
use std::io::{self, ErrorKind};
use std::path::Path;

super::table! {
    a_read_at_the_end_is_empty
    a_read_over_the_end_is_short
    an_exact_read_over_the_end_fails
    a_gap_reads_zero
    an_overwrite_keeps_the_rest
    an_empty_write_beyond_the_end_changes_nothing
    set_len_cuts_and_extends_with_zeros
    opening_what_is_missing_fails
    create_new_refuses_what_exists
    create_keeps_what_exists
    creating_needs_write
    truncate_empties
    a_read_only_handle_refuses_to_write
    a_read_only_handle_refuses_set_len
    an_offset_beyond_the_signed_range_is_invalid
    a_directory_cannot_be_opened_for_writing
    a_directory_cannot_be_read_as_a_file
    a_file_is_no_directory_of_a_path
    an_empty_path_names_nothing
    a_long_name_is_refused
    rename_replaces_at_once_and_old_handles_go_on
    rename_of_what_is_missing_fails
    rename_onto_itself_succeeds
    rename_moves_between_directories
    rename_keeps_files_and_directories_apart
    rename_into_itself_is_invalid
    a_handle_follows_a_rename
    a_removed_file_lives_until_it_is_closed
    remove_file_refuses_what_is_no_file
    remove_dir_refuses_what_is_no_empty_directory
    entries_are_sorted_and_full_paths
    read_dir_refuses_what_is_no_directory
    create_dir_refuses_what_exists_and_what_has_no_parent
    create_dir_all_creates_what_is_missing
    metadata_tells_files_from_directories
    a_lock_excludes_other_handles
    a_lock_is_shared_by_clones_and_ends_with_the_last
    a_lock_is_taken_again_by_its_holder
    two_handles_see_one_file
    syncs_succeed
    sync_dir_of_what_is_missing_fails
    a_whole_file_is_read
    reading_whole_what_is_no_file_fails
    free_bytes_are_no_more_than_all
    replace_leaves_the_new_and_a_backup
    a_missing_or_empty_file_is_read_from_its_backup
    a_large_file_keeps_every_byte
    create_new_with_truncate_makes_an_empty_file
    a_path_that_ends_with_a_slash_is_a_directory
    the_root_is_neither_created_nor_removed
    dots_in_a_path_lead_nowhere_else
    rename_replaces_an_empty_directory
    rename_below_a_file_fails
    a_directory_is_removed_while_it_is_open
    a_directory_is_open_for_reading_only
    a_write_of_nothing_keeps_the_length
    a_file_is_extended_without_bytes
    a_removed_lock_file_does_not_lock_the_next
    a_lock_of_another_file_is_another_lock
    a_read_only_handle_takes_a_lock
    locks_end_with_their_task
    a_sync_of_a_removed_file_succeeds
    a_removed_directory_cannot_be_synced
    create_dir_all_takes_what_is_there
}

fn writable(path: impl AsRef<Path>) -> File {
    OpenOptions::new().write(true).create(true).open(path).unwrap()
}

fn file_with(path: impl AsRef<Path>, bytes: &[u8]) -> File {
    let file = writable(path);
    file.write_at(bytes, 0).unwrap();
    file
}

fn kind<T: std::fmt::Debug>(result: io::Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

async fn a_read_at_the_end_is_empty(stage: Stage) {
    let file = file_with(stage.path("f"), b"abc");
    assert_eq!(file.read_at(&mut [0; 8], 3).await.unwrap(), 0);
    assert_eq!(file.read_at(&mut [0; 8], 1 << 40).await.unwrap(), 0);
    assert_eq!(file.read_at(&mut [], 0).await.unwrap(), 0);
}

async fn a_read_over_the_end_is_short(stage: Stage) {
    let file = file_with(stage.path("f"), b"abc");
    let mut out = [9; 4];
    assert_eq!(file.read_at(&mut out, 1).await.unwrap(), 2);
    assert_eq!(out, [b'b', b'c', 9, 9]);
}

async fn an_exact_read_over_the_end_fails(stage: Stage) {
    let file = file_with(stage.path("f"), b"abc");
    assert_eq!(kind(file.read_exact_at(&mut [0; 4], 0).await), ErrorKind::UnexpectedEof);
    let mut out = [0; 3];
    file.read_exact_at(&mut out, 0).await.unwrap();
    assert_eq!(&out, b"abc");
}

async fn a_gap_reads_zero(stage: Stage) {
    let file = writable(stage.path("f"));
    file.write_at(b"x", 9_000).unwrap();
    assert_eq!(file.len().unwrap(), 9_001);
    let bytes = read(stage.path("f")).await.unwrap();
    assert!(bytes[..9_000].iter().all(|byte| *byte == 0));
    assert_eq!(bytes[9_000], b'x');
}

async fn an_overwrite_keeps_the_rest(stage: Stage) {
    let file = file_with(stage.path("f"), &[1; 10_000]);
    file.write_at(&[2; 10], 4_091).unwrap();
    let bytes = read(stage.path("f")).await.unwrap();
    assert_eq!(bytes.len(), 10_000);
    assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == if (4_091..4_101).contains(&at) { 2 } else { 1 }));
}

async fn an_empty_write_beyond_the_end_changes_nothing(stage: Stage) {
    let file = file_with(stage.path("f"), b"abc");
    file.write_at(&[], 100).unwrap();
    assert_eq!(file.len().unwrap(), 3);
}

async fn set_len_cuts_and_extends_with_zeros(stage: Stage) {
    let file = file_with(stage.path("f"), &[7; 9_000]);
    file.set_len(5_000).unwrap();
    assert_eq!(file.len().unwrap(), 5_000);
    assert!(!file.is_empty().unwrap());
    file.set_len(9_000).unwrap();
    let bytes = read(stage.path("f")).await.unwrap();
    assert!(bytes[..5_000].iter().all(|byte| *byte == 7));
    assert!(bytes[5_000..].iter().all(|byte| *byte == 0));
    assert_eq!(bytes.len(), 9_000);
    file.set_len(0).unwrap();
    assert!(file.is_empty().unwrap());
}

async fn opening_what_is_missing_fails(stage: Stage) {
    assert_eq!(kind(File::open(stage.path("f"))), ErrorKind::NotFound);
    assert_eq!(kind(OpenOptions::new().write(true).open(stage.path("f"))), ErrorKind::NotFound);
    assert_eq!(kind(OpenOptions::new().write(true).create(true).open(stage.path("d/f"))), ErrorKind::NotFound);
}

async fn create_new_refuses_what_exists(stage: Stage) {
    let create_new = OpenOptions::new().write(true).create_new(true);
    create_new.open(stage.path("f")).unwrap();
    assert_eq!(kind(create_new.open(stage.path("f"))), ErrorKind::AlreadyExists);
    create_dir(stage.path("d")).unwrap();
    assert_eq!(kind(create_new.open(stage.path("d"))), ErrorKind::AlreadyExists);
}

async fn create_keeps_what_exists(stage: Stage) {
    drop(file_with(stage.path("f"), b"abc"));
    assert_eq!(writable(stage.path("f")).len().unwrap(), 3);
}

async fn creating_needs_write(stage: Stage) {
    assert_eq!(kind(OpenOptions::new().create(true).open(stage.path("f"))), ErrorKind::InvalidInput);
    assert_eq!(kind(OpenOptions::new().create_new(true).open(stage.path("f"))), ErrorKind::InvalidInput);
    assert_eq!(kind(OpenOptions::new().truncate(true).open(stage.path("f"))), ErrorKind::InvalidInput);
}

async fn truncate_empties(stage: Stage) {
    drop(file_with(stage.path("f"), b"abc"));
    let file = OpenOptions::new().write(true).truncate(true).open(stage.path("f")).unwrap();
    assert_eq!(file.len().unwrap(), 0);
}

async fn a_read_only_handle_refuses_to_write(stage: Stage) {
    drop(file_with(stage.path("f"), b"abc"));
    let error = File::open(stage.path("f")).unwrap().write_at(b"x", 0).unwrap_err();
    // EBADF has no kind of its own.
    assert_eq!(error.raw_os_error(), Some(9));
    assert_eq!(read(stage.path("f")).await.unwrap(), b"abc");
}

async fn a_read_only_handle_refuses_set_len(stage: Stage) {
    drop(file_with(stage.path("f"), b"abc"));
    assert_eq!(kind(File::open(stage.path("f")).unwrap().set_len(1)), ErrorKind::InvalidInput);
}

async fn an_offset_beyond_the_signed_range_is_invalid(stage: Stage) {
    let file = file_with(stage.path("f"), b"abc");
    assert_eq!(kind(file.write_at(b"x", u64::MAX)), ErrorKind::InvalidInput);
    assert_eq!(kind(file.read_at(&mut [0; 1], u64::MAX).await), ErrorKind::InvalidInput);
    assert_eq!(kind(file.set_len(u64::MAX)), ErrorKind::InvalidInput);
}

async fn a_directory_cannot_be_opened_for_writing(stage: Stage) {
    create_dir(stage.path("d")).unwrap();
    assert_eq!(kind(OpenOptions::new().write(true).open(stage.path("d"))), ErrorKind::IsADirectory);
    assert_eq!(kind(OpenOptions::new().write(true).create(true).open(stage.path("d"))), ErrorKind::IsADirectory);
}

async fn a_directory_cannot_be_read_as_a_file(stage: Stage) {
    create_dir(stage.path("d")).unwrap();
    let directory = File::open(stage.path("d")).unwrap();
    assert_eq!(kind(directory.read_at(&mut [0; 1], 0).await), ErrorKind::IsADirectory);
    directory.sync_data().await.unwrap();
}

async fn a_file_is_no_directory_of_a_path(stage: Stage) {
    drop(file_with(stage.path("f"), b"abc"));
    assert_eq!(kind(File::open(stage.path("f/g"))), ErrorKind::NotADirectory);
    assert_eq!(kind(create_dir(stage.path("f/g"))), ErrorKind::NotADirectory);
    assert_eq!(kind(metadata(stage.path("f/g"))), ErrorKind::NotADirectory);
    assert_eq!(kind(remove_file(stage.path("f/g"))), ErrorKind::NotADirectory);
}

async fn an_empty_path_names_nothing(_: Stage) {
    assert_eq!(kind(File::open("")), ErrorKind::NotFound);
    assert_eq!(kind(metadata("")), ErrorKind::NotFound);
    assert_eq!(kind(create_dir("")), ErrorKind::NotFound);
}

async fn a_long_name_is_refused(stage: Stage) {
    let name = "n".repeat(256);
    assert_eq!(kind(OpenOptions::new().write(true).create(true).open(stage.path(&name))), ErrorKind::InvalidFilename);
    drop(file_with(stage.path(&name[..255]), b"x"));
}

async fn rename_replaces_at_once_and_old_handles_go_on(stage: Stage) {
    let old = file_with(stage.path("f"), b"old");
    drop(file_with(stage.path("f.tmp"), b"new"));
    rename(stage.path("f.tmp"), stage.path("f")).unwrap();
    assert_eq!(read(stage.path("f")).await.unwrap(), b"new");
    assert_eq!(kind(metadata(stage.path("f.tmp"))), ErrorKind::NotFound);
    let mut out = [0; 3];
    old.read_exact_at(&mut out, 0).await.unwrap();
    assert_eq!(&out, b"old");
}

async fn rename_of_what_is_missing_fails(stage: Stage) {
    assert_eq!(kind(rename(stage.path("f"), stage.path("g"))), ErrorKind::NotFound);
    drop(file_with(stage.path("f"), b"x"));
    assert_eq!(kind(rename(stage.path("f"), stage.path("d/f"))), ErrorKind::NotFound);
}

async fn rename_onto_itself_succeeds(stage: Stage) {
    drop(file_with(stage.path("f"), b"abc"));
    rename(stage.path("f"), stage.path("f")).unwrap();
    assert_eq!(read(stage.path("f")).await.unwrap(), b"abc");
}

async fn rename_moves_between_directories(stage: Stage) {
    create_dir_all(stage.path("a/b")).unwrap();
    drop(file_with(stage.path("a/b/f"), b"abc"));
    rename(stage.path("a/b/f"), stage.path("g")).unwrap();
    assert_eq!(read(stage.path("g")).await.unwrap(), b"abc");
    drop(file_with(stage.path("a/b/h"), b"below"));
    rename(stage.path("a/b"), stage.path("moved")).unwrap();
    assert_eq!(read(stage.path("moved/h")).await.unwrap(), b"below");
}

async fn rename_keeps_files_and_directories_apart(stage: Stage) {
    drop(file_with(stage.path("f"), b"x"));
    create_dir(stage.path("d")).unwrap();
    create_dir_all(stage.path("full/e")).unwrap();
    create_dir(stage.path("empty")).unwrap();
    assert_eq!(kind(rename(stage.path("f"), stage.path("d"))), ErrorKind::IsADirectory);
    assert_eq!(kind(rename(stage.path("d"), stage.path("f"))), ErrorKind::NotADirectory);
    assert_eq!(kind(rename(stage.path("d"), stage.path("full"))), ErrorKind::DirectoryNotEmpty);
    rename(stage.path("full"), stage.path("empty")).unwrap();
    assert_eq!(read_dir(stage.path("empty")).unwrap(), [stage.path("empty/e")]);
}

async fn rename_into_itself_is_invalid(stage: Stage) {
    create_dir(stage.path("d")).unwrap();
    assert_eq!(kind(rename(stage.path("d"), stage.path("d/e"))), ErrorKind::InvalidInput);
}

async fn a_handle_follows_a_rename(stage: Stage) {
    let file = file_with(stage.path("f"), b"abc");
    rename(stage.path("f"), stage.path("g")).unwrap();
    file.write_at(b"d", 3).unwrap();
    assert_eq!(read(stage.path("g")).await.unwrap(), b"abcd");
}

async fn a_removed_file_lives_until_it_is_closed(stage: Stage) {
    let file = file_with(stage.path("f"), b"abc");
    remove_file(stage.path("f")).unwrap();
    assert_eq!(kind(File::open(stage.path("f"))), ErrorKind::NotFound);
    file.write_at(b"d", 3).unwrap();
    file.sync_data().await.unwrap();
    let mut out = [0; 4];
    file.read_exact_at(&mut out, 0).await.unwrap();
    assert_eq!(&out, b"abcd");
    drop(file_with(stage.path("f"), b"another"));
    assert_eq!(file.len().unwrap(), 4);
}

async fn remove_file_refuses_what_is_no_file(stage: Stage) {
    create_dir(stage.path("d")).unwrap();
    assert_eq!(kind(remove_file(stage.path("d"))), ErrorKind::IsADirectory);
    assert_eq!(kind(remove_file(stage.path("f"))), ErrorKind::NotFound);
}

async fn remove_dir_refuses_what_is_no_empty_directory(stage: Stage) {
    create_dir(stage.path("d")).unwrap();
    drop(file_with(stage.path("d/f"), b"x"));
    assert_eq!(kind(remove_dir(stage.path("d"))), ErrorKind::DirectoryNotEmpty);
    assert_eq!(kind(remove_dir(stage.path("d/f"))), ErrorKind::NotADirectory);
    assert_eq!(kind(remove_dir(stage.path("e"))), ErrorKind::NotFound);
    remove_file(stage.path("d/f")).unwrap();
    remove_dir(stage.path("d")).unwrap();
    assert_eq!(kind(metadata(stage.path("d"))), ErrorKind::NotFound);
}

async fn entries_are_sorted_and_full_paths(stage: Stage) {
    create_dir(stage.path("d")).unwrap();
    for name in ["b", "a", "10", "9"] {
        drop(file_with(stage.path("d").join(name), b""));
    }
    create_dir(stage.path("d/c")).unwrap();
    let expected: Vec<_> = ["10", "9", "a", "b", "c"].iter().map(|name| stage.path("d").join(name)).collect();
    assert_eq!(read_dir(stage.path("d")).unwrap(), expected);
}

async fn read_dir_refuses_what_is_no_directory(stage: Stage) {
    drop(file_with(stage.path("f"), b"x"));
    assert_eq!(kind(read_dir(stage.path("f"))), ErrorKind::NotADirectory);
    assert_eq!(kind(read_dir(stage.path("d"))), ErrorKind::NotFound);
}

async fn create_dir_refuses_what_exists_and_what_has_no_parent(stage: Stage) {
    create_dir(stage.path("d")).unwrap();
    drop(file_with(stage.path("f"), b"x"));
    assert_eq!(kind(create_dir(stage.path("d"))), ErrorKind::AlreadyExists);
    assert_eq!(kind(create_dir(stage.path("f"))), ErrorKind::AlreadyExists);
    assert_eq!(kind(create_dir(stage.path("e/d"))), ErrorKind::NotFound);
}

async fn create_dir_all_creates_what_is_missing(stage: Stage) {
    create_dir_all(stage.path("a/b/c")).unwrap();
    create_dir_all(stage.path("a/b/c")).unwrap();
    assert!(metadata(stage.path("a/b/c")).unwrap().is_dir);
    drop(file_with(stage.path("f"), b"x"));
    assert_eq!(kind(create_dir_all(stage.path("f"))), ErrorKind::AlreadyExists);
    assert_eq!(kind(create_dir_all(stage.path("f/d"))), ErrorKind::NotADirectory);
}

async fn metadata_tells_files_from_directories(stage: Stage) {
    drop(file_with(stage.path("f"), b"abc"));
    create_dir(stage.path("d")).unwrap();
    assert_eq!(metadata(stage.path("f")).unwrap(), Metadata { len: 3, is_dir: false });
    assert!(metadata(stage.path("d")).unwrap().is_dir);
    assert_eq!(kind(metadata(stage.path("e"))), ErrorKind::NotFound);
}

async fn a_lock_excludes_other_handles(stage: Stage) {
    let one = writable(stage.path("lock"));
    let other = writable(stage.path("lock"));
    one.try_lock().unwrap();
    assert_eq!(kind(other.try_lock()), ErrorKind::WouldBlock);
    drop(one);
    other.try_lock().unwrap();
}

async fn a_lock_is_shared_by_clones_and_ends_with_the_last(stage: Stage) {
    let one = writable(stage.path("lock"));
    one.try_lock().unwrap();
    let clone = one.clone();
    drop(one);
    let other = writable(stage.path("lock"));
    assert_eq!(kind(other.try_lock()), ErrorKind::WouldBlock);
    clone.try_lock().unwrap();
    drop(clone);
    other.try_lock().unwrap();
}

async fn a_lock_is_taken_again_by_its_holder(stage: Stage) {
    let file = writable(stage.path("lock"));
    file.try_lock().unwrap();
    file.try_lock().unwrap();
}

async fn two_handles_see_one_file(stage: Stage) {
    let one = file_with(stage.path("f"), b"abc");
    let other = File::open(stage.path("f")).unwrap();
    one.write_at(b"X", 1).unwrap();
    let mut out = [0; 3];
    other.read_exact_at(&mut out, 0).await.unwrap();
    assert_eq!(&out, b"aXc");
}

async fn syncs_succeed(stage: Stage) {
    let file = file_with(stage.path("f"), b"abc");
    file.sync_data().await.unwrap();
    file.sync_data().await.unwrap();
    sync_dir(stage.path("")).await.unwrap();
    sync_dir(stage.path("f")).await.unwrap();
}

async fn sync_dir_of_what_is_missing_fails(stage: Stage) {
    assert_eq!(kind(sync_dir(stage.path("d")).await), ErrorKind::NotFound);
}

async fn a_whole_file_is_read(stage: Stage) {
    drop(file_with(stage.path("f"), &[5; 20_000]));
    assert_eq!(read(stage.path("f")).await.unwrap(), [5; 20_000]);
    drop(writable(stage.path("empty")));
    assert!(read(stage.path("empty")).await.unwrap().is_empty());
}

async fn reading_whole_what_is_no_file_fails(stage: Stage) {
    create_dir(stage.path("d")).unwrap();
    assert_eq!(kind(read(stage.path("d")).await), ErrorKind::IsADirectory);
    assert_eq!(kind(read(stage.path("f")).await), ErrorKind::NotFound);
}

async fn free_bytes_are_no_more_than_all(stage: Stage) {
    let (free, all) = free_bytes(stage.path("")).unwrap();
    assert!(free <= all);
    assert!(all > 0);
    assert_eq!(kind(free_bytes(stage.path("missing"))), ErrorKind::NotFound);
}

fn accept(bytes: &[u8]) -> io::Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| ErrorKind::InvalidData.into())
}

async fn replace_leaves_the_new_and_a_backup(stage: Stage) {
    let path = stage.path("config.json");
    replace(&path, b"one").await.unwrap();
    replace(&path, b"two").await.unwrap();
    assert_eq!(read(&path).await.unwrap(), b"two");
    assert_eq!(read(stage.path("config.json.bak")).await.unwrap(), b"one");
    assert_eq!(read_or_backup(&path, accept).await.unwrap(), Some("two".to_owned()));
}

async fn a_missing_or_empty_file_is_read_from_its_backup(stage: Stage) {
    let path = stage.path("config.json");
    assert_eq!(read_or_backup(&path, accept).await.unwrap(), None);
    drop(file_with(stage.path("config.json.bak"), b"backup"));
    assert_eq!(read_or_backup(&path, accept).await.unwrap(), Some("backup".to_owned()));
    drop(writable(&path));
    assert_eq!(read_or_backup(&path, accept).await.unwrap(), Some("backup".to_owned()));
    drop(file_with(&path, &[0xFF]));
    assert_eq!(read_or_backup(&path, accept).await.unwrap(), Some("backup".to_owned()));
}

async fn a_large_file_keeps_every_byte(stage: Stage) {
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 253) as u8).collect();
    let file = writable(stage.path("f"));
    for (at, chunk) in bytes.chunks(70_001).enumerate() {
        file.write_at(chunk, at as u64 * 70_001).unwrap();
    }
    file.sync_data().await.unwrap();
    assert!(read(stage.path("f")).await.unwrap() == bytes);
}

async fn create_new_with_truncate_makes_an_empty_file(stage: Stage) {
    let both = OpenOptions::new().write(true).create_new(true).truncate(true);
    assert_eq!(both.open(stage.path("f")).unwrap().len().unwrap(), 0);
    drop(file_with(stage.path("f"), b"abc"));
    assert_eq!(kind(both.open(stage.path("f"))), ErrorKind::AlreadyExists);
    assert_eq!(read(stage.path("f")).await.unwrap(), b"abc", "what exists is not cut");
}

async fn a_path_that_ends_with_a_slash_is_a_directory(stage: Stage) {
    create_dir(stage.path("d/")).unwrap();
    assert!(metadata(stage.path("d/")).unwrap().is_dir);
    assert_eq!(kind(OpenOptions::new().write(true).create(true).open(stage.path("new/"))), ErrorKind::IsADirectory);
    assert_eq!(read_dir(stage.path("d/")).unwrap(), [] as [&Path; 0]);
    remove_dir(stage.path("d/")).unwrap();
}

async fn the_root_is_neither_created_nor_removed(_: Stage) {
    assert_eq!(kind(create_dir("/")), ErrorKind::AlreadyExists);
    assert_eq!(kind(remove_dir("/")), ErrorKind::ResourceBusy);
    assert_eq!(kind(remove_file("/")), ErrorKind::IsADirectory);
    assert!(metadata("/").unwrap().is_dir);
}

async fn dots_in_a_path_lead_nowhere_else(stage: Stage) {
    create_dir(stage.path("d")).unwrap();
    drop(file_with(stage.path("d/f"), b"abc"));
    assert_eq!(read(stage.path("./d/./f")).await.unwrap(), b"abc");
    assert_eq!(read(stage.path("d/../d/f")).await.unwrap(), b"abc");
}

async fn rename_replaces_an_empty_directory(stage: Stage) {
    create_dir(stage.path("d")).unwrap();
    create_dir(stage.path("e")).unwrap();
    drop(file_with(stage.path("d/f"), b"abc"));
    rename(stage.path("d"), stage.path("e")).unwrap();
    assert_eq!(read(stage.path("e/f")).await.unwrap(), b"abc");
    assert_eq!(kind(metadata(stage.path("d"))), ErrorKind::NotFound);
}

async fn rename_below_a_file_fails(stage: Stage) {
    drop(file_with(stage.path("f"), b"x"));
    drop(file_with(stage.path("g"), b"y"));
    assert_eq!(kind(rename(stage.path("g"), stage.path("f/g"))), ErrorKind::NotADirectory);
    assert_eq!(kind(rename(stage.path("f/g"), stage.path("h"))), ErrorKind::NotADirectory);
}

async fn a_directory_is_removed_while_it_is_open(stage: Stage) {
    create_dir(stage.path("d")).unwrap();
    let open = File::open(stage.path("d")).unwrap();
    remove_dir(stage.path("d")).unwrap();
    assert_eq!(kind(metadata(stage.path("d"))), ErrorKind::NotFound);
    drop(open);
}

async fn a_directory_is_open_for_reading_only(stage: Stage) {
    let directory = File::open(stage.path("")).unwrap();
    assert_eq!(directory.write_at(b"x", 0).unwrap_err().raw_os_error(), Some(9), "it is open for reading");
    assert_eq!(kind(directory.set_len(0)), ErrorKind::InvalidInput);
}

async fn a_write_of_nothing_keeps_the_length(stage: Stage) {
    let file = writable(stage.path("f"));
    file.write_at(&[], 0).unwrap();
    assert!(file.is_empty().unwrap());
    assert_eq!(metadata(stage.path("f")).unwrap(), Metadata { len: 0, is_dir: false });
}

async fn a_file_is_extended_without_bytes(stage: Stage) {
    let file = writable(stage.path("f"));
    file.set_len(1 << 30).unwrap();
    assert_eq!(metadata(stage.path("f")).unwrap().len, 1 << 30);
    let mut out = [9; 16];
    file.read_exact_at(&mut out, (1 << 30) - 16).await.unwrap();
    assert_eq!(out, [0; 16]);
}

async fn a_removed_lock_file_does_not_lock_the_next(stage: Stage) {
    let old = writable(stage.path("lock"));
    old.try_lock().unwrap();
    remove_file(stage.path("lock")).unwrap();
    let new = writable(stage.path("lock"));
    new.try_lock().unwrap();
    old.try_lock().unwrap();
}

async fn a_lock_of_another_file_is_another_lock(stage: Stage) {
    let (one, other) = (writable(stage.path("one")), writable(stage.path("other")));
    one.try_lock().unwrap();
    other.try_lock().unwrap();
    rename(stage.path("one"), stage.path("moved")).unwrap();
    assert_eq!(kind(writable(stage.path("moved")).try_lock()), ErrorKind::WouldBlock, "a lock follows its file");
}

async fn a_read_only_handle_takes_a_lock(stage: Stage) {
    drop(writable(stage.path("lock")));
    let reader = File::open(stage.path("lock")).unwrap();
    reader.try_lock().unwrap();
    assert_eq!(kind(writable(stage.path("lock")).try_lock()), ErrorKind::WouldBlock);
}

async fn locks_end_with_their_task(stage: Stage) {
    let path = stage.path("lock");
    let (tell, told) = oneshot::channel();
    let holder = rt::task::spawn({
        let path = path.clone();
        async move {
            let file = writable(path);
            file.try_lock().unwrap();
            tell.send(()).unwrap();
            std::future::pending::<()>().await;
        }
    });
    // Nobody else may try before: a lock held for a moment only would be in the holder's way.
    told.await.unwrap();
    assert_eq!(kind(writable(&path).try_lock()), ErrorKind::WouldBlock);
    holder.abort();
    until(|| async { writable(&path).try_lock().ok() }).await;
}

async fn a_sync_of_a_removed_file_succeeds(stage: Stage) {
    let file = file_with(stage.path("f"), b"abc");
    remove_file(stage.path("f")).unwrap();
    file.sync_data().await.unwrap();
    sync_dir(stage.path("")).await.unwrap();
    assert_eq!(file.len().unwrap(), 3);
}

async fn a_removed_directory_cannot_be_synced(stage: Stage) {
    create_dir(stage.path("d")).unwrap();
    remove_dir(stage.path("d")).unwrap();
    assert_eq!(kind(sync_dir(stage.path("d")).await), ErrorKind::NotFound);
    assert_eq!(kind(OpenOptions::new().write(true).create(true).open(stage.path("d/f"))), ErrorKind::NotFound);
}

async fn create_dir_all_takes_what_is_there(stage: Stage) {
    create_dir_all(stage.path("")).unwrap();
    create_dir_all("/").unwrap();
    create_dir(stage.path("a")).unwrap();
    create_dir_all(stage.path("a/b")).unwrap();
    assert_eq!(read_dir(stage.path("a")).unwrap(), [stage.path("a/b")]);
}
