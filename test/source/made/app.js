// Functions that a compiler makes at run time wait 2 ms at a time. The program prints its process ID.
function work() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2); }
function outer() { for (let i = 0; i < 3; i++) work(); }
for (let i = 0; i < 20; i++) outer();
console.log(process.pid);
