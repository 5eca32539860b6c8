// usage: node drawn.js FILE.html SEEN.json POINTS
//
// Opens a report in Chromium in each window and theme, and writes as JSON what is drawn there:
// {wide-light, wide-dark, narrow-light, narrow-dark: {colours, canvas: {width, height, pixels}, labels, texts, bands}}.
// pixels: base64 of the canvas, red, green, blue and alpha of each. labels: of the canvas, with their boxes. texts: those of
// the document, with their boxes, colours and what is behind them. bands: what the picture of all threads shows at POINTS,
// as JSON: [part of its width, part of its height].
'use strict';

const fs = require('fs');
const { open } = require('./browser');

const LOOKS = { 'wide-light': [1200, 'light'], 'wide-dark': [1200, 'dark'], 'narrow-light': [390, 'light'], 'narrow-dark': [390, 'dark'] };

// Runs before the page's script: notes what is written into a canvas since it was last made empty.
function watch() {
  const { prototype } = HTMLCanvasElement, width = Object.getOwnPropertyDescriptor(prototype, 'width');
  const { fillText } = CanvasRenderingContext2D.prototype;
  window.written = [];
  Object.defineProperty(prototype, 'width', {
    ...width,
    set(value) {
      window.written = [];
      width.set.call(this, value);
    },
  });
  CanvasRenderingContext2D.prototype.fillText = function note(text, x, y) {
    const size = this.measureText(text), up = size.actualBoundingBoxAscent, down = size.actualBoundingBoxDescent;
    if (text) window.written.push({ text, colour: this.fillStyle, x, y: y - up, width: size.width, height: up + down });
    fillText.call(this, text, x, y);
  };
}

// Runs in the page.
function canvas() {
  const element = document.getElementById('lanes-canvas'), { width, height } = element;
  const { data } = element.getContext('2d').getImageData(0, 0, width, height);
  let pixels = '';
  for (const byte of data) pixels += String.fromCharCode(byte);
  return { width, height, pixels: btoa(pixels) };
}

// Runs in the page. Colours are [red, green, blue], as a canvas has them.
function texts() {
  const pen = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
  const rgba = (colour) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data];
  };
  const style = (element) => getComputedStyle(element);
  const behind = (element) => {
    for (let it = element; it; it = it.parentElement) {
      const colour = rgba(style(it).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement, svg = element.closest('svg');
    const unseen = !node.data.trim() || !element.checkVisibility() || element.closest('script, style, title');
    const head = element.closest('thead'); // not shown where rows are blocks, but there for screen readers
    if (unseen || (head && style(head).position === 'absolute')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = svg && (element.closest('.f') || svg).querySelector('rect');
    const boxes = [...range.getClientRects()].map(({ x, y, width, height }) => ({ x, y: y + scrollY, width, height }));
    found.push({
      text: node.data.trim().slice(0, 60), boxes, selectable: style(element).userSelect !== 'none',
      colour: rgba(svg ? style(element).fill : style(element).color).slice(0, 3),
      behind: (box ? rgba(style(box).fill) : behind(element)).slice(0, 3),
    });
  }
  return found;
}

// Runs in the page. What is at each point of the picture: "on a CPU", or "".
function bands(points) {
  const picture = document.querySelector('svg.bands');
  picture.scrollIntoView({ block: 'center' });
  const { x, y, width, height } = picture.getBoundingClientRect();
  return points.map(([right, down]) => {
    const element = document.elementFromPoint(x + right * width, y + down * height);
    const title = element && element.localName === 'polygon' && element.querySelector('title');
    return title ? title.textContent.split(':')[0] : '';
  });
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const names = ['back', 'fore', 'running', 'sched', 'sync', 'network', 'syscall', 'sleep', 'other', 'unseen'];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

const frame = () => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); });

open(async (page, [file, output, points]) => {
  const seen = {};
  await page.connection.send('Page.addScriptToEvaluateOnNewDocument', { source: `(${watch})()` });
  for (const [name, [width, theme]] of Object.entries(LOOKS)) {
    await page.setSize(width, 900);
    await page.connection.send('Emulation.setEmulatedMedia', { media: '', features: [{ name: 'prefers-color-scheme', value: theme }] });
    await page.goto(`file://${file}`);
    await page.evaluate(frame);
    seen[name] = {
      colours: await page.evaluate(colours), canvas: await page.evaluate(canvas), labels: await page.evaluate(() => window.written),
      texts: await page.evaluate(texts), bands: await page.evaluate(bands, JSON.parse(points)),
    };
  }
  if (page.errors.length) throw new Error(page.errors.join('\n'));
  fs.writeFileSync(output, JSON.stringify(seen)); // megabytes: too much for a pipe of a process that ends at once
});
