'use strict';
// One closure: the page shares no name with anything.
(async () => {
  const $ = (id) => document.getElementById(id);
  const SECOND = 1e6;
  const MARGIN = 138; // room for names left of the lanes
  const LANE = 58;
  const TOP = 38; // flags of proofs, then the times
  const FAULT = 16;
  const ROW = 20;
  const ARROWS_MAX = 2500; // above, one line a pixel and pair of nodes stands for all

  // ---- data ----
  const text = await unpacked($('data').textContent.trim());
  const data = JSON.parse(text);
  async function unpacked(base64) {
    const letters = atob(base64);
    const bytes = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
    return new Response(stream).text();
  }
  // Columns of differences become times.
  const sums = (column) => { let sum = 0; return Float64Array.from(column, (step) => (sum += step)); };
  const { messages, syncs, operations, kinds } = data;
  messages.sent = sums(messages.sent);
  messages.count = messages.sent.length;
  messages.longest = messages.took.reduce((a, b) => Math.max(a, b), 0);
  syncs.began = sums(syncs.began);
  syncs.count = syncs.began.length;
  syncs.longest = syncs.took.reduce((a, b) => Math.max(a, b), 0);
  operations.asked = sums(operations.asked);
  operations.count = operations.asked.length;
  operations.longest = operations.took.reduce((a, b) => Math.max(a, b), 0);
  operations.invoked = sums(operations.invoked);
  for (const series of data.series) { series[3] = sums(series[3]); series[4] = sums(series[4]); }
  const laneOf = new Map(data.nodes.map((name, place) => [name, place]));
  operations.lane = operations.client.map((client) => laneOf.get(operations.clients[client]) ?? 0);
  const end = runEnd();
  function runEnd() {
    let last = 1;
    for (const band of data.bands) last = Math.max(last, band[2], band[1]);
    for (const event of data.events) last = Math.max(last, event[1]);
    for (const [, , , times] of data.series) if (times.length) last = Math.max(last, times[times.length - 1]);
    if (messages.count) last = Math.max(last, messages.sent[messages.count - 1] + messages.longest);
    if (operations.count) last = Math.max(last, operations.asked[operations.count - 1]);
    return last;
  }
  const until = (at) => (at < 0 ? end : at);
  // Faults that overlap stand in different rows.
  const faultRows = [];
  for (const fault of data.faults) {
    let row = faultRows.findIndex((free) => free <= fault[3]);
    if (row < 0) row = faultRows.push(0) - 1;
    faultRows[row] = until(fault[4]);
    fault.row = row;
  }
  const lanesTop = TOP + FAULT * faultRows.length + 4;

  // ---- events as one list ----
  // type, index, time, text; sorted by time. Text of operations and messages is made when it is shown.
  const proofNumber = new Map();
  data.proofs.forEach(([, event], place) => proofNumber.has(event) || proofNumber.set(event, place + 1));
  const time = (at) => (at / SECOND).toFixed(6);
  const endings = ['ok', 'fail', 'unknown'];
  const proofOf = (type, index) => {
    if (type === 'node') return proofNumber.get(data.events[index][3]);
    if (type === 'operation') {
      const invoked = operations.invoked[index];
      return proofNumber.get(invoked) ?? (operations.ended[index] < 0 ? undefined : proofNumber.get(invoked + operations.ended[index]));
    }
    return undefined;
  };
  const operationText = (index) => {
    const mark = ['→', '→ failed:', '→ unknown:'][operations.ending[index]];
    const told = operations.told[index] || (operations.took[index] < 0 ? 'no end' : '');
    return `${operations.clients[operations.client[index]]}: ${operations.ask[index]} ${mark} ${told}`;
  };
  const messageText = (index) => {
    const took = messages.took[index];
    const way = `${data.nodes[messages.from[index]]} → ${data.nodes[messages.to[index]]}`;
    return `${way}: ${kinds[messages.kind[index]]}, ${messages.bytes[index]} bytes, ${took < 0 ? 'lost' : `${(took / 1000).toFixed(3)} ms`}`;
  };
  const syncText = (index) => {
    const took = syncs.took[index];
    const how = took < 0 ? 'never ended' : syncs.ok[index] ? `${(took / 1000).toFixed(3)} ms` : 'failed';
    return `${data.nodes[syncs.node[index]]}: sync of ${data.files[syncs.file[index]]}, ${how}`;
  };
  const faultText = (index) => {
    const [, words, , from, to, effect] = data.faults[index];
    return `fault ${words}: ${time(from)} s to ${to < 0 ? 'the end' : `${time(to)} s`}, ${effect || 'no effect told'}`;
  };
  const textOf = { node: (i) => `${data.events[i][0]}: ${data.events[i][2]}`, fault: faultText, operation: operationText, message: messageText, sync: syncText };
  const timeOf = {
    node: (i) => data.events[i][1], fault: (i) => data.faults[i][3], operation: (i) => operations.asked[i],
    message: (i) => messages.sent[i], sync: (i) => syncs.began[i],
  };
  const counts = { node: data.events.length, fault: data.faults.length, operation: operations.count, message: messages.count, sync: syncs.count };
  const titles = { node: 'nodes', fault: 'faults', operation: 'operations', message: 'messages', sync: 'syncs' };
  const about = new Set(data.about);
  const inStory = (type, index) => {
    if (type === 'node' || type === 'fault') return true;
    if (type !== 'operation') return false;
    return proofOf(type, index) !== undefined || `${operations.ask[index]} ${operations.told[index]}`.split(/[\s,]+/).some((word) => about.has(word));
  };

  // ---- state ----
  const view = { from: 0, to: end };
  const shownKinds = new Uint8Array(kinds.length).fill(1);
  // The observer's own questions are about the run, not of it.
  const hiddenLanes = new Set(data.nodes.length > 2 ? [0] : []);
  const listed = { node: true, fault: true, operation: true, message: false, sync: false };
  let storyOnly = data.proofs.length > 0;
  let search = '';
  let selected = null; // [type, index]
  let list = [];

  // ---- colours: canvas needs them resolved ----
  const probe = document.createElement('span');
  probe.style.display = 'none';
  document.body.append(probe);
  let paint = {};
  const names = ['paper', 'panel', 'ink', 'quiet', 'rule', 'accent', 'proof', 'ok', 'fail', 'unknown', 'sync', 'lost', 'fault', 'fault-ink', 'down', 'dark-band', 'recover', 'serve', 'client'];
  function readPaint() {
    for (const name of names) { probe.style.color = `var(--${name})`; paint[name] = getComputedStyle(probe).color; }
    const dark = isDark();
    // Questions and their answers share a hue; the golden angle keeps neighbours apart.
    const bases = [...new Set(kinds.map((kind) => kind.split(' → ')[0]))];
    paint.kinds = kinds.map((kind) => `hsl(${(bases.indexOf(kind.split(' → ')[0]) * 137.5 + 205) % 360} 65% ${dark ? 68 : 38}%)`);
    paint.lines = [205, 25, 135, 285, 340, 60, 175, 250].map((hue) => `hsl(${hue} 75% ${dark ? 66 : 40}%)`);
  }
  function isDark() {
    const theme = document.documentElement.dataset.theme;
    return theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  }
  const bandColour = (state) => {
    if (state === 'no power') return paint['dark-band'];
    if (/down|left/.test(state)) return paint.down;
    if (/recover|start|no answer/.test(state)) return paint.recover;
    return /consumer|producer|client|observer/.test(state) ? paint.client : paint.serve;
  };

  // ---- geometry ----
  const pen = (canvas, height) => {
    const scale = window.devicePixelRatio || 1;
    const width = canvas.clientWidth || 900;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = `${height}px`;
    const ink = canvas.getContext('2d');
    ink.setTransform(scale, 0, 0, scale, 0, 0);
    ink.clearRect(0, 0, width, height);
    ink.font = '11px system-ui, sans-serif';
    ink.textBaseline = 'middle';
    return [ink, width];
  };
  const xOf = (at, width) => MARGIN + ((at - view.from) / (view.to - view.from)) * (width - MARGIN);
  const timeAt = (x, width) => view.from + ((x - MARGIN) / (width - MARGIN)) * (view.to - view.from);
  // The world's own node comes last: it asks about the run and is no part of it.
  const laneY = (lane) => lanesTop + (lane === 0 ? data.nodes.length - 1 : lane - 1) * LANE;
  const laneAt = (y) => {
    const place = Math.floor((y - lanesTop) / LANE);
    return place < 0 || place >= data.nodes.length ? -1 : (place + 1) % data.nodes.length;
  };
  // As much of a text as there is room for.
  const fitted = (ink, words, room) => {
    if (ink.measureText(words).width <= room) return words;
    const letters = Math.floor((words.length * room) / ink.measureText(words).width) - 1;
    return letters > 1 ? `${words.slice(0, letters)}…` : '';
  };
  const wire = (lane) => laneY(lane) + 25; // messages leave and arrive here
  // The first index whose time is not before `at`.
  const lowerBound = (times, at) => {
    let low = 0;
    let high = times.length;
    while (low < high) { const middle = (low + high) >> 1; if (times[middle] < at) low = middle + 1; else high = middle; }
    return low;
  };
  const isShown = (i) => shownKinds[messages.kind[i]] && !hiddenLanes.has(messages.from[i]) && !hiddenLanes.has(messages.to[i]);

  // ---- drawing ----
  function axis(ink, width, height, labels) {
    const span = (view.to - view.from) / SECOND;
    const rough = span / Math.max(2, (width - MARGIN) / 90);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((times) => times * power).find((candidate) => candidate >= rough) ?? rough;
    const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
    ink.strokeStyle = paint.rule;
    ink.fillStyle = paint.quiet;
    ink.lineWidth = 1;
    ink.beginPath();
    for (let tick = Math.ceil(view.from / SECOND / step) * step; tick <= view.to / SECOND; tick += step) {
      const x = Math.round(xOf(tick * SECOND, width)) + 0.5;
      ink.moveTo(x, labels ? TOP - 6 : 0);
      ink.lineTo(x, height);
      if (labels) ink.fillText(`${tick.toFixed(digits)} s`, x + 3, TOP - 13);
    }
    ink.stroke();
  }

  function drawLanes() {
    const height = lanesTop + data.nodes.length * LANE + 6;
    const [ink, width] = pen($('lanes'), height);
    ink.save();
    ink.beginPath();
    ink.rect(MARGIN, 0, width - MARGIN, height);
    ink.clip();
    drawFaults(ink, width);
    drawBands(ink, width);
    axis(ink, width, height, true);
    drawSyncs(ink, width);
    drawOperations(ink, width);
    drawMessages(ink, width);
    drawProofs(ink, width, height);
    drawSelected(ink, width, height);
    ink.restore();
    ink.textAlign = 'left';
    data.nodes.forEach((name, lane) => {
      ink.fillStyle = hiddenLanes.has(lane) ? paint.quiet : paint.ink;
      ink.font = '600 12px system-ui, sans-serif';
      ink.fillText(fitted(ink, name, MARGIN - 8), 2, laneY(lane) + 20);
      ink.font = '11px system-ui, sans-serif';
      ink.fillStyle = paint.quiet;
      const state = selected ? stateAt(lane, timeOf[selected[0]](selected[1])) : '';
      ink.fillText(hiddenLanes.has(lane) ? 'messages hidden' : state, 2, laneY(lane) + 35);
    });
    if (faultRows.length) {
      ink.fillStyle = paint['fault-ink'];
      ink.fillText('faults', 2, TOP + 8);
    }
  }
  const stateAt = (lane, at) => {
    const band = data.bands.find(([node, from, to]) => node === lane && from <= at && at < until(to));
    return band ? band[3] : '';
  };

  function bar(ink, width, from, to, y, height) {
    const left = Math.max(MARGIN, xOf(from, width));
    const right = Math.min(width, xOf(to, width));
    if (right < MARGIN || left > width) return null;
    const span = Math.max(1, right - left);
    ink.fillRect(left, y, span, height);
    return [left, span];
  }

  function drawFaults(ink, width) {
    for (const fault of data.faults) {
      const [kind, words, lanes, from, to] = fault;
      const y = TOP + fault.row * FAULT;
      ink.fillStyle = paint.fault;
      const place = bar(ink, width, from, until(to), y, FAULT - 2);
      if (!place) continue;
      ink.fillStyle = paint['fault-ink'];
      const short = words.startsWith(kind) ? words.replace(/ (at|after) .*$/, '') : words;
      ink.fillText(fitted(ink, short, place[1] - 6), place[0] + 4, y + 7);
      for (const lane of lanes) {
        ink.fillStyle = paint.fault;
        bar(ink, width, from, until(to), laneY(lane) + LANE - 6, 4);
      }
    }
  }

  function drawBands(ink, width) {
    for (const [lane, from, to, state] of data.bands) {
      ink.fillStyle = bandColour(state);
      const place = bar(ink, width, from, until(to), laneY(lane) + 2, LANE - 10);
      if (place) {
        ink.fillStyle = paint.quiet;
        ink.fillText(fitted(ink, state, place[1] - 6), place[0] + 4, laneY(lane) + 9);
      }
    }
  }

  function drawSyncs(ink, width) {
    ink.fillStyle = paint.sync;
    let before = -1;
    for (let i = lowerBound(syncs.began, view.from - syncs.longest); i < syncs.count && syncs.began[i] <= view.to; i++) {
      const x = xOf(syncs.began[i], width);
      const to = syncs.took[i] < 0 ? x + 1 : xOf(syncs.began[i] + syncs.took[i], width);
      const key = Math.round(x) * 64 + syncs.node[i];
      if (key === before && to - x < 1) continue;
      before = key;
      ink.fillStyle = syncs.ok[i] ? paint.sync : paint.unknown;
      ink.fillRect(x, laneY(syncs.node[i]) + LANE - 14, Math.max(1.5, to - x), 5);
    }
  }

  function drawOperations(ink, width) {
    const colours = [paint.ok, paint.fail, paint.unknown];
    const last = new Map();
    for (let i = lowerBound(operations.asked, view.from - operations.longest); i < operations.count && operations.asked[i] <= view.to; i++) {
      const lane = operations.lane[i];
      const ending = operations.ending[i];
      const x = xOf(operations.asked[i], width);
      const took = operations.took[i];
      const to = took < 0 ? x + 4 : xOf(operations.asked[i] + took, width);
      const key = lane * 4 + ending;
      if (to - x < 1 && last.get(key) === Math.round(x)) continue;
      last.set(key, Math.round(x));
      ink.fillStyle = colours[ending];
      ink.fillRect(x, laneY(lane) + (ending ? 37 : 39), Math.max(2, to - x - 0.5), ending ? 8 : 5);
    }
  }

  const isVisible = (i) => isShown(i) && messages.sent[i] + Math.max(messages.took[i], 0) >= view.from;
  // First and last of those that may be visible.
  const span = () => [lowerBound(messages.sent, view.from - messages.longest), lowerBound(messages.sent, view.to + 1)];
  function visibleMessages() {
    const [first, last] = span();
    const found = [];
    for (let i = first; i < last; i++) if (isVisible(i)) found.push(i);
    return found;
  }

  function drawMessages(ink, width) {
    const [first, last] = span();
    let count = 0;
    for (let i = first; i < last; i++) if (isVisible(i)) count++;
    $('lanes').dataset.messages = count;
    if (count > ARROWS_MAX) drawCrowd(ink, width, first, last); else drawArrows(ink, width, visibleMessages());
    ink.setLineDash([]);
    ink.globalAlpha = 1;
  }

  // One line for all messages of a pair of nodes in two pixels; a crowd has no colours.
  function drawCrowd(ink, width, first, last) {
    const nodes = data.nodes.length;
    const seen = new Uint8Array((width / 2 + 2) * nodes * nodes);
    const lost = [];
    ink.strokeStyle = paint.ink;
    ink.lineWidth = 0.6;
    ink.globalAlpha = 0.14;
    ink.beginPath();
    for (let i = first; i < last; i++) {
      if (!isVisible(i)) continue;
      const x = xOf(messages.sent[i], width);
      const bit = messages.took[i] < 0 ? 2 : 1;
      const key = (Math.max(0, x >> 1) * nodes + messages.from[i]) * nodes + messages.to[i];
      if (seen[key] & bit) continue;
      seen[key] |= bit;
      if (bit === 2) { lost.push(i); continue; }
      ink.moveTo(x, wire(messages.from[i]));
      ink.lineTo(xOf(messages.sent[i] + messages.took[i], width), wire(messages.to[i]));
    }
    ink.stroke();
    ink.strokeStyle = paint.lost;
    ink.globalAlpha = 0.5;
    ink.setLineDash([3, 3]);
    ink.beginPath();
    for (const i of lost) arrow(ink, width, i);
    ink.stroke();
  }

  function drawArrows(ink, width, found) {
    const byColour = new Map();
    for (const i of found) {
      const key = messages.took[i] < 0 ? 'lost' : messages.kind[i];
      if (!byColour.has(key)) byColour.set(key, []);
      byColour.get(key).push(i);
    }
    ink.lineWidth = 1;
    for (const [key, members] of byColour) {
      ink.strokeStyle = key === 'lost' ? paint.lost : paint.kinds[key];
      ink.setLineDash(key === 'lost' ? [3, 3] : []);
      ink.globalAlpha = key === 'lost' ? 0.9 : 0.85;
      ink.beginPath();
      for (const i of members) arrow(ink, width, i);
      ink.stroke();
    }
    if (found.length <= 60) labels(ink, width, found);
  }

  function ends(width, i) {
    const took = messages.took[i];
    const x0 = xOf(messages.sent[i], width);
    const y0 = wire(messages.from[i]);
    const y1 = wire(messages.to[i]);
    if (took >= 0) return [x0, y0, xOf(messages.sent[i] + took, width), y1];
    // A lost one ends on its way.
    return [x0, y0, x0 + 12, y0 + (y1 - y0) * 0.45];
  }

  function arrow(ink, width, i) {
    const [x0, y0, x1, y1] = ends(width, i);
    ink.moveTo(x0, y0);
    ink.lineTo(x1, y1);
    if (messages.took[i] < 0) {
      ink.moveTo(x1 - 3, y1 - 3); ink.lineTo(x1 + 3, y1 + 3); ink.moveTo(x1 + 3, y1 - 3); ink.lineTo(x1 - 3, y1 + 3);
    } else {
      const angle = Math.atan2(y1 - y0, x1 - x0);
      for (const turn of [2.65, -2.65]) {
        ink.moveTo(x1, y1);
        ink.lineTo(x1 + 6 * Math.cos(angle + turn), y1 + 6 * Math.sin(angle + turn));
      }
    }
  }

  function labels(ink, width, found) {
    ink.font = '10.5px system-ui, sans-serif';
    const taken = [];
    for (const i of found) {
      const [x0, y0, x1, y1] = ends(width, i);
      const words = kinds[messages.kind[i]];
      const x = (x0 + x1) / 2 + 5;
      const y = (y0 + y1) / 2;
      const room = ink.measureText(words).width;
      if (taken.some(([left, right, line]) => Math.abs(line - y) < 11 && x < right && x + room > left)) continue;
      taken.push([x, x + room, y]);
      ink.fillStyle = paint.kinds[messages.kind[i]];
      ink.fillText(words, x, y);
    }
    ink.font = '11px system-ui, sans-serif';
  }

  function drawProofs(ink, width, height) {
    let flagAt = -Infinity;
    const inOrder = data.proofs.map(([, , at], place) => [at, place]).sort((a, b) => a[0] - b[0]);
    inOrder.forEach(([at, place]) => {
      const x = Math.round(xOf(at, width)) + 0.5;
      if (x < MARGIN || x > width) return;
      ink.strokeStyle = paint.proof;
      ink.lineWidth = 1.5;
      ink.beginPath();
      ink.moveTo(x, 12);
      ink.lineTo(x, height);
      ink.stroke();
      if (x - flagAt < 24) return; // its flag would cover another
      flagAt = x;
      ink.fillStyle = paint.proof;
      const number = String(place + 1);
      ink.fillRect(x - 1, 2, 9 + 7 * number.length, 13);
      ink.fillStyle = paint.paper;
      ink.fillText(number, x + 3, 9);
    });
    // The lane in which it happened.
    for (const [type, index] of proofItems) {
      const lane = laneOfItem(type, index);
      const x = xOf(proofTime(type, index), width);
      if (lane === undefined || x < MARGIN || x > width) continue;
      ink.fillStyle = paint.proof;
      ink.beginPath();
      ink.arc(x, laneY(lane) + 41, 5, 0, 7);
      ink.fill();
    }
  }
  const proofTime = (type, index) => {
    const number = proofOf(type, index);
    return number === undefined ? timeOf[type](index) : data.proofs[number - 1][2];
  };
  const laneOfItem = (type, index) => {
    if (type === 'operation') return operations.lane[index];
    if (type === 'node') return laneOf.get(data.events[index][0].split(',')[0]);
    if (type === 'sync') return syncs.node[index];
    if (type === 'message') return messages.from[index];
    return data.faults[index][2][0];
  };
  const proofItems = [];
  for (const type of ['node', 'operation']) for (let i = 0; i < counts[type]; i++) if (proofOf(type, i) !== undefined) proofItems.push([type, i]);
  document.body.dataset.proofs = proofItems.length;

  function drawSelected(ink, width, height) {
    if (!selected) return;
    const [type, index] = selected;
    const x = xOf(timeOf[type](index), width);
    ink.strokeStyle = paint.accent;
    ink.lineWidth = 2;
    ink.setLineDash([5, 3]);
    ink.beginPath();
    ink.moveTo(x, TOP - 6);
    ink.lineTo(x, height);
    ink.stroke();
    ink.setLineDash([]);
    const lane = laneOfItem(type, index);
    if (type === 'message') {
      ink.lineWidth = 3;
      ink.beginPath();
      arrow(ink, width, index);
      ink.stroke();
    } else if (lane !== undefined) {
      const took = type === 'operation' ? operations.took[index] : type === 'sync' ? syncs.took[index] : 0;
      ink.strokeRect(x - 4, laneY(lane) + 33, Math.max(8, xOf(timeOf[type](index) + Math.max(took, 0), width) - x + 8), 18);
    }
  }

  // ---- overview ----
  function drawOverview() {
    const [ink, width] = pen($('overview'), 44);
    const x = (at) => (at / end) * width;
    const bins = new Float64Array(Math.ceil(width / 2) + 1);
    for (let i = 0; i < messages.count; i++) if (isShown(i)) bins[Math.floor(x(messages.sent[i]) / 2)]++;
    const top = bins.reduce((a, b) => Math.max(a, b), 1);
    ink.fillStyle = paint.quiet;
    ink.globalAlpha = 0.55;
    // By the root: a burst must not flatten all else.
    bins.forEach((count, place) => { const high = Math.sqrt(count / top) * 28; ink.fillRect(place * 2, 43 - high, 1.6, high); });
    ink.globalAlpha = 1;
    ink.fillStyle = paint['fault-ink'];
    for (const fault of data.faults) ink.fillRect(x(fault[3]), 2 + (fault.row % 4) * 3, Math.max(2, x(until(fault[4])) - x(fault[3])), 2);
    ink.fillStyle = paint.proof;
    for (const [, , at] of data.proofs) ink.fillRect(x(at) - 1, 0, 2, 44);
    ink.strokeStyle = paint.accent;
    ink.lineWidth = 2;
    ink.strokeRect(x(view.from) + 1, 1, Math.max(4, x(view.to) - x(view.from) - 2), 42);
  }

  // ---- charts ----
  const charts = new Map();
  for (const series of data.series) {
    if (!charts.has(series[0])) charts.set(series[0], []);
    charts.get(series[0]).push(series);
  }
  const related = (members) => members[0][2].some((name) => about.has(name));
  function buildCharts() {
    const rest = document.createElement('details');
    rest.innerHTML = '<summary></summary>';
    const ordered = [...charts.entries()].sort((a, b) => related(b[1]) - related(a[1]));
    let others = 0;
    for (const [title, members] of ordered) {
      const figure = document.createElement('figure');
      const caption = document.createElement('figcaption');
      caption.textContent = title;
      members.forEach(([, line], place) => {
        const key = document.createElement('span');
        key.innerHTML = '<i></i>';
        key.append(line);
        key.firstChild.dataset.line = place;
        caption.append(key);
      });
      const canvas = document.createElement('canvas');
      canvas.setAttribute('role', 'img');
      const lasts = members.map(([, line, , , values]) => `${line}: ${values[values.length - 1]} at the end`);
      canvas.setAttribute('aria-label', `${title} over time. ${lasts.join('; ')}`);
      figure.append(caption, canvas);
      members.canvas = canvas;
      const whole = / in /.test(title);
      if (related(members) || !whole) { $('charts').append(figure); members.open = true; } else { rest.append(figure); others++; }
    }
    rest.firstChild.textContent = `${others} more charts`;
    rest.addEventListener('toggle', () => { for (const members of charts.values()) if (rest.contains(members.canvas)) members.open = rest.open; drawCharts(); });
    if (others) $('charts').append(rest);
  }
  function drawCharts() {
    for (const members of charts.values()) if (members.open) drawChart(members);
    for (const key of document.querySelectorAll('figcaption i')) key.style.background = paint.lines[key.dataset.line % paint.lines.length];
  }
  function drawChart(members) {
    const HEIGHT = 96;
    const [ink, width] = pen(members.canvas, HEIGHT);
    axis(ink, width, HEIGHT, false);
    // What is visible fills the chart.
    let low = Infinity;
    let high = -Infinity;
    const parts = members.map(([, , , times, values]) => {
      const first = Math.max(0, lowerBound(times, view.from) - 1);
      const last = Math.min(times.length, lowerBound(times, view.to) + 1);
      for (let i = first; i < last; i++) { low = Math.min(low, values[i]); high = Math.max(high, values[i]); }
      return [first, last, times, values];
    });
    if (low > high) return;
    if (low === high) { low -= 1; high += 1; }
    const y = (value) => HEIGHT - 8 - ((value - low) / (high - low)) * (HEIGHT - 16);
    ink.fillStyle = paint.quiet;
    ink.textAlign = 'right';
    ink.fillText(String(high), MARGIN - 6, 9);
    ink.fillText(String(low), MARGIN - 6, HEIGHT - 8);
    ink.textAlign = 'left';
    ink.save();
    ink.beginPath();
    ink.rect(MARGIN, 0, width - MARGIN, HEIGHT);
    ink.clip();
    for (const [, , at] of data.proofs) { ink.fillStyle = paint.proof; ink.globalAlpha = 0.5; ink.fillRect(xOf(at, width), 0, 1.5, HEIGHT); }
    ink.globalAlpha = 1;
    parts.forEach(([first, last, times, values], place) => {
      ink.strokeStyle = paint.lines[place % paint.lines.length];
      ink.lineWidth = 1.6;
      ink.setLineDash(place % 3 === 2 ? [6, 3] : []);
      ink.beginPath();
      for (let i = first; i < last; i++) {
        const x = xOf(times[i], width);
        // A value holds until the next one.
        if (i === first) ink.moveTo(x, y(values[i])); else { ink.lineTo(x, y(values[i - 1])); ink.lineTo(x, y(values[i])); }
      }
      if (last === times.length && last > first) ink.lineTo(xOf(end, width), y(values[last - 1]));
      ink.stroke();
    });
    ink.restore();
  }

  // ---- list ----
  function rebuildList() {
    list = [];
    const wanted = search.toLowerCase();
    for (const type of Object.keys(listed)) {
      if (!listed[type]) continue;
      for (let i = 0; i < counts[type]; i++) {
        if (type === 'message' && !isShown(i)) continue;
        if (storyOnly && !inStory(type, i)) continue;
        if (wanted && !textOf[type](i).toLowerCase().includes(wanted)) continue;
        list.push([type, i, timeOf[type](i)]);
      }
    }
    list.sort((a, b) => a[2] - b[2]);
    $('rows').style.height = `${list.length * ROW}px`;
    $('list').dataset.length = list.length;
    drawList();
  }
  function drawList() {
    const box = $('list');
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 5);
    const last = Math.min(list.length, first + Math.ceil(box.clientHeight / ROW) + 10);
    const rows = [];
    for (let place = first; place < last; place++) {
      const [type, index, at] = list[place];
      const row = document.createElement('div');
      const proof = proofOf(type, index);
      row.className = `row ${type}${type === 'operation' ? ` ${endings[operations.ending[index]]}` : ''}${proof === undefined ? '' : ' proof'}`;
      if (selected && selected[0] === type && selected[1] === index) row.classList.add('selected');
      row.setAttribute('role', 'option');
      row.setAttribute('aria-selected', row.classList.contains('selected'));
      row.style.top = `${place * ROW}px`;
      const stamp = document.createElement('time');
      stamp.textContent = time(at);
      row.append(stamp, `${proof === undefined ? '' : `▶ proof ${proof} `}${textOf[type](index)}`);
      row.title = row.textContent;
      row.addEventListener('click', () => select([type, index]));
      rows.push(row);
    }
    $('rows').replaceChildren(...rows);
  }

  // ---- selection and moves ----
  function select(item, close) {
    selected = item;
    if (item) {
      const [type, index] = item;
      const at = timeOf[type](index);
      const proof = proofOf(type, index);
      $('detail').textContent = `${time(at)} s  ${proof === undefined ? '' : `proof ${proof}: `}${textOf[type](index)}`;
      // Near enough to see it among its neighbours.
      if (close && view.to - view.from > 4 * SECOND) show(at - 2 * SECOND, at + 2 * SECOND);
      else if (at < view.from || at > view.to) show(at - (view.to - view.from) / 2, at + (view.to - view.from) / 2);
      const place = list.findIndex(([otherType, other]) => otherType === type && other === index);
      if (place >= 0) $('list').scrollTop = place * ROW - $('list').clientHeight / 2;
      else if (!listed[type] || storyOnly || search) { listed[type] = true; storyOnly = false; search = ''; $('search').value = ''; showFilters(); rebuildList(); return select(item, close); }
    } else {
      $('detail').textContent = '';
    }
    draw();
    drawList();
  }
  function step(by) {
    if (!list.length) return;
    let place = selected ? list.findIndex(([type, index]) => type === selected[0] && index === selected[1]) : -1;
    if (place < 0) place = by > 0 ? lowerBound(list.map((row) => row[2]), view.from) - 1 : lowerBound(list.map((row) => row[2]), view.to);
    const next = list[Math.min(list.length - 1, Math.max(0, place + by))];
    select([next[0], next[1]]);
  }
  function itemOfEvent(event) {
    for (let i = 0; i < counts.node; i++) if (data.events[i][3] === event) return ['node', i];
    for (let i = 0; i < counts.operation; i++) {
      const invoked = operations.invoked[i];
      if (invoked === event || (operations.ended[i] >= 0 && invoked + operations.ended[i] === event)) return ['operation', i];
    }
    return null;
  }
  let proofPlace = -1;
  function goToProof(place) {
    if (!data.proofs.length) return;
    proofPlace = (place + data.proofs.length) % data.proofs.length;
    const item = itemOfEvent(data.proofs[proofPlace][1]);
    if (!item) return;
    select(item, true);
    const at = data.proofs[proofPlace][2];
    const half = (view.to - view.from) / 2;
    show(at - half, at + half);
  }
  function show(from, to) {
    const span = Math.min(end, Math.max(50, to - from));
    view.from = Math.min(Math.max(0, from), end - span);
    view.to = view.from + span;
    $('position').value = span < end ? Math.round((view.from / (end - span)) * 1000) : 0;
    $('zoom').value = Math.round((1000 * Math.log(end / span)) / Math.log(end / 50));
    draw();
  }
  const zoom = (factor, at = (view.from + view.to) / 2) => show(at - (at - view.from) * factor, at + (view.to - at) * factor);
  const move = (share) => { const by = (view.to - view.from) * share; show(view.from + by, view.to + by); };
  let waiting = false;
  function draw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(drawNow);
  }
  function drawNow() {
    waiting = false;
    drawLanes();
    drawOverview();
    drawCharts();
    $('lanes').setAttribute('data-view', `${time(view.from)}-${time(view.to)}`);
  }

  // ---- pointing ----
  const near = (ax, ay, bx, by, x, y) => {
    const length = (bx - ax) ** 2 + (by - ay) ** 2;
    const share = length ? Math.min(1, Math.max(0, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length)) : 0;
    return Math.hypot(ax + share * (bx - ax) - x, ay + share * (by - ay) - y);
  };
  function itemAt(x, y) {
    const width = $('lanes').clientWidth;
    for (let i = 0; i < data.faults.length; i++) {
      const [, , , from, to] = data.faults[i];
      const top = TOP + data.faults[i].row * FAULT;
      if (y >= top && y < top + FAULT && x >= xOf(from, width) - 2 && x <= xOf(until(to), width) + 2) return ['fault', i];
    }
    const lane = laneAt(y);
    const inLane = (y - lanesTop) % LANE;
    const around = timeAt(x, width);
    const slack = ((view.to - view.from) / (width - MARGIN)) * 4;
    if (inLane >= 33 && inLane < LANE) {
      const isSync = inLane >= 46;
      const [all, types, nodes] = isSync ? [syncs.began, syncs, syncs.node] : [operations.asked, operations, operations.lane];
      let best = null;
      for (let i = lowerBound(all, around - types.longest - slack); i < all.length && all[i] <= around + slack; i++) {
        if (nodes[i] !== lane || all[i] + Math.max(types.took[i], 0) < around - slack) continue;
        if (best === null || Math.abs(all[i] - around) < Math.abs(all[best] - around)) best = i;
      }
      if (best !== null) return [isSync ? 'sync' : 'operation', best];
    }
    let best = null;
    let distance = 7;
    for (const i of visibleMessages()) {
      const [x0, y0, x1, y1] = ends(width, i);
      const here = near(x0, y0, x1, y1, x, y);
      if (here < distance) { distance = here; best = i; }
    }
    return best === null ? null : ['message', best];
  }
  let drag = null;
  const lanes = $('lanes');
  lanes.addEventListener('pointerdown', (event) => {
    if (event.offsetX < MARGIN) {
      const lane = laneAt(event.offsetY);
      if (lane >= 0) {
        if (!hiddenLanes.delete(lane)) hiddenLanes.add(lane);
        rebuildList();
        draw();
      }
      return;
    }
    drag = { x: event.clientX, from: view.from, to: view.to, moved: false };
    lanes.setPointerCapture(event.pointerId);
  });
  lanes.addEventListener('pointermove', (event) => {
    if (!drag) {
      const item = event.offsetX > MARGIN ? itemAt(event.offsetX, event.offsetY) : null;
      lanes.title = item ? `${time(timeOf[item[0]](item[1]))} s  ${textOf[item[0]](item[1])}` : '';
      return;
    }
    const by = ((event.clientX - drag.x) / (lanes.clientWidth - MARGIN)) * (drag.to - drag.from);
    drag.moved ||= Math.abs(event.clientX - drag.x) > 3;
    if (drag.moved) show(drag.from - by, drag.to - by);
  });
  lanes.addEventListener('pointerup', (event) => {
    if (drag && !drag.moved) select(itemAt(event.offsetX, event.offsetY));
    drag = null;
  });
  lanes.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaX) < Math.abs(event.deltaY) && !event.shiftKey) return; // the page scrolls
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) zoom(event.deltaY > 0 ? 1.25 : 0.8, timeAt(event.offsetX, lanes.clientWidth));
    else move((event.deltaX || event.deltaY) / 1000);
  }, { passive: false });
  lanes.addEventListener('dblclick', (event) => zoom(0.4, timeAt(event.offsetX, lanes.clientWidth)));
  let grip = null;
  const overview = $('overview');
  const overviewTime = (event) => (event.offsetX / overview.clientWidth) * end;
  overview.addEventListener('pointerdown', (event) => {
    const at = overviewTime(event);
    const slack = (end / overview.clientWidth) * 7;
    overview.setPointerCapture(event.pointerId);
    if (Math.abs(at - view.from) < slack) grip = 'from';
    else if (Math.abs(at - view.to) < slack) grip = 'to';
    else { const half = (view.to - view.from) / 2; if (at < view.from || at > view.to) show(at - half, at + half); grip = at - view.from; }
  });
  overview.addEventListener('pointermove', (event) => {
    if (grip === null) return;
    const at = overviewTime(event);
    if (grip === 'from') show(Math.min(at, view.to - 50), view.to);
    else if (grip === 'to') show(view.from, Math.max(at, view.from + 50));
    else show(at - grip, at - grip + view.to - view.from);
  });
  overview.addEventListener('pointerup', () => { grip = null; });
  $('position').addEventListener('input', (event) => { const span = view.to - view.from; const from = (event.target.value / 1000) * (end - span); show(from, from + span); });
  $('zoom').addEventListener('input', (event) => { const span = end / (end / 50) ** (event.target.value / 1000); const middle = (view.from + view.to) / 2; show(middle - span / 2, middle + span / 2); });

  // ---- controls ----
  function showFilters() {
    const boxes = Object.keys(listed).map((type) => check(`${titles[type]} ${counts[type].toLocaleString('en')}`, listed[type], (on) => { listed[type] = on; rebuildList(); }));
    const story = check('story only', storyOnly, (on) => { storyOnly = on; rebuildList(); });
    $('filters').replaceChildren(...boxes, story);
  }
  function check(words, on, change) {
    const label = document.createElement('label');
    const box = document.createElement('input');
    box.type = 'checkbox';
    box.checked = on;
    box.addEventListener('change', () => change(box.checked));
    label.append(box, words);
    return label;
  }
  function showKinds() {
    const tally = new Uint32Array(kinds.length);
    for (const kind of messages.kind) tally[kind]++;
    const order = [...kinds.keys()].filter((kind) => tally[kind]).sort((a, b) => kinds[a].localeCompare(kinds[b]));
    const all = check('all', true, (on) => { shownKinds.fill(on ? 1 : 0); showKindBoxes(); rebuildList(); draw(); });
    const boxes = order.map((kind) => {
      const label = check('', true, (on) => { shownKinds[kind] = on ? 1 : 0; rebuildList(); draw(); });
      label.firstChild.dataset.kind = kind;
      const colour = document.createElement('i');
      const count = document.createElement('small');
      count.textContent = ` ${tally[kind].toLocaleString('en')}`;
      label.append(colour, kinds[kind], count);
      return label;
    });
    const gone = data.left_out.map(([kind, count]) => { const note = document.createElement('small'); note.textContent = `${kind}: ${count} left out, the page would be too large`; return note; });
    $('kinds').replaceChildren(all, ...boxes, ...gone);
  }
  function showKindBoxes() { for (const box of document.querySelectorAll('[data-kind]')) box.checked = shownKinds[box.dataset.kind] === 1; }
  function colourKinds() { for (const box of document.querySelectorAll('[data-kind]')) box.parentElement.querySelector('i').style.background = paint.kinds[box.dataset.kind]; }
  function repaint() { readPaint(); colourKinds(); draw(); }
  const toggleTheme = () => { document.documentElement.dataset.theme = isDark() ? 'light' : 'dark'; repaint(); };
  const toggleHelp = () => { $('help').hidden = !$('help').hidden; };
  const actions = {
    back: () => move(-0.3), forth: () => move(0.3), in: () => zoom(0.5), out: () => zoom(2), whole: () => show(0, end),
    'proof-back': () => goToProof(proofPlace - (proofPlace < 0 ? 0 : 1)), 'proof-forth': () => goToProof(proofPlace + 1), theme: toggleTheme, 'help-button': toggleHelp,
  };
  for (const [id, action] of Object.entries(actions)) $(id).addEventListener('click', action);
  $('search').addEventListener('input', (event) => { search = event.target.value; rebuildList(); });
  const keys = {
    ArrowLeft: actions.back, ArrowRight: actions.forth, '+': actions.in, '=': actions.in, '-': actions.out, 0: actions.whole,
    n: () => step(1), N: () => step(-1), p: actions['proof-forth'], P: actions['proof-back'], t: toggleTheme, '?': toggleHelp,
    '/': () => $('search').focus(), s: () => { storyOnly = !storyOnly; showFilters(); rebuildList(); }, Escape: () => select(null),
  };
  document.addEventListener('keydown', (event) => {
    const typing = event.target.matches('input[type=search], input[type=range]');
    if (typing && event.key === 'Escape') { event.target.blur(); return; }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const action = keys[event.key];
    if (action) { event.preventDefault(); action(); }
  });
  $('list').addEventListener('scroll', drawList);
  addEventListener('resize', () => { draw(); drawList(); });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
  // A printer's paper is white, and waits for no frame.
  let themeBefore;
  addEventListener('beforeprint', () => { themeBefore = document.documentElement.dataset.theme; document.documentElement.dataset.theme = 'light'; readPaint(); drawNow(); });
  addEventListener('afterprint', () => { if (themeBefore) document.documentElement.dataset.theme = themeBefore; else delete document.documentElement.dataset.theme; repaint(); });

  // #event=2357, #proof=1, #t=20.5-23, #dark; several with &.
  function follow() {
    for (const part of location.hash.slice(1).split('&')) {
      const [name, value] = part.split('=');
      if (name === 'dark' || name === 'light') { document.documentElement.dataset.theme = name; readPaint(); colourKinds(); }
      if (name === 't') { const [from, to] = value.split('-').map(Number); show(from * SECOND, to * SECOND); }
      if (name === 'proof') goToProof(Number(value) - 1);
      if (name === 'event') {
        const item = itemOfEvent(Number(value));
        if (item) { select(item, true); const at = timeOf[item[0]](item[1]); const half = (view.to - view.from) / 2; show(at - half, at + half); }
        document.querySelector('main').scrollIntoView({ block: 'nearest' });
        const place = data.proofs.findIndex(([, event]) => event === Number(value));
        if (place >= 0) proofPlace = place;
      }
    }
    draw();
  }
  addEventListener('hashchange', follow);

  showFilters();
  showKinds();
  buildCharts();
  readPaint();
  colourKinds();
  rebuildList();
  show(0, end);
  follow();
  document.body.dataset.ready = 'yes';
})().catch((error) => {
  const note = document.createElement('p');
  note.textContent = `The picture cannot be drawn: ${error}. The verdict and the story above are complete.`;
  document.querySelector('main').prepend(note);
  console.error(error);
});
