// A server of HTTP whose answers other threads than the main thread compute.
const crypto = require('crypto');
const answer = (q, a) => crypto.pbkdf2('x', 'y', 10, 8, 'sha1', () => a.end(q.url.slice(1).repeat(1000)));
require('http').createServer(answer).listen(Number(process.argv[2]), '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
