// A generic function in two modules waits.
use std::{thread, time::Duration};

mod app {
    pub mod inner {
        pub fn work<T: Into<u64>>(ms: T) {
            std::thread::sleep(std::time::Duration::from_millis(ms.into()));
        }
    }
}

fn main() {
    thread::spawn(|| app::inner::work(3u32)).join().unwrap();
    thread::sleep(Duration::from_millis(1));
}
