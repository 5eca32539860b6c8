// Chromium without a window, by its own protocol over a pipe: nothing but Node is needed.
'use strict';

const { spawn, spawnSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

const TIMEOUT_MS = 50000;
const PROGRAMS = ['chromium-headless-shell', 'chromium', 'chromium-browser'];
const FLAGS = [
  '--headless', '--remote-debugging-pipe', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync', '--hide-scrollbars',
];

// What is sent and what comes are JSON objects, each followed by a NUL byte.
class Connection {
  constructor(sending, receiving) {
    Object.assign(this, { sending, session: undefined, last: 0, calls: new Map(), listeners: [] });
    let text = '';
    receiving.setEncoding('utf8');
    receiving.on('data', (data) => {
      const messages = (text + data).split('\0');
      text = messages.pop();
      for (const message of messages) this.receive(JSON.parse(message));
    });
    receiving.on('close', () => {
      for (const call of this.calls.values()) call.reject(new Error('Chromium has ended'));
    });
    sending.on('error', () => {}); // said by what is received: nothing more
  }

  receive({ id, result, error, method, params }) {
    if (!id) return this.listeners.forEach((listener) => listener(method, params));
    const { resolve, reject } = this.calls.get(id);
    this.calls.delete(id);
    return error ? reject(new Error(error.message)) : resolve(result);
  }

  send(method, params = {}) {
    const id = ++this.last;
    this.sending.write(`${JSON.stringify({ id, method, params, sessionId: this.session })}\0`);
    return new Promise((resolve, reject) => this.calls.set(id, { resolve, reject }));
  }
}

class Page {
  constructor(connection) {
    this.connection = connection;
    this.errors = []; // exceptions that nobody caught
    connection.listeners.push((method, params) => {
      if (method === 'Runtime.exceptionThrown') this.errors.push(description(params.exceptionDetails));
    });
  }

  static async open(connection) {
    const { targetId } = await connection.send('Target.createTarget', { url: 'about:blank' });
    connection.session = (await connection.send('Target.attachToTarget', { targetId, flatten: true })).sessionId;
    await connection.send('Page.enable');
    await connection.send('Runtime.enable');
    return new Page(connection);
  }

  setSize(width, height) {
    return this.connection.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
  }

  async goto(url) {
    const loaded = new Promise((resolve) => {
      this.connection.listeners.push((method) => method === 'Page.loadEventFired' && resolve());
    });
    const { errorText } = await this.connection.send('Page.navigate', { url });
    if (errorText) throw new Error(`${url}: ${errorText}`);
    await loaded;
  }

  // What the function returns in the page.
  async evaluate(func, ...args) {
    const expression = `(${func})(${args.map((arg) => JSON.stringify(arg)).join()})`;
    const { result, exceptionDetails } = await this.connection.send('Runtime.evaluate', {
      expression, returnByValue: true, awaitPromise: true,
    });
    if (exceptionDetails) throw new Error(description(exceptionDetails));
    return result.value;
  }

  // Waits until the function returns something true in a frame of the page.
  async until(func) {
    while (!(await this.evaluate(`async () => (${func})() || new Promise(requestAnimationFrame).then(() => false)`)));
  }

  // Clicks where this text is shown, as a person does.
  async click(text) {
    await this.connection.send('DOM.getDocument');
    const query = `//*[normalize-space(text())="${text}"]`;
    const { searchId, resultCount } = await this.connection.send('DOM.performSearch', { query });
    if (!resultCount) throw new Error(`nothing shows ${text}`);
    const range = { searchId, fromIndex: 0, toIndex: 1 };
    const [nodeId] = (await this.connection.send('DOM.getSearchResults', range)).nodeIds;
    const [x, y, , , right, bottom] = (await this.connection.send('DOM.getBoxModel', { nodeId })).model.content;
    const place = { x: (x + right) / 2, y: (y + bottom) / 2, button: 'left', clickCount: 1 };
    await this.connection.send('Input.dispatchMouseEvent', { type: 'mousePressed', ...place });
    await this.connection.send('Input.dispatchMouseEvent', { type: 'mouseReleased', ...place });
  }

  async screenshot(file) {
    const { data } = await this.connection.send('Page.captureScreenshot', { format: 'png' });
    fs.writeFileSync(file, Buffer.from(data, 'base64'));
  }
}

function description({ text, exception }) {
  return (exception && exception.description) || text;
}

// Calls use(page, arguments of the command line); an exception of its ends the process with status 1.
async function open(use) {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'gotrace-viewer-'));
  const program = PROGRAMS.find((name) => spawnSync('which', [name]).status === 0);
  const browser = spawn(program, [...FLAGS, `--user-data-dir=${profile}`], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise((resolve) => browser.on('exit', resolve));
  const late = setTimeout(() => browser.kill('SIGKILL'), TIMEOUT_MS);
  try {
    const page = await Page.open(new Connection(browser.stdio[3], browser.stdio[4]));
    await page.setSize(1400, 700);
    await use(page, process.argv.slice(2));
    page.connection.session = undefined;
    await page.connection.send('Browser.close').catch(() => {}); // it may end before it answers
  } catch (error) {
    console.error(error);
    process.exitCode = 1;
    browser.kill('SIGKILL');
  }
  await ended;
  clearTimeout(late);
  fs.rmSync(profile, { recursive: true, force: true, maxRetries: 20 }); // a child of the browser may write for a while yet
  process.exit(); // whatever a child of the browser keeps open
}

module.exports = { open };
