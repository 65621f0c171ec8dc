/* Where nests are: on the plane, on the screen, and which one is near a point. */

/* A grid over the plane, so that what is near a point is found without looking at every nest. */
class Grid {
  constructor(x, y) {
    this.x = x;
    this.y = y;
    this.side = Math.max(1, Math.ceil(Math.sqrt(x.length / 3))); // about three nests in a cell
    const cell = x.map((_, i) => this.cellOf(y[i]) * this.side + this.cellOf(x[i]));
    this.starts = new Int32Array(this.side * this.side + 1);
    for (const c of cell) this.starts[c + 1] += 1;
    for (let c = 0; c < this.side * this.side; c += 1) this.starts[c + 1] += this.starts[c];
    this.members = new Int32Array(x.length);
    const next = this.starts.slice();
    cell.forEach((c, i) => {
      this.members[next[c]] = i;
      next[c] += 1;
    });
  }

  cellOf(coordinate) {
    return Math.min(this.side - 1, Math.max(0, Math.floor((coordinate / (EXTENT + 1)) * this.side)));
  }

  /* The nearest nest within a radius for which `accepts` holds, or -1; of two as near, the later one. */
  nearest(x, y, radius, accepts) {
    let [best, bestSquared] = [-1, radius * radius];
    const [left, right] = [this.cellOf(x - radius), this.cellOf(x + radius)];
    for (let row = this.cellOf(y - radius); row <= this.cellOf(y + radius); row += 1) {
      const from = this.starts[row * this.side + left];
      const to = this.starts[row * this.side + right + 1];
      for (let k = from; k < to; k += 1) {
        const i = this.members[k];
        const squared = (this.x[i] - x) ** 2 + (this.y[i] - y) ** 2;
        if (squared <= bestSquared && accepts(i) && (squared < bestSquared || i > best)) {
          [best, bestSquared] = [i, squared];
        }
      }
    }
    return best;
  }
}

/* Which part of the plane is on the screen. Sizes in CSS pixels; `scale` is pixels per unit of the plane. */
class View {
  constructor() {
    this.width = this.height = 1;
    [this.xs, this.ys] = [bounds(columns.x), bounds(columns.y)];
    this.fit();
  }

  resize(width, height) {
    const whole = this.isWhole;
    [this.width, this.height] = [Math.max(1, width), Math.max(1, height)];
    if (whole) this.fit();
  }

  get fittingScale() {
    const margin = Math.min(48, 0.1 * Math.min(this.width, this.height));
    const span = (range) => Math.max(1, range[1] - range[0]);
    return Math.min((this.width - 2 * margin) / span(this.xs), (this.height - 2 * margin) / span(this.ys));
  }

  fit() {
    this.isWhole = true;
    this.scale = this.fittingScale;
    this.centreX = (this.xs[0] + this.xs[1]) / 2;
    this.centreY = (this.ys[0] + this.ys[1]) / 2;
  }

  get magnification() {
    return this.scale / this.fittingScale;
  }

  screenX(x) {
    return this.width / 2 + (x - this.centreX) * this.scale;
  }

  screenY(y) {
    return this.height / 2 + (y - this.centreY) * this.scale;
  }

  planeX(x) {
    return this.centreX + (x - this.width / 2) / this.scale;
  }

  planeY(y) {
    return this.centreY + (y - this.height / 2) / this.scale;
  }

  /* Zoom so that what is under a point of the screen stays there. */
  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const [planeX, planeY] = [this.planeX(x), this.planeY(y)];
    const limits = [0.5 * this.fittingScale, 400 * this.fittingScale];
    this.scale = Math.min(limits[1], Math.max(limits[0], this.scale * factor));
    this.centreX = planeX - (x - this.width / 2) / this.scale;
    this.centreY = planeY - (y - this.height / 2) / this.scale;
    this.isWhole = false;
  }

  /* Move the picture by so many pixels; the middle of the screen stays over the map. */
  pan(dx, dy) {
    const clamp = (value, [low, high]) => Math.min(high, Math.max(low, value));
    this.centreX = clamp(this.centreX - dx / this.scale, this.xs);
    this.centreY = clamp(this.centreY - dy / this.scale, this.ys);
    this.isWhole = false;
  }

  shows(i, margin = 0) {
    const [x, y] = [this.screenX(columns.x[i]), this.screenY(columns.y[i])];
    return x >= margin && y >= margin && x <= this.width - margin && y <= this.height - margin;
  }

  centreOn(i) {
    [this.centreX, this.centreY] = [columns.x[i], columns.y[i]];
    this.isWhole = false;
  }
}

/* Smallest and largest value; `Math.min(...values)` would overflow the stack for many. */
function bounds(values) {
  return values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [values[0], values[0]]);
}
