/* The legend: marks with names and counts, which also hide and show; for speedups, a scale. */

class Legend {
  /* changed(): what is hidden has changed. emphasise(accepts or null): look at some nests only. */
  constructor(place, changed, emphasise) {
    this.place = place;
    this.changed = changed;
    this.emphasise = emphasise;
    this.hidden = { family: new Set(), recipe: new Set() };
    this.refresh = () => {}; // says again what is hidden
  }

  shows(i) {
    return !this.hidden.family.has(columns.family[i]) && !this.hidden.recipe.has(columns.group[i]);
  }

  showAll() {
    this.hidden.family.clear();
    this.hidden.recipe.clear();
    this.changed();
  }

  draw(colourBy, styles, colours) {
    const heading = { family: "Families", recipe: "Best schedules", speedup: "Best speedup" }[colourBy];
    this.place.replaceChildren(element("h2", {}, heading));
    this.refresh = () => {};
    if (colourBy === "speedup") this.drawScale(colours);
    else this.drawEntries(colourBy, styles);
  }

  drawEntries(colourBy, styles) {
    const [names, of] = colourBy === "family" ? [data.families, columns.family] : [data.groups, columns.group];
    const counts = tally(of, names.length);
    const hidden = this.hidden[colourBy];
    const everything = () => names.forEach((_, index) => hidden.add(index));
    const buttons = names.map((name, index) => {
      const look = () => this.emphasise(hidden.has(index) ? null : (i) => of[i] === index);
      const lookAway = () => this.emphasise(null);
      const toggle = () => {
        if (!hidden.delete(index)) hidden.add(index);
        this.changed();
        look();
      };
      const only = () => {
        everything();
        toggle();
      };
      return element(
        "button",
        {
          type: "button",
          title: "Click to hide or show; double click for this one alone",
          onclick: toggle,
          ondblclick: only,
          onpointerenter: look,
          onpointerleave: lookAway,
          onfocus: look,
          onblur: lookAway,
        },
        markIcon(styles[index]),
        element("span", { class: "name" }, name),
        element("span", { class: "count" }, counts[index].toLocaleString("en")),
      );
    });
    this.refresh = () => {
      buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(!hidden.has(index))));
    };
    const hideAll = () => {
      everything();
      this.changed();
    };
    const act = (words, action) => element("button", { type: "button", onclick: action }, words);
    this.place.append(
      element("ul", {}, ...buttons.map((button) => element("li", {}, button))),
      element("p", { class: "all" }, act("Show all", () => this.showAll()), act("Hide all", hideAll)),
    );
    this.refresh();
  }

  /* The colours from 1x to the top, with how many nests stand where. */
  drawScale(colours) {
    const [width, height, bar] = [200, 92, 12];
    const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, class: "scale", role: "img" });
    const measured = columns.speedup.filter((s) => s !== null);
    const counts = tally(measured.map(scaleStep), SCALE_STEPS);
    const most = Math.max(1, ...counts);
    const step = (width - 20) / SCALE_STEPS;
    counts.forEach((number, index) => {
      const colour = scaleColour(index / (SCALE_STEPS - 1), colours);
      const tall = number ? Math.max(1, (46 * number) / most) : 0;
      const x = 10 + index * step;
      svg.append(shape("rect", { x, y: 50 - tall, width: step - 0.6, height: tall, fill: colour }));
      svg.append(shape("rect", { x, y: 54, width: step + 0.8, height: bar, fill: colour }));
    });
    const ticks = [1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000];
    let end = -Infinity;
    for (const tick of ticks.filter((t) => t <= highest)) {
      const x = 10 + scalePosition(tick) * (width - 20);
      if (x - end < 26) continue;
      end = x;
      svg.append(shape("line", { x1: x, x2: x, y1: 66, y2: 70, class: "tick" }));
      svg.append(shape("text", { x, y: 83, class: "tick" }, `${tick}x`));
    }
    const sorted = measured.sort((a, b) => a - b);
    const median = sorted.length ? times(sorted[sorted.length >> 1]) : "unknown";
    const fastest = sorted.length ? times(sorted[sorted.length - 1]) : "unknown";
    svg.setAttribute("aria-label", `Speedups: median ${median}, largest ${fastest}`);
    const unmeasured = count - measured.length;
    this.place.append(
      svg,
      element("p", {}, `Over the baseline, on a logarithmic scale; at its right end, ${times(highest)} and more.`),
      element("p", {}, `Median ${median}, largest ${fastest}.`),
    );
    const hollow = `Hollow: ${counted(unmeasured, "nest", "nests")} without a measurement.`;
    if (unmeasured) this.place.append(element("p", {}, hollow));
  }
}
