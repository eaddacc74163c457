//! Wait queues for long polls, one per scope.
//!
//! A waiter registers at its scope, re-checks the document, then parks. Publishing a change notifies the waiters of the
//! affected scopes after the new view is visible. So no change is missed: the re-check sees a change that was
//! published before the registration, and a later change finds the
//! registration.
//!
//! A notification says only that the document may have changed: a waiter re-checks, and registers again if it has not.
//! Notifications may be spurious, never missing: a change of a VM's record or address notifies the scope that the VM
//! was in.
//!
//! A queue exists only while it has waiters. Waiters of many scopes belong to few threads, so each thread is woken
//! once with the tokens of all its waiters. The waiters of a VM are limited: each holds a connection open, and a
//! proxy that calls for many VMs may have any number of connections.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use notbefore_core::{ScopeId, VmId};
use notbefore_engine::PublishedChange;
use uuid::Uuid;

use crate::lock;
use crate::view::View;

/// Maximum waiters of one VM: as many as connections from one address.
pub const WAITERS_PER_VM_MAX: usize = 64;

/// A thread that parks many waiters, each identified by a token.
pub trait Wake: Send + Sync {
    /// The documents of these waiters may have changed.
    fn wake(&self, tokens: Vec<u64>);
}

/// A waiter's entry in a queue.
#[derive(Clone, Debug)]
pub struct Registration<K> {
    key: K,
    id: u64,
}

/// A parked long poll.
struct Waiter {
    waker: Arc<dyn Wake>,
    token: u64,
    vm: Uuid,
}

type Queue = HashMap<u64, Waiter>;

struct Queues<K> {
    by_key: HashMap<K, Queue>,
    /// Number of waiters of each VM.
    by_vm: HashMap<Uuid, usize>,
    /// Id of the last registration.
    last_id: u64,
}

impl<K> Queues<K> {
    /// Counts down the waiters of a VM.
    fn release(&mut self, vm: Uuid) {
        if let Entry::Occupied(mut count) = self.by_vm.entry(vm) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

impl<K: Eq + Hash> Queues<K> {
    /// Removes the waiters of a VM from all queues. It looks at each waiter: for rare notifications.
    fn take_waiters(&mut self, vm: Uuid) -> Vec<Queue> {
        let of_vm = |queue: &mut Queue| queue.extract_if(|_, waiter| waiter.vm == vm).collect();
        let taken = self.by_key.values_mut().map(of_vm).collect();
        self.by_key.retain(|_, queue| !queue.is_empty());
        taken
    }
}

/// The registered waiters, by key.
pub struct WaitQueues<K> {
    queues: Mutex<Queues<K>>,
}

/// The queues that a change affects.
#[derive(Debug, PartialEq, Eq)]
pub enum Affected<K> {
    /// Only these.
    Keys(Vec<K>),
    /// In all queues, only the waiters of this VM.
    Vm(Uuid),
    /// All. No waiter was registered when the change was examined, so it was not examined.
    All,
}

impl<K> Default for WaitQueues<K> {
    fn default() -> Self {
        Self { queues: Mutex::new(Queues { by_key: HashMap::new(), by_vm: HashMap::new(), last_id: 0 }) }
    }
}

impl<K: Clone + Eq + Hash> WaitQueues<K> {
    /// Registers a waiter, unless the VM is at its limit. Re-check the document afterwards: earlier changes do not
    /// notify.
    pub fn register(&self, key: K, vm: Uuid, waker: Arc<dyn Wake>, token: u64) -> Option<Registration<K>> {
        let mut queues = lock(&self.queues);
        let count = queues.by_vm.get(&vm).copied().unwrap_or(0);
        if count >= WAITERS_PER_VM_MAX {
            return None;
        }
        queues.by_vm.insert(vm, count + 1);
        queues.last_id += 1;
        let id = queues.last_id;
        queues.by_key.entry(key.clone()).or_default().insert(id, Waiter { waker, token, vm });
        Some(Registration { key, id })
    }

    /// Cancels a registration, also one that was notified.
    pub fn cancel(&self, registration: &Registration<K>) {
        let mut queues = lock(&self.queues);
        let Some(queue) = queues.by_key.get_mut(&registration.key) else { return };
        let left = queue.remove(&registration.id);
        if queue.is_empty() {
            queues.by_key.remove(&registration.key);
        }
        if let Some(Waiter { vm, .. }) = left {
            queues.release(vm);
        }
    }

    /// Whether there is no waiter.
    pub fn is_empty(&self) -> bool {
        lock(&self.queues).by_key.is_empty()
    }

    /// Removes and wakes the affected waiters; call it once the change is visible.
    pub fn notify(&self, affected: Affected<K>) {
        let mut queues = lock(&self.queues);
        let removed: Vec<Queue> = match affected {
            Affected::Keys(keys) => keys.iter().filter_map(|key| queues.by_key.remove(key)).collect(),
            Affected::Vm(vm) => queues.take_waiters(vm),
            Affected::All => queues.by_key.drain().map(|(_, queue)| queue).collect(),
        };
        removed.iter().flat_map(HashMap::values).for_each(|waiter| queues.release(waiter.vm));
        drop(queues);
        let mut woken: Vec<(Arc<dyn Wake>, Vec<u64>)> = Vec::new();
        for Waiter { waker, token, .. } in removed.into_iter().flat_map(HashMap::into_values) {
            match woken.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &waker)) {
                Some((_, all)) => all.push(token),
                None => woken.push((waker, vec![token])),
            }
        }
        for (waker, tokens) in woken {
            waker.wake(tokens);
        }
    }
}

impl WaitQueues<ScopeId> {
    /// The scopes that changes affect; `view` is the view before the changes.
    pub fn affected(&self, view: &View, changes: &[PublishedChange]) -> Affected<ScopeId> {
        if self.is_empty() {
            return Affected::All;
        }
        let scope_of = |vm: VmId| view.scope_of(vm).map(|scope| scope.scope.id());
        let mut scopes = Vec::new();
        for change in changes {
            match change {
                PublishedChange::Scope(id, ..) => scopes.push(id.clone()),
                PublishedChange::Vm(vm, _) => scopes.extend(scope_of(*vm)),
                PublishedChange::Claim((network, address), _) => {
                    // An address without a VM can only have been that of the first-run VM.
                    let vm = view.caller(network, *address).or(view.first_run);
                    scopes.extend(vm.and_then(scope_of));
                }
                PublishedChange::Operation(..) | PublishedChange::Token(..) | PublishedChange::Host(..) => {}
            }
        }
        Affected::Keys(scopes)
    }
}

#[cfg(test)]
mod tests {
    use notbefore_engine::Address;

    use super::*;
    use crate::delivery::tests::{ViewFixture, at, scope, vm};

    #[derive(Default)]
    struct RecordingWaker(Mutex<Vec<Vec<u64>>>);

    impl Wake for RecordingWaker {
        fn wake(&self, mut tokens: Vec<u64>) {
            tokens.sort_unstable();
            self.0.lock().unwrap().push(tokens);
        }
    }

    impl RecordingWaker {
        fn take(&self) -> Vec<Vec<u64>> {
            std::mem::take(&mut self.0.lock().unwrap())
        }
    }

    #[test]
    fn waker_is_called_once_with_all_tokens() {
        let wait_queues = WaitQueues::default();
        let [one, other] = [Arc::new(RecordingWaker::default()), Arc::new(RecordingWaker::default())];
        let register = |key, waker: &Arc<RecordingWaker>, token| {
            wait_queues.register(key, Uuid::nil(), Arc::clone(waker) as _, token)
        };
        for token in 0..4 {
            register(["a", "b"][token as usize % 2], &one, token);
        }
        register("b", &other, 7);
        register("c", &other, 8);
        wait_queues.notify(Affected::Keys(vec!["a", "b", "b", "nowhere"]));
        assert_eq!(one.take(), [[0, 1, 2, 3]]);
        assert_eq!(other.take(), [[7]]);
        wait_queues.notify(Affected::Keys(vec!["a", "b"]));
        assert!(one.take().is_empty(), "a woken waiter is no longer registered");
        wait_queues.notify(Affected::All);
        assert_eq!(other.take(), [[8]]);
        assert!(wait_queues.is_empty());
    }

    #[test]
    fn notification_of_a_vm_leaves_the_waiters_of_others() {
        let wait_queues = WaitQueues::default();
        let waker = Arc::new(RecordingWaker::default());
        for (key, vm, token) in [("a", 1, 10), ("a", 2, 20), ("b", 1, 11), ("c", 3, 30)] {
            wait_queues.register(key, Uuid::from_u128(vm), Arc::clone(&waker) as _, token);
        }
        wait_queues.notify(Affected::Vm(Uuid::from_u128(1)));
        assert_eq!(waker.take(), [[10, 11]]);
        {
            let queues = lock(&wait_queues.queues);
            assert_eq!((queues.by_key.len(), queues.by_vm.len()), (2, 2), "no empty queue stays");
        }
        wait_queues.notify(Affected::Keys(vec!["a", "b"]));
        assert_eq!(waker.take(), [[20]]);
    }

    #[test]
    fn cancelled_waiter_is_not_woken() {
        let wait_queues = WaitQueues::default();
        let waker = Arc::new(RecordingWaker::default());
        let [first, second] = [1, 2]
            .map(|token| wait_queues.register("a", Uuid::nil(), Arc::clone(&waker) as _, token).unwrap());
        wait_queues.cancel(&first);
        wait_queues.cancel(&first);
        wait_queues.notify(Affected::Keys(vec!["a"]));
        assert_eq!(waker.take(), [[2]]);
        wait_queues.cancel(&second);
        assert!(wait_queues.is_empty());
    }

    #[test]
    fn waiters_per_vm_are_limited() {
        let wait_queues = WaitQueues::default();
        let waker = Arc::new(RecordingWaker::default());
        let register = |key, vm| wait_queues.register(key, Uuid::from_u128(vm), Arc::clone(&waker) as _, 1);
        let fill =
            || (0..WAITERS_PER_VM_MAX + 3).filter_map(|n| register(["a", "b"][n % 2], 1)).collect::<Vec<_>>();
        let registrations = fill();
        assert_eq!(registrations.len(), WAITERS_PER_VM_MAX);
        assert!(register("a", 2).is_some(), "each VM has its own limit");
        for _ in 0..2 {
            wait_queues.cancel(&registrations[0]);
        }
        assert!(
            register("b", 1).is_some() && register("b", 1).is_none(),
            "cancel counts a registration once"
        );
        wait_queues.notify(Affected::Keys(vec!["a"]));
        assert_eq!(
            fill().len(),
            registrations.iter().filter(|registration| registration.key == "a").count() - 1
        );
        wait_queues.notify(Affected::All);
        assert!(lock(&wait_queues.queues).by_vm.is_empty());
    }

    #[test]
    fn change_notifies_affected_scopes() {
        let mut fixture = ViewFixture::default();
        let views = Arc::clone(&fixture.views);
        let [one, other] = [scope("a", &[vm(1)]), scope("b", &[vm(2)])];
        fixture.publish(&one, at(0));
        fixture.publish(&other, at(0));
        let address = Address { network: "default".parse().unwrap(), ip: [10, 0, 0, 1].into() };
        let waker = Arc::new(RecordingWaker::default());
        let register = || {
            for (token, scope) in [(1, &one), (2, &other)] {
                views.wait_queues().register(scope.id(), Uuid::nil(), Arc::clone(&waker) as _, token);
            }
        };
        let woken = || {
            let woken = waker.take().concat();
            views.wait_queues().notify(Affected::All);
            waker.take();
            woken
        };
        register();
        fixture.publish(&other, at(1));
        assert_eq!(woken(), [2]);

        register();
        fixture.claim(&address, Some(vm(1)), at(2));
        assert!(woken().is_empty(), "the address had no waiter");
        register();
        fixture.claim(&address, Some(vm(2)), at(3));
        assert_eq!(woken(), [1], "the waiter at the address was in the first scope");
        register();
        fixture.claim(&address, None, at(4));
        assert_eq!(woken(), [2]);

        register();
        fixture.publish(&scope("a", &[]), at(5));
        assert_eq!(woken(), [1], "the VM was removed");
    }

    #[test]
    fn claim_of_free_address_notifies_first_run_vm() {
        let mut fixture = ViewFixture::default();
        let mut alone = scope("a", &[vm(1)]);
        alone.first_run = true;
        fixture.publish(&alone, at(0));
        let waker = Arc::new(RecordingWaker::default());
        fixture.views.wait_queues().register(alone.id(), Uuid::nil(), Arc::clone(&waker) as _, 1);
        let address = Address { network: "default".parse().unwrap(), ip: [127, 0, 0, 1].into() };
        fixture.claim(&address, Some(vm(2)), at(1));
        assert_eq!(waker.take(), [[1]]);
    }

    #[test]
    fn waiter_registered_after_examination_is_woken() {
        let wait_queues: WaitQueues<ScopeId> = WaitQueues::default();
        let affected = wait_queues.affected(&View::default(), &[]);
        let waker = Arc::new(RecordingWaker::default());
        wait_queues.register(scope("a", &[]).id(), Uuid::nil(), Arc::clone(&waker) as _, 1);
        wait_queues.notify(affected);
        assert_eq!(waker.take(), [[1]]);
    }
}
