//! The bell: how guests that wait for a change are told of one.
//!
//! A guest may ask to be answered when its document has changed. It takes a seat at its scope, looks again whether
//! the document is still the same, and sleeps. Whoever publishes a change rings for the scopes that it touched,
//! after the new view is in place. So no change is missed: one that was published before the seat was taken is
//! seen by the second look, and one that comes after finds the seat.
//!
//! To be rung for says only that there may be news: whoever wakes looks, and sits down again if there is none. A
//! change rings too often rather than not often enough: for a VM's record or address that changes, the scope is
//! rung for that the VM was in.
//!
//! There are seats only where somebody waits. Sleepers sit at many scopes and wake in few threads, so each thread
//! is told once of all that it has to wake. A VM has so many seats and no more: each is a connection that is kept for
//! it, and those who call for many VMs may have any number of connections.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use notbefore_core::{ScopeId, VmId};
use notbefore_engine::PublishedChange;
use uuid::Uuid;

use crate::lock;
use crate::view::View;

/// How many seats a VM may have at a time: as many as connections from one address.
pub const SEATS_PER_VM_MAX: usize = 64;

/// Somebody who waits for many at once; each is known to it by a number.
pub trait Sleeper: Send + Sync {
    /// There may be news for these.
    fn wake(&self, whom: Vec<u64>);
}

/// A seat that was taken.
#[derive(Clone, Debug)]
pub struct Seat<K> {
    place: K,
    number: u64,
}

/// Who sits in a seat.
struct Sitter {
    sleeper: Arc<dyn Sleeper>,
    whom: u64,
    vm: Uuid,
}

type Sitting = HashMap<u64, Sitter>;

struct Seats<K> {
    by_place: HashMap<K, Sitting>,
    /// How many seats each VM has.
    by_vm: HashMap<Uuid, usize>,
    /// How many seats were ever taken.
    taken: u64,
}

impl<K> Seats<K> {
    /// A VM has left one of its seats.
    fn give_back(&mut self, vm: Uuid) {
        if let Entry::Occupied(mut count) = self.by_vm.entry(vm) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// Who waits where.
pub struct Bell<K> {
    seats: Mutex<Seats<K>>,
}

/// For whom a change rings.
#[derive(Debug, PartialEq, Eq)]
pub enum Touched<K> {
    /// For those who wait at these places.
    These(Vec<K>),
    /// For everybody. Nobody was waiting when the change was looked at, so nobody looked.
    All,
}

impl<K> Default for Bell<K> {
    fn default() -> Self {
        Self { seats: Mutex::new(Seats { by_place: HashMap::new(), by_vm: HashMap::new(), taken: 0 }) }
    }
}

impl<K: Clone + Eq + Hash> Bell<K> {
    /// Takes a seat at a place for a VM, unless the VM has as many as it may. Look again afterwards: what changed
    /// before does not ring.
    pub fn sit_down(&self, place: K, vm: Uuid, sleeper: Arc<dyn Sleeper>, whom: u64) -> Option<Seat<K>> {
        let mut seats = lock(&self.seats);
        let count = seats.by_vm.get(&vm).copied().unwrap_or(0);
        if count >= SEATS_PER_VM_MAX {
            return None;
        }
        seats.by_vm.insert(vm, count + 1);
        seats.taken += 1;
        let number = seats.taken;
        seats.by_place.entry(place.clone()).or_default().insert(number, Sitter { sleeper, whom, vm });
        Some(Seat { place, number })
    }

    /// Leaves a seat, also one that was rung for.
    pub fn get_up(&self, seat: &Seat<K>) {
        let mut seats = lock(&self.seats);
        let Some(sitting) = seats.by_place.get_mut(&seat.place) else { return };
        let left = sitting.remove(&seat.number);
        if sitting.is_empty() {
            seats.by_place.remove(&seat.place);
        }
        if let Some(Sitter { vm, .. }) = left {
            seats.give_back(vm);
        }
    }

    /// Whether nobody waits.
    pub fn is_alone(&self) -> bool {
        lock(&self.seats).by_place.is_empty()
    }

    /// Wakes those whom a change touches, once it can be seen. Their seats are free then.
    pub fn ring(&self, touched: Touched<K>) {
        let mut seats = lock(&self.seats);
        let sitting: Vec<Sitting> = match touched {
            Touched::These(places) => {
                places.iter().filter_map(|place| seats.by_place.remove(place)).collect()
            }
            Touched::All => seats.by_place.drain().map(|(_, sitting)| sitting).collect(),
        };
        sitting.iter().flat_map(HashMap::values).for_each(|sitter| seats.give_back(sitter.vm));
        drop(seats);
        let mut woken: Vec<(Arc<dyn Sleeper>, Vec<u64>)> = Vec::new();
        for Sitter { sleeper, whom, .. } in sitting.into_iter().flat_map(HashMap::into_values) {
            match woken.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &sleeper)) {
                Some((_, all)) => all.push(whom),
                None => woken.push((sleeper, vec![whom])),
            }
        }
        for (sleeper, whom) in woken {
            sleeper.wake(whom);
        }
    }
}

impl Bell<ScopeId> {
    /// The scopes that changes touch, asked while `view` is what they are about to change.
    pub fn touched(&self, view: &View, changes: &[PublishedChange]) -> Touched<ScopeId> {
        if self.is_alone() {
            return Touched::All;
        }
        let scope_of = |vm: VmId| view.scope_of(vm).map(|scope| scope.scope.id());
        let mut scopes = Vec::new();
        for change in changes {
            match change {
                PublishedChange::Scope(id, ..) => scopes.push(id.clone()),
                PublishedChange::Vm(vm, _) => scopes.extend(scope_of(*vm)),
                PublishedChange::Claim((network, address), _) => {
                    // An address that had no VM was, if anything, that of the VM that stands in for a fleet.
                    let vm = view.caller(network, *address).or(view.first_run);
                    scopes.extend(vm.and_then(scope_of));
                }
                PublishedChange::Operation(..) | PublishedChange::Token(..) => {}
            }
        }
        Touched::These(scopes)
    }
}

#[cfg(test)]
mod tests {
    use notbefore_engine::Address;

    use super::*;
    use crate::delivery::tests::{Stage, at, scope, vm};

    #[derive(Default)]
    struct Noted(Mutex<Vec<Vec<u64>>>);

    impl Sleeper for Noted {
        fn wake(&self, mut whom: Vec<u64>) {
            whom.sort_unstable();
            self.0.lock().unwrap().push(whom);
        }
    }

    impl Noted {
        fn take(&self) -> Vec<Vec<u64>> {
            std::mem::take(&mut self.0.lock().unwrap())
        }
    }

    #[test]
    fn a_sleeper_is_told_once_of_all_that_it_wakes() {
        let bell = Bell::default();
        let [one, other] = [Arc::new(Noted::default()), Arc::new(Noted::default())];
        let sit = |place, sleeper: &Arc<Noted>, whom| {
            bell.sit_down(place, Uuid::nil(), Arc::clone(sleeper) as _, whom)
        };
        for whom in 0..4 {
            sit(["a", "b"][whom as usize % 2], &one, whom);
        }
        sit("b", &other, 7);
        sit("c", &other, 8);
        bell.ring(Touched::These(vec!["a", "b", "b", "nowhere"]));
        assert_eq!(one.take(), [[0, 1, 2, 3]]);
        assert_eq!(other.take(), [[7]]);
        bell.ring(Touched::These(vec!["a", "b"]));
        assert!(one.take().is_empty(), "whoever was woken sits no more");
        bell.ring(Touched::All);
        assert_eq!(other.take(), [[8]]);
        assert!(bell.is_alone());
    }

    #[test]
    fn whoever_gets_up_is_not_woken() {
        let bell = Bell::default();
        let sleeper = Arc::new(Noted::default());
        let [first, second] =
            [1, 2].map(|whom| bell.sit_down("a", Uuid::nil(), Arc::clone(&sleeper) as _, whom).unwrap());
        bell.get_up(&first);
        bell.get_up(&first);
        bell.ring(Touched::These(vec!["a"]));
        assert_eq!(sleeper.take(), [[2]]);
        bell.get_up(&second);
        assert!(bell.is_alone());
    }

    #[test]
    fn a_vm_has_so_many_seats_and_no_more() {
        let bell = Bell::default();
        let sleeper = Arc::new(Noted::default());
        let sit = |place, vm| bell.sit_down(place, Uuid::from_u128(vm), Arc::clone(&sleeper) as _, 1);
        let fill = || (0..SEATS_PER_VM_MAX + 3).filter_map(|n| sit(["a", "b"][n % 2], 1)).collect::<Vec<_>>();
        let seats = fill();
        assert_eq!(seats.len(), SEATS_PER_VM_MAX);
        assert!(sit("a", 2).is_some(), "each VM has its own");
        for _ in 0..2 {
            bell.get_up(&seats[0]);
        }
        assert!(sit("b", 1).is_some() && sit("b", 1).is_none(), "a seat is left once");
        bell.ring(Touched::These(vec!["a"]));
        assert_eq!(fill().len(), seats.iter().filter(|seat| seat.place == "a").count() - 1);
        bell.ring(Touched::All);
        assert!(lock(&bell.seats).by_vm.is_empty());
    }

    #[test]
    fn a_change_rings_where_it_is_seen() {
        let mut stage = Stage::default();
        let views = Arc::clone(&stage.views);
        let [one, other] = [scope("a", &[vm(1)]), scope("b", &[vm(2)])];
        stage.publish(&one, at(0));
        stage.publish(&other, at(0));
        let address = Address { network: "default".parse().unwrap(), ip: [10, 0, 0, 1].into() };
        let sleeper = Arc::new(Noted::default());
        let sit = || {
            for (whom, scope) in [(1, &one), (2, &other)] {
                views.bell().sit_down(scope.id(), Uuid::nil(), Arc::clone(&sleeper) as _, whom);
            }
        };
        let rung = || {
            let rung = sleeper.take().concat();
            views.bell().ring(Touched::All);
            sleeper.take();
            rung
        };
        sit();
        stage.publish(&other, at(1));
        assert_eq!(rung(), [2]);

        sit();
        stage.claim(&address, Some(vm(1)), at(2));
        assert!(rung().is_empty(), "nobody called from there");
        sit();
        stage.claim(&address, Some(vm(2)), at(3));
        assert_eq!(rung(), [1], "whoever called from there was in the first scope");
        sit();
        stage.claim(&address, None, at(4));
        assert_eq!(rung(), [2]);

        sit();
        stage.publish(&scope("a", &[]), at(5));
        assert_eq!(rung(), [1], "the VM is gone");
    }

    #[test]
    fn an_address_that_had_no_vm_was_that_of_the_stand_in() {
        let mut stage = Stage::default();
        let mut alone = scope("a", &[vm(1)]);
        alone.first_run = true;
        stage.publish(&alone, at(0));
        let sleeper = Arc::new(Noted::default());
        stage.views.bell().sit_down(alone.id(), Uuid::nil(), Arc::clone(&sleeper) as _, 1);
        let address = Address { network: "default".parse().unwrap(), ip: [127, 0, 0, 1].into() };
        stage.claim(&address, Some(vm(2)), at(1));
        assert_eq!(sleeper.take(), [[1]]);
    }

    #[test]
    fn whoever_sits_down_while_nobody_looks_is_woken_all_the_same() {
        let bell: Bell<ScopeId> = Bell::default();
        let touched = bell.touched(&View::default(), &[]);
        let sleeper = Arc::new(Noted::default());
        bell.sit_down(scope("a", &[]).id(), Uuid::nil(), Arc::clone(&sleeper) as _, 1);
        bell.ring(touched);
        assert_eq!(sleeper.take(), [[1]]);
    }
}
