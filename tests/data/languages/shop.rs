// A spin in a generic method that is inlined; each frame of the stack has a line of its own.
use std::hint::black_box;
struct Till<T> {
    sum: u64,
    coin: T,
}
impl<T: Copy> Till<T> {
    #[inline(always)]
    fn ring(&mut self, price: u32) {
        let mut i = 0;
        while i < price { self.sum = self.sum / 7 + self.sum % 13 + i as u64; i += 1; black_box((self.sum, self.coin)); } // mark ring
    }
}
#[inline(never)]
fn serve(till: &mut Till<u32>, price: u32) -> u64 {
    till.ring(price); // mark serve
    black_box(till.sum)
}
mod week {
    #[inline(never)]
    pub fn day(customers: u32) -> u64 {
        let mut till = super::Till { sum: 0, coin: customers };
        for _ in 0..customers {
            till.sum ^= super::serve(&mut till, 500_000); // mark day
        }
        std::hint::black_box(till.sum)
    }
}
fn main() {
    let sum = week::day(black_box(160)); // mark main
    std::process::exit((sum == 42).into());
}
