//! What the threads of a Rust program wait for: std makes futex calls of all but the join.
use std::sync::mpsc;
use std::sync::{Arc, Barrier, Condvar, Mutex, RwLock};
use std::thread;
use std::time::Duration;

fn counter() -> u32 {
    let value = Arc::new(Mutex::new(0));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let value = value.clone();
            thread::spawn(move || {
                for _ in 0..10 {
                    let mut value = value.lock().unwrap();
                    thread::sleep(Duration::from_millis(1));
                    *value += 1;
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    let sum = *value.lock().unwrap();
    sum
}

fn turns() -> u32 {
    let pair = Arc::new((Mutex::new(0u32), Condvar::new()));
    let other = pair.clone();
    let thread = thread::spawn(move || {
        for i in 0..50 {
            let mut turn = other.1.wait_while(other.0.lock().unwrap(), |t| *t != 2 * i + 1).unwrap();
            *turn += 1;
            other.1.notify_one();
        }
    });
    for i in 0..50 {
        let mut turn = pair.1.wait_while(pair.0.lock().unwrap(), |t| *t != 2 * i).unwrap();
        *turn += 1;
        pair.1.notify_one();
    }
    thread.join().unwrap();
    let (_guard, late) = pair.1.wait_timeout(pair.0.lock().unwrap(), Duration::from_millis(5)).unwrap();
    assert!(late.timed_out());
    *_guard
}

fn channels() -> u64 {
    let (send, receive) = mpsc::sync_channel(1);
    let senders: Vec<_> = (0..3u64)
        .map(|id| {
            let send = send.clone();
            thread::Builder::new()
                .name(format!("sender {id}"))
                .spawn(move || (0..50).for_each(|i| send.send(id * 100 + i).unwrap()))
                .unwrap()
        })
        .collect();
    drop(send);
    let sum = receive.iter().sum();
    senders.into_iter().for_each(|t| t.join().unwrap());
    sum
}

fn parks() -> u32 {
    let parked = thread::spawn(|| {
        thread::park();
        7
    });
    thread::sleep(Duration::from_millis(20));
    parked.thread().unpark();
    parked.join().unwrap()
}

fn others() -> usize {
    let (barrier, lock) = (Arc::new(Barrier::new(3)), Arc::new(RwLock::new(0)));
    let leaders = thread::scope(|s| {
        let threads: Vec<_> = (0..3)
            .map(|_| {
                s.spawn(|| {
                    let mut leaders = 0;
                    for _ in 0..10 {
                        leaders += barrier.wait().is_leader() as usize;
                        *lock.write().unwrap() += 1;
                    }
                    leaders
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum::<usize>()
    });
    let panics = thread::spawn(|| std::panic::resume_unwind(Box::new(1))).join().is_err() as usize;
    let writes = *lock.read().unwrap();
    leaders * 1000 + writes * 10 + panics
}

fn main() {
    println!("{} {} {} {} {}", counter(), turns(), channels(), parks(), others());
}
