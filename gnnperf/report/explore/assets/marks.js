/* Marks: a colour and a shape for each family or group of schedules, and a scale of colours for speedups. */

// In a square from -1 to 1; areas are about equal.
const SHAPES = [
  "M.92 0A.92 .92 0 1 1-.92 0A.92 .92 0 1 1 .92 0Z", // circle
  "M0-1.12L1.06.78H-1.06Z", // triangle
  "M-.82-.82H.82V.82H-.82Z", // square
  "M0-1.2L1.08 0L0 1.2L-1.08 0Z", // diamond
  "M-.4-1.1H.4V-.4H1.1V.4H.4V1.1H-.4V.4H-1.1V-.4H-.4Z", // plus
  "M0 1.12L1.06-.78H-1.06Z", // triangle, pointing down
  "M-.5-1.06L0-.56L.5-1.06L1.06-.5L.56 0L1.06 .5L.5 1.06L0 .56L-.5 1.06L-1.06 .5L-.56 0L-1.06-.5Z", // cross
];

const SCALE_STEPS = 32;
const UNMEASURED = SCALE_STEPS; // the style after those of the scale

/* Colours of the theme in force, from the style sheet: a palette, a scale, and what they stand on. */
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const list = (name) => style.getPropertyValue(name).split(",").map((colour) => colour.trim());
  const [surface] = list("--surface");
  const [text] = list("--text");
  const [faint] = list("--faint");
  const [accent] = list("--accent");
  return { palette: list("--palette"), scale: list("--scale"), surface, text, faint, accent };
}

/* Style number `index` of a set: colours change fastest, then shapes; after all of those, hollow marks. */
function mark(index, colours) {
  const { palette } = colours;
  const shapeNumber = Math.floor(index / palette.length);
  return {
    colour: palette[index % palette.length],
    path: SHAPES[shapeNumber % SHAPES.length],
    hollow: Math.floor(shapeNumber / SHAPES.length) % 2 === 1,
  };
}

/* The largest families have the marks that are the easiest to tell apart: 0 is the largest. */
const familyRank = ranks(tally(columns.family, data.families.length));

/* How often each of the numbers below `length` occurs. */
function tally(numbers, length) {
  const counts = new Array(length).fill(0);
  for (const number of numbers) counts[number] += 1;
  return counts;
}

function ranks(sizes) {
  const order = sizes.map((_, index) => index).sort((a, b) => sizes[b] - sizes[a] || a - b);
  const rank = new Array(sizes.length);
  order.forEach((index, place) => (rank[index] = place));
  return rank;
}

const highest = Math.max(2, quantile(columns.speedup.filter((s) => s !== null), 0.98)); // a few may be far above

function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor(share * (sorted.length - 1))] : 1;
}

/* Where a speedup stands on the scale, from 0 to 1: logarithmic, 1x and less at 0. */
function scalePosition(speedup) {
  return Math.min(1, Math.max(0, Math.log(speedup) / Math.log(highest)));
}

const scaleStep = (speedup) => Math.round(scalePosition(speedup) * (SCALE_STEPS - 1));

function scaleColour(position, colours) {
  const { scale } = colours;
  const place = position * (scale.length - 1);
  const left = Math.min(scale.length - 2, Math.floor(place));
  const [a, b] = [scale[left], scale[left + 1]].map((colour) =>
    [1, 3, 5].map((start) => parseInt(colour.slice(start, start + 2), 16)),
  );
  return `rgb(${a.map((value, i) => Math.round(value + (b[i] - value) * (place - left))).join(" ")})`;
}

/* The marks of one way of colouring, and the style of each nest. */
function styling(colourBy, colours) {
  const plain = { path: SHAPES[0], hollow: false };
  if (colourBy === "speedup") {
    const styles = Array.from({ length: SCALE_STEPS }, (_, step) => ({
      ...plain,
      colour: scaleColour(step / (SCALE_STEPS - 1), colours),
    }));
    styles.push({ ...plain, colour: colours.faint, hollow: true });
    const of = columns.speedup.map((s) => (s === null ? UNMEASURED : scaleStep(s)));
    return { styles, of };
  }
  if (colourBy === "family") {
    return { styles: data.families.map((_, index) => mark(familyRank[index], colours)), of: columns.family };
  }
  const styles = data.groups.map((_, index) => {
    const rest = index - data.recipe_groups; // the groups after these are no kind of schedule
    if (rest < 0) return mark(index, colours);
    return { path: SHAPES[2 * (rest >> 1)], hollow: rest % 2 === 1, colour: colours.faint };
  });
  return { styles, of: columns.group };
}

/* A mark as SVG, for legends and lists. */
function markIcon({ colour, path, hollow }) {
  const paint = hollow ? { fill: "none", stroke: colour, "stroke-width": 0.4 } : { fill: colour };
  const icon = shape("svg", { viewBox: "-1.3 -1.3 2.6 2.6", class: "mark", "aria-hidden": "true" });
  icon.append(shape("path", { d: path, ...paint }));
  return icon;
}
