/* The picture of a nest. Every loop is a bar beside what it contains; a symbol on the bar says what an access
   does from one iteration of that loop to the next. */

const [LOOP, STATEMENT, ACCESS] = [0, 1, 2];
const ROW = 17; // pixels: height of a row
const INDENT = 15; // between bars
const CHARACTER = 6.65; // width, at the size of the style sheet

const MOVES = {
  c: ["contiguous", { fill: "full" }, "M4 0A4 4 0 1 1-4 0A4 4 0 1 1 4 0Z"],
  s: ["strided", { fill: "full" }, "M0-4.6L4.6 0L0 4.6L-4.6 0Z"],
  r: ["same element again", { fill: "none" }, "M3.4 0A3.4 3.4 0 1 1-3.4 0A3.4 3.4 0 1 1 3.4 0Z"],
  i: ["indirect or not affine", { fill: "none" }, "M-3.4-3.4L3.4 3.4M3.4-3.4L-3.4 3.4"],
};
const ACCESS_SIGNS = { read: "", write: "=", reduction: "+=" };
const LOOP_KINDS = ["spatial", "reduction", "sequential", "data-dependent"];

/* SVG of the rows of a picture. With a `limit`, what is beyond it is left out, and said to be; without one,
   long statements go on in the next line. */
function drawPicture(rows, width, limit = Infinity) {
  const shown = rows.length > limit ? rows.slice(0, limit - 1) : rows;
  let y = 0; // of the row that is being drawn
  const svg = shape("svg", { class: "picture", role: "img", "aria-label": inWords(rows) });
  const bars = shape("g");
  const marks = shape("g");
  svg.append(bars, marks);
  const open = []; // bars that go on: {kind, top}
  const left = (depth) => 8 + depth * INDENT;

  const close = (depth) => {
    while (open.length > depth) {
      const { kind, top } = open.pop();
      const x = left(open.length);
      bars.append(shape("line", { x1: x, x2: x, y1: top, y2: y - 3, class: `bar ${kind}` }));
    }
  };

  const fitting = (x, room = width) => Math.max(4, Math.floor((room - x) / CHARACTER));

  const write = (text, x, className, room = width) => {
    const cut = text.length > fitting(x, room) ? `${text.slice(0, fitting(x, room) - 1)}…` : text;
    const made = shape("text", { x, y: y + 12.5, class: className }, cut);
    if (cut !== text) made.append(shape("title", {}, text));
    marks.append(made);
    return x + cut.length * CHARACTER;
  };

  for (const row of shown) {
    const [type, depth, text] = row;
    close(depth);
    if (type === LOOP) {
      const [, , , extent, varies, kind, annotation] = row;
      open.push({ kind, top: y + 5 });
      const end = write(text, left(depth) + 9, "iterator");
      const size = extent === null ? "? times" : `${varies ? "~" : ""}${extentText(extent)}`;
      const note = [size, kind, annotation].filter((part) => part).join(" ");
      write(note, end + 7, "note");
    } else if (type === STATEMENT) {
      const x = left(depth) + (depth ? 1 : -6);
      const lines = limit === Infinity ? wrapped(text, fitting(x)) : [text];
      lines.forEach((line, number) => {
        if (number) y += ROW;
        write(line, x, "statement");
      });
    } else {
      const [, , , kind, moves, footprint] = row;
      [...moves].forEach((move, loop) => {
        const [, { fill }, d] = MOVES[move];
        const at = `translate(${left(loop)} ${y + ROW / 2})`;
        marks.append(shape("path", { d, transform: at, class: `move ${open[loop].kind} ${fill}` }));
      });
      const size = bytes(footprint);
      marks.append(shape("text", { x: width, y: y + 12.5, class: "note right" }, size));
      const room = width - size.length * CHARACTER - 8;
      write([text, ACCESS_SIGNS[kind]].join(" "), left(depth) + 9, `access ${kind}`, room);
    }
    y += ROW;
  }
  close(0);
  if (shown.length < rows.length) {
    write(`… ${rows.length - shown.length} more rows`, left(0), "note");
    y += ROW;
  }
  svg.setAttribute("viewBox", `0 0 ${width} ${y + 2}`);
  svg.setAttribute("width", width);
  svg.setAttribute("height", y + 2);
  return svg;
}

/* Lines of at most `room` characters, broken at spaces where there are any. */
function wrapped(text, room) {
  const lines = [];
  let rest = text;
  while (rest.length > room) {
    const space = rest.lastIndexOf(" ", room);
    const end = space > room / 2 ? space : room;
    lines.push(rest.slice(0, end));
    rest = `  ${rest.slice(end).trimStart()}`; // what goes on is indented
  }
  return [...lines, rest];
}

/* What the picture says to those who cannot see it. */
function inWords(rows) {
  const told = ([type, , text, extent, , kind]) =>
    type === LOOP ? `${kind} loop ${text} of ${extent ?? "unknown"}` : text;
  return rows.filter(([type]) => type !== ACCESS).map(told).join("; ");
}

function extentText(extent) {
  return extent.toLocaleString("en", { maximumSignificantDigits: Number.isInteger(extent) ? 21 : 3 });
}

/* What the symbols and the colours of the bars mean. */
function pictureKey() {
  const moves = Object.values(MOVES).map(([meaning, { fill }, d]) => {
    const icon = shape("svg", { viewBox: "-7 -7 14 14", "aria-hidden": "true" });
    icon.append(shape("path", { d, class: `move ${fill}` }));
    return element("span", {}, icon, meaning);
  });
  const loops = LOOP_KINDS.map((kind) => {
    const icon = shape("svg", { viewBox: "-7 -7 14 14", "aria-hidden": "true" });
    icon.append(shape("line", { x1: 0, x2: 0, y1: -6, y2: 6, class: `bar ${kind}` }));
    return element("span", {}, icon, kind);
  });
  return element("p", { class: "key" }, ...moves, ...loops);
}
