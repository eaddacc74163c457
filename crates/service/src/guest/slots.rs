//! Where a worker keeps its connections: a table of places that are used again.
//!
//! A place is known by a token, its number and how often it was used before, so that word of a connection
//! that is gone is never taken for word of the next one in its place.

/// A place and its use.
pub(super) type Token = u64;

/// Tokens from here on are never given out.
pub(super) const RESERVED: Token = (u32::MAX as u64) << 32;

#[derive(Debug)]
struct Place<T> {
    uses: u32,
    value: Option<T>,
}

/// A table of places.
#[derive(Debug)]
pub(super) struct Slots<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

impl<T> Slots<T> {
    pub(super) fn new() -> Slots<T> {
        Slots { places: Vec::new(), free: Vec::new() }
    }

    /// Puts a value into a free place. It is given back where there is none left, after four billion.
    pub(super) fn insert(&mut self, value: T) -> Result<Token, T> {
        let at = match self.free.pop() {
            Some(at) => at,
            None => match u32::try_from(self.places.len()) {
                Ok(at) => {
                    self.places.push(Place { uses: 0, value: None });
                    at
                }
                Err(_) => return Err(value),
            },
        };
        let place = &mut self.places[at as usize];
        place.value = Some(value);
        Ok(token(place.uses, at))
    }

    pub(super) fn get_mut(&mut self, token: Token) -> Option<&mut T> {
        let (uses, at) = parts(token);
        self.places.get_mut(at as usize).filter(|place| place.uses == uses)?.value.as_mut()
    }

    pub(super) fn remove(&mut self, token: Token) -> Option<T> {
        let (uses, at) = parts(token);
        let place = self.places.get_mut(at as usize).filter(|place| place.uses == uses)?;
        let value = place.value.take()?;
        place.uses = (place.uses + 1) % u32::MAX;
        self.free.push(at);
        Some(value)
    }

    /// All values, with their tokens.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Token, &T)> {
        self.places.iter().enumerate().filter_map(|(at, place)| {
            let at = u32::try_from(at).ok()?;
            place.value.as_ref().map(|value| (token(place.uses, at), value))
        })
    }
}

fn token(uses: u32, at: u32) -> Token {
    u64::from(uses) << 32 | u64::from(at)
}

fn parts(token: Token) -> (u32, u32) {
    ((token >> 32) as u32, token as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again_under_another_token() {
        let mut slots = Slots::new();
        let [first, second] = ["a", "b"].map(|value| slots.insert(value).unwrap());
        assert_eq!((slots.remove(first), slots.remove(first)), (Some("a"), None));
        let third = slots.insert("c").unwrap();
        assert_ne!(third, first);
        assert!(slots.get_mut(first).is_none());
        assert_eq!(slots.get_mut(third), Some(&mut "c"));
        assert_eq!(slots.iter().collect::<Vec<_>>(), [(third, &"c"), (second, &"b")]);
        assert_eq!((slots.places.len(), slots.free.len()), (2, 0));
        assert!(slots.get_mut(RESERVED).is_none() && slots.get_mut(Token::MAX).is_none());
    }
}
