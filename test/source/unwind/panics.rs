// Threads that yield in closures, and panic 40 calls deep.
use std::{collections::HashMap, panic, thread};
fn deep(n: u32) -> String { if n == 0 { panic!("expected") } format!("{}{}", n, deep(n - 1)) }
fn main() {
    let threads: Vec<_> = (0..4).map(|i| thread::spawn(move || {
        let mut m = HashMap::new();
        for k in 0..500 { m.insert(k, format!("{k}{i}")); thread::yield_now(); }
        let _ = panic::catch_unwind(|| deep(40));
        m.len()
    })).collect();
    for t in threads { t.join().unwrap(); }
}
