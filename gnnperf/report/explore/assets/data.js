/* What the page shows: columns over all nests, and details that are unpacked when they are first asked for. */

const data = JSON.parse(document.getElementById("data").textContent);
const columns = data.columns; // x, y, family, kernel, sizes, group, schedule, speedup: one entry per nest
const count = columns.x.length;
const EXTENT = 65535; // of x and y

const nests = Array.from({ length: count }, (_, i) => ({
  index: i,
  kernel: data.kernels[columns.kernel[i]],
  family: data.families[columns.family[i]],
  sizes: data.sizes[columns.sizes[i]],
  words: columns.schedule[i] < 0 ? "" : data.schedules[columns.schedule[i]],
  speedup: columns.speedup[i], // null: nothing was measured
}));

const KEPT_CHUNKS = 64;
const unpacked = new Map(); // number of a chunk -> promise of its nests' details, the least recently used first

/* Details of a nest: digest, picture, measurements, its neighbours as [nest, distance] pairs. */
async function details(nest) {
  const number = Math.floor(nest / data.chunk);
  const chunk = unpacked.get(number) ?? unpack(data.details[number]);
  unpacked.delete(number);
  unpacked.set(number, chunk);
  if (unpacked.size > KEPT_CHUNKS) unpacked.delete(unpacked.keys().next().value);
  return (await chunk)[nest % data.chunk];
}

async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

// ------------------------------------------------------------------ words and numbers

const counted = (number, one, many) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

function times(speedup) {
  if (speedup === null) return "not measured";
  return `${speedup >= 99.95 ? speedup.toFixed(0) : speedup >= 9.995 ? speedup.toFixed(1) : speedup.toFixed(2)}x`;
}

function duration(seconds) {
  const [scale, unit] = seconds >= 1 ? [1, "s"] : seconds >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
  return `${Number((seconds * scale).toPrecision(3))} ${unit}`;
}

function bytes(size) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const unit = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, size)) / 10));
  return `${Number((size / 1024 ** unit).toPrecision(3))} ${units[unit]}`;
}

/* An HTML element; text is text, whatever is in it. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

/* The same for SVG. */
function shape(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
