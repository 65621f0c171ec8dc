/* The map: nests on one canvas; on another above it what moves with the pointer, so that 20,000 nests are not
   drawn again for every step of the mouse. */

class NestMap {
  constructor(pointsCanvas, overlayCanvas) {
    this.canvases = [pointsCanvas, overlayCanvas];
    this.contexts = this.canvases.map((canvas) => canvas.getContext("2d"));
    this.view = new View();
    this.grid = new Grid(columns.x, columns.y);
    this.order = shuffled(count); // or families late in the alphabet would hide the others
    this.visible = new Uint8Array(count).fill(1);
    this.emphasised = null; // Uint8Array, or null: all alike
    this.labels = [];
    this.hovered = -1;
    this.selected = -1;
    this.neighbours = [];
    this.pending = 0;
  }

  /* Colours of the theme, marks of all styles, style of each nest; `labels` are {text, x, y} on the plane. */
  style(colours, { styles, of }, labels) {
    this.colours = colours;
    this.styles = styles;
    this.styleOf = of;
    this.labels = labels;
    this.sprites = null;
    this.redraw();
  }

  resize() {
    const { width, height } = this.canvases[0].parentElement.getBoundingClientRect();
    this.density = window.devicePixelRatio || 1;
    for (const canvas of this.canvases) {
      canvas.width = Math.round(width * this.density);
      canvas.height = Math.round(height * this.density);
    }
    this.view.resize(width, height);
    this.sprites = null;
    this.redraw();
  }

  redraw() {
    this.pointsChanged = true;
    this.redrawOverlay();
  }

  redrawOverlay() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      if (this.pointsChanged) this.drawPoints();
      this.pointsChanged = false;
      this.drawOverlay();
    });
  }

  /* Radius of the marks in pixels: smaller the more crowded it is, larger the nearer one looks. */
  get radius() {
    const room = Math.sqrt((this.view.width * this.view.height) / count); // of a nest, if they were spread evenly
    const whole = Math.min(6, Math.max(2, 0.12 * room));
    return Math.min(9, whole * Math.max(1, this.view.magnification) ** 0.4);
  }

  /* The nest at a point of the screen, or -1. */
  nestAt(x, y, reach = 6) {
    const { view } = this;
    const radius = (this.radius + reach) / view.scale;
    return this.grid.nearest(view.planeX(x), view.planeY(y), radius, (i) => this.visible[i] === 1);
  }

  position(i) {
    return [this.view.screenX(columns.x[i]), this.view.screenY(columns.y[i])];
  }

  // ---------------------------------------------------------------- drawing

  drawPoints() {
    const [context] = this.contexts;
    const { view } = this;
    this.makeSprites();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, context.canvas.width, context.canvas.height);
    const half = this.spriteSize / 2;
    const { width, height } = context.canvas;
    const draw = (wanted) => {
      for (const i of this.order) {
        if (!this.visible[i] || (this.emphasised && this.emphasised[i] !== wanted)) continue;
        const left = view.screenX(columns.x[i]) * this.density - half;
        const top = view.screenY(columns.y[i]) * this.density - half;
        if (left < -2 * half || top < -2 * half || left > width || top > height) continue;
        context.drawImage(this.sprites[this.styleOf[i]], Math.round(left), Math.round(top));
      }
    };
    if (this.emphasised) {
      context.globalAlpha = 0.12;
      draw(0);
      context.globalAlpha = 1;
    }
    draw(1);
    this.drawLabels(context);
  }

  /* A picture of each mark, ready to be copied: much faster than to draw each nest's path. */
  makeSprites() {
    const radius = Math.round(2 * this.radius) / 2;
    if (this.sprites && this.spriteRadius === radius) return;
    this.spriteRadius = radius;
    this.spriteSize = Math.ceil((2.6 * radius + 2) * this.density);
    this.sprites = this.styles.map(({ path, colour, hollow }) => {
      const canvas = document.createElement("canvas");
      canvas.width = canvas.height = this.spriteSize;
      const context = canvas.getContext("2d");
      context.translate(this.spriteSize / 2, this.spriteSize / 2);
      context.scale(radius * this.density, radius * this.density);
      const outline = new Path2D(path);
      context.lineJoin = "round";
      context.lineWidth = (hollow ? 1.4 : Math.min(1, radius / 4)) / radius;
      context.strokeStyle = hollow ? colour : this.colours.surface;
      context.fillStyle = hollow ? this.colours.surface : colour;
      if (!hollow) context.stroke(outline); // a seam between marks that overlap
      context.fill(outline);
      if (hollow) context.stroke(outline);
      return canvas;
    });
  }

  /* Names where they do not run into one another; those given first have precedence. */
  drawLabels(context) {
    context.setTransform(this.density, 0, 0, this.density, 0, 0);
    context.font = "600 12px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    const taken = [];
    for (const { text, x, y, shown } of this.labels) {
      if (!shown()) continue;
      const width = context.measureText(text).width + 8;
      const [centreX, centreY] = [this.view.screenX(x), this.view.screenY(y) - this.radius - 10];
      const box = [centreX - width / 2, centreY - 8, centreX + width / 2, centreY + 8];
      const clashes = (other) =>
        box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3];
      const inside = box[0] >= 0 && box[1] >= 0 && box[2] <= this.view.width && box[3] <= this.view.height;
      if (!inside || taken.some(clashes)) continue;
      taken.push(box);
      context.strokeStyle = this.colours.surface;
      context.lineWidth = 4;
      context.strokeText(text, centreX, centreY);
      context.fillStyle = this.colours.text;
      context.fillText(text, centreX, centreY);
    }
  }

  drawOverlay() {
    const context = this.contexts[1];
    context.setTransform(this.density, 0, 0, this.density, 0, 0);
    context.clearRect(0, 0, this.view.width, this.view.height);
    if (this.selected >= 0) {
      const from = this.position(this.selected);
      context.strokeStyle = this.colours.accent;
      context.lineWidth = 1.25;
      for (const i of this.neighbours) {
        context.beginPath();
        context.moveTo(...from);
        context.lineTo(...this.position(i));
        context.stroke();
      }
      for (const i of this.neighbours) this.drawRing(context, i, 1.5, 2.5);
      this.drawRing(context, this.selected, 3, 5);
      this.badgePlaces().forEach((place, rank) => this.drawBadge(context, place, rank + 1));
    }
    if (this.hovered >= 0 && this.hovered !== this.selected) this.drawRing(context, this.hovered, 2, 3);
  }

  /* The nest's own mark with a ring around it. */
  drawRing(context, i, width, gap) {
    const [x, y] = this.position(i);
    this.drawMark(context, i);
    for (const [colour, extra] of [[this.colours.surface, 2], [this.colours.accent, 0]]) {
      context.beginPath();
      context.arc(x, y, this.radius + gap, 0, 2 * Math.PI);
      context.strokeStyle = colour;
      context.lineWidth = width + extra;
      context.stroke();
    }
  }

  /* Where the ranks of the neighbours are written: beyond them as seen from the chosen nest, and apart. */
  badgePlaces() {
    const [x, y] = this.position(this.selected);
    const away = this.radius + 11;
    const places = this.neighbours.map((i, rank) => {
      const [toX, toY] = this.position(i);
      const distance = Math.hypot(toX - x, toY - y);
      const turn = (2 * Math.PI * rank) / this.neighbours.length;
      const [dx, dy] = distance > 1 ? [(toX - x) / distance, (toY - y) / distance] : [Math.cos(turn), Math.sin(turn)];
      return [toX + away * dx, toY + away * dy];
    });
    const push = (place, [fromX, fromY], wanted) => {
      const [dx, dy] = [place[0] - fromX, place[1] - fromY];
      const distance = Math.hypot(dx, dy) || 1;
      const share = Math.max(0, wanted - distance) / 2 / distance;
      place[0] += dx * share;
      place[1] += dy * share;
    };
    for (let round = 0; round < 60; round += 1) {
      for (const place of places) {
        push(place, [x, y], this.radius + 18);
        for (const other of places) if (other !== place) push(place, other, 18);
      }
    }
    return places;
  }

  drawBadge(context, [badgeX, badgeY], rank) {
    context.beginPath();
    context.arc(badgeX, badgeY, 7.5, 0, 2 * Math.PI);
    context.fillStyle = this.colours.accent;
    context.fill();
    context.fillStyle = this.colours.surface;
    context.font = "600 10px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(String(rank), badgeX, badgeY + 0.5);
  }

  drawMark(context, i) {
    const [x, y] = this.position(i);
    const size = this.spriteSize / this.density;
    context.drawImage(this.sprites[this.styleOf[i]], x - size / 2, y - size / 2, size, size);
  }
}

/* 0..n-1 in an order that looks random and is the same every time. */
function shuffled(n) {
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  let state = 1;
  for (let i = n - 1; i > 0; i -= 1) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const j = state % (i + 1);
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}
