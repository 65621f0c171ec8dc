/* What is told of one nest: a card beside the pointer, and the panel with its neighbours. */

function bestOf(nest) {
  const told = nest.speedup === null ? "no schedule was measured" : nest.words;
  return element("p", { class: "words" }, ...told.split(", ").map((part) => element("span", {}, part)));
}

const subtitle = (nest, dtype) => [nest.family, nest.sizes, dtype].filter((part) => part).join(" · ");

/* The card of the nest under the pointer. */
class Card {
  constructor(place, map) {
    this.place = place;
    this.map = map;
    this.nest = -1;
  }

  hide() {
    this.nest = -1;
    this.place.hidden = true;
  }

  async show(i, style) {
    if (this.nest === i) return;
    this.nest = i;
    const nest = nests[i];
    const more = await details(i);
    if (this.nest !== i) return; // the pointer has moved on
    this.place.replaceChildren(
      element("h3", {}, markIcon(style), element("span", {}, nest.kernel), element("b", {}, times(nest.speedup))),
      element("p", { class: "subtitle" }, subtitle(nest, more.dtype)),
      drawPicture(more.picture, 300, 16),
      bestOf(nest),
    );
    this.place.hidden = false;
    this.move();
  }

  /* Beside the nest, where there is room. */
  move() {
    if (this.place.hidden) return;
    const [x, y] = this.map.position(this.nest);
    const { width, height } = this.map.view;
    const box = this.place.getBoundingClientRect();
    const gap = this.map.radius + 14;
    const left = x + gap + box.width <= width ? x + gap : x - gap - box.width;
    const top = Math.min(height - box.height - 8, Math.max(8, y - box.height / 3));
    this.place.style.transform = `translate(${Math.max(8, left)}px, ${top}px)`;
  }
}

/* The panel: the nest that was chosen, or how to read the map. */
class Panel {
  /* choose(i): another nest. look(i): at a nest of the list, or -1. */
  constructor(place, choose, look) {
    this.place = place;
    this.choose = choose;
    this.look = look;
  }

  introduce() {
    const line = (...children) => element("p", {}, ...children);
    const hadFocus = this.hasFocus;
    this.place.replaceChildren(
      element("h2", {}, "How to read this map"),
      line(
        "Every mark is a loop nest. Two are near when the encoder, which learned from measured speedups, " +
          "expects the same schedules to speed both up.",
      ),
      line(
        `The space has ${data.dimensions} dimensions. The map keeps neighbours together; how far apart groups ` +
          "are means little. Choose a nest for its nearest neighbours in the space itself.",
      ),
      element("h2", {}, "The picture of a nest"),
      pictureKey(),
      line("A bar is a loop. A symbol on it says what the access of that row does from one iteration to the next."),
      element("h2", {}, "Keys"),
      element(
        "dl",
        { class: "keys" },
        ...[
          ["arrows", "go from nest to nest"],
          ["Enter", "list its neighbours"],
          ["+  −  0", "zoom in, out, whole map"],
          ["/", "search"],
          ["Esc", "let go"],
        ].flatMap(([key, does]) => [element("dt", {}, key), element("dd", {}, does)]),
      ),
      element("p", { class: "subtitle" }, [`Encoder ${data.encoder}`, ...data.devices].join(" · ")),
    );
    if (hadFocus) document.getElementById("overlay").focus();
  }

  get hasFocus() {
    return this.place.contains(document.activeElement);
  }

  /* more: the details of nest i. */
  show(i, more, styleOf) {
    const nest = nests[i];
    const letGo = { "aria-label": "Let go of this nest", onclick: () => this.choose(-1) };
    const close = element("button", { type: "button", class: "close", ...letGo }, "×");
    const hadFocus = this.hasFocus;
    this.place.replaceChildren(
      element("h2", { class: "nest" }, markIcon(styleOf(i)), element("span", {}, nest.kernel), close),
      element("p", { class: "subtitle" }, subtitle(nest, more.dtype)),
      element("h3", {}, "Best schedule", element("b", {}, times(nest.speedup))),
      bestOf(nest),
      element("p", { class: "subtitle" }, this.measured(more)),
      element("h3", {}, "Nearest nests", element("small", {}, "cosine distance")),
      this.list(more.neighbours, styleOf),
      element("h3", {}, "Loops, statements, accesses"),
      drawPicture(more.picture, 318),
      element("p", { class: "subtitle" }, more.work),
      element("p", { class: "subtitle" }, "Digest ", element("code", {}, more.digest)),
    );
    this.place.scrollTop = 0;
    if (hadFocus) close.focus(); // what had it is gone
  }

  measured({ best, measurements }) {
    const tried = counted(measurements, "measurement", "measurements");
    if (!best) return `${tried}, none of them successful.`;
    const [low, high] = best.interval_s.map(duration);
    return (
      `${duration(best.runtime_s)} [${low}, ${high}] instead of ${duration(best.baseline_s)} with ` +
      `${best.baseline}, the best of ${tried}, on ${best.device}.` +
      (best.gains ? "" : " That is not faster beyond noise.")
    );
  }

  list(neighbours, styleOf) {
    const furthest = Math.max(1e-9, ...neighbours.map(([, distance]) => distance));
    const items = neighbours.map(([i, distance], rank) => {
      const nest = nests[i];
      const bar = element("i", { class: "bar" });
      bar.style.width = `${(100 * distance) / furthest}%`;
      return element(
        "li",
        {},
        element(
          "button",
          {
            type: "button",
            "data-nest": i,
            onclick: () => this.choose(i),
            onpointerenter: () => this.look(i),
            onpointerleave: () => this.look(-1),
            onfocus: () => this.look(i),
            onblur: () => this.look(-1),
          },
          element("span", { class: "rank" }, String(rank + 1)),
          markIcon(styleOf(i)),
          element("span", { class: "name" }, nest.kernel, element("small", {}, ` ${nest.sizes}`)),
          element("span", { class: "distance" }, distance.toFixed(4)),
          element("small", { class: "under" }, `${times(nest.speedup)} ${nest.words}`),
          bar,
        ),
      );
    });
    return element("ol", { class: "neighbours" }, ...items);
  }
}
