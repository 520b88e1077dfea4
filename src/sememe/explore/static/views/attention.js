// Attention: all heads as thumbnails, one matrix as lines or cells, averages and rollout.

import { columns, own } from "../api.js";
import { announce, color, h, newId, show, svg } from "../dom.js";
import { t } from "../i18n.js";
import { area, bars, button, exampleChips, field, loaded, modelCard, py, select, sh, tabs } from "../widgets.js";

const EXAMPLES = {
  en: [["The animal didn't cross the street because it was too tired."],
    ["The animal didn't cross the street because it was too wide."],
    ["How old is the tower?", "The tower was built in 1889."]],
  zh: [["那只动物没有过马路，因为它太累了。"], ["那只动物没有过马路，因为它太宽了。"], ["国王喜欢读书。", "他有很多书。"]],
  translation: [["A dog that he had seen ran away."], ["The old man reads a book."]],
};
const PRONOUNS = ["it", "它"];
const MOST_LINES = 64; // tokens of a text whose lines are all drawn at once
const isTranslator = (model) => model.capabilities.includes("translate");
const examplesFor = (model) => EXAMPLES[model.language === "zh" ? "zh" : isTranslator(model) ? "translation" : "en"];

export const view = {
  id: "attention", title: "Attention", most: 2, uses: (model) => model.capabilities.includes("attention"),
  needs: () => t("This view needs a model with attention, such as BERT, GPT or a translation model."),
  first: (models) => [...models].sort((a, b) => (b.kind === "bert") - (a.kind === "bert")).slice(0, 1),
  render(root, page) {
    const panels = h("div", { class: "panels" });
    let shown = new AbortController(); // ends what is drawn of the text before
    page.signal.addEventListener("abort", () => shown.abort());
    const draw = (text, other) => {
      shown.abort();
      shown = new AbortController();
      show(panels, page.models.map((model, index) => panel(page, model, index, text, other, shown.signal)));
    };
    const [text, other] = [page.params.text ?? examplesFor(page.models[0])[0][0], page.params.other ?? ""];
    show(root, textFields(page, text, other, draw), panels);
    draw(text, other);
  },
};

function textFields(page, text, other, draw) {
  const isPair = !page.models.some(isTranslator);
  const fields = [area(t("Text"), text, () => read()),
    area(isPair ? t("Second text of a pair (optional)") : t("Translation (optional)"), other, () => read())];
  const [first, second] = fields.map(({ input }) => input);
  function read(given = first.value, more = second.value) {
    [first.value, second.value] = [given, more];
    page.update({ text: given, other: more, token: null });
    draw(given, more);
  }
  return [h("p", { class: "soft" }, isPair
    ? t("Each token takes information from others; the weights of a row sum to 1. Point at a token to see where it looks.")
    : t("Each word of the translation takes information from the words of the text; the weights of a row sum to 1.")),
  h("div", { class: "tools" }, fields, button(t("Show"), () => read())),
  exampleChips(examplesFor(page.models[0]).map(([one, more = ""]) => [more ? `${one} / ${more}` : one, () => read(one, more)]))];
}

// What is shown of a model: "2.1" layer and head, "2" the mean of a layer, "" of the last, "mean", "rollout".
const asked = (at) => (["mean", "rollout"].includes(at) ? { over_all: at }
  : Object.fromEntries(at.split(".").map((value, index) => [["layer", "head"][index], Number(value)]).filter(([, n]) => n)));

function nameOf(at) {
  if (at === "mean") return t("Mean of all layers and heads");
  if (at === "rollout") return t("Rollout");
  const { layer, head } = asked(at);
  if (!layer) return t("Last layer, mean of its heads");
  return head ? t("Layer {layer}, head {head}", { layer, head }) : t("Layer {layer}, mean of its heads", { layer });
}

function panel(page, model, index, text, other, signal) {
  const made = modelCard(page, model, "attention");
  const read = (name) => (page.params[name] ?? "").split(",")[index] ?? "";
  const keep = (name, value) => {
    const parts = (page.params[name] ?? "").split(",");
    parts[index] = value;
    page.update({ [name]: Array.from(parts, (one) => one ?? "").join(",") });
  };
  const thumbs = h("div", { class: "thumbs" });
  const main = h("div", { class: "attention-main" });
  show(made.body, h("div", { class: "attention-body" }, thumbs, main));
  let clear = () => {};
  signal.addEventListener("abort", () => clear());
  const ask = (at, thumbnails) =>
    columns(own("attention"), { model: model.id, text, other: other || null, ...asked(at), thumbnails }, signal);
  const load = (at, isFirst = false) => made.run(async (isCurrent) => {
    const found = await ask(at, isFirst).catch((error) => {
      // The address may name a head of another model.
      if (!isFirst || !at || error.name === "AbortError") throw error;
      at = "";
      keep("at", at);
      return ask(at, true);
    });
    if (!isCurrent() || signal.aborted) return;
    if (isFirst) drawThumbnails(found, thumbs, choose);
    markChosen(thumbs, at, found.meta.num_layers);
    clear();
    clear = drawMatrix(page, made, main, model, at, found, { text, other, token: read("token"), keep });
  });
  const choose = (at) => {
    keep("at", at);
    load(at);
  };
  load(read("at"), true);
  return made.node;
}

// ---- thumbnails -------------------------------------------------------------------------------

// Pixels between the color of the card and blue, for weights from 0 to `largest`.
function picture(values, wide, high, largest) {
  const canvas = h("canvas", { width: wide, height: high });
  const context = canvas.getContext("2d");
  const image = context.createImageData(wide, high);
  const [paper, ink] = ["card", "blue"].map((name) => color(name).match(/\w\w/g).map((part) => parseInt(part, 16)));
  for (let place = 0; place < wide * high; place++) {
    const share = Math.min(1, values[place] / largest);
    for (let part = 0; part < 3; part++) image.data[4 * place + part] = paper[part] + share * (ink[part] - paper[part]);
    image.data[4 * place + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

function drawThumbnails({ meta, columns: { thumbnails } }, node, choose) {
  const [layers, heads, high, wide] = thumbnails.shape;
  const chip = (at, label) => button(label, () => choose(at), { "data-at": at, class: "thumb-text", title: nameOf(at) });
  const top = [h("span"), Array.from({ length: heads }, (_, head) => h("span", { class: "soft head" }, head + 1)), h("span")];
  const rows = Array.from({ length: layers }, (_, layer) => [
    h("span", { class: "soft small" }, t("Layer {layer}", { layer: layer + 1 })),
    Array.from({ length: heads }, (_, head) => {
      const [at, start] = [`${layer + 1}.${head + 1}`, (layer * heads + head) * high * wide];
      return h("button", { type: "button", class: "thumb", "data-at": at, "aria-label": nameOf(at), title: nameOf(at),
        onclick: () => choose(at) }, picture(thumbnails.values.subarray(start, start + high * wide), wide, high, 255));
    }),
    chip(`${layer + 1}`, t("mean")),
  ]);
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: heads + 1, ArrowUp: -heads - 1 };
  const grid = h("div", {
    class: "thumb-grid", role: "group", "aria-label": t("Layers and heads"),
    style: { gridTemplateColumns: `auto repeat(${heads}, minmax(26px, 64px)) auto` },
    onkeydown: (event) => {
      const buttons = [...grid.querySelectorAll("button")];
      const next = buttons[buttons.indexOf(event.target) + step[event.key]];
      if (!next) return;
      event.preventDefault();
      next.focus();
    },
  }, top, rows);
  show(node, grid, h("div", { class: "tools" }, chip("mean", t("Mean of all")),
    meta.translation === null && chip("rollout", t("Rollout"))));
}

function markChosen(node, at, layers) {
  for (const one of node.querySelectorAll("[data-at]")) {
    const isChosen = one.dataset.at === (at || String(layers));
    one.setAttribute("aria-pressed", String(isChosen));
    one.tabIndex = isChosen || !one.closest(".thumb-grid") ? 0 : -1; // arrow keys reach the others
  }
  if (!node.querySelector('.thumb-grid [tabindex="0"]')) node.querySelector("[data-at]").tabIndex = 0;
}

// ---- one matrix -------------------------------------------------------------------------------

function drawMatrix(page, made, node, model, at, { meta, columns: { weights } }, given) {
  const { target, source } = meta;
  const data = { ...meta, weights: weights.values, of: (row, column) => weights.values[row * source.length + column] };
  const isSelf = meta.translation === null;
  const isLong = Math.max(target.length, source.length) > MOST_LINES;
  let shown = ["cells", "lines"].includes(page.params.show) ? page.params.show : isLong ? "cells" : "lines";
  let token = Math.min(Number(given.token || defaultToken(target)), target.length - 1);
  const [stage, list] = [h("div"), h("div", { class: "attention-list" })];
  const numbered = (name, index) => `${index + 1} ${visible(name)}`;
  const chooser = select(target.map((name, index) => [index, numbered(name, index)]), token, (value) => choose(Number(value)));
  let drawn;
  const told = () => strongest(data, token).slice(0, 3).map(([name, weight]) => `${name} ${weight.toFixed(2)}`).join(", ");
  const choose = (next) => {
    token = next;
    chooser.value = String(next);
    given.keep("token", next);
    drawn.choose(next);
    drawList();
    announce(`${target[token]}: ${told()}`);
  };
  const drawList = () => show(list, h("h3", {}, t("{token} looks at", { token: target[token] })),
    bars(strongest(data, token).slice(0, 10).map(([name, value, index]) => ({ label: numbered(name, index), value }))));
  const draw = () => {
    drawn?.destroy();
    drawn = (shown === "lines" ? lines : cells)(data, token, choose, `${nameOf(at)}. ${target[token]}: ${told()}`);
    show(stage, drawn.node);
    made.exports({ png: drawn.png, svg: drawn.svg,
      csv: () => [["", ...source], ...target.map((name, row) => [name, ...source.map((_, column) => data.of(row, column))])] });
  };
  const kinds = [{ id: "lines", title: t("Lines") }, { id: "cells", title: t("Matrix") }];
  const bar = tabs(kinds, shown, (id) => {
    shown = id;
    page.update({ show: id });
    draw();
  }, newId());
  show(node, h("h3", { class: "chosen" }, nameOf(at)), at === "rollout" && h("p", { class: "about" },
    t("The product of all layers, with the residual connection: how much of each input token reaches a position.")),
  meta.translation !== null && h("p", { class: "about" }, meta.translation
    ? t("Translation: {text}", { text: meta.translation }) : t("The translation is empty.")), bar,
  h("div", { class: "attention-views" }, stage,
    h("div", {}, field(isSelf ? t("From token") : t("From word of the translation"), chooser), list)));
  draw();
  drawList();
  const { layer, head, over_all: all } = asked(at);
  const texts = [given.text, given.other].filter(Boolean);
  made.code(`${loaded(model)}attention = model.attention(${texts.map(py).join(", ")})\n`
    + (all ? `attention.${all}()` : `attention.of(${[layer, head].filter(Boolean).join(", ")})`),
  `sememe plot attention ${[model.path, ...texts].map(sh).join(" ")}${layer ? ` --layer ${layer}` : ""}`
    + `${head ? ` --head ${head}` : ""}${all ? ` --over ${all}` : ""} --out attention.png`);
  return () => drawn.destroy();
}

const defaultToken = (names) => Math.max(0, names.findIndex((name) => PRONOUNS.includes(name.trim().toLowerCase())));

// The source tokens with the weight that a target token gives them, largest first: [name, weight, index].
const strongest = ({ source, of }, row) => source.map((name, index) => [name, of(row, index), index]).sort((a, b) => b[1] - a[1]);

const visible = (name) => name.replaceAll("\n", "⏎") || "␣";
const short = (name) => ([...visible(name)].length > 16 ? `${[...visible(name)].slice(0, 15).join("")}…` : visible(name));

// Target tokens left, source tokens right, a line for each weight; those of the token under the pointer.
function lines({ target, source, segments, of }, token, choose, label) {
  const [wide, row, left, right] = [430, 20, 145, 285];
  const high = row * Math.max(target.length, source.length) + 8;
  const y = (index) => 4 + row * (index + 0.5);
  const drawing = svg("g");
  const sides = [target, source].map((names, side) => names.map((name, index) => svg("g", {
    class: "token", onclick: () => (side ? null : choose(index)),
    onpointerenter: () => draw(side, index), onpointerleave: () => draw(0, token),
  }, svg("rect", {
    x: side ? right : 0, y: y(index) - row / 2, width: left, height: row - 1, rx: 3,
    style: { fill: color("blue"), fillOpacity: 0 } }),
  svg("text", {
    x: side ? right + 6 : left - 6, y: y(index), "text-anchor": side ? "start" : "end", "dominant-baseline": "central",
    style: segments[index] ? { fill: color("green") } : {},
  }, short(name)))));
  const line = (i, j, weight, opacity) => svg("path", {
    d: `M${left} ${y(i)}C${left + 60} ${y(i)} ${right - 60} ${y(j)} ${right} ${y(j)}`,
    style: { fill: "none", stroke: color("blue"), strokeWidth: `${(0.4 + 7 * weight).toFixed(2)}px`, strokeOpacity: opacity },
  });
  // Side 0: where a target token looks; side 1: which target tokens look at a source token.
  function draw(side, index) {
    const faint = [];
    if (Math.max(target.length, source.length) <= MOST_LINES)
      target.forEach((_, i) => source.forEach((__, j) =>
        of(i, j) > 0.05 && faint.push(line(i, j, of(i, j) / 2, 0.06 + 0.12 * of(i, j)))));
    const others = side ? target : source;
    const weight = (place) => (side ? of(place, index) : of(index, place));
    others.forEach((_, place) => {
      const ends = side ? [place, index] : [index, place];
      if (of(...ends) > 0.004) faint.push(line(...ends, of(...ends), 0.3 + 0.7 * of(...ends)));
    });
    show(drawing, faint);
    sides.forEach((groups, other) => groups.forEach((group, place) => {
      group.firstChild.style.fillOpacity = other === side ? (place === index ? 0.28 : 0) : 0.9 * weight(place);
    }));
  }
  const image = svg("svg", {
    class: "chart attention-lines", role: "img", "aria-label": label, viewBox: `0 0 ${wide} ${high}`,
  }, sides, drawing);
  const node = h("div", { class: "attention-scroll", tabindex: 0, role: "group", "aria-label": t("Lines"), onkeydown: (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !target[token + step]) return;
    event.preventDefault();
    choose(token + step);
  } }, image);
  draw(0, token);
  return { node, png: () => image, svg: () => image, destroy() {},
    choose(next) { token = next; draw(0, next); } };
}

// The matrix on a canvas, which a long text needs: wheel or + and - zoom, dragging or arrow keys move.
function cells({ target, source, weights, of }, token, choose, label) {
  const largest = Math.max(weights.reduce((a, b) => Math.max(a, b), 0), Math.min(1, 4 / source.length));
  const image = picture(weights, source.length, target.length, largest);
  const canvas = h("canvas", { class: "attention-cells", role: "img", "aria-label": label, tabindex: 0 });
  const told = h("p", { class: "soft", "aria-hidden": "true" }, "\u00a0");
  const [left, top] = [110, 90];
  let [zoom, x, y, drag, width, height] = [1, 0, 0, null, 0, 0];
  const base = () => Math.min(32, (width - left) / source.length, (height - top) / target.length);
  const cell = () => base() * zoom;
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left - left, event.clientY - box.top - top];
  };
  function draw() {
    const ratio = devicePixelRatio || 1;
    width = canvas.parentElement?.clientWidth || 600;
    height = Math.min(640, top + Math.min(32, (width - left) / source.length) * target.length + 4);
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    const [size, context] = [cell(), canvas.getContext("2d")];
    x = Math.max(0, Math.min(x, size * source.length - (width - left)));
    y = Math.max(0, Math.min(y, size * target.length - (height - top)));
    context.scale(ratio, ratio);
    context.fillStyle = color("card");
    context.fillRect(0, 0, width, height);
    context.save();
    context.beginPath();
    context.rect(left, top, width - left, height - top);
    context.clip();
    context.imageSmoothingEnabled = size < 2;
    context.drawImage(image, left - x, top - y, size * source.length, size * target.length);
    context.strokeStyle = color("red");
    context.strokeRect(left - x, top - y + token * size, size * source.length, Math.max(2, size));
    context.restore();
    labels(context, size);
  }
  // As many labels as fit.
  function labels(context, size) {
    context.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    context.textBaseline = "middle";
    const each = Math.ceil(13 / size);
    const put = (name, index, angle, px, py) => {
      context.save();
      context.translate(px, py);
      context.rotate(angle);
      context.fillStyle = color(index === token && !angle ? "red" : "ink");
      context.textAlign = angle ? "left" : "right";
      context.fillText(short(name), 0, 0);
      context.restore();
    };
    target.forEach((name, index) => {
      const py = top - y + (index + 0.5) * size;
      if ((index % each === 0 || index === token) && py > top - 2 && py < height) put(name, index, 0, left - 6, py);
    });
    source.forEach((name, index) => {
      const px = left - x + (index + 0.5) * size;
      if (index % each === 0 && px > left - 2 && px < width) put(name, index, -1, px, top - 6);
    });
  }
  function zoomBy(factor, [px, py] = [(width - left) / 2, (height - top) / 2]) {
    const next = Math.max(1, Math.min(Math.max(1, 32 / base()), zoom * factor));
    [x, y, zoom] = [((x + px) * next) / zoom - px, ((y + py) * next) / zoom - py, next];
    draw();
  }
  const under = (event) => {
    const [px, py] = at(event);
    const [row, column] = [Math.floor((py + y) / cell()), Math.floor((px + x) / cell())];
    return px >= 0 && py >= 0 && target[row] !== undefined && source[column] !== undefined ? [row, column] : null;
  };
  const handlers = {
    wheel(event) {
      if (base() >= 24) return; // all is visible: the page scrolls
      event.preventDefault();
      zoomBy(Math.exp(-event.deltaY / 400), at(event));
    },
    pointerdown(event) {
      drag = [event.clientX + x, event.clientY + y, event.clientX, event.clientY];
      canvas.setPointerCapture(event.pointerId);
    },
    pointermove(event) {
      if (drag) {
        [x, y] = [drag[0] - event.clientX, drag[1] - event.clientY];
        return draw();
      }
      const found = under(event);
      show(told, found ? `${visible(target[found[0]])} → ${visible(source[found[1]])}: ${of(...found).toFixed(4)}` : "\u00a0");
    },
    pointerup(event) {
      const isClick = drag && Math.hypot(event.clientX - drag[2], event.clientY - drag[3]) < 4;
      drag = null;
      const found = isClick && under(event);
      if (found) choose(found[0]);
    },
    pointercancel() { drag = null; },
    keydown(event) {
      const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (move) [x, y] = [x + 40 * move[0], y + 40 * move[1]];
      else if (event.key === "0") [zoom, x, y] = [1, 0, 0];
      else if (event.key !== "+" && event.key !== "-") return;
      event.preventDefault();
      if (move || event.key === "0") draw();
      else zoomBy(event.key === "+" ? 1.4 : 1 / 1.4);
    },
  };
  for (const [name, handler] of Object.entries(handlers)) canvas.addEventListener(name, handler, { passive: false });
  const observer = new ResizeObserver(draw);
  const frame = h("div", {}, canvas);
  observer.observe(frame);
  const node = h("div", {}, frame, told, h("p", { class: "hint" },
    t("Strongest color: {weight}.", { weight: largest.toFixed(3) }), " ",
    button("+", () => zoomBy(1.6), { "aria-label": t("Zoom in") }), " ",
    button("−", () => zoomBy(1 / 1.6), { "aria-label": t("Zoom out") })));
  return { node, png: () => canvas, svg: () => matrixSvg(image, target, source), destroy: () => observer.disconnect(),
    choose(next) { token = next; draw(); } };
}

// The whole matrix as one image with its labels.
function matrixSvg(image, target, source) {
  const [size, left, top] = [18, 130, 110];
  const [wide, high] = [left + size * source.length + 8, top + size * target.length + 8];
  const holder = svg("svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, fill: color("ink"),
    "font-size": 12, "font-family": "sans-serif" }, svg("rect", { width: wide, height: high, fill: color("card") }),
    svg("image", { href: "#cells", x: left, y: top, width: size * source.length, height: size * target.length,
      preserveAspectRatio: "none", "image-rendering": "pixelated" }),
    target.map((name, index) => svg("text", { x: left - 6, y: top + size * (index + 0.7), "text-anchor": "end" }, short(name))),
    source.map((name, index) => {
      const px = left + size * (index + 0.6);
      return svg("text", { x: px, y: top - 6, transform: `rotate(-57 ${px} ${top - 6})` }, short(name));
    }));
  // Put in as text: an element would load the picture into the page, which its policy forbids.
  return new XMLSerializer().serializeToString(holder).replace('"#cells"', `"${image.toDataURL()}"`);
}
