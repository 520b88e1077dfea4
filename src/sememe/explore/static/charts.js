// Small charts as SVG: matrices of colored cells, lines, and bars.

import { color, h, svg } from "./dom.js";
import { t } from "./i18n.js";

// A color between paper and red for 0…1, and between paper and blue for 0…-1, as `sememe plot heatmap` has them.
export function shade(value) {
  const share = Math.round(100 * Math.min(1, Math.abs(value)));
  return `color-mix(in srgb, ${color(value < 0 ? "blue" : "red")} ${share}%, ${color("card")})`;
}

export const colorKey = (limit) => h("p", { class: "soft" },
  t("Blue is negative, red is positive; full color is {limit} or more.", { limit }));

// Rows and columns of cells: {rows, columns: labels, values: (row, column) → -1…1, text}
export function matrix({ rows, columns, values, text, title, cell = 34, label }) {
  const size = (names) => Math.min(160, 14 + 8 * Math.max(1, ...names.map(width)));
  const [left, top] = [size(rows), size(columns)];
  const wide = left + cell * columns.length + Math.max(8, 0.62 * size(columns.slice(-1)) - cell / 2); // the last label leans out
  const picture = svg("svg", {
    class: "chart matrix", role: "img", "aria-label": label, style: { maxWidth: `${1.6 * wide}px` },
    viewBox: `0 0 ${wide} ${top + cell * rows.length + 8}`,
  });
  rows.forEach((name, row) => picture.append(svg("text", {
    x: left - 6, y: top + cell * (row + 0.5), "text-anchor": "end", "dominant-baseline": "central",
  }, short(name))));
  columns.forEach((name, column) => {
    const x = left + cell * (column + 0.5);
    picture.append(svg("text", { x, y: top - 6, transform: `rotate(-50 ${x} ${top - 6})` }, short(name)));
  });
  rows.forEach((rowName, row) => columns.forEach((columnName, column) => {
    const value = values(row, column);
    const [x, y] = [left + cell * column, top + cell * row];
    picture.append(svg("rect", {
      x, y, width: cell - 1, height: cell - 1, style: { fill: shade(value) },
    }, svg("title", {}, title?.(row, column) ?? `${rowName} – ${columnName}: ${value.toFixed(4)}`)));
    if (text) picture.append(svg("text", {
      x: x + cell / 2, y: y + cell / 2, class: Math.abs(value) > 0.6 ? "on-dark small" : "small",
      "text-anchor": "middle", "dominant-baseline": "central",
    }, text(row, column)));
  }));
  return picture;
}

// Chinese characters are twice as wide.
const width = (name) => [...short(name)].reduce((sum, mark) => sum + (mark > "\u2e80" ? 1.8 : 1), 0);
const short = (name) => ([...name].length > 18 ? `${[...name].slice(0, 17).join("")}…` : name);

// A line through points [x, y]
export function lineChart({ points, label, xLabel, yLabel, wide = 640, high = 260 }) {
  const [xs, ys] = [points.map((one) => one[0]), points.map((one) => one[1])];
  const [low, most] = [Math.min(0, ...xs), Math.max(...xs)];
  const [bottom, top] = [Math.min(...ys), Math.max(...ys)];
  const x = (value) => 52 + ((wide - 70) * (value - low)) / (most - low || 1);
  const y = (value) => high - 34 - ((high - 62) * (value - bottom)) / (top - bottom || 1);
  return svg("svg", { class: "chart lines", role: "img", "aria-label": label, viewBox: `0 0 ${wide} ${high}` },
    [bottom, (bottom + top) / 2, top].map((value) => [
      svg("line", { class: "grid", x1: 52, x2: wide - 18, y1: y(value), y2: y(value) }),
      svg("text", { class: "small", x: 46, y: y(value), "text-anchor": "end", "dominant-baseline": "central" },
        value.toPrecision(3)),
    ]),
    svg("text", { class: "small", x: wide - 18, y: high - 8, "text-anchor": "end" }, xLabel),
    svg("text", { class: "small", x: 4, y: 12 }, yLabel),
    svg("path", { d: points.map((one, place) => `${place ? "L" : "M"}${x(one[0]).toFixed(1)} ${y(one[1]).toFixed(1)}`).join(""),
      style: { fill: "none", stroke: color("category-0"), strokeWidth: "2px" } }));
}

// ---- pictures to keep of what the page shows as text ----

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'PingFang SC', 'Noto Sans CJK SC', sans-serif";
const pen = new OffscreenCanvas(1, 1).getContext("2d");
function measured(text, size) {
  pen.font = `${size}px ${FONT}`;
  return pen.measureText(text).width;
}

// A picture as a text.
function sheet(wide, high, nodes) {
  return new XMLSerializer().serializeToString(
    svg("svg", { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, "font-family": FONT },
      svg("rect", { width: wide, height: high, fill: color("card") }), nodes));
}
const label = (text, x, y, size, fill = color("ink"), more = {}) =>
  svg("text", { x: x.toFixed(1), y: y.toFixed(1), "font-size": size, fill, "xml:space": "preserve", ...more }, text);

// What `markedText` shows: lines of text with colored words, and notes under them.
export function textPicture(parts, { wide = 760, size = 17 } = {}) {
  const row = size * (parts.some((part) => part.note) ? 2.7 : 1.7);
  const nodes = [];
  let [x, y] = [14, 14 + size];
  for (const { text, note, hue, share = 0 } of parts)
    for (const piece of note ? [text] : text.match(/\n|[^\S\n]+|[\u2e80-\uffff]|[^\s\u2e80-\uffff]+/gu) ?? []) {
      const [own, under] = [measured(piece, size), note ? measured(note, 11) : 0];
      const needed = Math.max(own, under) + (note ? 6 : 0);
      if (piece === "\n" || (x + needed > wide - 14 && x > 14 && piece.trim())) [x, y] = [14, y + row];
      if (piece === "\n") continue;
      if (share) nodes.push(svg("rect", { x: x - 2, y: y - size, width: needed + 3, height: size * 1.35, rx: 3,
        fill: hue, "fill-opacity": share }));
      nodes.push(label(piece, x + (needed - own) / 2, y, size));
      if (note) nodes.push(label(note, x + (needed - under) / 2, y + 17, 11, color("soft")));
      x += needed;
    }
  return sheet(wide, y + row - size / 2, nodes);
}

// What `bars` of widgets.js shows: [{title, items: [{label, value, text, mark}]}], with values up to `max`.
export function barGroups(groups, { wide = 640, max = 1 } = {}) {
  const nodes = [];
  let y = 8;
  for (const { title, items } of groups) {
    if (title) nodes.push(label(title, 14, (y += 22), 14, color("ink"), { "font-weight": 600 }));
    for (const { label: name, value, text, mark } of items) {
      y += 22;
      const length = ((wide - 340) * Math.min(1, Math.abs(value) / max)).toFixed(1);
      if (mark) nodes.push(svg("rect", { x: 8, y: y - 15, width: wide - 16, height: 21, rx: 3, fill: color("yellow") }));
      nodes.push(label(short(name), 14, y, 14),
        svg("rect", { x: 200, y: y - 10, width: wide - 340, height: 9, rx: 3, fill: color("shade") }),
        svg("rect", { x: 200, y: y - 10, width: length, height: 9, rx: 3, fill: color(value < 0 ? "red" : "blue") }),
        label(text ?? value.toFixed(4), wide - 14, y, 13, color("soft"), { "text-anchor": "end" }));
    }
  }
  return sheet(wide, y + 18, nodes);
}
