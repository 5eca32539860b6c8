// A consumer of a channel, and a thread that waits for a Mutex.
use std::sync::{mpsc, Arc, Mutex};
use std::{thread, time::Duration};
#[inline(never)]
fn consume(queue: mpsc::Receiver<u32>) -> u32 {
    let sum = queue.iter().sum();
    thread::sleep(Duration::from_millis(100)); // so that its end is waited for
    sum
}
#[inline(never)]
fn locked(m: &Mutex<u32>) { *m.lock().unwrap() += 1; }
fn main() {
    let (tx, rx) = mpsc::channel();
    let consumer = thread::spawn(move || consume(rx));
    let m = Arc::new(Mutex::new(0));
    let other = m.clone();
    let guard = m.lock().unwrap();
    let waiter = thread::spawn(move || locked(&other));
    thread::sleep(Duration::from_millis(30));
    drop(guard);
    tx.send(1).unwrap();
    drop(tx);
    println!("{}", consumer.join().unwrap());
    waiter.join().unwrap();
}
