// usage: node speedscope.js DIRECTORY FILE...
//
// Opens files in speedscope, which lies in the directory, in Chromium. Prints the title of its page for each, which
// names the file once speedscope has read it, as a JSON array.
'use strict';

const fs = require('fs');
const os = require('os');
const path = require('path');
const { open } = require('./browser');

open(async (page, [directory, ...files]) => {
  const titles = [];
  for (const file of files) {
    const script = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'gotrace-speedscope-')), 'load.js');
    const content = fs.readFileSync(file).toString('base64');
    fs.writeFileSync(script, `speedscope.loadFileFromBase64(${JSON.stringify(path.basename(file))}, "${content}")`);
    await page.goto('about:blank');
    await page.goto(`file://${directory}/index.html#localProfilePath=${script}`);
    await page.until(() => document.title !== 'speedscope');
    titles.push(await page.evaluate(() => document.title));
    fs.rmSync(path.dirname(script), { recursive: true });
  }
  if (page.errors.length) throw new Error(page.errors.join('\n'));
  console.log(JSON.stringify(titles));
});
