/* Puts the parts together. */

const byId = (id) => document.getElementById(id);
let colourBy = "family";
let current = null; // marks of the styles, and the style of each nest
let matches = null; // of the search
let looked = null; // the nests an entry of the legend stands for

const map = new NestMap(byId("points"), byId("overlay"));
const card = new Card(byId("card"), map);
const styleOf = (i) => current.styles[current.of[i]];
const panel = new Panel(byId("panel"), choose, (i) => hover(i));
const legend = new Legend(byId("legend"), filter, (accepts) => {
  looked = accepts && Uint8Array.from(nests, (_, i) => (accepts(i) ? 1 : 0));
  emphasise();
});
const matched = (mask) => {
  matches = mask;
  emphasise();
};
new Search(byId("search"), byId("results"), matched, choose, styleOf);
new Controls(byId("overlay"), map, { hover, choose, moved });

const labels = data.families.map((text, family) => {
  const members = nests.filter((nest) => columns.family[nest.index] === family).map((nest) => nest.index);
  const [x, y] = heart(members);
  const standsOut = () => !map.emphasised || members.some((i) => map.emphasised[i]);
  const shown = () => !legend.hidden.family.has(family) && standsOut();
  return { text, x, y, shown, size: members.length };
});
labels.sort((a, b) => b.size - a.size);

/* The member of a group that is nearest to its median: a family in two places is named at one of them. */
function heart(members) {
  const median = (column) => members.map((i) => column[i]).sort((a, b) => a - b)[members.length >> 1];
  const [x, y] = [median(columns.x), median(columns.y)];
  const far = (i) => Math.hypot(columns.x[i] - x, columns.y[i] - y);
  const nearest = members.reduce((best, i) => (far(i) < far(best) ? i : best), members[0]);
  return [columns.x[nearest], columns.y[nearest]];
}

function recolour() {
  const colours = readColours();
  current = styling(colourBy, colours);
  legend.draw(colourBy, current.styles, colours);
  map.style(colours, current, colourBy === "family" ? labels : []);
  card.hide();
  if (map.selected >= 0) tell(map.selected);
}

function filter() {
  for (let i = 0; i < count; i += 1) map.visible[i] = legend.shows(i) ? 1 : 0;
  const shown = map.visible.reduce((sum, one) => sum + one, 0);
  const all = counted(count, "nest", "nests");
  byId("shown").textContent = shown < count ? `${shown.toLocaleString("en")} of ${all} shown` : "";
  legend.refresh();
  map.redraw();
}

function emphasise() {
  map.emphasised = looked ?? matches;
  map.redraw();
}

function hover(i, spoken = false) {
  if (i !== map.hovered) {
    map.hovered = i;
    map.redrawOverlay();
  }
  if (i < 0) {
    card.hide();
    return;
  }
  card.show(i, styleOf(i));
  const { kernel, family, sizes, speedup, words } = nests[i];
  if (spoken) byId("spoken").textContent = [kernel, family, sizes, times(speedup), words].join(", ");
}

function choose(i) {
  map.selected = i;
  map.neighbours = [];
  document.body.classList.toggle("chosen", i >= 0);
  if (i < 0) {
    panel.introduce();
    map.redrawOverlay();
    return;
  }
  if (!map.view.shows(i, 12)) map.view.centreOn(i);
  map.redraw();
  tell(i);
}

async function tell(i) {
  const more = await details(i);
  if (map.selected !== i) return; // another one was chosen meanwhile
  map.neighbours = more.neighbours.map(([neighbour]) => neighbour);
  map.redrawOverlay();
  panel.show(i, more, styleOf);
  const near = map.neighbours.map((neighbour) => nests[neighbour].kernel).join(", ");
  byId("spoken").textContent = `Nearest to ${nests[i].kernel}: ${near || "nothing"}`;
}

function moved() {
  map.redraw();
  card.move();
}

const zooms = {
  "zoom-in": () => map.view.zoom(1.5),
  "zoom-out": () => map.view.zoom(1 / 1.5),
  "zoom-fit": () => map.view.fit(),
};
for (const [id, zoom] of Object.entries(zooms)) {
  byId(id).addEventListener("click", () => {
    zoom();
    moved();
  });
}
byId("colour-by").addEventListener("change", (event) => {
  colourBy = event.target.value;
  recolour();
});
const dark = matchMedia("(prefers-color-scheme: dark)");
const setTheme = (isDark) => {
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
  recolour();
};
byId("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme !== "dark"));
dark.addEventListener("change", () => setTheme(dark.matches));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    hover(-1);
    choose(-1);
  } else if (event.key === "/" && document.activeElement !== byId("search")) {
    event.preventDefault();
    byId("search").focus();
  }
});
new ResizeObserver(() => map.resize()).observe(byId("map"));

byId("summary").textContent = [
  counted(count, "nest", "nests"),
  counted(data.families.length, "family", "families"),
  counted(data.measurements, "measurement", "measurements"),
].join(" · ");
byId("overlay").setAttribute("aria-label", `Map of ${counted(count, "loop nest", "loop nests")}`);
panel.introduce();
if (!("DecompressionStream" in window)) {
  byId("shown").textContent = "This browser is too old to show details: it has no DecompressionStream.";
}
setTheme(dark.matches);
map.resize();

/* For scripts, and for the console: where nests are on the map, and what is there. */
window.gnnperf = {
  nests,
  details,
  nestAt: (x, y) => map.nestAt(x, y),
  positionOf: (i) => map.position(i),
};
