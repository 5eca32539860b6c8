// usage: node speedscope.js DIRECTORY FILE...
//
// Opens files in speedscope, which lies in the directory, in Chromium. Prints, for each, the title of its page, which
// names the file once speedscope has read it, and its tables: of the threads, if there are several, each with its time,
// and of the functions of the first one, as a JSON array of {title, threads: {name: time}, functions: {name: [total, self]}}.
'use strict';

const fs = require('fs');
const os = require('os');
const path = require('path');
const { open } = require('./browser');

open(async (page, [directory, ...files]) => {
  const shown = [];
  for (const file of files) {
    const script = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'gotrace-speedscope-')), 'load.js');
    const content = fs.readFileSync(file).toString('base64');
    fs.writeFileSync(script, `speedscope.loadFileFromBase64(${JSON.stringify(path.basename(file))}, "${content}")`);
    await page.goto('about:blank');
    await page.goto(`file://${directory}/index.html#localProfilePath=${script}`);
    await page.until(() => document.title !== 'speedscope');
    await page.evaluate(() => window.dispatchEvent(new KeyboardEvent('keypress', { key: '3' }))); // "Sandwich"
    await page.until(() => { // the table's head comes before its rows
      const rows = [...document.querySelectorAll('tr')], head = rows.findIndex((row) => row.innerText.includes('Symbol Name'));
      return head >= 0 && rows.length > head + 1;
    });
    shown.push(await page.evaluate(() => {
      const rows = [...document.querySelectorAll('tr')].map((row) => [...row.children].map((cell) => cell.innerText));
      const head = rows.findIndex((row) => row[2] === 'Symbol Name');
      return {
        title: document.title,
        threads: Object.fromEntries(rows.slice(1, Math.max(head, 1)).map(([, name, time]) => [name, time])),
        functions: Object.fromEntries(rows.slice(head + 1).map(([total, self, name]) => [name, [total, self]])),
      };
    }));
    fs.rmSync(path.dirname(script), { recursive: true });
  }
  if (page.errors.length) throw new Error(page.errors.join('\n'));
  console.log(JSON.stringify(shown));
});
