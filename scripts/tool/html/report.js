// Draws a report from the JSON that its page contains. The trace's own words only ever become text.
'use strict';
(() => {
  const KINDS = {
    running: 'on a CPU', sched: 'no CPU', sync: 'waits for threads', network: 'waits for input or output',
    syscall: 'system calls', sleep: 'sleeps', other: 'other waits', unseen: 'off the CPU, no event',
  };
  const BANDS = {
    running: 'on a CPU', runnable: 'no CPU', calls: 'in calls', locks: 'wait for locks', waiting: 'wait for other things',
  };
  const read = (name) => {
    const element = document.getElementById(`data-${name}`);
    return element ? JSON.parse(element.textContent) : null;
  };
  const about = read('about'), info = read('info'), why = read('why'), waits = read('waits'), locks = read('locks');

  // Building blocks ----------------------------------------------------------------------------

  function make(tag, attributes = {}, ...children) {
    const [name, ...classes] = tag.split('.');
    const element = document.createElement(name);
    if (classes.length) element.className = classes.join(' ');
    for (const [key, value] of Object.entries(attributes)) {
      if (typeof value === 'function') element.addEventListener(key, value);
      else element.setAttribute(key, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  function draw(tag, attributes, ...children) {
    const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  const section = (id) => {
    const element = document.getElementById(id);
    element.hidden = false;
    return element;
  };

  const coloured = (element, kind) => {
    element.style.background = `var(--${kind})`;
    return element;
  };

  const legend = (names) => make('div.legend', {}, ...Object.entries(names).flatMap(([kind, name]) =>
    [make('span', {}, coloured(make('i.swatch'), kind), name), ' ']));

  // Three digits and a unit.
  function amount(value, units, step) {
    let unit = 0;
    while (unit + 1 < units.length && Math.abs(value) >= step) {
      value /= step;
      unit++;
    }
    const digits = unit === 0 && Number.isInteger(value) ? 0 : Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
    return `${value.toFixed(digits)} ${units[unit]}`;
  }
  const time = (ns) => (ns === 0 ? '0' : amount(ns, ['ns', 'µs', 'ms', 's'], 1000));
  const bytes = (n) => amount(n, ['B', 'KiB', 'MiB', 'GiB'], 1024);
  const count = (n) => n.toLocaleString('en');
  const amountOf = (n, noun) => `${count(n)} ${noun}${n === 1 ? '' : 's'}`;
  const percent = (part) => `${(100 * part).toFixed(1)} %`;
  const moment = (ns) => `${((ns + about.offset_ns) / 1e9).toFixed(6)} s`;
  const joined = (text) => text.replace(/\n\s+/g, ' ');

  const words = (...children) => make('p', {}, ...children);
  const bar = (parts, whole) => make('div.bar', {}, ...parts.filter(([, ns]) => ns > 0).map(([kind, ns]) => {
    const piece = coloured(make('i', { title: `${KINDS[kind] || kind}: ${time(ns)}` }), kind);
    piece.style.width = `${(100 * ns) / (whole || 1)}%`;
    return piece;
  }));
  const stack = (frames) => make('ol', {}, ...frames.map((frame) => make('li', {}, make('span.place', {},
    `${frame.function}${frame.file && frame.line ? ` (${frame.file}:${frame.line})` : frame.file ? ` (${frame.file})` : ''}`))));
  const place = (row) => (row.stack && row.stack.length > 1
    ? make('details', {}, make('summary.place', {}, row.place), stack(row.stack)) : make('span.place', {}, row.place));
  const atTime = (ns) => make('button.time', { type: 'button', click: () => lanes && lanes.show(ns) }, moment(ns));

  // heads: [name, class of the column: 'n' has numbers, 'what' has long names]; rows: arrays of texts or elements.
  // On a narrow screen each row is a block: the style takes the head from data-head, and the roles keep it a table.
  function table(heads, rows) {
    const className = (i) => (heads[i][1] ? `.${heads[i][1]}` : '');
    const head = (i) => make(`th${className(i)}`, { scope: 'col', role: 'columnheader' }, heads[i][0]);
    const cell = (content, i) => make(`td${className(i)}`, { role: 'cell', 'data-head': heads[i][0] }, content);
    const line = (cells) => make('tr', { role: 'row' }, ...cells);
    return make('div.scroll', {}, make('table', { role: 'table' },
      make('thead', { role: 'rowgroup' }, line(heads.map((_, i) => head(i)))),
      make('tbody', { role: 'rowgroup' }, ...rows.map((row) => line(row.map(cell))))));
  }

  // Above all ----------------------------------------------------------------------------------

  // The machine and the switches that the trace was recorded with, as far as it says so.
  function showSetup(before) {
    const machine = [info.machine_cpus ? amountOf(info.machine_cpus, 'CPU') : null, info.cpu_model, info.machine,
      info.kernel && `Linux ${info.kernel}`, info.glibc && `glibc ${info.glibc}`].filter(Boolean);
    const switches = info.switches === null ? '' : info.switches ? ` with ${info.switches}` : ', no switch was set';
    const recorded = info.libgotrace ? [`recorded by libgotrace ${info.libgotrace}${switches}`] : [];
    const lines = [...(machine.length ? [`On ${machine.join(', ')}`] : []), ...recorded].join('; ');
    if (lines) before.after(make('p', { id: 'setup' }, `${lines}.`));
  }

  function showFacts() {
    const name = about.trace.split('/').pop();
    document.getElementById('title').textContent = name;
    const recorded = info.began_ns ? `, recorded ${new Date(info.began_ns / 1e6).toISOString().replace('T', ' ').slice(0, 19)} UTC` : '';
    const facts = document.getElementById('facts');
    facts.textContent = `${time(info.duration_ns)}, ${amountOf(info.threads, 'thread')}, ${amountOf(info.events, 'event')}, `
      + `${bytes(info.bytes)}, format ${info.format}${recorded}. Made by gotrace ${about.gotrace}.`;
    showSetup(facts);
    const notes = [];
    if (about.part) {
      notes.push(`This is a part of the trace: ${moment(0)} to ${moment(info.duration_ns)} of ${time(about.whole_ns)}.`);
    }
    if (info.refused) notes.push(`Go's reader refuses the trace: ${info.refused}.`);
    else if (info.lost_bytes) notes.push(`The trace is cut: its last ${count(info.lost_bytes)} bytes are lost.`);
    else if (!info.whole && !about.part) notes.push('The trace has no mark of its end: up to a second may be missing there.');
    for (const note of notes) facts.after(make('p.bad', {}, note));
  }

  const name = (thread) => thread.name || thread.routine || `thread ${thread.id}`;

  function showDeadlocks(into) {
    for (const deadlock of info.deadlocks || []) {
      into.append(words(make('b.bad', {}, deadlock.kind === 'cycle'
        ? 'Deadlock: these threads wait for each other.' : 'These threads wait for one that has ended.')));
      into.append(make('ul', {}, ...deadlock.threads.map((row) => make('li', {},
        `${row.thread ? name(row.thread) : '?'} waits${row.lock ? ` for ${row.lock}` : ''} in ${row.place}`))));
    }
  }

  function showAnswer() {
    const into = section('answer');
    showDeadlocks(into);
    if (!why) {
      into.append(make('p.note', {}, about.why || 'Nothing is known.'));
      return;
    }
    if (why.stood_still) {
      into.append(make('p.answer', {}, `The program stood still from ${moment(why.stood_still.from_ns)} on, `
        + `for ${time(why.stood_still.ns)}: until the trace ends.`));
      into.append(make('ul', {}, ...why.stood_still.waiting.map((row) => make('li', {},
        `${row.thread} waits in ${row.name}${row.for ? ` for ${row.for}` : ''}${row.held_by ? `, held by ${row.held_by}` : ''}`))));
    }
    const findings = why.findings.slice();
    const first = why.answer ? null : findings.shift();
    const best = why.what_if[0];
    if (why.answer) into.append(make('p.answer', {}, joined(why.answer)));
    else if (first) into.append(finding(first, 'p.answer'));
    else into.append(make('p.answer', {}, 'No single cause stands out.'));
    if (!why.answer && best) into.append(words(`Replayed with this change: if ${best.name}, the run is ${percent(best.gain)} shorter.`));
    if (findings.length) into.append(make('ul', {}, ...findings.map((one) => finding(one, 'li'))));
    if (why.kernel_time) into.append(make('p.note', {}, why.kernel_time));
    if (why.unknown_wakers) into.append(make('p.note', {}, joined(why.unknown_wakers.text)));
  }

  const finding = (one, tag) => make(tag, {}, joined(one.text), ' ',
    one.at_ns === undefined ? null : make('span.dim', {}, 'At ', atTime(one.at_ns)));

  // What would help ----------------------------------------------------------------------------

  function showWhatIf() {
    if (!why || !why.what_if.length) return;
    const into = section('whatif'), length = why.replay.to_ns - why.replay.from_ns;
    for (const it of why.what_if) {
      const shown = coloured(make('i'), 'network');
      shown.style.width = `${Math.max(0, Math.min(100, 100 * it.gain))}%`;
      into.append(make('div.gain', {}, make('b', {}, `-${percent(it.gain)}`), make('div.bar', {}, shown),
        make('span', {}, `${time(length * (1 - it.gain))} (${it.basis}) if `, make('span.place', {}, it.name))));
    }
    const unchanged = why.replay.unchanged;
    into.append(make('p.note', {}, `Each change was tried in a replay of the run. Replayed without a change, it takes `
      + `${percent(unchanged)} of the real time${why.replay.sound ? '' : ': these figures are rough'}.`));
  }

  function showLoops() {
    if (!why || why.read_as !== 'server' || !why.loops.length) return;
    const into = section('loops');
    into.append(table([['thread'], ['pieces', 'n'], ['busy', 'n'], ['median', 'n'], ['p95', 'n'], ['p99', 'n'], ['longest', 'n'], ['rests in', 'what']],
      why.loops.map((it) => [it.threads > 1 ? `${it.threads} x ${it.thread}` : it.thread, count(it.pieces),
        percent(it.busy_ns / (it.life_ns || 1)), time(it.p50_ns), time(it.p95_ns), time(it.p99_ns),
        make('span', {}, time(it.longest_ns), ' ', atTime(it.longest_at_ns)), make('span.place', {}, it.rest.name)])));
    const blocked = why.loops.flatMap((it) => it.blocked.map((one) => [it.thread, count(one.count), time(one.ns),
      time(one.shortest_ns), make('span', {}, time(one.longest_ns), ' ', atTime(one.longest_at_ns)), make('span.place', {}, one.text)]));
    if (blocked.length) {
      into.append(words('Pieces that took long:'),
        table([['thread'], ['times', 'n'], ['in all', 'n'], ['shortest', 'n'], ['longest', 'n'], ['because of', 'what']], blocked));
    }
  }

  // Parallelism --------------------------------------------------------------------------------

  function showBands() {
    if (!why) return;
    const bands = Object.keys(BANDS), columns = why.parallelism.columns;
    const sums = Array.from({ length: columns }, (_, i) => bands.reduce((sum, k) => sum + why.parallelism[k].threads[i], 0));
    const most = Math.max(...sums, 1), WIDTH = 1000, HEIGHT = 160;
    const picture = draw('svg', { class: 'bands', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img' });
    picture.append(draw('title', {}, 'Threads in each state over time'));
    const base = new Array(columns).fill(0);
    for (const kind of bands) {
      const top = base.map((value, i) => value + why.parallelism[kind].threads[i]);
      const edge = (values) => values.flatMap((value, i) => [i, i + 1].map((x) =>
        `${((x * WIDTH) / columns).toFixed(1)},${(HEIGHT * (1 - value / most)).toFixed(1)}`));
      const area = draw('polygon', { points: [...edge(top), ...edge(base).reverse()].join(' ') });
      area.style.fill = `var(--${kind})`;
      area.append(draw('title', {}, `${BANDS[kind]}: ${why.parallelism[kind].average.toFixed(2)} threads on average`));
      picture.append(area);
      top.forEach((value, i) => { base[i] = value; });
    }
    const averages = bands.map((kind) => [kind, `${BANDS[kind]}: ${why.parallelism[kind].average.toFixed(2)} on average`]);
    section('bands').append(legend(Object.fromEntries(averages)), make('div.ends', {}, `${most.toFixed(1)} threads`), picture,
      make('div.ends', {}, make('span', {}, moment(why.from_ns)), make('span', {}, moment(why.to_ns))));
  }

  // Threads over time --------------------------------------------------------------------------

  const ROW = 22, BAR = 14, AXIS = 22, NARROW = 600, PALE = 0.6;

  // Numbers from 0 to 255 of a colour such as #1c1e21 or #fff.
  function channels(colour) {
    const digits = colour.trim().slice(1), long = digits.length === 6 ? digits : digits.replace(/./g, '$&$&');
    return [0, 2, 4].map((i) => parseInt(long.slice(i, i + 2), 16));
  }

  // Black or white: what is read better on that colour (relative luminance of WCAG 2).
  function ink(rgb) {
    const [r, g, b] = rgb.map((n) => (n <= 10 ? n / 3294.6 : ((n / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? '#000' : '#fff';
  }

  // As much of the text as there is room for; '': less than three letters.
  function fitted(to, text, room) {
    if (to.measureText(text).width <= room) return text;
    let least = 0, most = text.length; // letters that fit, and that do not
    while (most - least > 1) {
      const middle = (least + most) >> 1;
      if (to.measureText(`${text.slice(0, middle)}\u2026`).width <= room) least = middle;
      else most = middle;
    }
    return least < 3 ? '' : `${text.slice(0, least)}\u2026`;
  }

  class Lanes {
    constructor(data) {
      this.data = data;
      this.least = why.from_ns;
      this.most = why.to_ns;
      this.from = this.least;
      this.to = this.most;
      this.row = 0; // chosen by keys
      this.mark = null;
      this.threads = data.threads.map((thread) => ({ ...thread, spans: this.unpack(thread.spans) }));
      this.path = [];
      for (let i = 0; i < data.path.length; i += 3) {
        this.path.push({ from: data.path[i], to: data.path[i] + data.path[i + 1], row: data.path[i + 2] });
      }
      this.canvas = document.getElementById('lanes-canvas');
      this.listen();
      new ResizeObserver(() => this.draw()).observe(this.canvas);
      matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw());
    }

    unpack(numbers) {
      const spans = [];
      let at = why.from_ns;
      for (let i = 0; i < numbers.length; i += 4) {
        const from = at + numbers[i];
        at = from + numbers[i + 1];
        spans.push({ from, to: at, place: this.data.places[numbers[i + 2]], count: numbers[i + 3] });
      }
      return spans;
    }

    // The width of the names: as wide as the longest, but not more than a part of the picture.
    leftOf(to, width) {
      const longest = Math.max(...this.threads.map((thread) => to.measureText(thread.thread).width));
      return Math.ceil(Math.min(longest + 16, width < NARROW ? 0.32 * width : 200));
    }

    x(ns) { return this.left + ((ns - this.from) / (this.to - this.from)) * (this.canvas.clientWidth - this.left); }
    ns(x) { return this.from + ((x - this.left) / (this.canvas.clientWidth - this.left)) * (this.to - this.from); }

    // Shows [from, to), as far as there is something.
    view(from, to) {
      const length = Math.min(this.most - this.least, Math.max(to - from, 100));
      this.from = Math.max(this.least, Math.min(from, this.most - length));
      this.to = this.from + length;
      this.draw();
    }

    zoom(factor, at = (this.from + this.to) / 2) {
      this.view(at - (at - this.from) * factor, at + (this.to - at) * factor);
    }

    pan(part) {
      const ns = (this.to - this.from) * part;
      this.view(this.from + ns, this.to + ns);
    }

    show(ns) {
      const length = (this.most - this.least) / 20;
      this.mark = ns;
      this.view(ns - length / 4, ns + (3 * length) / 4);
      this.canvas.scrollIntoView({ block: 'center' });
      this.canvas.focus();
    }

    key(key) {
      const actions = {
        '+': () => this.zoom(0.5), '=': () => this.zoom(0.5), '-': () => this.zoom(2),
        ArrowLeft: () => this.pan(-0.25), ArrowRight: () => this.pan(0.25), 0: () => this.view(this.least, this.most),
        ArrowUp: () => this.choose(-1), ArrowDown: () => this.choose(1),
      };
      if (actions[key]) actions[key]();
      return Boolean(actions[key]);
    }

    choose(by) {
      this.row = Math.max(0, Math.min(this.threads.length - 1, this.row + by));
      this.draw();
      this.tell(this.row, (this.from + this.to) / 2);
    }

    listen() {
      const { canvas } = this;
      let drag = null;
      canvas.addEventListener('keydown', (event) => {
        if (!event.ctrlKey && !event.metaKey && !event.altKey && this.key(event.key)) event.preventDefault();
      });
      canvas.addEventListener('wheel', (event) => {
        if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return; // the page scrolls
        event.preventDefault();
        this.zoom(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, this.ns(event.offsetX));
      }, { passive: false });
      canvas.addEventListener('pointerdown', (event) => {
        drag = { x: event.offsetX, from: this.from, to: this.to };
        canvas.setPointerCapture(event.pointerId);
      });
      canvas.addEventListener('pointermove', (event) => {
        if (!drag) return this.tell(Math.floor((event.offsetY - AXIS) / ROW), this.ns(event.offsetX));
        const ns = ((drag.x - event.offsetX) / (canvas.clientWidth - this.left)) * (drag.to - drag.from);
        return this.view(drag.from + ns, drag.to + ns);
      });
      canvas.addEventListener('pointerup', (event) => {
        drag = null;
        this.tell(Math.floor((event.offsetY - AXIS) / ROW), this.ns(event.offsetX));
      });
      canvas.addEventListener('pointercancel', () => { drag = null; });
      canvas.addEventListener('dblclick', (event) => this.zoom(0.25, this.ns(event.offsetX)));
      for (const button of document.querySelectorAll('#lanes [data-key]')) {
        button.addEventListener('click', () => this.key(button.dataset.key));
      }
    }

    // The span of that row at that time.
    tell(row, ns) {
      const thread = this.threads[row];
      const span = thread && thread.spans.find((one) => one.from <= ns && ns < one.to);
      const is = span && (span.count > 1 ? `${count(span.count)} short stretches, most in: ` : '');
      document.getElementById('lanes-about').textContent = !thread ? '' : `${thread.thread}, ${moment(ns)}`
        + (span ? `\n${KINDS[span.place.kind]}, ${time(span.to - span.from)}: ${is}${span.place.name}` : '\nnothing is recorded here');
    }

    draw() {
      const { canvas } = this, width = canvas.clientWidth, height = AXIS + this.threads.length * ROW + 4;
      const scale = window.devicePixelRatio || 1;
      canvas.style.height = `${height}px`;
      canvas.width = width * scale;
      canvas.height = height * scale;
      const to = canvas.getContext('2d');
      to.scale(scale, scale);
      const style = getComputedStyle(document.documentElement);
      this.colour = (kind) => style.getPropertyValue(`--${kind}`);
      to.font = '12px system-ui, sans-serif';
      to.textBaseline = 'middle';
      this.left = this.leftOf(to, width);
      this.drawAxis(to, width, height);
      this.threads.forEach((thread, row) => this.drawThread(to, thread, row, width));
      this.drawPath(to, width);
      if (this.mark !== null && this.mark >= this.from && this.mark <= this.to) {
        to.fillStyle = this.colour('mark');
        to.fillRect(this.x(this.mark), AXIS, 1, height);
      }
    }

    drawAxis(to, width, height) {
      const length = this.to - this.from, rough = (length * 120) / (width - this.left);
      const power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].find((n) => n * power >= rough) * power;
      const digits = Math.min(9, Math.max(0, 9 - Math.floor(Math.log10(step) + 1e-9)));
      to.fillStyle = this.colour('dim');
      for (let ns = Math.ceil((this.from + about.offset_ns) / step) * step - about.offset_ns; ns < this.to; ns += step) {
        const x = this.x(ns), text = `${((ns + about.offset_ns) / 1e9).toFixed(digits)} s`;
        if (x + 3 + to.measureText(text).width <= width) to.fillText(text, x + 3, AXIS / 2);
        to.globalAlpha = 0.35;
        to.fillRect(x, 0, 1, height);
        to.globalAlpha = 1;
      }
    }

    drawThread(to, thread, row, width) {
      const y = AXIS + row * ROW;
      const indent = row === this.row && document.activeElement === this.canvas ? 8 : 0;
      to.fillStyle = this.colour('fore');
      to.fillText(fitted(to, thread.thread, this.left - indent - 6), indent, y + ROW / 2);
      for (const span of thread.spans) {
        if (span.to <= this.from || span.from >= this.to) continue;
        const a = Math.max(this.left, this.x(span.from)), b = Math.min(width, this.x(span.to));
        const rgb = this.shade(span);
        to.fillStyle = `rgb(${rgb})`;
        to.fillRect(a, y + (ROW - BAR) / 2, Math.max(b - a, 0.5), BAR);
        to.fillStyle = ink(rgb);
        if (b - a > 60) to.fillText(fitted(to, span.place.name, b - a - 6), a + 3, y + ROW / 2);
      }
    }

    // The colour of a span's bar; paler where it is of several stretches.
    shade(span) {
      const part = span.count > 1 ? PALE : 1, back = channels(this.colour('back'));
      return channels(this.colour(span.place.kind)).map((n, i) => Math.round(part * n + (1 - part) * back[i]));
    }

    // A line under the thread that the path is on, and one down or up where another thread goes on.
    drawPath(to) {
      to.strokeStyle = to.fillStyle = this.colour('fore');
      const y = (row) => AXIS + row * ROW + (ROW + BAR) / 2 + 1.5;
      let before = null;
      for (const part of this.path) {
        if (part.to > this.from && part.from < this.to) {
          const a = Math.max(this.left, this.x(part.from)), b = this.x(part.to);
          to.fillRect(a, y(part.row) - 1, Math.max(1, b - a), 3);
          if (before && before.to === part.from && part.from >= this.from) this.drawHop(to, a, y(before.row), y(part.row));
        }
        before = part;
      }
    }

    drawHop(to, x, from, until) {
      const tip = until > from ? -5 : 5;
      to.beginPath();
      to.moveTo(x, from);
      to.lineTo(x, until);
      to.moveTo(x - 3, until + tip);
      to.lineTo(x, until);
      to.lineTo(x + 3, until + tip);
      to.stroke();
    }
  }

  let lanes = null;

  function showLanes() {
    if (!why || !why.timeline || !why.timeline.threads.length) return;
    section('lanes');
    lanes = new Lanes(why.timeline);
    const seen = new Set(why.timeline.places.map((one) => one.kind));
    document.getElementById('lanes-legend').append(legend(Object.fromEntries(Object.entries(KINDS).filter(([kind]) => seen.has(kind)))));
    const notes = ['Ctrl and the wheel zoom, dragging moves. The keys + and - zoom, left and right move, up and down choose a thread.'];
    document.getElementById('lanes-about').textContent = 'Point at a bar or touch it: here is what the thread did then.';
    if (lanes.path.length) notes.unshift('The line below the bars is the critical path; an arrow leads to the thread that goes on.');
    if (why.timeline.threads_left_out) notes.push(`${count(why.timeline.threads_left_out)} threads that did less are left out.`);
    notes.push(`Stretches shorter than ${time(why.timeline.slot_ns)} are drawn together, paler.`);
    document.getElementById('lanes-note').textContent = notes.join(' ');
  }

  // Tables -------------------------------------------------------------------------------------

  const swatch = (kind) => make('span', {}, coloured(make('i.swatch'), kind), KINDS[kind] || kind);

  function showPath() {
    if (!why || !why.path.rows.length) return;
    const { path } = why, LEAST = 0.001, MOST = 40;
    const rows = path.rows.filter((row, i) => i < MOST && row.ns >= LEAST * path.ns);
    section('path').append(words(why.pieces ? `What ${count(why.pieces)} pieces of work consist of.`
      : 'What the run waited for at each moment, followed backwards from its end through the threads that ended each wait.'));
    section('path').append(table(
      [['time', 'n'], ['share', 'n'], ['where', 'what'], ['state', 'short'], ['thread'], ['times', 'n'], ['median', 'n'], ['p99', 'n'],
        ['longest', 'n'], ['which began at', 'n']],
      rows.map((row) => [time(row.ns), percent(row.ns / (path.ns || 1)), make('span.place', {}, row.name), swatch(row.kind),
        row.threads > 1 ? `${row.threads} threads, most: ${row.most}` : row.most, count(row.count), time(row.p50_ns), time(row.p99_ns),
        time(row.longest_ns), atTime(row.longest_at_ns)])));
    if (path.rows.length > rows.length) {
      section('path').append(make('p.note', {}, `${count(path.rows.length - rows.length)} places with less are left out.`));
    }
  }

  function showLocks() {
    if (!locks || !locks.locks.length) return;
    section('locks').append(table(
      [['waited', 'n'], ['times', 'n'], ['longest wait', 'n'], ['threads', 'n'], ['held', 'n'], ['longest hold', 'n'], ['lock', 'name'], ['who held it meanwhile', 'who']],
      locks.locks.map((row) => [time(row.total_ns), count(row.count), time(row.longest_ns), count(row.threads), time(row.held_ns),
        time(row.longest_held_ns), make('span.place', {}, row.lock || (row.first_waiter ? row.first_waiter.place : '?')),
        make('div', {}, ...row.holders.slice(0, 4).map((holder) => make('div', {}, `${time(holder.ns)} `, make('span.place', {},
          `${holder.name}${holder.taken_in ? `, locked in ${holder.taken_in}` : ''}${holder.at ? `: ${holder.at.place}` : ''}`))))])));
    section('locks').append(make('p.note', {}, 'Locks that a thread waited for, or that were held long (GOTRACE_HOLD_MIN).'));
  }

  function histogram(parts) {
    const most = Math.max(...parts.map((part) => part.count), 1), all = new Map(parts.map((part) => [part.from_ns, part.count]));
    const picture = draw('svg', { class: 'histogram', viewBox: '0 0 84 22' });
    [0, ...Array.from({ length: 8 }, (_, i) => 10 ** (i + 3))].forEach((from, i) => {
      const n = all.get(from) || 0, height = n ? Math.max(2, (20 * Math.log(1 + n)) / Math.log(1 + most)) : 0;
      const column = draw('rect', { x: i * 9, y: 21 - height, width: 8, height });
      column.style.fill = 'var(--network)';
      column.append(draw('title', {}, `${count(n)} from ${from ? time(from) : '0'}`));
      picture.append(column);
    });
    picture.append(draw('title', {}, 'waits by length, a column for each power of ten from 1 µs on'));
    return picture;
  }

  function showWaits() {
    if (!waits || !waits.waits.length) return;
    section('waits').append(table(
      [['in all', 'n'], ['where', 'what'], ['kind', 'short'], ['times', 'n'], ['median', 'n'], ['p95', 'n'], ['p99', 'n'],
        ['longest', 'n'], ['lengths']],
      waits.waits.map((row) => [time(row.total_ns), place(row), swatch(row.kind), count(row.count), time(row.p50_ns),
        time(row.p95_ns), time(row.p99_ns), time(row.longest_ns), histogram(row.histogram)])));
    section('waits').append(make('p.note', {}, 'Lengths: how many waits took up to 1 \u00b5s, 10 \u00b5s, 100 \u00b5s and so on, from left to right.'));
    if (waits.idle.count) {
      section('waits').append(make('p.note', {}, `Waits for work are left out: ${count(waits.idle.count)}, ${time(waits.idle.total_ns)}.`));
    }
  }

  function showThreads() {
    if (!info.by_thread.length) return;
    const all = { cpu: 'running', running: 'running', runnable: 'sched', sched: 'sched', idle: 'waiting', sync: 'sync', network: 'network',
      sleep: 'sleep', other: 'other', calls: 'syscall', unseen: 'unseen' };
    const parts = (row) => Object.entries(all).map(([key, kind]) => [kind, row[`${key}_ns`] || 0]);
    const shown = { ...KINDS, waiting: 'idle: waits for work' };
    section('threads').append(legend(shown), table(
      [['tid', 'n'], ['thread'], ['from', 'n'], ['lived', 'n'], ['on a CPU', 'n'], ['no CPU', 'n'], ['idle', 'n'], ['blocked', 'n'], ['']],
      info.by_thread.map((row) => {
        const share = (ns) => (row.ns ? percent(ns / row.ns) : '-');
        return [row.thread.tid === null ? '-' : String(row.thread.tid), make('span.place', {}, name(row.thread)), moment(row.start_ns),
          `${time(row.lived_ns)}${row.ended ? '' : '+'}`, share(row.cpu_ns ?? row.running_ns), share(row.runnable_ns ?? row.sched_ns),
          share(row.idle_ns), share(row.blocked_ns), bar(parts(row), row.ns)];
      })));
    if (info.by_thread.length < info.threads) {
      section('threads').append(make('p.note', {}, `${count(info.threads - info.by_thread.length)} threads that were idle most are left out.`));
    }
  }

  showFacts();
  showWhatIf();
  showLoops();
  showBands();
  showLanes();
  showAnswer();
  showPath();
  showLocks();
  showWaits();
  showThreads();
})();
