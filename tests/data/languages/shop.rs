// A spin in a generic method that is inlined; each frame of the stack has a line of its own.
use std::hint::black_box;
struct Till<T> {
    sum: T,
}
impl<T: std::ops::AddAssign + From<u32>> Till<T> {
    #[inline(always)]
    fn ring(&mut self, price: u32) {
        for i in 0..price { self.sum += T::from(black_box(i)); } // mark ring
    }
}
#[inline(never)]
fn serve(till: &mut Till<u64>, price: u32) -> u64 {
    till.ring(price); // mark serve
    black_box(till.sum)
}
mod week {
    #[inline(never)]
    pub fn day(customers: u32) -> u64 {
        let mut till = super::Till { sum: 0u64 };
        for _ in 0..customers {
            till.sum ^= super::serve(&mut till, 500_000); // mark day
        }
        std::hint::black_box(till.sum)
    }
}
fn main() {
    let sum = week::day(black_box(1600)); // mark main
    std::process::exit((sum == 42).into());
}
