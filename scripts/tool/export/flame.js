// Search and zoom in a flame graph: what makes the picture of flame.c answer.
'use strict';
(() => {
  const svg = document.currentScript.ownerSVGElement;
  const byId = (id) => svg.querySelector(`#${id}`);
  const { left, width, letter } = Object.fromEntries(
    Object.entries(svg.dataset).map(([name, value]) => [name, Number(value)]));
  const number = (element, name) => Number(element.getAttribute(name));
  const frames = [...svg.querySelectorAll('.f')].map((g) => {
    const [title, rect, text] = g.children;
    const about = title.textContent.split('\n');
    return {
      g, rect, text, about, name: about[0], x: number(rect, 'x'), y: number(rect, 'y'), width: number(rect, 'width'),
    };
  });
  const SLACK = 0.02; // what positions are rounded by
  let zoomed = frames[0], sought = null;

  function label(name, room) {
    const letters = Math.floor((room - 4) / letter);
    if (letters < 3) return '';
    return name.length <= letters ? name : `${name.slice(0, letters - 1)}…`;
  }

  function place(frame, x, room) {
    frame.rect.setAttribute('x', x);
    frame.rect.setAttribute('width', room);
    frame.text.setAttribute('x', x + 3);
    frame.text.textContent = label(frame.name, room);
  }

  const isInside = (frame, outer) =>
    frame.x >= outer.x - SLACK && frame.x + frame.width <= outer.x + outer.width + SLACK;

  // The frame takes all of the width, and so do those below it.
  function zoom(to) {
    zoomed = to;
    const scale = width / to.width;
    for (const frame of frames) {
      const above = frame.y <= to.y && isInside(frame, to), below = frame.y > to.y && isInside(to, frame);
      frame.g.style.display = above || below ? '' : 'none';
      frame.g.classList.toggle('below', below);
      if (above) place(frame, left + (frame.x - to.x) * scale, frame.width * scale);
      if (below) place(frame, left, width);
    }
    byId('reset').classList.toggle('hidden', to === frames[0]);
    count();
  }

  // What part of what is shown has a match on its stack: each part of the width counts once.
  function count() {
    let covered = 0, until = -Infinity;
    const found = frames.filter((frame) => sought && sought.test(frame.name) && isInside(frame, zoomed));
    for (const { x, width: its } of found.sort((a, b) => a.x - b.x)) {
      covered += Math.max(0, x + its - Math.max(x, until));
      until = Math.max(until, x + its);
    }
    const part = (100 * covered / zoomed.width).toFixed(1);
    byId('found').textContent = sought ? `${sought.source}: ${part} %` : '';
  }

  function search(words) {
    try {
      sought = words ? new RegExp(words) : null;
    } catch {
      sought = new RegExp(words.replace(/[^\w]/g, '\\$&'));
    }
    for (const { g, name } of frames) g.classList.toggle('found', Boolean(sought && sought.test(name)));
    byId('search').textContent = sought ? 'Clear' : 'Search';
    count();
  }

  function ask() {
    const words = sought ? '' : prompt('Functions, as a regular expression:');
    if (words !== null) search(words);
  }

  for (const frame of frames) {
    frame.g.addEventListener('click', () => zoom(frame));
    frame.g.addEventListener('mouseenter', () => { byId('about').textContent = frame.about.join(' · '); });
    frame.g.addEventListener('mouseleave', () => { byId('about').textContent = ''; });
  }
  byId('search').addEventListener('click', ask);
  byId('reset').addEventListener('click', () => zoom(frames[0]));

  // Keys: arrows choose a frame, Enter zooms into it. In a page with other things they are the picture's while it has the focus.
  const isDocument = svg === document.documentElement, step = number(frames[0].rect, 'height') + 1;
  let chosen = null;

  // Where an arrow leads: to the widest frame above, the one below, or the nearest on the same level.
  function neighbour(key) {
    const from = chosen || zoomed, up = key === 'ArrowUp', down = key === 'ArrowDown';
    const level = frames.filter((it) => it !== from && it.y === from.y + (down - up) * step && it.g.style.display !== 'none');
    if (up) return level.filter((it) => isInside(it, from)).sort((a, b) => b.width - a.width)[0];
    if (down) return level.find((it) => isInside(from, it));
    return key === 'ArrowRight' ? level.find((it) => it.x > from.x) : level.filter((it) => it.x < from.x).pop();
  }

  function choose(frame) {
    if (!frame) return;
    if (chosen) chosen.g.classList.remove('chosen');
    chosen = frame;
    chosen.g.classList.add('chosen');
    byId('about').textContent = chosen.about.join(' · ');
  }

  function enter({ target }) {
    if (target.id === 'search') ask();
    else zoom(target.id === 'reset' ? frames[0] : chosen || zoomed);
  }

  const actions = { Escape: () => zoom(frames[0]), '/': ask, Enter: enter };
  for (const key of ['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight']) actions[key] = () => choose(neighbour(key));
  (isDocument ? window : svg).addEventListener('keydown', (event) => {
    const action = event.ctrlKey ? isDocument && event.key === 'f' && ask : actions[event.key];
    if (!action || event.altKey || event.metaKey) return;
    event.preventDefault();
    action(event);
  });
})();
