//! Reproducible random numbers: xorshift64*. Written by hand, because a library may change its sequence with an
//! update, and results of different months are compared.

/// Generator state.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below a bound, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}
