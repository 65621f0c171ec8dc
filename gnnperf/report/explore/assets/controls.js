/* Pointer, wheel, touch and keys on the map. */

const CLICK_SLACK = 5; // pixels a pointer may move during a click

class Controls {
  /* handlers: hover(i, isKey), choose(i), moved(). */
  constructor(canvas, map, handlers) {
    [this.canvas, this.map, this.handlers] = [canvas, map, handlers];
    this.pointers = new Map(); // those that are down: id -> [x, y]
    this.travelled = 0;
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.up(event));
    canvas.addEventListener("pointercancel", (event) => this.pointers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => handlers.hover(-1));
    canvas.addEventListener("blur", () => handlers.hover(-1));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  down(event) {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    if (this.pointers.size === 0) this.travelled = 0;
    this.pointers.set(event.pointerId, this.at(event));
  }

  move(event) {
    const now = this.at(event);
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== "touch") this.handlers.hover(this.map.nestAt(...now));
      return;
    }
    const { view } = this.map;
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    this.pointers.set(event.pointerId, now);
    this.travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (this.travelled <= CLICK_SLACK) return;
    view.pan((now[0] - before[0]) / this.pointers.size, (now[1] - before[1]) / this.pointers.size);
    if (others.length === 1) {
      const apart = ([x, y]) => Math.max(1, Math.hypot(x - others[0][0], y - others[0][1]));
      const middle = [(now[0] + others[0][0]) / 2, (now[1] + others[0][1]) / 2];
      view.zoom(apart(now) / apart(before), ...middle);
    }
    this.canvas.classList.add("dragged");
    this.handlers.moved();
  }

  up(event) {
    if (!this.pointers.delete(event.pointerId) || this.pointers.size) return;
    this.canvas.classList.remove("dragged");
    if (this.travelled > CLICK_SLACK) return;
    const reach = event.pointerType === "touch" ? 18 : 6;
    this.handlers.choose(this.map.nestAt(...this.at(event), reach));
  }

  wheel(event) {
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === 1 ? 16 : 1);
    const speed = event.ctrlKey ? 0.01 : 0.0016; // a pinch on a touch pad says ctrl
    this.map.view.zoom(Math.exp(-Math.max(-400, Math.min(400, pixels)) * speed), ...this.at(event));
    this.handlers.moved();
  }

  key(event) {
    const { map, handlers } = this;
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (step && event.shiftKey) {
      map.view.pan(-60 * step[0], -60 * step[1]);
    } else if (step) {
      const next = this.next(step);
      if (next >= 0 && !map.view.shows(next, 12)) map.view.centreOn(next);
      if (next >= 0) handlers.hover(next, true);
    } else if (event.key === "Enter" || event.key === " ") {
      if (map.hovered >= 0) handlers.choose(map.hovered);
    } else if (event.key === "+" || event.key === "=") {
      map.view.zoom(1.4);
    } else if (event.key === "-") {
      map.view.zoom(1 / 1.4);
    } else if (event.key === "0") {
      map.view.fit();
    } else {
      return;
    }
    event.preventDefault();
    handlers.moved();
  }

  /* The nearest nest in a direction, at most 45 degrees beside it; at first, that in the middle of the screen. */
  next([dx, dy]) {
    const { map } = this;
    const start = map.hovered >= 0 ? map.hovered : map.selected;
    const [x, y] = start >= 0 ? map.position(start) : [map.view.width / 2, map.view.height / 2];
    let [best, least] = [-1, Infinity];
    for (let i = 0; i < count; i += 1) {
      if (!map.visible[i] || i === start) continue;
      const [ahead, aside] = this.apart(i, x, y, dx, dy);
      const far = start >= 0 ? ahead + 2 * aside : Math.hypot(ahead, aside);
      if (far < least && (start < 0 || (ahead > 0 && aside <= ahead))) [best, least] = [i, far];
    }
    return best;
  }

  apart(i, x, y, dx, dy) {
    const [otherX, otherY] = this.map.position(i);
    const [right, down] = [otherX - x, otherY - y];
    return [right * dx + down * dy, Math.abs(right * dy - down * dx)];
  }
}
