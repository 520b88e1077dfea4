// A canvas of points: pan, zoom, hover, pick, lasso, labels that thin out with zoom.
//
// Points are written as pixels, which draws 100,000 of them in a few milliseconds without a GPU.
// Sizes and places are CSS pixels; `ratio` device pixels are one of them.

import { color, h, show, svg } from "./dom.js";
import { t } from "./i18n.js";

const CELL = 7; // of the grid that keeps labels apart
const REACH = 14; // how near a point is touched
const MARGIN = 24; // of the pixels, so that points at the border need no clipping
const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'PingFang SC', 'Noto Sans CJK SC', sans-serif";
const clip = (value, low, high) => Math.min(high, Math.max(low, value));
const short = (text) => ([...text].length > 28 ? `${[...text].slice(0, 27).join("")}…` : text);

// Any CSS color as [red, green, blue].
const parser = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
function rgb(css) {
  parser.fillStyle = css;
  parser.fillRect(0, 0, 1, 1);
  return [...parser.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}
const mixed = (from, to, share) => from.map((value, place) => Math.round(value + share * (to[place] - value)));
const pixel = ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;

// A scale from hardly seen to strong, in either theme.
function shades(num = 64) {
  const [low, middle, high] = ["line", "blue", "ink"].map((name) => rgb(color(name)));
  const shade = (share) => (share < 0.6 ? mixed(low, middle, share / 0.6) : mixed(middle, high, (share - 0.6) / 0.4));
  return Array.from({ length: num }, (_, index) => shade(index / (num - 1)));
}

function range(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [-1, 1];
}

// Offsets and opacities (0…256) of the pixels of a disk, in rows of `width` pixels.
function disk(radius, width, opacity) {
  const [offsets, alphas] = [[], []];
  const most = Math.ceil(radius);
  for (let y = -most; y <= most; y++)
    for (let x = -most; x <= most; x++) {
      const cover = clip(radius + 0.5 - Math.hypot(x, y), 0, 1);
      if (cover > 0.02) offsets.push(y * width + x) && alphas.push(Math.round(256 * cover * opacity));
    }
  return { offsets: Int32Array.from(offsets), alphas: Int32Array.from(alphas) };
}

function stamp(pixels, start, { offsets, alphas }, own) {
  const [redBlue, green] = [own & 0xff00ff, (own >>> 8) & 0xff];
  for (let part = 0; part < offsets.length; part++) {
    const [place, alpha] = [start + offsets[part], alphas[part]];
    const under = pixels[place];
    pixels[place] = 0xff000000 | (((redBlue * alpha + (under & 0xff00ff) * (256 - alpha)) >>> 8) & 0xff00ff)
      | (((green * alpha + ((under >>> 8) & 0xff) * (256 - alpha)) >>> 8) << 8);
  }
}

export class Scatter {
  // container: an element of class "plot". onPick(index), onLasso(indexes), onView()
  constructor(container, { label, onPick, onLasso, onView }) {
    Object.assign(this, { container, onPick, onLasso, onView });
    this.canvas = h("canvas", { tabindex: 0, role: "application", "aria-label": label });
    this.context = this.canvas.getContext("2d", { alpha: false });
    this.tip = h("div", { class: "tip", hidden: true });
    this.live = h("div", { class: "unseen", "aria-live": "polite" });
    container.append(this.canvas, this.tip, this.live, this.#buttons());
    [this.width, this.height, this.scale, this.left, this.top] = [0, 0, 1, 0, 0];
    this.pointers = new Map();
    this.setPoints({ x: new Float32Array(0), y: new Float32Array(0), labels: () => "" });
    this.#listen();
    this.observer = new ResizeObserver(() => this.#resize());
    this.observer.observe(container);
  }

  // The first points are the most important: on top, and labeled first. A place of NaN is not drawn.
  // `told` is what the tip says of a point, if not its label; `frame` are places to make room for.
  setPoints({ x, y, labels, told = labels, frame, colors = [color("blue")], category, value, size, lines = [] }) {
    Object.assign(this, { x, y, labels, told, frame, category, size, lines });
    this.colors = value ? shades() : colors.map(rgb);
    if (value) {
      const [low, high] = range(value);
      this.category = Uint8Array.from(value, (one) => (63 * (one - low)) / (high - low || 1));
    }
    this.names = new Map(); // labels with their widths
    [this.hovered, this.marked] = [-1, -1];
    this.setSelection([]);
    this.fit();
  }

  setPositions(x, y) {
    Object.assign(this, { x, y });
    this.#measure();
    this.draw();
  }

  setSelection(indexes) {
    this.hasSelection = indexes.length > 0;
    this.isSelected = new Uint8Array(this.x.length);
    for (const index of indexes) this.isSelected[index] = 1;
    this.draw();
  }

  // Pan to a point and mark it; -1: none.
  focus(index) {
    this.marked = index;
    if (index < 0) return this.draw();
    const [across, down] = this.#place(index);
    this.#tell(index);
    this.#pan(this.width / 2 - across, this.height / 2 - down);
  }

  // Mark a point and draw lines to others, which are labeled first; come near it, if `isMoved`.
  link(index, others, isMoved = false) {
    this.lines = others.map((other) => [index, other]);
    if (isMoved && index >= 0) this.scale = Math.max(this.scale, 5 * this.unit);
    if (isMoved) this.focus(index);
    this.marked = index;
    this.draw();
  }

  // The place in the middle, and how much larger than all is shown; nothing while all is shown.
  get view() {
    const [x, y] = [(this.width / 2 - this.left) / this.scale, (this.top - this.height / 2) / this.scale];
    return this.isFitted ? [] : [x, y, this.scale / this.unit].map((own) => Number(own.toPrecision(5)));
  }

  set view([x, y, factor]) {
    this.#measure();
    if (!(Number.isFinite(x + y) && factor > 0)) return this.fit();
    this.scale = this.unit * clip(factor, 0.2, 50_000);
    [this.left, this.top] = [this.width / 2 - x * this.scale, this.height / 2 + y * this.scale];
    this.isFitted = false;
    this.draw();
  }

  fit() {
    this.#measure();
    const [low, high, bottom, top] = this.bounds;
    const space = (length) => Math.max(10, length - 48);
    this.scale = Math.min(space(this.width) / (high - low || 1), space(this.height) / (top - bottom || 1));
    this.left = this.width / 2 - ((low + high) / 2) * this.scale;
    this.top = this.height / 2 + ((bottom + top) / 2) * this.scale;
    this.isFitted = true; // until the user moves
    this.draw();
  }

  // At the next frame.
  draw() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = undefined;
      if (this.width) this.#paint();
    });
  }

  destroy() {
    this.observer.disconnect();
    cancelAnimationFrame(this.pending);
    this.container.replaceChildren();
  }

  // What is visible, as SVG; points of one color and size are one path of dots.
  toSvg() {
    const { width, height } = this;
    const dots = new Map();
    for (let index = this.x.length - 1; index >= 0; index--) {
      if (!this.#isVisible(index)) continue;
      const key = `rgb(${this.#color(index).join(" ")})|${(2 * this.#radius(index)).toFixed(2)}`;
      const [across, down] = this.#place(index).map((where) => where.toFixed(1));
      dots.set(key, `${dots.get(key) ?? ""}M${across} ${down}h0`);
    }
    return new XMLSerializer().serializeToString(svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` },
      svg("rect", { width, height, fill: color("card") }),
      [...dots].map(([key, path]) => [path, ...key.split("|")]).map(([d, stroke, wide]) => svg("path", {
        d, stroke, fill: "none", "stroke-width": wide, "stroke-linecap": "round", "stroke-opacity": this.#opacity(),
      })),
      this.lines.map(([from, to]) => [this.#place(from), this.#place(to)]).map(([[x1, y1], [x2, y2]]) =>
        svg("line", { x1, y1, x2, y2, stroke: color("soft"), "stroke-width": 1.2 })),
      this.#layOutLabels().map(({ across, down, name }) => svg("text", {
        x: across, y: down, fill: color("ink"), "font-size": 12, "font-family": "sans-serif", "dominant-baseline": "central",
      }, name))));
  }

  // ---- places ----

  #measure() {
    this.bounds = [...range(this.frame?.x ?? this.x), ...range(this.frame?.y ?? this.y)];
    const [low, high, bottom, top] = this.bounds;
    this.unit = Math.min((this.width || 1) / (high - low || 1), (this.height || 1) / (top - bottom || 1));
  }

  #resize() {
    const { clientWidth, clientHeight } = this.container;
    if (!clientWidth || !clientHeight) return;
    const { view } = this;
    [this.width, this.height, this.image] = [clientWidth, clientHeight, undefined];
    this.ratio = Math.min(2, devicePixelRatio || 1);
    [this.canvas.width, this.canvas.height] = [clientWidth, clientHeight].map((length) => Math.round(length * this.ratio));
    Object.assign(this.canvas.style, { width: `${clientWidth}px`, height: `${clientHeight}px` });
    this.view = view;
    this.#paint(); // at once: a canvas of a new size is empty
  }

  #place(index) {
    return [this.left + this.x[index] * this.scale, this.top - this.y[index] * this.scale];
  }

  #isVisible(index) {
    const [across, down] = this.#place(index);
    return across >= 0 && across <= this.width && down >= 0 && down <= this.height; // false for NaN
  }

  // The nearest point within reach, or -1.
  #nearest(across, down, reach = REACH) {
    let [found, least] = [-1, reach * reach];
    for (let index = 0; index < this.x.length; index++) {
      const [right, below] = [this.left + this.x[index] * this.scale - across, this.top - this.y[index] * this.scale - down];
      const distance = right * right + below * below;
      if (distance < least) [found, least] = [index, distance];
    }
    return found;
  }

  // ---- drawing ----

  // Many points are small and let others through; they grow a little as one comes nearer.
  #radius(index) {
    const usual = clip(14 / Math.max(1, this.x.length) ** 0.21, 1.2, 4.5);
    const own = typeof this.size === "number" ? this.size : this.size?.[index] ?? usual;
    return own * clip((this.scale / this.unit) ** 0.3, 1, 2.2) * (this.isSelected[index] ? 1.3 : 1);
  }

  #opacity() {
    return this.x.length > 5000 ? 0.65 : 0.85;
  }

  #color(index) {
    const own = this.colors[this.category ? this.category[index] % this.colors.length : 0];
    return this.hasSelection && !this.isSelected[index] ? mixed(rgb(color("card")), own, 0.18) : own;
  }

  #paint() {
    const { context, ratio } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    this.#paintPoints();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.#paintLines();
    this.#paintLabels();
    for (const index of [this.marked, this.hovered]) if (index >= 0) this.#paintRing(index);
    if (this.loop) this.#paintLoop();
    this.#placeTip();
  }

  #paintPoints() {
    const { x, y, category, isSelected } = this;
    const [wide, high] = [this.canvas.width + 2 * MARGIN, this.canvas.height + 2 * MARGIN];
    this.image ??= new ImageData(wide, high);
    const pixels = new Uint32Array(this.image.data.buffer);
    const paper = rgb(color("card"));
    pixels.fill(pixel(paper));
    const disks = new Map();
    const diskOf = (index) => {
      const radius = Math.min(MARGIN - 2, Math.round(4 * this.#radius(index) * this.ratio) / 4);
      if (!disks.has(radius)) disks.set(radius, disk(radius, wide, this.#opacity()));
      return disks.get(radius);
    };
    const scale = this.scale * this.ratio;
    // Whole pixels, so that points keep their distances while the map moves.
    const [left, top] = [this.left, this.top].map((place) => Math.round(place * this.ratio) + MARGIN);
    const layer = (isDrawn, palette) => {
      let shape;
      for (let index = x.length - 1; index >= 0; index--) {
        if (isSelected[index] !== isDrawn) continue;
        const [across, down] = [left + Math.round(x[index] * scale), top - Math.round(y[index] * scale)];
        if (!(across >= MARGIN && across < wide - MARGIN && down >= MARGIN && down < high - MARGIN)) continue;
        if (!shape || typeof this.size === "object") shape = diskOf(index);
        stamp(pixels, down * wide + across, shape, category ? palette[category[index] % palette.length] : palette[0]);
      }
    };
    const strong = Uint32Array.from(this.colors, pixel);
    layer(0, this.hasSelection ? Uint32Array.from(this.colors, (one) => pixel(mixed(paper, one, 0.18))) : strong);
    if (this.hasSelection) layer(1, strong);
    this.context.putImageData(this.image, -MARGIN, -MARGIN);
  }

  #paintLines() {
    const { context } = this;
    Object.assign(context, { strokeStyle: color("soft"), lineWidth: 1.2 });
    context.beginPath();
    for (const [from, to] of this.lines) {
      const [[x1, y1], [x2, y2]] = [this.#place(from), this.#place(to)];
      context.moveTo(x1, y1);
      context.lineTo(x2, y2);
    }
    context.stroke();
  }

  // The most important labels that fit. Each takes cells of a grid that moves with the points, so
  // that the same labels stay while the map is panned.
  #layOutLabels() {
    const [num, rows] = [this.width, this.height].map((length) => Math.ceil(length / CELL) + 2);
    const taken = new Uint8Array(num * rows);
    const cell = (where, origin, most) => clip(Math.floor((where - origin) / CELL) - Math.floor(-origin / CELL), 0, most - 1);
    const placed = [];
    const put = (index, name, wide, across, down) => {
      const [low, high] = [across - 3, across + wide + 3].map((where) => cell(where, this.left, num));
      const [top, bottom] = [down - 7, down + 7].map((where) => cell(where, this.top, rows) * num);
      if (index !== this.marked) {
        if (across < 0 || across + wide > this.width || down < 7 || down > this.height - 7) return false;
        for (let row = top; row <= bottom; row += num)
          for (let place = row + low; place <= row + high; place++) if (taken[place]) return false;
      }
      for (let row = top; row <= bottom; row += num) taken.fill(1, row + low, row + high + 1);
      space -= Math.max(45, wide);
      return placed.push({ name, wide, across, down });
    };
    const isFew = this.x.length <= 300; // then there is time to try every side
    const add = (index) => {
      const [across, down] = this.#place(index);
      if (!isFew && taken[cell(down, this.top, rows) * num + cell(across, this.left, num)]) return;
      if (!this.names.has(index)) {
        const text = short(this.labels(index));
        this.names.set(index, [text, this.context.measureText(text).width]);
      }
      const [name, wide] = this.names.get(index);
      const gap = this.#radius(index) + 4;
      if (put(index, name, wide, across + gap, down) || put(index, name, wide, across - gap - wide, down) || !isFew) return;
      put(index, name, wide, across - wide / 2, down - gap - 6) || put(index, name, wide, across - wide / 2, down + gap + 6);
    };
    // Long labels are fewer, so that the points stay visible.
    let space = ((this.width * this.height) / (isFew ? 1500 : 4500)) * 45;
    const first = this.marked >= 0 ? [this.marked, ...this.lines.flat()] : [];
    for (const index of new Set(first)) if (this.#isVisible(index)) add(index);
    for (let index = 0; index < this.x.length && space > 0; index++)
      if ((!this.hasSelection || this.isSelected[index]) && !first.includes(index) && this.#isVisible(index)) add(index);
    return placed;
  }

  #paintLabels() {
    const { context } = this;
    Object.assign(context, { font: FONT, textBaseline: "middle", fillStyle: color("card"), globalAlpha: 0.72 });
    const placed = this.#layOutLabels();
    // Few points are not to be covered.
    if (this.x.length > 300) for (const { across, down, wide } of placed) context.fillRect(across - 2, down - 7, wide + 4, 14);
    Object.assign(context, { fillStyle: color("ink"), globalAlpha: 1 });
    for (const { name, across, down } of placed) context.fillText(name, across, down);
  }

  #paintRing(index) {
    Object.assign(this.context, { strokeStyle: color(index === this.marked ? "red" : "ink"), lineWidth: 2 });
    this.context.beginPath();
    this.context.arc(...this.#place(index), this.#radius(index) + 4, 0, 2 * Math.PI);
    this.context.stroke();
  }

  #paintLoop() {
    Object.assign(this.context, { strokeStyle: color("red"), lineWidth: 1.5 });
    this.context.setLineDash([5, 4]);
    this.context.beginPath();
    this.loop.forEach((place) => this.context.lineTo(...place));
    this.context.closePath();
    this.context.stroke();
    this.context.setLineDash([]);
  }

  #placeTip() {
    this.tip.hidden = this.hovered < 0;
    if (this.tip.hidden) return;
    show(this.tip, this.told(this.hovered));
    const [across, down] = this.#place(this.hovered).map((where) => where + 12);
    const [most, lowest] = [this.width - this.tip.offsetWidth, this.height - this.tip.offsetHeight];
    Object.assign(this.tip.style, { left: `${clip(across, 0, most)}px`, top: `${clip(down, 0, lowest)}px` });
  }

  // ---- hands ----

  #buttons() {
    const button = (name, title, onclick) => h("button", { type: "button", title, "aria-label": title, onclick }, name);
    const lasso = button("⬚", t("Lasso: draw around points (or hold Shift)"), () => {
      this.isLassoing = !this.isLassoing;
      lasso.setAttribute("aria-pressed", String(this.isLassoing));
    });
    return h("div", { class: "plot-buttons" }, this.onLasso && lasso, button("+", t("Zoom in"), () => this.#zoom(1.5)),
      button("−", t("Zoom out"), () => this.#zoom(1 / 1.5)), button("◎", t("Show all points"), () => this.#all()));
  }

  #zoom(factor, across = this.width / 2, down = this.height / 2) {
    const next = clip(this.scale * factor, this.unit / 5, this.unit * 50_000);
    this.left = across + ((this.left - across) * next) / this.scale;
    this.top = down + ((this.top - down) * next) / this.scale;
    this.scale = next;
    this.#pan(0, 0);
  }

  #pan(right, below) {
    this.left += right;
    this.top += below;
    this.isFitted = false;
    this.onView?.();
    this.draw();
  }

  #all() {
    this.fit();
    this.onView?.();
  }

  #hover(index) {
    if (index === this.hovered) return;
    this.hovered = index;
    this.#tell(index);
    this.draw();
  }

  #tell(index) {
    show(this.live, index >= 0 && this.told(index));
  }

  #pick(index) {
    if (index < 0) return;
    this.marked = index;
    this.#tell(index);
    this.draw();
    this.onPick?.(index);
  }

  #listen() {
    const at = (event) => [event.offsetX, event.offsetY];
    const on = (name, act, options) => this.canvas.addEventListener(name, act, options);
    on("wheel", (event) => {
      event.preventDefault();
      this.#zoom(Math.exp(-clip(event.deltaY * (event.deltaMode ? 30 : 1), -240, 240) * 0.0022), ...at(event));
    }, { passive: false });
    on("pointerdown", (event) => {
      if (event.isTrusted) this.canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, at(event));
      this.travelled = this.pointers.size > 1 ? REACH : 0; // two fingers never pick
      this.loop = this.onLasso && this.pointers.size === 1 && (this.isLassoing || event.shiftKey) ? [at(event)] : undefined;
    });
    on("pointermove", (event) => this.#move(event.pointerId, ...at(event)));
    on("pointerleave", () => this.#hover(-1));
    on("pointercancel", (event) => this.pointers.delete(event.pointerId) && (this.loop = undefined));
    on("pointerup", (event) => {
      if (!this.pointers.delete(event.pointerId)) return;
      const loop = this.loop;
      this.loop = undefined;
      if (this.travelled < 5) this.#pick(this.#nearest(...at(event)));
      else if (loop) this.onLasso(this.#within(loop));
      this.draw();
    });
    on("keydown", (event) => this.#key(event));
  }

  #move(id, across, down) {
    const before = this.pointers.get(id);
    if (!before) return this.#hover(this.#nearest(across, down));
    const [right, below] = [across - before[0], down - before[1]];
    this.travelled += Math.hypot(right, below);
    this.pointers.set(id, [across, down]);
    if (this.loop) return this.loop.push([across, down]) && this.draw();
    if (this.pointers.size === 1) return this.#pan(right, below);
    const other = [...this.pointers].find(([key]) => key !== id)[1];
    const distance = (one) => Math.max(1, Math.hypot(one[0] - other[0], one[1] - other[1]));
    this.#pan(right / 2, below / 2);
    this.#zoom(distance([across, down]) / distance(before), (across + other[0]) / 2, (down + other[1]) / 2);
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
    const factor = { "+": 1.3, "=": 1.3, "-": 1 / 1.3 }[event.key];
    const middle = () => this.#nearest(this.width / 2, this.height / 2, Infinity);
    if (step) this.#pan(...step);
    else if (factor) this.#zoom(factor);
    else if (event.key === "0") this.#all();
    else if (event.key === "Enter") this.#pick(middle());
    else return;
    event.preventDefault();
    this.#hover(middle()); // says what Enter picks
  }

  // Indexes of the points inside a polygon.
  #within(loop) {
    const isInside = (across, down) => loop.reduce((isOdd, [x1, y1], place) => {
      const [x2, y2] = loop.at(place - 1);
      const isCrossed = y1 > down !== y2 > down && across < ((x2 - x1) * (down - y1)) / (y2 - y1) + x1;
      return isCrossed ? !isOdd : isOdd;
    }, false);
    return Array.from(this.x.keys()).filter((index) => this.#isVisible(index) && isInside(...this.#place(index)));
  }
}
