//! What etcd says of itself, asked at most once a second for all callers.
//!
//! One caller asks, the others wait for its answer. An etcd that does not answer is part of the answer, not an error of
//! the caller's request.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use notbefore_etcd::{EtcdStatus, EtcdStore};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::clock::Clock;

/// How long an answer is used. Operators and monitoring poll; etcd has other work.
const KEPT: Duration = Duration::from_secs(1);
/// Longest wait for an answer. More than the store allows its own questions, so that its error arrives.
const DEADLINE: Duration = Duration::from_secs(5);

/// Where the status comes from.
#[async_trait]
pub trait EtcdSource: Send + Sync {
    async fn status(&self) -> EtcdStatus;

    /// What was found at the start.
    fn warnings(&self) -> &[String];
}

#[async_trait]
impl EtcdSource for EtcdStore {
    async fn status(&self) -> EtcdStatus {
        self.status().await
    }

    fn warnings(&self) -> &[String] {
        self.warnings()
    }
}

/// An answer of etcd, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdAnswer {
    pub asked_at: Timestamp,
    pub status: Result<EtcdStatus, String>,
    pub warnings: Vec<String>,
}

/// The cache; see the module docs.
pub struct EtcdStatusCache {
    source: Arc<dyn EtcdSource>,
    clock: Arc<dyn Clock>,
    /// The last answer, and when it arrived by the monotonic clock. Locked while etcd is asked.
    last: Mutex<Option<(Duration, Arc<EtcdAnswer>)>>,
}

impl EtcdStatusCache {
    pub fn new(source: Arc<dyn EtcdSource>, clock: Arc<dyn Clock>) -> Self {
        Self { source, clock, last: Mutex::default() }
    }

    pub async fn get(&self) -> Arc<EtcdAnswer> {
        let mut last = self.last.lock().await;
        if let Some((at, answer)) = &*last
            && self.clock.since_boot().saturating_sub(*at) < KEPT
        {
            return Arc::clone(answer);
        }
        let asked_at = self.clock.now();
        let late = |_| format!("etcd did not answer within {} s", DEADLINE.as_secs());
        let status = timeout(DEADLINE, self.source.status()).await.map_err(late);
        let warnings = self.source.warnings().to_vec();
        let answer = Arc::new(EtcdAnswer { asked_at, status, warnings });
        *last = Some((self.clock.since_boot(), Arc::clone(&answer)));
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;

    /// Answers after some seconds.
    struct Slow {
        seconds: u64,
        asked: AtomicU64,
    }

    #[async_trait]
    impl EtcdSource for Slow {
        async fn status(&self) -> EtcdStatus {
            self.asked.fetch_add(1, Relaxed);
            tokio::time::sleep(Duration::from_secs(self.seconds)).await;
            let (members, endpoints) = (Vec::new(), Vec::new());
            EtcdStatus { cluster_id: 1, members, endpoints, alarms: None, assumed_quota_bytes: None }
        }

        fn warnings(&self) -> &[String] {
            &[]
        }
    }

    /// In milliseconds.
    #[derive(Default)]
    struct TestClock(AtomicU64);

    impl Clock for TestClock {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH + self.since_boot()
        }

        fn since_boot(&self) -> Duration {
            Duration::from_millis(self.0.load(Relaxed))
        }
    }

    fn cache(seconds: u64) -> (Arc<Slow>, Arc<TestClock>, EtcdStatusCache) {
        let (source, clock) =
            (Arc::new(Slow { seconds, asked: AtomicU64::new(0) }), Arc::<TestClock>::default());
        let cache = EtcdStatusCache::new(source.clone(), clock.clone());
        (source, clock, cache)
    }

    #[tokio::test(start_paused = true)]
    async fn etcd_is_asked_once_a_second_for_all_callers() {
        let (source, clock, cache) = cache(2);
        let (one, two) = tokio::join!(cache.get(), cache.get());
        assert!(Arc::ptr_eq(&one, &two), "callers at the same time share the question");
        clock.0.store(999, Relaxed);
        cache.get().await;
        assert_eq!(source.asked.load(Relaxed), 1);
        clock.0.store(1_000, Relaxed);
        cache.get().await;
        assert_eq!(source.asked.load(Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn etcd_that_does_not_answer_is_part_of_the_answer() {
        let (source, _, cache) = cache(3_600);
        let answer = cache.get().await;
        assert_eq!(answer.status, Err("etcd did not answer within 5 s".to_owned()));
        assert!(Arc::ptr_eq(&answer, &cache.get().await), "the error is kept, too");
        assert_eq!(source.asked.load(Relaxed), 1);
    }
}
