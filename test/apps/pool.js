// The threads of libuv, of V8, of a worker and of a child, at once.
const crypto = require('crypto');
const fs = require('fs');
const { execFileSync } = require('child_process');
const { Worker } = require('worker_threads');
const { promisify } = require('util');
const zlib = require('zlib');

const pbkdf2 = promisify(crypto.pbkdf2);
const gzip = promisify(zlib.gzip);
const work = 'let n = 0; for (let i = 0; i < 3e6; i++) n = (n * 31 + i) | 0;';

async function main() {
    const results = await Promise.all([
        ...Array.from({ length: 8 }, (_, i) => pbkdf2(`secret ${i}`, 'salt', 5000, 32, 'sha256')),
        ...Array.from({ length: 16 }, () => fs.promises.readFile(process.argv[2])),
        ...Array.from({ length: 4 }, (_, i) => gzip(Buffer.alloc(200_000, i)).then(b => zlib.gunzipSync(b))),
        new Promise((done, failed) => {
            const worker = new Worker(work + 'require("worker_threads").parentPort.postMessage(String(n))', { eval: true });
            worker.on('message', done);
            worker.on('error', failed);
        }),
    ]);
    const hash = crypto.createHash('sha256');
    results.forEach(r => hash.update(r));
    console.log(hash.digest('hex'), execFileSync('echo', ['child']).toString().trim());
    process.exitCode = 3;
}
main();
