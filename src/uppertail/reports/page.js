// Fills the sections of the page, and lets slider, play button, brush, map and selections change them.
(async () => {
  const packed = Uint8Array.from(atob(document.getElementById("report-data").textContent), (c) => c.charCodeAt(0));
  const data = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  const { lines, legend, clamp, role, need, count } = Charts;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

  class Section {
    constructor(element, group) {
      Object.assign(this, { element, group, shown: [], place: 0, times: [0], timer: null, window: [group.first, group.last] });
      this.panels = role(element, "panels");
      need(element, { explore: group.data.explore.length, details: group.details.length, first: group.data.first.length,
        bands: group.data.curves.some(({ band }) => band), kept: group.data.kept.length, "nothing-recorded": !group.details.length, several: group.details.length > 1 });
      this.controls();
      if (group.details.length) this.compare();
      this.curves();
    }

    role(name) { return role(this.element, name); }
    chart(name) { return this.element.querySelector(`[data-chart="${name}"]`); }
    get zoom() { return this.role("zoom").checked; }

    // The seeds that are chosen, beside each other, at the first one's opening moment.
    compare() {
      const chosen = ["detail", "beside"].map((name) => this.group.details[this.role(name).value]).filter(Boolean);
      this.panels.replaceChildren();
      this.panels.className = chosen.length > 1 ? "panels two" : "panels";
      this.shown = [];
      for (const detail of chosen) this.shown.push(new Panel(this, detail, this.shown[0]));
      this.times = [...new Set(chosen.flatMap((detail) => detail.step))].sort((one, other) => one - other);
      for (const panel of this.shown) panel.resize();
      this.stretch();
      this.go(this.opening());
    }

    opening() { const { step, opens } = this.shown[0].detail; return this.times.indexOf(step[opens]); }

    // Limits the slider to the episodes that are brushed.
    stretch() {
      const { step, episode } = this.shown[0].detail, [from, to] = this.window;
      const inside = step.filter((_, k) => episode[k] >= from && episode[k] <= to).map((each) => this.times.indexOf(each));
      const [first, last] = inside.length ? [inside[0], inside[inside.length - 1]] : [0, this.times.length - 1];
      Object.assign(this.role("moment"), { min: first, max: to >= this.group.last ? this.times.length - 1 : last });
    }

    go(place) {
      const slider = this.role("moment"), { detail } = this.shown[0];
      this.place = clamp(place, Number(slider.min), Number(slider.max));
      for (const panel of this.shown) panel.go(this.times[this.place]);
      const { moment } = this.shown[0];
      this.role("when").textContent = `episode ${count(detail.episode[moment])}, step ${count(this.times[this.place])}`;
      slider.value = this.place;
      slider.setAttribute("aria-valuetext", this.role("when").textContent);
    }

    // Learning curves, exploration and survival: what needs no recording.
    curves() {
      const { data, methods, first, last } = this.group;
      for (const place of this.element.querySelectorAll('[data-role="methods"]')) legend(place, methods);
      const series = this.role("seeds").checked ? [...data.curves, ...data.seeds] : data.curves;
      this.scale = lines(this.chart("curves"), { series, domain: [first, last], height: 260, title: "" });
      this.mark();
      if (data.explore.length) lines(this.chart("explore"), { series: data.explore, domain: this.window, height: 150, title: "share of exploratory actions" });
      const titles = { first: "not yet: first success", solved: "not yet: solved", kept: "solved, and not fallen" };
      for (const [name, title] of Object.entries(titles)) {
        const end = Math.max(1, ...data[name].flatMap(({ points }) => points.map(([x]) => x))), after = name === "kept";
        if (data[name].length) lines(this.chart(name), { series: data[name], domain: after ? [0, end] : this.window, y: [0, 1], step: true, height: 190, title,
          bottom: after ? "episodes after it was solved" : "episode" });
      }
    }

    // Draws the stretch of episodes that is brushed.
    mark() {
      const [from, to] = this.window.map(this.scale.x), whole = this.window[0] <= this.group.first && this.window[1] >= this.group.last;
      const svg = this.chart("curves").firstElementChild;
      svg.querySelector(".brush")?.remove();
      if (!whole) svg.insertAdjacentHTML("beforeend", `<rect class="brush" x="${from}" width="${Math.max(1, to - from)}" y="10" height="216"/>`);
    }

    show(from, to) {
      if (!(to > from)) return;
      this.window = [from, to];
      this.role("start").value = Math.round(from);
      this.role("end").value = Math.round(to);
      this.curves();
      if (!this.shown.length) return;
      this.stretch();
      for (const panel of this.shown) panel.history();
      this.go(this.place);
    }

    brush() {
      const chart = this.chart("curves");
      let from = null;
      const here = (event) => this.scale.back(clamp(event.clientX - chart.getBoundingClientRect().left, this.scale.left, this.scale.right));
      chart.addEventListener("pointerdown", (event) => { from = here(event); chart.setPointerCapture(event.pointerId); });
      chart.addEventListener("pointermove", (event) => { if (from !== null) { this.window = [from, here(event)].sort((a, b) => a - b); this.mark(); } });
      chart.addEventListener("pointerup", (event) => {
        const ends = [from, here(event)].sort((a, b) => a - b);
        from = null;
        if (ends[1] - ends[0] > 0.005 * (this.group.last - this.group.first)) this.show(...ends); else this.show(this.group.first, this.group.last);
      });
    }

    stop() { clearInterval(this.timer); this.timer = null; this.role("play").textContent = "Play"; }

    // Plays to the end; `then` comes after it.
    play(then = () => {}) {
      const { min, max } = this.role("moment");
      if (this.place >= Number(max)) this.place = Number(min) - 1;
      this.role("play").textContent = "Pause";
      this.timer = setInterval(() => {
        this.go(this.place + 1);
        if (this.place >= Number(max)) { this.stop(); then(); }
      }, 130);
    }

    // Once, when it is first seen: from the beginning to the end, then back to where something happens.
    playOnce() {
      if (still || !this.shown.length) return;
      const seen = new IntersectionObserver(([entry]) => {
        if (!entry.isIntersecting) return;
        seen.disconnect();
        setTimeout(() => { if (this.timer || this.touched) return; this.place = -1; this.play(() => this.go(this.opening())); }, 1200);
      }, { threshold: 0.15 });
      seen.observe(this.panels);
      for (const event of ["pointerdown", "keydown"])
        this.element.addEventListener(event, (each) => { this.touched = true; if (this.timer && each.target !== this.role("play")) this.stop(); });
    }

    controls() {
      const on = (name, event, act) => this.role(name).addEventListener(event, act), { first, last, details } = this.group;
      this.role("start").value = first;
      this.role("end").value = last;
      for (const name of ["start", "end"]) on(name, "change", () => this.show(Number(this.role("start").value), Number(this.role("end").value)));
      on("whole", "click", () => this.show(first, last));
      on("seeds", "change", () => this.curves());
      const options = () => details.map((detail, k) => new Option(detail.label, k)), other = details.findIndex((detail) => detail.run !== details[0].run);
      this.role("detail").replaceChildren(...options());
      this.role("beside").replaceChildren(new Option("nothing", ""), ...options());
      this.role("beside").value = other < 0 ? "" : other;
      for (const name of ["detail", "beside"]) on(name, "change", () => { this.stop(); this.compare(); });
      let waiting = false;
      on("moment", "input", () => {
        if (waiting) return;
        waiting = true;
        requestAnimationFrame(() => { waiting = false; this.go(Number(this.role("moment").value)); });
      });
      on("zoom", "change", () => this.go(this.place));
      on("play", "click", () => (this.timer ? this.stop() : this.play()));
      this.brush();
    }

    resize() {
      this.curves();
      for (const panel of this.shown) panel.resize();
    }
  }

  const sections = [...document.querySelectorAll("section[data-group]")].map((element) => new Section(element, data.groups[Number(element.dataset.group)]));
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; Charts.forgetWidths(); for (const section of sections) section.resize(); } });
  addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("details")) part.open = true; });
  document.documentElement.dataset.ready = "true";
  for (const section of sections) section.playOnce();
})();
