// usage: node report.js FILE.html PICTURE_PREFIX
//
// Opens a report of `gotrace report` in Chromium, light, dark, for print, and in windows of a middle and a narrow width, saves
// a picture of each, and prints as JSON what it shows: {text, sections, rows, answer, errors, network, titles, elements,
// overflow, middle, narrow, zoomed, told, marked, keys}.
// errors: exceptions and what the Content-Security-Policy forbade; network: what the page asked for.
'use strict';

const { open } = require('./browser');

// Runs in the page.
function contents() {
  const shown = (id) => !document.getElementById(id).hidden;
  const ids = [...document.querySelectorAll('section[id]')].map((element) => element.id);
  return {
    text: document.body.innerText,
    sections: ids.filter(shown),
    rows: Object.fromEntries(ids.map((id) => [id, document.querySelectorAll(`#${id} tbody tr`).length])),
    answer: document.getElementById('answer').innerText,
    flames: document.querySelectorAll('svg.flame').length,
    elements: [...new Set([...document.querySelectorAll('main *, header *')].map((element) => element.localName))],
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  };
}

// Runs in the page. The colours that stand in a canvas, but for the greys, and how many pixels each has.
function colours() {
  const canvas = document.getElementById('lanes-canvas');
  if (!canvas.width) return {};
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const found = {};
  for (let i = 0; i < data.length; i += 4) {
    const rgb = [data[i], data[i + 1], data[i + 2]];
    if (data[i + 3] === 255 && Math.max(...rgb) - Math.min(...rgb) > 40) found[rgb] = (found[rgb] || 0) + 1;
  }
  return Object.fromEntries(Object.entries(found).filter(([, n]) => n > 50));
}

// Runs in the page: what keys do in the first flame graph.
function flameKeys() {
  const svg = document.querySelector('svg.flame');
  if (!svg) return {};
  const reset = () => getComputedStyle(svg.querySelector('#reset')).display;
  const press = (key, more) => svg.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more }));
  svg.focus();
  press('Escape');
  press('ArrowUp');
  const up = svg.querySelector('.chosen title').textContent.split('\n')[0];
  press('Enter');
  const zoomed = reset();
  press('Escape');
  return { focus: document.activeElement === svg, up, zoomed, reset: reset(), prevented: !press('f', { ctrlKey: true }) };
}

const frame = () => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); });

// A picture of the page in a window of that size; returns by how many pixels the page is wider.
async function resized(page, width, height, picture) {
  await page.setSize(width, height);
  await page.evaluate(frame);
  await page.screenshot(picture);
  return (await page.evaluate(contents)).overflow;
}

async function look(page, file, prefix) {
  const network = [], errors = [];
  page.connection.listeners.push((method, params) => {
    if (method === 'Network.requestWillBeSent') network.push(params.request.url);
    if (method === 'Log.entryAdded' && params.entry.level === 'error') errors.push(params.entry.text);
  });
  await page.connection.send('Network.enable');
  await page.connection.send('Log.enable');
  await page.goto(`file://${file}`);
  await page.evaluate(frame);
  const seen = await page.evaluate(contents);
  seen.colours = await page.evaluate(colours);
  await page.screenshot(`${prefix}-light.png`);
  seen.middle = await resized(page, 900, 860, `${prefix}-middle.png`);
  await page.setSize(1400, 700);
  await page.evaluate(frame);
  if (seen.sections.includes('lanes')) Object.assign(seen, await use(page));
  const emulate = (media, value) => page.connection.send('Emulation.setEmulatedMedia', {
    media, features: [{ name: 'prefers-color-scheme', value }],
  });
  await emulate('', 'dark');
  await page.evaluate(frame);
  seen.dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.screenshot(`${prefix}-dark.png`);
  await emulate('print', 'light');
  await page.screenshot(`${prefix}-print.png`);
  await emulate('', 'light');
  seen.narrow = await resized(page, 390, 800, `${prefix}-narrow.png`);
  return { ...seen, network: network.filter((url) => !url.startsWith('file://')), errors: [...errors, ...page.errors] };
}

// As a person does: keys in the timeline, a button of a table, a look at a thread, a click in the flame graph.
async function use(page) {
  const press = async (key) => {
    await page.connection.send('Input.dispatchKeyEvent', { type: 'keyDown', key });
    await page.connection.send('Input.dispatchKeyEvent', { type: 'keyUp', key });
    await page.evaluate(frame);
  };
  const told = () => page.evaluate(() => document.getElementById('lanes-about').textContent);
  await page.evaluate(() => document.getElementById('lanes-canvas').focus());
  await press('ArrowDown');
  const first = await told();
  await press('+');
  await press('+');
  await press('ArrowRight');
  await press('ArrowUp');
  const second = await told();
  const marked = await page.evaluate(() => {
    const button = document.querySelector('button.time');
    if (button) button.click();
    return button && button.textContent;
  });
  const zoomed = await page.evaluate(() => {
    const box = [...document.querySelectorAll('svg.flame .f')].pop();
    if (box) box.dispatchEvent(new MouseEvent('click', { bubbles: true }));
    return [...document.querySelectorAll('svg.flame #reset')].map((one) => getComputedStyle(one).display);
  });
  await page.evaluate(frame);
  return { told: [first, second], marked, zoomed, keys: await page.evaluate(flameKeys) };
}

open(async (page, [file, prefix]) => console.log(JSON.stringify(await look(page, file, prefix))));
