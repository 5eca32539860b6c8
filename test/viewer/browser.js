// Chromium, without a window.
'use strict';

const fs = require('fs');
const os = require('os');
const path = require('path');
const { chromium } = require('playwright-core');

const TIMEOUT_MS = 50000;
const FLAGS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
];

// Calls use(page, arguments of the command line); an exception of its ends the process with status 1.
async function open(use) {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'gotrace-viewer-'));
  try {
    const context = await chromium.launchPersistentContext(profile, {
      executablePath: '/usr/bin/chromium',
      headless: true,
      args: FLAGS,
      viewport: { width: 1400, height: 700 },
    });
    try {
      const page = await context.newPage();
      page.setDefaultTimeout(TIMEOUT_MS);
      await use(page, process.argv.slice(2));
    } finally {
      await context.close();
    }
  } catch (error) {
    console.error(error);
    process.exitCode = 1;
  } finally {
    fs.rmSync(profile, { recursive: true, force: true });
  }
}

module.exports = { open };
