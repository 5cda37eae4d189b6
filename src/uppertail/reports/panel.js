// One seed at one moment: its distributions, its map, and the course of a chosen state.
const Panel = (() => {
  const { range, lines, density, shares, map, heat, legend, short, role, need, count } = Charts;
  const KINDS = { there: Uint8Array, mean: Float32Array, upper: Float32Array, left: Float32Array, visits: Int32Array, age: Int32Array, height: Uint8Array };
  const unpack = (text, Kind) => new Kind(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);

  // The arrays of one seed, unpacked when it is first looked at; index: [moment][state][action].
  function opened(detail) {
    if (detail.open) return detail.open;
    const arrays = { policies: {}, grid: {}, plane: {} }, open = { ...arrays };
    for (const [name, Kind] of Object.entries(KINDS)) if (detail[name]) open[name] = unpack(detail[name], Kind);
    for (const part of Object.keys(arrays))
      for (const [name, text] of Object.entries(detail[part]?.arrays || {})) arrays[part][name] = unpack(text, Uint8Array);
    return (detail.open = open);
  }

  // A text that stays the same is not laid out again.
  const say = (place, text) => { if (place.textContent !== text) place.textContent = text; };

  return class Panel {
    // Beside a first panel, its states are shown, as far as they are there.
    constructor(section, detail, first) {
      const element = document.getElementById("panel").content.cloneNode(true).firstElementChild;
      Object.assign(this, { section, detail, element, open: opened(detail), moment: 0, state: detail.rows[0], own: detail.rows });
      const same = first ? first.own.map((s) => detail.names.indexOf(first.detail.names[s])).filter((s) => s >= 0) : [];
      if (same.length) Object.assign(this, { own: same, state: same[0] });
      this.rows = [...this.own];
      section.panels.append(element);
      need(element, { grid: detail.grid, plane: detail.plane, evidence: detail.plane?.arrays.evidence, data: detail.visits, left: detail.left, policies: detail.policies,
        exact: detail.exact.length, heights: detail.height });
      role(element, "title").textContent = detail.label;
      legend(role(element, "legend"), detail.actions);
      role(element, "state").replaceChildren(...detail.states.map((_, s) => new Option(detail.names[s], s)));
      role(element, "state").onchange = (event) => this.choose(Number(event.target.value));
      role(element, "color").onchange = () => this.draw();
    }

    chart(name) { return this.element.querySelector(`[data-chart="${name}"]`); }

    // Draws all of it, as wide as there is room.
    resize() {
      const { grid, states } = this.detail;
      if (grid) {
        const cells = grid.cells.map((cell) => ({ ...cell, open: states.includes(cell.s) }));
        this.cells = map(this.chart("map"), { ...grid, cells, click: (s) => this.choose(states.indexOf(s)) });
      }
      this.history();
      this.draw();
    }

    // Shows a state: its row joins the others, and its history is drawn.
    choose(s) {
      this.state = s;
      if (!this.rows.includes(s)) this.rows = [...this.own, s];
      role(this.element, "state").value = s;
      this.history();
      this.draw();
    }

    // The last moment up to a step.
    go(step) {
      const { step: steps } = this.detail;
      this.moment = Math.max(0, steps.findLastIndex((each) => each <= step));
      this.draw();
    }

    at(moment, s, a) { return (moment * this.detail.states.length + s) * this.detail.actions.length + a; }

    there(moment, s) { return this.open.there[moment * this.detail.states.length + s]; }

    // [return, height] along a density; points lie in the family's bins, or so many standard deviations around the mean.
    outline(i) {
      const { bins, points: n, spread } = this.detail, { height, mean, upper } = this.open, found = [];
      if (!height) return found;
      const reach = (spread * (upper[i] - mean[i])) / 2, [low, high] = bins || [mean[i] - reach, mean[i] + reach];
      const step = (high - low) / Math.max(n - 1, 1);
      for (let k = 0; k < n; k++) {
        const x = low + step * k, h = height[i * n + k] / 255;
        if (bins) found.push([x - step / 2, h], [x + step / 2, h]); else found.push([x, h]);
      }
      return found;
    }

    draw() {
      const { detail: d, open, moment: m } = this, when = `episode ${count(d.episode[m])}, step ${count(d.step[m])}`;
      role(this.element, "at").textContent = this.section.shown.length > 1 ? when : "";
      const rows = this.rows.filter((s) => this.there(m, s)).map((s) => ({
        label: d.names[s], chosen: s === this.state,
        exact: d.exact.filter(([place]) => place === s).map(([, , x, p]) => [x, p]),
        of: d.actions.map((_, a) => ({ mean: open.mean[this.at(m, s, a)], upper: open.upper[this.at(m, s, a)], outline: this.outline(this.at(m, s, a)) })),
        shares: Object.values(open.policies).map((share) => d.actions.map((_, a) => share[this.at(m, s, a)] / 255)),
      }));
      density(this.chart("density"), { rows, domain: this.domain(), actions: d.actions });
      shares(this.chart("policies"), { rows, policies: Object.keys(open.policies), actions: d.actions });
      if (d.grid) this.paint();
      if (d.plane) this.heat();
      for (const rule of this.element.querySelectorAll(".now")) {
        const x = this.x(d.episode[m]);
        rule.setAttribute("visibility", "visible"); rule.setAttribute("x1", x); rule.setAttribute("x2", x);
      }
    }

    // The range of returns: of all moments, or of this one; of all panels alike.
    span() {
      const { detail: d, open, moment } = this, zoom = this.section.zoom, size = d.states.length * d.actions.length;
      const key = zoom ? moment : "all";
      if (this.spanned && this.spanned.key === key) return this.spanned.of;
      const [from, to] = zoom ? [moment * size, (moment + 1) * size] : [0, open.mean.length], ends = zoom ? [] : d.exact.map(([, , x]) => x);
      for (let i = from; i < to; i++) ends.push(open.upper[i], 1.75 * open.mean[i] - 0.75 * open.upper[i]);
      this.spanned = { key, of: range(ends, 0.03) || [0, 1] };
      return this.spanned.of;
    }

    domain() {
      const spans = this.section.shown.map((panel) => panel.span());
      return [Math.min(...spans.map(([low]) => low)), Math.max(...spans.map(([, high]) => high))];
    }

    paint() {
      const { grid } = this.detail, name = role(this.element, "color").value, [low, high] = grid.ends[name], values = this.open.grid[name];
      const real = (v) => (name === "visits" ? Math.expm1 : Number)(low + (v / 255) * (high - low));
      for (const drawn of this.cells) {
        const { s, label, kind, sign, cell, title, box, text } = drawn, i = this.moment * grid.count + s;
        const arrow = sign || grid.arrows[this.open.grid.arrow[i]], chosen = s === this.detail.states[this.state], shown = [name, values[i], arrow, chosen].join();
        if (drawn.shown === shown) continue;
        drawn.shown = shown;
        if (kind !== "hole") box.setAttribute("fill-opacity", (0.03 + (0.72 * (kind === "goal" ? 0 : values[i])) / 255).toFixed(3));
        say(text, arrow);
        cell.classList.toggle("chosen", chosen);
        title.textContent = `${label}: ${name} ${short(real(values[i]))}`;
      }
      role(this.element, "scale").textContent = `from ${short(real(0))} (faint) to ${short(real(255))}`;
    }

    heat() {
      const { side, parts, ends, numbers, low, high } = this.detail.plane, size = side * side, m = this.moment;
      for (const [name, [least, most]] of Object.entries(ends)) {
        const canvas = role(this.element, name);
        heat(canvas, this.open.plane[name].subarray(m * size, (m + 1) * size), side, parts[m]);
        canvas.nextElementSibling.textContent = `from ${short(least)} (faint) to ${short(most)}`;
      }
      const [right, up] = numbers.map((name, k) => `${name}, from ${short(low[k])} to ${short(high[k])}`);
      role(this.element, "axes").textContent = `To the right: ${right}. Upward: ${up}. Other numbers: as in the first observation. Shades go by the square root.`;
    }

    // What does not depend on the moment: the course of the chosen state's upper bounds and data.
    history() {
      const { detail: d, open, state: s } = this, domain = this.section.window, moments = d.step.map((_, k) => k).filter((k) => this.there(k, s));
      const draw = (name, title, pick, ks, log = false) => {
        const series = ks.map((k) => ({ k, points: moments.map((m) => [d.episode[m], pick(m, k)]) }));
        this.x = lines(this.chart(name), { series, domain, title, log, height: 170, step: true }).x;
      };
      const actions = d.actions.map((_, a) => a), of = (array) => (m, a) => array[this.at(m, s, a)];
      draw("upper", `upper bounds in ${d.names[s]}`, of(open.upper), actions);
      draw("gap", "gap between the two highest", (m) => {
        const [first, second] = actions.map((a) => open.upper[this.at(m, s, a)]).sort((one, other) => other - one);
        return first - second;
      }, [0]);
      if (d.left) draw("left", "u: what is left of the wide start", of(open.left), actions);
      if (!d.visits) return;
      draw("age", "age: steps since it was last taken", (m, a) => { const age = of(open.age)(m, a); return age < 0 ? null : age; }, actions, true);
      draw("count", "number of data", of(open.visits), actions, true);
    }
  };
})();
