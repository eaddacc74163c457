//! Power cuts: at each sync, images of every possible disk content after a power cut.

use super::*;

/// Every image opens and holds a prefix of the commits, with all acknowledged ones.
#[tokio::test]
async fn every_crash_image_holds_a_prefix_of_the_commits() {
    let disk = Disk::new();
    let open = disk.clone();
    let store = RedbStore::open_with("disk", move || open.open()).unwrap();
    let mut watch = store.watch(Revision(0)).await.unwrap();
    disk.keep_images();

    // Each image with the revision acknowledged before it.
    let mut images: Vec<(Revision, Vec<u8>)> = Vec::new();
    let mut acknowledged = Revision(0);
    for step in 1..25u64 {
        // Values of many sizes, so that pages are split, freed and reused.
        let large = "x".repeat(usize::try_from(step * step * 37 % 9000).unwrap());
        let changing =
            Txn { delete: vec![format!("k/{}", step / 2).into()], ..put(&format!("k/{step}"), &large) };
        let (one, two, three) = tokio::join!(
            store.commit(put("counter", &step.to_string())),
            store.commit(changing),
            store.commit(put(&format!("fact/{step:03}"), &large[..large.len() / 3])),
        );
        let before = acknowledged;
        for outcome in [one, two, three] {
            acknowledged = acknowledged.max(revision(outcome));
        }
        images.extend(disk.take_images().into_iter().map(|image| (before, image)));
    }
    images.push((acknowledged, disk.image()));

    let mut batches = Vec::new();
    while batches.len() < usize::try_from(acknowledged.0).unwrap() {
        batches.push(next(&mut watch).await.unwrap());
    }
    assert!(images.len() > 200, "there are only {} images", images.len());
    for (number, (acknowledged, image)) in images.into_iter().enumerate() {
        let untouched = Disk::holding(image.clone());
        let quick =
            Database::builder().set_repair_callback(|repair| repair.abort()).create_with_backend(untouched);
        assert!(quick.is_ok(), "image {number} opens only after a full repair");
        let disk = Disk::holding(image);
        let store = match RedbStore::open_with("image", move || disk.open()) {
            Ok(store) => store,
            Err(error) => panic!("image {number} does not open: {}", open::chain(&error)),
        };
        let (revision, records) = read_all(&store).await;
        assert!(revision >= acknowledged, "image {number} lacks {acknowledged}: it ends at {revision}");
        let prefix = &batches[..usize::try_from(revision.0).unwrap()];
        assert_eq!(records, replay(prefix), "image {number} is not the first {revision} commits");
        committed(&store, put("after", "crash")).await;
    }
}
