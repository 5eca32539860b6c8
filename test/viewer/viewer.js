// usage: node viewer.js URL PICTURE.png [FUNCTION | --slowest-wakeup | --log=TEXT | --from=MS..MS]
//
// Opens one timeline of `go tool trace` in Chromium, waits until it is drawn, saves a picture of it, and prints what
// the viewer shows as JSON: {processes: [{name, rows: [{name, slices: {title: count}}]}], flows, marked, errors}. With
// FUNCTION the picture is of the longest wait in it: what comes before it is selected, so that its stack is shown. With
// --slowest-wakeup it is of the longest arrow from a waker to the woken, which is selected; "wakeup: {ms, title}" is added.
// With --log it is of the log that says TEXT and has the longest wait behind it; "log: {title, row}" is added.
// With --from it is of that time, with all arrows; the longest slice in it is selected.
'use strict';

const { open } = require('./browser');

// Runs in the page. True once the trace is loaded and slices are drawn: the canvas has pixels in colours other than
// the greys of its grid.
function isDrawn() {
  const overlay = document.querySelector('tr-ui-b-overlay');
  if (overlay && overlay.visible && /error|failed/i.test(overlay.title)) {
    throw new Error(`${overlay.title}: ${overlay.textContent}`);
  }
  const view = document.querySelector('tr-ui-timeline-view');
  if (!view || !view.model || view.model.bounds.isEmpty || (overlay && overlay.visible)) return false;
  const canvas = view.trackView && view.trackView.modelTrackContainer_.canvas;
  if (!canvas || !canvas.width) return false;
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] && Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 40) {
      return true;
    }
  }
  return false;
}

// Runs in the page.
function contents() {
  const { model, trackView } = document.querySelector('tr-ui-timeline-view');
  const { interestRange } = trackView.viewport;
  const processes = Object.values(model.processes).map((process) => ({
    name: process.name || process.userFriendlyName,
    rows: Object.values(process.threads).map((thread) => {
      const slices = {};
      for (const slice of thread.sliceGroup.slices) slices[slice.title] = (slices[slice.title] || 0) + 1;
      return { name: thread.name || thread.userFriendlyName, slices };
    }),
  }));
  return {
    processes,
    flows: model.flowEvents.length,
    marked: interestRange.isEmpty ? null : [interestRange.min, interestRange.max],
    errors: model.importWarningsThatShouldBeShownToUser.map((warning) => warning.message),
  };
}

// Runs in the page. Selects an event, with so much around it, in ms.
function select(event, start, end) {
  const view = document.querySelector('tr-ui-timeline-view');
  const { viewport } = view.trackView;
  const zoom = new tr.ui.TimelineDisplayTransform();
  zoom.set(viewport.currentDisplayTransform);
  zoom.xSetWorldBounds(start, end, view.trackView.modelTrackContainer_.canvas.clientWidth - 250);
  viewport.setDisplayTransformImmediately(zoom);
  view.brushingStateController.changeSelectionFromTimeline(new tr.model.EventSet([event]));
}

// Runs in the page.
function showWait(func) {
  const view = document.querySelector('tr-ui-timeline-view');
  let longest = { gap: 0 };
  for (const process of Object.values(view.model.processes)) {
    for (const thread of Object.values(process.threads)) {
      const slices = thread.sliceGroup.slices.slice().sort((a, b) => a.start - b.start);
      for (let i = 0; i + 1 < slices.length; i++) {
        let frame = slices[i].endStackFrame;
        while (frame && !frame.title.includes(func)) frame = frame.parentFrame;
        const gap = slices[i + 1].start - slices[i].end;
        if (frame && gap > longest.gap) longest = { gap, slice: slices[i] };
      }
    }
  }
  const { slice, gap } = longest;
  select(slice, slice.end - gap, slice.end + 2 * gap);
}

// Runs in the page.
function showSlowestWakeup() {
  const { model } = document.querySelector('tr-ui-timeline-view');
  const arrows = model.flowEvents.filter((arrow) => arrow.title.startsWith('unblock'));
  const slowest = arrows.reduce((a, b) => (b.duration > a.duration ? b : a));
  select(slowest, slowest.start - slowest.duration / 2, slowest.end + slowest.duration / 2);
  return { wakeup: { ms: slowest.duration, title: slowest.endSlice.title } };
}

// Runs in the page.
function showLog(text) {
  const { model } = document.querySelector('tr-ui-timeline-view');
  let longest = { gap: 0 };
  for (const process of Object.values(model.processes)) {
    for (const thread of Object.values(process.threads)) {
      const slices = thread.sliceGroup.slices.slice().sort((a, b) => a.start - b.start);
      for (const log of slices.filter((slice) => slice.title.includes(text))) {
        const next = slices.find((slice) => slice.start > log.start && slice.duration > 0);
        if (next && next.start - log.start > longest.gap) longest = { gap: next.start - log.start, log, row: thread.name };
      }
    }
  }
  const { log, gap, row } = longest;
  select(log, log.start - gap / 2, log.start + gap * 2);
  return { log: { title: log.title, row } };
}

// Runs in the page.
function showTime(range) {
  const { model, trackView } = document.querySelector('tr-ui-timeline-view');
  const [start, end] = range.split('..').map(Number);
  let longest = { duration: -1 };
  for (const process of Object.values(model.processes)) {
    for (const thread of Object.values(process.threads)) {
      for (const slice of thread.sliceGroup.slices) {
        if (slice.start >= start && slice.end <= end && slice.duration > longest.duration) longest = slice;
      }
    }
  }
  select(longest, start, end);
  trackView.viewport.selectedFlowEvents = new Set(model.flowEvents.map((arrow) => arrow.category));
}

open(async (page, [url, picture, what]) => {
  if (what === '--slowest-wakeup') await page.setSize(1400, 860); // for both its ends
  await page.goto(url);
  await page.until(isDrawn);
  await page.click('Hide'); // the viewer's remark about Chromium's polyfills
  let selected = {};
  if (what) {
    await page.evaluate(`() => { globalThis.select = ${select}; }`);
    const [option, text] = what.split('=');
    const show = { '--slowest-wakeup': showSlowestWakeup, '--log': showLog, '--from': showTime }[option] || showWait;
    selected = await page.evaluate(show, text || what);
    await page.until(isDrawn);
  }
  await page.screenshot(picture);
  const model = await page.evaluate(contents);
  model.errors.push(...page.errors);
  console.log(JSON.stringify({ ...model, ...selected }));
});
