"use strict";
// Draws the charts of each section, and lets slider, play button, brush and selections change them.
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const ARROWS = [...data.arrows];
  const unpack = (text, Kind) => new Kind(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  // The arrays of one seed, unpacked when it is first looked at; index: [moment][state][action].
  function opened(detail) {
    if (detail.open) return detail.open;
    const kinds = { there: Uint8Array, mean: Float32Array, upper: Float32Array, visits: Int32Array, age: Int32Array,
      ends: Float32Array, height: Uint8Array };
    const open = { policies: {} };
    for (const [name, Kind] of Object.entries(kinds)) if (detail[name]) open[name] = unpack(detail[name], Kind);
    for (const [name, text] of Object.entries(detail.policies)) open.policies[name] = unpack(text, Uint8Array);
    if (detail.grid) for (const name of ["upper", "visits", "arrow"]) open["grid-" + name] = unpack(detail.grid[name], Uint8Array);
    return (detail.open = open);
  }

  class Section {
    constructor(element, group) {
      Object.assign(this, { element, group, views: {}, moment: 0, timer: null });
      this.window = [group.first, group.last];
      const needs = { explore: group.data.explore.length, details: group.details.length, first: group.data.first.length,
        kept: group.data.kept.length, "nothing-recorded": !group.details.length };
      for (const [name, needed] of Object.entries(needs))
        for (const part of element.querySelectorAll(`[data-needs="${name}"]`)) part.hidden = !needed;
      this.detail = group.details[0];
    }

    role(name) { return this.element.querySelector(`[data-role="${name}"]`); }
    each(names, act) { for (const name of names) if (this.views[name]) act(this.views[name], name); }

    async draw() {
      if (this.detail) this.choose(0, false);
      for (const place of this.element.querySelectorAll("[data-chart]")) {
        if (place.closest("[hidden]")) continue;
        const name = place.dataset.chart, spec = this.group.charts[name];
        spec.datasets = Object.fromEntries(this.names(spec).map((each) => [each, this.rows(each)]));
        for (const param of spec.params || []) if (param.name in this.signals()) param.value = this.signals()[param.name];
        const height = this.height(name);
        if (height) spec.height = height;
        const result = await vegaEmbed(place, spec, { actions: false, renderer: "svg", ast: false });
        this.views[name] = result.view;
        if (name === "curves") this.listen(result.view);
      }
      this.controls();
    }

    // The datasets that a chart names.
    names(spec) {
      return [...new Set([spec, ...(spec.layer || []).flatMap((layer) => [layer, ...(layer.layer || [])])]
        .map((layer) => layer.data && layer.data.name).filter(Boolean))];
    }

    rows(name) {
      if (name === "seeds") return this.role("seeds").checked ? this.group.data.seeds : [];
      if (this.group.data[name]) return this.group.data[name];
      return this.detail ? this.computed()[name] || [] : [];
    }

    signals() {
      const of = this.detail ? this.scales() : {};
      return { start: this.window[0], end: this.window[1], ...of };
    }

    height(name) {
      if (!this.detail) return null;
      if (name === "density" || name === "policies") return 30 + 46 * this.detail.states.length;
      if (name !== "grid" || !this.detail.grid) return null;
      const { count, columns } = this.detail.grid, rows = Math.ceil(count / columns);
      return rows * clamp(Math.round(this.element.clientWidth / columns), 16, 44);
    }

    // All that depends on the seed, the state and the moment.
    computed() {
      const d = this.detail, open = opened(d), m = this.moment, S = d.states.length, A = d.actions, s0 = this.state || 0;
      const at = (moment, s, a) => (moment * S + s) * A + a;
      const found = { heights: [], exact: [], bounds: [], shares: [], upper: [], gap: [], age: [], count: [], cells: [] };
      for (let s = 0; s < S; s++) {
        if (!open.there[m * S + s]) continue;
        for (let a = 0; a < A; a++) {
          const i = at(m, s, a);
          found.bounds.push({ s, a, x: open.mean[i], upper: open.upper[i], y: -s });
          if (open.height) this.outline(found.heights, s, a, i);
        }
      }
      for (const [name, share] of Object.entries(open.policies))
        for (let a = 0; a < A; a++)
          for (let s = 0; s < S; s++)
            if (open.there[m * S + s]) found.shares.push({ s: String(d.states[s]), p: `${name} ${a}`, v: share[at(m, s, a)] / 255 });
      for (const [s, a, x, p] of d.exact) found.exact.push({ s, a, x, y: -s, top: -s + 0.92 * p });
      for (let k = 0; k < d.step.length; k++) {
        if (!open.there[k * S + s0]) continue;
        const e = d.episode[k], bounds = [];
        for (let a = 0; a < A; a++) {
          const i = at(k, s0, a);
          bounds.push(open.upper[i]);
          found.upper.push({ e, a, v: open.upper[i] });
          if (open.visits) found.count.push({ e, a, v: open.visits[i] });
          if (open.age && open.age[i] >= 0) found.age.push({ e, a, v: open.age[i] });
        }
        bounds.sort((one, other) => other - one);
        if (A > 1) found.gap.push({ e, v: bounds[0] - bounds[1] });
      }
      found.now = [{ e: d.episode[m] }];
      if (d.grid) this.cells(found.cells, open);
      return found;
    }

    outline(rows, s, a, i) {
      const d = this.detail, open = opened(d), n = d.points, low = open.ends[2 * i], high = open.ends[2 * i + 1];
      const step = (high - low) / Math.max(n - 1, 1);
      for (let k = 0; k < n; k++) {
        const x = low + step * k, top = -s + (0.9 * open.height[i * n + k]) / 255, row = { s, a, y: -s, top };
        if (d.bins) rows.push({ ...row, x: x - step / 2.02 }, { ...row, x: x + step / 2.02 });
        else rows.push({ ...row, x });
      }
    }

    cells(rows, open) {
      const { count, columns, low, high, most } = this.detail.grid, logged = this.role("colour").value === "visits";
      for (let s = 0; s < count; s++) {
        const i = this.moment * count + s;
        const visits = Math.expm1((open["grid-visits"][i] / 255) * Math.log1p(most));
        const upper = low + (open["grid-upper"][i] / 255) * (high - low);
        rows.push({ s, r: Math.floor(s / columns), c: s % columns, visits: Math.round(visits), upper: +upper.toFixed(3),
          v: logged ? Math.log1p(visits) : upper, arrow: ARROWS[open["grid-arrow"][i]] });
      }
    }

    scales() {
      const d = this.detail, open = opened(d), S = d.states.length, A = d.actions, zoom = this.role("zoom").checked;
      let low = Infinity, high = -Infinity;
      const from = zoom ? this.moment : 0, to = zoom ? this.moment + 1 : d.step.length;
      for (let i = from * S * A; i < to * S * A; i++) {
        const half = 0.75 * Math.abs(open.upper[i] - open.mean[i]);
        low = Math.min(low, open.mean[i] - half); high = Math.max(high, open.upper[i], open.mean[i] + half);
      }
      if (!zoom) for (const [, , x] of d.exact) { low = Math.min(low, x); high = Math.max(high, x); }
      const pad = 0.03 * (high - low) || 0.5;
      return { low: low - pad, high: high + pad, rows: S, labels: d.states.map(String) };
    }

    gridScale() {
      const { low, high, most } = this.detail.grid, logged = this.role("colour").value === "visits";
      return logged ? { low: 0, high: Math.log1p(most) || 1, logged } : { low, high: high > low ? high : low + 1, logged };
    }

    refresh(names = ["density", "policies", "upper", "gap", "age", "count", "grid", "explore"]) {
      const found = this.detail ? this.computed() : {}, signals = this.signals();
      this.each(names, (view, name) => {
        const own = name === "grid" ? this.gridScale() : signals;
        for (const [signal, value] of Object.entries(own)) { try { view.signal(signal, value); } catch { /* it has none */ } }
        for (const each of this.names(this.group.charts[name]))
          if (found[each]) view.data(each, found[each]);
        const height = this.height(name);
        if (height) view.height(height);
        view.runAsync();
      });
      if (this.detail) this.say();
    }

    say() {
      const { step, episode } = this.detail;
      this.role("when").textContent = `episode ${episode[this.moment].toLocaleString("en")}, step ${step[this.moment].toLocaleString("en")}`;
      this.role("moment").value = this.moment;
      this.role("moment").setAttribute("aria-valuetext", this.role("when").textContent);
    }

    // Moments within the stretch that is brushed.
    stretch() {
      const { episode } = this.detail, inside = episode.map((_, k) => k)
        .filter((k) => episode[k] >= this.window[0] && episode[k] <= this.window[1]);
      return inside.length ? [inside[0], inside[inside.length - 1]] : [0, episode.length - 1];
    }

    choose(number, redraw = true) {
      this.detail = this.group.details[number];
      this.state = 0;
      this.role("state").replaceChildren(...this.detail.states.map((state, k) => new Option(state, k)));
      for (const part of this.element.querySelectorAll('[data-needs="grid"]')) part.hidden = !this.detail.grid;
      for (const part of this.element.querySelectorAll('[data-needs="data"]')) part.hidden = !this.detail.visits;
      const [first, last] = this.stretch();
      Object.assign(this.role("moment"), { min: first, max: last });
      this.moment = last;
      if (redraw) this.refresh(); else this.say();
    }

    show(from, to) {
      this.window = [from, to];
      this.role("start").value = Math.round(from);
      this.role("end").value = Math.round(to);
      if (this.detail) {
        const [first, last] = this.stretch();
        Object.assign(this.role("moment"), { min: first, max: last });
        this.moment = clamp(this.moment, first, last);
      }
      this.refresh();
      this.each(["first", "solved"], (view) => view.signal("start", from).signal("end", to).runAsync());
    }

    listen(view) {
      const chart = this.element.querySelector('[data-chart="curves"]');
      chart.addEventListener("pointerdown", () => { this.touched = true; });
      window.addEventListener("resize", () => { this.touched = false; });
      view.addSignalListener("brush", (_, brushed) => {
        if (brushed && brushed.e) {
          if (brushed.e[1] > brushed.e[0]) this.show(...brushed.e);
        } else if (this.touched) this.show(this.group.first, this.group.last);
        else setTimeout(() => this.mark(), 50); // the page was resized, which draws the chart without its brush
      });
    }

    // Draws the stretch as if it had been brushed.
    mark() {
      const [from, to] = this.window, view = this.views.curves, scale = view.scale("x");
      const whole = from <= this.group.first && to >= this.group.last;
      try { view.signal("brush_x", whole ? [] : [scale(from), scale(to)]).runAsync(); } catch { /* then without */ }
    }

    typed() {
      const from = Number(this.role("start").value), to = Number(this.role("end").value);
      if (!(to > from)) return;
      this.touched = false;
      this.show(from, to);
      this.mark();
    }

    play() {
      const button = this.role("play"), stop = () => { clearInterval(this.timer); this.timer = null; button.textContent = "Play"; };
      if (this.timer) return stop();
      const [first, last] = this.stretch();
      if (this.moment >= last) this.moment = first - 1;
      button.textContent = "Pause";
      this.timer = setInterval(() => {
        this.moment = clamp(this.moment + 1, first, last);
        this.refresh();
        if (this.moment >= last) stop();
      }, 250);
    }

    controls() {
      const on = (name, event, act) => { const part = this.role(name); if (part) part.addEventListener(event, act); };
      this.role("start").value = Math.round(this.window[0]);
      this.role("end").value = Math.round(this.window[1]);
      on("start", "change", () => this.typed());
      on("end", "change", () => this.typed());
      on("whole", "click", () => {
        this.role("start").value = this.group.first; this.role("end").value = this.group.last; this.typed();
      });
      on("seeds", "change", () => this.views.curves.data("seeds", this.rows("seeds")).runAsync());
      this.role("detail").replaceChildren(...this.group.details.map((detail, k) => new Option(detail.label, k)));
      on("detail", "change", (event) => this.choose(Number(event.target.value)));
      on("moment", "input", (event) => { this.moment = Number(event.target.value); this.refresh(); });
      on("zoom", "change", () => this.refresh());
      on("state", "change", (event) => { this.state = Number(event.target.value); this.refresh(); });
      on("colour", "change", () => this.refresh(["grid"]));
      on("play", "click", () => this.play());
    }
  }

  const sections = [...document.querySelectorAll("section[data-group]")]
    .map((element) => new Section(element, data.groups[Number(element.dataset.group)]));
  window.addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("details")) part.open = true; });
  (async () => {
    for (const section of sections) await section.draw();
    for (const section of sections) if (section.detail) section.refresh();
    document.documentElement.dataset.ready = "true";
  })();
})();
