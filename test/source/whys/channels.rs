//! Rust programs that are slow for a known reason: channels NAME [half|fixed]. Prints the ns that it took.
use std::sync::{mpsc, Arc, Condvar, Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

fn mode() -> String {
    std::env::args().nth(2).unwrap_or_default()
}

fn wait_for_device(us: u64) {
    thread::sleep(Duration::from_micros(if mode() == "half" { us / 2 } else { us }));
    std::hint::black_box(us); // no tail calls: each function stays on the stack
}

#[inline(never)]
fn encode_frame() {
    wait_for_device(7000);
    std::hint::black_box(());
}

/// A channel of three frames between a fast and a slow stage. Half: the slow one takes half as long.
fn pipeline() {
    let (send, receive) = mpsc::sync_channel::<u32>(3);
    let encoder = thread::spawn(move || {
        for _ in receive {
            encode_frame();
        }
    });
    for i in 0..60 {
        thread::sleep(Duration::from_micros(1500));
        send.send(i).unwrap();
    }
    drop(send);
    encoder.join().unwrap();
}

#[inline(never)]
fn count_words() {
    wait_for_device(3000);
    std::hint::black_box(());
}

/// Four threads count with one mutex held. Fixed: they count, and then take the mutex.
fn shared_count() {
    let total = Arc::new(Mutex::new(0u64));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let total = total.clone();
            thread::spawn(move || {
                for _ in 0..30 {
                    if mode() == "fixed" {
                        count_words();
                        *total.lock().unwrap() += 1;
                    } else {
                        let mut held = total.lock().unwrap();
                        count_words();
                        *held += 1;
                    }
                }
            })
        })
        .collect();
    for t in threads {
        t.join().unwrap();
    }
}

#[inline(never)]
fn rebuild_index() {
    wait_for_device(15000);
    std::hint::black_box(());
}

/// Readers wait for a writer. Half: it writes for half as long.
fn rebuilt() {
    let index = Arc::new(RwLock::new(0));
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let index = index.clone();
            thread::spawn(move || {
                for _ in 0..20 {
                    let _held = index.read().unwrap();
                    thread::sleep(Duration::from_millis(1));
                }
            })
        })
        .collect();
    for _ in 0..20 {
        let mut held = index.write().unwrap();
        rebuild_index();
        *held += 1;
        drop(held);
        thread::sleep(Duration::from_millis(1));
    }
    for t in readers {
        t.join().unwrap();
    }
}

#[inline(never)]
fn load_shard(i: u64) {
    if i == 3 {
        wait_for_device(240_000);
        std::hint::black_box(());
    } else {
        thread::sleep(Duration::from_millis(40));
    }
}

/// One of six threads has more to do than the others, and all meet at the end. Half: it takes half as long.
fn last_shard() {
    let ready = Arc::new((Mutex::new(0), Condvar::new()));
    for i in 0..6 {
        let ready = ready.clone();
        thread::spawn(move || {
            load_shard(i);
            *ready.0.lock().unwrap() += 1;
            ready.1.notify_one();
        });
    }
    let mut n = ready.0.lock().unwrap();
    while *n < 6 {
        n = ready.1.wait(n).unwrap();
    }
}

fn main() {
    let begin = Instant::now();
    match std::env::args().nth(1).unwrap_or_default().as_str() {
        "pipeline" => pipeline(),
        "shared_count" => shared_count(),
        "rebuilt" => rebuilt(),
        "last_shard" => last_shard(),
        _ => std::process::exit(2),
    }
    println!("{}", begin.elapsed().as_nanos());
}
