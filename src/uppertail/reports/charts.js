"use strict";
// Draws charts as SVG whose colors are variables of the page, so that they follow the system's dark mode.
const Charts = (() => {
  const DASHES = ["", "6 3", "2 2", "8 2 2 2"], ROW = 46, HEAD = 20;
  const color = (k) => `var(--c${k % 7})`;
  const dash = (k) => DASHES[k % DASHES.length];
  const safe = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const short = (v) => (Math.abs(v) >= 1e4 ? `${+(v / 1e3).toPrecision(3)}k` : `${+v.toPrecision(3)}`);
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const to = ([low, high], from, until) => (v) => from + ((v - low) / (high - low || 1)) * (until - from);
  const symlog = (v) => Math.sign(v) * Math.log1p(Math.abs(v));

  // A picture of several parts. Parts that are as they were stay: to parse and lay out a part is most of the work of a move.
  function show(place, width, height, parts) {
    const size = [width, height, parts.length].join(), { drawn } = place;
    if (drawn?.size === size) parts.forEach((part, k) => { if (part !== drawn.parts[k]) place.firstElementChild.children[k].innerHTML = part; });
    else place.innerHTML = `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">${parts.map((part) => `<g>${part}</g>`).join("")}</svg>`;
    place.drawn = { size, parts };
  }

  // Widths of charts as they were last laid out: to ask for one between two changes would lay out the whole page again.
  let widths = new WeakMap();
  const forgetWidths = () => { widths = new WeakMap(); };
  const laidOut = new ResizeObserver((entries) => { for (const { target } of entries) widths.set(target, target.clientWidth); });

  function wide(place) {
    if (!widths.has(place)) { widths.set(place, place.clientWidth); laidOut.observe(place); }
    return Math.max(widths.get(place), 160);
  }

  // The range of those numbers that are finite, a little wider; null: there are none.
  function range(values, pad = 0.04) {
    let low = Infinity, high = -Infinity;
    for (const v of values) if (Number.isFinite(v)) { low = Math.min(low, v); high = Math.max(high, v); }
    if (low > high) return null;
    const more = pad * (high - low) || pad * Math.abs(high) || 0.5;
    return [low - more, high + more];
  }

  function ticks([low, high], count) {
    const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((k) => k * power).find((each) => each >= raw * 0.999), found = [];
    for (let k = Math.ceil(low / step); k <= high / step + 1e-9; k++) found.push(+(k * step).toPrecision(12));
    return found;
  }

  const logTicks = ([, high]) => [0, ...Array.from({ length: 10 }, (_, k) => 10 ** k).filter((v) => symlog(v) <= high)];

  // The axis of returns or episodes below a plot.
  function below(domain, x, top, bottom, title, whole = false) {
    const marks = ticks(domain, Math.max(2, (x(domain[1]) - x(domain[0])) / 75)).filter((v) => !whole || Number.isInteger(v));
    const middle = (x(domain[0]) + x(domain[1])) / 2;
    return marks.map((v) => `<line class="grid" x1="${x(v)}" x2="${x(v)}" y1="${top}" y2="${bottom}"/>
      <text x="${x(v)}" y="${bottom + 14}" text-anchor="middle">${short(v)}</text>`).join("")
      + `<text class="title" x="${middle}" y="${bottom + 29}" text-anchor="middle">${title}</text>`;
  }

  // The path of a line: [x, y] in numbers of the picture; one that is not finite interrupts it.
  function path(points, stepped) {
    let text = "", last = null;
    for (const [x, y] of points) {
      if (!Number.isFinite(y)) { last = null; continue; }
      text += last === null ? `M${x.toFixed(1)} ${y.toFixed(1)}` : `${stepped ? `H${x.toFixed(1)}V` : `L${x.toFixed(1)} `}${y.toFixed(1)}`;
      last = y;
    }
    return text;
  }

  // Lines with bands: series of {k, points: [[x, y]], band: [[x, low, high]]}. Returns how x lies in the picture.
  function lines(place, { series, domain, y, height, title, step, log, bottom = "episode" }) {
    const width = wide(place), left = 46, right = width - 16, top = 10, base = height - 34;
    const scaled = log ? symlog : (v) => v;
    const all = series.flatMap((s) => [...s.points.map((p) => p[1]), ...(s.band || []).flatMap((p) => [p[1], p[2]])]);
    const extent = y || range(all.filter((v) => v !== null).map(scaled)) || [0, 1];
    const x = to(domain, left, right), up = to(extent, base, top), at = (v) => (v === null ? NaN : up(scaled(v)));
    const marks = (log ? logTicks(extent) : ticks(extent, 4)).map((v) => [v, up(scaled(v))]).filter(([, p]) => p <= base + 1);
    const axis = marks.map(([v, p]) => `<line class="grid" x1="${left}" x2="${right}" y1="${p}" y2="${p}"/>
      <text x="${left - 6}" y="${p + 4}" text-anchor="end">${short(v)}</text>`).join("");
    const drawn = series.map(({ k, points, band, thin }) => {
      const around = band && [...band.map((p) => [x(p[0]), at(p[2])]), ...[...band].reverse().map((p) => [x(p[0]), at(p[1])])];
      return (around ? `<path d="${path(around, false)}Z" fill="${color(k)}" opacity=".17"/>` : "")
        + `<path d="${path(points.map(([e, v]) => [x(e), at(v)]), step)}" fill="none" stroke="${color(k)}"
          stroke-width="${thin ? 1 : 2}" opacity="${thin ? 0.6 : 1}" stroke-dasharray="${dash(k)}"/>`;
    }).join("");
    const inside = `<svg x="${left}" y="0" width="${right - left}" height="${base + 1}"
      viewBox="${left} 0 ${right - left} ${base + 1}">${drawn}<line class="now" y1="${top}" y2="${base}" visibility="hidden"/></svg>`;
    show(place, width, height, [axis + below(domain, x, top, base, bottom, true), inside]);
    place.previousElementSibling.textContent = title;
    return { x, left, right, back: to([left, right], ...domain) };
  }

  // One row for each state: heights of each action's density, its mean and upper bound, exact probabilities.
  function density(place, { rows, domain, actions }) {
    const width = wide(place), left = clamp(7.5 * Math.max(...rows.map((row) => row.label.length)) + 8, 40, Math.max(120, width / 4));
    const room = Math.floor((left - 8) / 7.5);
    const cut = (label) => label.length > room ? `${safe(label.slice(0, room - 1))}…<title>${safe(label)}</title>` : safe(label);
    const bottom = HEAD + ROW * rows.length + 6, x = to(domain, left, width - 16), tall = ROW * 0.82;
    const drawn = rows.map((row, r) => {
      const base = HEAD + ROW * (r + 1);
      const exact = row.exact.map(([v, p]) => `<rect class="exact" x="${x(v) - 3.5}" width="7" y="${base - tall * p}" height="${tall * p}"/>`).join("");
      const reach = (a) => row.of[a].upper - row.of[a].mean; // the narrowest on top
      const each = actions.map((_, a) => a).sort((a, b) => reach(b) - reach(a) || 0).map((a) => {
        const { mean, upper, outline } = row.of[a];
        if (!Number.isFinite(mean)) return "";
        const curve = outline.length ? `M${x(outline[0][0]).toFixed(1)} ${base}` + outline.map(([v, h]) => `L${x(v).toFixed(1)} ${(base - tall * h).toFixed(1)}`).join("")
          + `L${x(outline[outline.length - 1][0]).toFixed(1)} ${base}Z` : "";
        return `<path d="${curve}" fill="${color(a)}" fill-opacity=".28" stroke="${color(a)}" stroke-width="1.6" stroke-dasharray="${dash(a)}"/>
          <line x1="${x(mean)}" x2="${x(mean)}" y1="${base - 7}" y2="${base + 7}" stroke="${color(a)}" stroke-width="2.5"/>
          <path d="M${x(upper) - 5} ${base - 5}h10l-5 9z" fill="${color(a)}"/>`;
      }).join("");
      return `<svg x="${left}" width="${width - 16 - left}" y="0" height="${bottom}" viewBox="${left} 0 ${width - 16 - left} ${bottom}">${exact}${each}</svg>`;
    });
    const labels = rows.map(({ label, chosen }, r) => `<text x="${left - 8}" y="${HEAD + ROW * (r + 1)}" text-anchor="end" class="${chosen ? "chosen" : ""}">${cut(label)}</text>
      <line class="base" x1="${left}" x2="${width - 16}" y1="${HEAD + ROW * (r + 1)}" y2="${HEAD + ROW * (r + 1)}"/>`).join("");
    show(place, width, bottom + 34, [below(domain, x, HEAD, bottom, "return") + labels, ...drawn]);
  }

  // How often each policy takes each action: a bar for each state and policy, divided from the first action to the last.
  function shares(place, { rows, policies, actions }) {
    const width = wide(place), left = 8, each = (width - left) / policies.length, bar = each - 10;
    const heads = policies.map((name, p) => `<text x="${left + p * each}" y="14">${safe(name)}</text>`).join("");
    const drawn = rows.map((row, r) => row.shares.map((share, p) => {
      let at = left + p * each;
      return share.map((v, a) => {
        const size = v * bar, from = at, word = safe(actions[a]);
        at += size;
        const text = size > 7 * word.length + 4 ? `<text class="on" x="${from + size / 2}" y="${HEAD + ROW * (r + 1) - 7}" text-anchor="middle">${word}</text>` : "";
        return `<g><title>${word}: ${v.toFixed(2)}</title><rect x="${from}" y="${HEAD + ROW * (r + 1) - 22}" width="${size}" height="22" fill="${color(a)}" fill-opacity=".45" stroke="${color(a)}"/>${text}</g>`;
      }).join("");
    }).join(""));
    show(place, width, HEAD + ROW * rows.length + 6, [heads, ...drawn]);
  }

  // The cells of a grid; `paint` colors them later.
  function map(place, { cells, columns, rows, click }) {
    const size = clamp(Math.floor((place.clientWidth - 4) / columns), 12, 64);
    show(place, columns * size + 4, rows * size + 4, [cells.map(({ s, row, column, label, kind, open }) =>
      `<g data-state="${s}" class="${open ? "open" : ""} ${kind}" transform="translate(${2 + column * size} ${2 + row * size})">
        <title>${safe(label)}</title><rect width="${size - 1}" height="${size - 1}" rx="2"/>
        <text x="${size / 2}" y="${size / 2 + 5}" text-anchor="middle" style="font-size:${clamp(size / 2.4, 9, 18)}px"></text></g>`).join("")]);
    place.onclick = (event) => { const cell = event.target.closest(".open"); if (cell) click(Number(cell.dataset.state)); };
    return [...place.querySelectorAll("[data-state]")].map((cell, k) => ({ ...cells[k], cell, title: cell.children[0], box: cell.children[1], text: cell.children[2] }));
  }

  // Numbers of 0 to 255 over two coordinates, row by row from below; `part` is their place within the picture's ranges.
  function heat(canvas, values, side, part) {
    const small = new OffscreenCanvas(side, side), inner = small.getContext("2d"), image = inner.createImageData(side, side);
    for (let k = 0; k < side * side; k++) {
      const pixel = 4 * ((side - 1 - Math.floor(k / side)) * side + (k % side));
      image.data.set([38, 132, 210, values[k]], pixel); // the page shines through where the number is small
    }
    inner.putImageData(image, 0, 0);
    const outer = canvas.getContext("2d"), [x, y, w, h] = part.map((share) => share * canvas.width);
    outer.imageSmoothingEnabled = false;
    outer.clearRect(0, 0, canvas.width, canvas.height);
    outer.drawImage(small, x, y, w, h);
  }

  const legend = (place, names) => {
    place.innerHTML = names.map((name, k) => `<span><svg width="26" height="10"><line x1="0" x2="26" y1="5" y2="5" stroke="${color(k)}"
      stroke-width="3" stroke-dasharray="${dash(k)}"/></svg> ${safe(name)}</span>`).join("");
  };

  const role = (element, name) => element.querySelector(`[data-role="${name}"]`);
  const need = (element, needs) => {
    for (const [name, needed] of Object.entries(needs))
      for (const part of element.querySelectorAll(`[data-needs="${name}"]`)) part.hidden = !needed;
  };
  const { format: count } = new Intl.NumberFormat("en");

  return { range, lines, density, shares, map, heat, legend, clamp, short, role, need, count, forgetWidths };
})();
