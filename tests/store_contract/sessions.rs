//! Browser sessions.

use crate::{
    records::{NOW, later, populate, session, user},
    suite::Backend,
};

pub(crate) async fn opens_finds_and_closes<B: Backend>() {
    let backend = B::fresh().await;
    let store = backend.open().await;
    populate(&store).await;
    assert_eq!(store.session(&[1; 32], NOW).await.unwrap(), None);
    for byte in [1, 2] {
        store.open_session(session(byte, "u")).await.unwrap();
    }
    assert_eq!(
        store.session(&[1; 32], NOW).await.unwrap(),
        Some((session(1, "u"), user("u")))
    );
    store.close_session(&[1; 32]).await.unwrap();
    assert_eq!(store.session(&[1; 32], NOW).await.unwrap(), None);
    store.close_session(&[1; 32]).await.unwrap();
    assert!(store.session(&[2; 32], NOW).await.unwrap().is_some());
}

pub(crate) async fn ends_in_time<B: Backend>() {
    let backend = B::fresh().await;
    let store = backend.open().await;
    populate(&store).await;
    store.open_session(session(1, "u")).await.unwrap();
    assert!(store.session(&[1; 32], later(999)).await.unwrap().is_some());
    assert_eq!(store.session(&[1; 32], later(1000)).await.unwrap(), None);
}

pub(crate) async fn belongs_to_an_enabled_user<B: Backend>() {
    let backend = B::fresh().await;
    let store = backend.open().await;
    populate(&store).await;
    // A user who went while the login was under way gets no session, then or later.
    store.open_session(session(1, "unknown")).await.unwrap();
    store.add_user(user("unknown")).await.unwrap();
    assert_eq!(store.session(&[1; 32], NOW).await.unwrap(), None);
}
