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
    pub fn day(ms: u32, price: u32) -> u64 {
        let mut till = super::Till { sum: 0, coin: ms };
        let end = super::clock() + i64::from(ms) * 1000;
        while super::clock() < end {
            till.sum ^= super::serve(&mut till, price); // mark day
        }
        std::hint::black_box(till.sum)
    }
}
unsafe extern "C" {
    /// CPU time of the process in microseconds.
    safe fn clock() -> i64;
}
fn main() {
    let speed = std::env::var("PMC_TEST_LOOP_SPEED").map_or(1.0, |speed| speed.parse().unwrap());
    let price = (100_000.0 / speed) as u32;
    let sum = week::day(black_box(500), price); // mark main
    std::process::exit((sum == 42).into());
}
