// usage: node flame.js PICTURE.svg PICTURE.png FUNCTION
//
// Opens a flame graph in Chromium, saves a picture of it, seeks a function in it and zooms into one of its boxes, as a
// person does. Prints, as JSON: what is shown then, and what the page asked for from elsewhere.
'use strict';

const { open } = require('./browser');

open(async (page, [graph, picture, wanted]) => {
  const asked = [];
  page.connection.listeners.push((method, params) => {
    if (method === 'Network.requestWillBeSent') asked.push(params.request.url);
  });
  await page.connection.send('Network.enable');
  await page.setSize(1200, 600);
  await page.goto(`file://${graph}`);
  await page.screenshot(picture);
  const shown = await page.evaluate((name) => {
    const boxes = () => [...document.querySelectorAll('.f')].filter((g) => g.style.display !== 'none').map((g) => {
      const [title, rect, text] = g.children;
      const number = (what) => Number(rect.getAttribute(what));
      return {
        name: title.textContent.split('\n')[0], text: text.textContent, found: g.classList.contains('found'),
        x: number('x'), y: number('y'), width: number('width'),
      };
    });
    const press = (element) => element.dispatchEvent(new MouseEvent('click', { bubbles: true }));
    const all = boxes();
    window.prompt = () => name;
    press(document.querySelector('#search'));
    const found = document.querySelector('#found').textContent, sought = boxes();
    press([...document.querySelectorAll('.f')].find((g) => g.children[0].textContent.startsWith(`${name}\n`)));
    const zoomed = boxes(), foundThere = document.querySelector('#found').textContent;
    dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
    return { all, found, sought, zoomed, foundThere, reset: boxes() };
  }, wanted);
  console.log(JSON.stringify({ ...shown, asked, errors: page.errors }));
});
