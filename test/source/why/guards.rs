// Three workers hold the guard of one Mutex while they do their pieces of work: 20 pieces, 8 and 8, of 10 ms each. Prints
// how long all of it took, and how long the pieces of the first worker took, in ms.
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

#[inline(never)]
fn store_piece() {
    thread::sleep(Duration::from_millis(10));
}

#[inline(never)]
fn work(table: &Mutex<u64>, pieces: u64) -> Duration {
    let mut took = Duration::ZERO;
    for _ in 0..pieces {
        let mut stored = table.lock().unwrap();
        let from = Instant::now();
        store_piece();
        *stored += 1;
        took += from.elapsed();
    }
    took
}

fn main() {
    let from = Instant::now();
    let table = Arc::new(Mutex::new(0));
    let begin = Arc::new(Barrier::new(3));
    let workers: Vec<_> = vec![20, 8, 8]
        .into_iter()
        .map(|pieces| {
            let (table, begin) = (table.clone(), begin.clone());
            thread::Builder::new()
                .name(format!("worker{pieces}"))
                .spawn(move || {
                    begin.wait();
                    work(&table, pieces)
                })
                .unwrap()
        })
        .collect();
    let took: Vec<_> = workers.into_iter().map(|w| w.join().unwrap()).collect();
    println!("{:.1} {:.1}", from.elapsed().as_secs_f64() * 1e3, took[0].as_secs_f64() * 1e3);
}
