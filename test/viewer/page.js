// usage: node page.js URL PICTURE.png
//
// Opens a page of `go tool trace` that is no timeline in Chromium, saves a picture of it and prints its text.
'use strict';

const { open } = require('./browser');

open(async (page, [url, picture]) => {
  await page.goto(url);
  await page.screenshot(picture);
  console.log(await page.evaluate(() => document.body.innerText));
});
