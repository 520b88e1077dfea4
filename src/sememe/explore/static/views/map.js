// Map: words or one's own rows as points, in up to four models side by side.
//
// Other points or another method draw the view anew from the address. Colors, zoom, the chosen point
// and the selection change while it stays, and the address follows. A key is what a point is in
// every map: a word itself, or the index of a row.

import { columns, get, job, own, post } from "../api.js";
import { announce, categories, color, debounced, h, show } from "../dom.js";
import { number, percent, t } from "../i18n.js";
import { Scatter } from "../scatter.js";
import { bars, button, card, failIn, field, loaded, py, select, sh, table, wordInput } from "../widgets.js";
import { view as words } from "./words.js";

const METHODS = { pca: "PCA", umap: "UMAP", tsne: "t-SNE" };
const SIZES = [1_000, 5_000, 20_000, 50_000, 100_000];
const MOST_SHOWN = 300; // points of the selection, as buttons
const MOST_KEPT = 1_500; // letters of a selection in the address
const NUM_NEAR = 10;
const can = (model, name) => model.capabilities.includes(name);

export const view = {
  id: "map", title: "Map", most: 4,
  needs: () => t("This view needs a model with vectors of words, such as word2vec or BERT."),
  uses: (model, params, open, state) => can(model, "words") || (Boolean(state.rows) && can(model, "embed")),
  first: words.first,
  render(root, page) {
    const shared = { page, maps: [], selection: [], chosen: undefined };
    shared.keepZoom = debounced(() => page.signal.aborted || page.update({ zoom: zooms(shared) }), 300);
    get(own("map/rows"), page.signal).then((rows) => page.signal.aborted || draw(root, shared, rows))
      .catch(failIn(root));
    return () => shared.maps.forEach((map) => map.scatter.destroy());
  },
};

function draw(root, shared, rows) {
  const { page } = shared;
  shared.rows = rows;
  shared.asked = askedFor(page, rows);
  shared.isRows = shared.asked.of === "rows";
  shared.colors = colorsOf(shared);
  shared.color = page.params.color in shared.colors ? page.params.color : Object.keys(shared.colors)[0];
  shared.maps = page.models.map((model) => makeMap(shared, model));
  shared.list = selectionCard(shared);
  shared.changes = changesCard(shared);
  show(root, toolsOf(shared), h("div", { class: "side-by-side maps" }, shared.maps.map((map) => map.card.node)),
    shared.list.node, shared.changes?.node);
  root.onkeydown = (event) => event.key === "Escape" && shared.selection.length && choose(shared, []);
  const [selected, chosen] = [page.params.sel, page.params.word];
  const asKey = (text) => (shared.isRows ? Number(text) : text);
  if (selected) choose(shared, selected.split(",").map((key) => asKey(new URLSearchParams(`key=${key}`).get("key"))));
  if (chosen) pick(shared, asKey(chosen), { isMoved: !page.params.zoom });
  else shared.changes?.compare();
  shared.maps.forEach((map) => map.load());
}

// What the service is asked for, as the address says.
function askedFor({ params, models }, rows) {
  const [canRows, canWords] = ["embed", "words"].map((name) => models.some((one) => can(one, name)));
  const within = (value, low, high, usual) => Math.min(high, Math.max(low, Math.round(value) || usual));
  return {
    of: rows.num && canRows && (params.of !== "words" || !canWords) ? "rows" : "words",
    method: params.method in METHODS ? params.method : "pca",
    num: within(params.num, 10, 100_000, 5_000), neighbors: within(params.neighbors, 2, 200, 15),
  };
}

function colorsOf({ isRows, rows }) {
  const columnNames = isRows ? rows.columns.map((name) => [`column:${name}`, name]) : [["frequency", t("Frequency")]];
  return Object.fromEntries([...columnNames, ["cluster", t("Cluster")], ["none", t("One color")]]);
}

// ---- settings and search ------------------------------------------------------------------------

function toolsOf(shared) {
  const { page, asked, isRows, rows } = shared;
  const again = (id) => (value) => {
    page.update({ [id]: value, zoom: null, ...(id === "of" ? { sel: null, word: null, color: null } : {}) }, { redraw: true });
    setTimeout(() => document.getElementById(`map-${id}`)?.focus(), 200); // where the user was
  };
  const choice = (id, label, choices, chosen) =>
    field(label, Object.assign(select(choices, chosen, again(id)), { id: `map-${id}` }));
  const count = field(t("Number of clusters"), select([3, 5, 8, 10].map((num) => [num, num]), page.params.clusters ?? 10,
    (num) => recolor({ clusters: num })));
  const recolor = (more) => {
    page.update(more);
    shared.color = page.params.color ?? shared.color;
    count.hidden = shared.color !== "cluster";
    shared.maps.forEach((map) => map.paint());
  };
  count.hidden = shared.color !== "cluster";
  const sizes = [...new Set([...SIZES, asked.num])].sort((a, b) => a - b);
  return h("div", { class: "tools" },
    rows.num > 0 && choice("of", t("Points"), [["rows", t("Rows of {path}", rows)], ["words", t("Words")]], asked.of),
    choice("method", t("Method"), Object.entries(METHODS), asked.method),
    asked.method !== "pca" && choice("neighbors", asked.method === "umap" ? t("Neighbors of a point") : t("Perplexity"),
      [...new Set([5, 15, 30, 50, 100, asked.neighbors])].sort((a, b) => a - b).map((num) => [num, num]), asked.neighbors),
    !isRows && choice("num", t("Most frequent words"), sizes.map((num) => [num, number(num)]), asked.num),
    field(t("Color"), select(Object.entries(shared.colors), shared.color, (name) => recolor({ color: name }))), count,
    isRows ? rowSearch(shared) : wordInput({
      label: t("Find a word"), models: () => page.models.filter((one) => can(one, "words")),
      value: page.params.word ?? "", onEnter: (word) => word && pick(shared, word, { isMoved: true }),
    }),
    isRows && rows.notes.map((note) => h("p", { class: "soft note" }, note)));
}

function rowSearch(shared) {
  const { page } = shared;
  let by = "text";
  const input = h("input", { type: "text", autocomplete: "off", spellcheck: "false" });
  const told = h("span", { class: "hint", role: "status" });
  const search = async () => {
    if (!input.value.trim()) return choose(shared, []);
    try {
      const model = page.models.find((one) => can(one, "embed")).id;
      const { rows } = await post(own("map/rows/search"), { model, query: input.value, by, num: 100 }, page.signal);
      show(told, t("{num} rows found", { num: rows.length }));
      choose(shared, rows.map((row) => row.index));
    } catch (error) {
      if (error.name !== "AbortError") show(told, error.message);
    }
  };
  input.addEventListener("keydown", (event) => event.key === "Enter" && search());
  const means = [["text", t("with this text")], ["meaning", t("near in meaning")]];
  return [field(t("Find rows"), input),
    field(t("Search"), select(means, by, (value) => { by = value; search(); })), button(t("Find"), search), told];
}

// ---- what all maps share ------------------------------------------------------------------------

// Select points by their keys; they light up in every map.
function choose(shared, keys) {
  shared.selection = [...new Set(keys)];
  const text = shared.selection.map(encodeURIComponent).join(",");
  shared.page.update({ sel: text.length <= MOST_KEPT ? text : null });
  shared.maps.forEach((map) => map.select());
  shared.list.fill();
}

// Mark a point in every map, and list its neighbors in the original space.
async function pick(shared, key, { isMoved = false } = {}) {
  shared.chosen = key;
  shared.page.update({ word: key });
  shared.changes?.compare(key);
  const lists = await Promise.all(shared.maps.map((map) => map.choose(isMoved)));
  if (shared.chosen !== key) return;
  const times = new Map();
  for (const near of lists) for (const one of near ?? []) times.set(one.key, (times.get(one.key) ?? 0) + 1);
  lists.forEach((near, index) => near?.forEach((one, place) => {
    shared.maps[index].nearItem(place)?.classList.toggle("marked", times.get(one.key) > 1);
  }));
}

// Which part of each map is shown, for the address.
const zooms = ({ maps }) => maps.filter(({ scatter }) => scatter.view.length)
  .map(({ model, scatter }) => [encodeURIComponent(model.id), ...scatter.view].join(":")).join(",");

// ---- one map ------------------------------------------------------------------------------------

function makeMap(shared, model) {
  const { page, isRows, asked } = shared;
  const body = { model: model.id, ...asked };
  const made = card({ title: model.id, name: `map-${model.id}` });
  const [waiting, plot, legend, about, near] =
    ["waiting", "plot", "legend", "soft note", "near"].map((name) => h("div", { class: name }));
  show(made.body, waiting, plot, legend, about, near);
  const what = isRows ? t("rows") : t("words");
  const scatter = new Scatter(plot, {
    label: t("Map of {what} by {model}: arrow keys move it, + and − zoom, Enter chooses the point in the middle",
      { what, model: model.id }),
    onPick: (index) => pick(shared, keyOf(index)), onView: () => shared.keepZoom(),
    onLasso: (indexes) => choose(shared, indexes.map(keyOf)),
  });
  let points; // {x, y, label, counts, meta}
  let [places, turn] = [undefined, 0]; // places of words, once they are asked for
  const keyOf = (index) => (isRows ? index : points.label(index));
  const indexOf = (key) => {
    if (!points) return -1;
    if (isRows) return key < points.x.length && !Number.isNaN(points.x[key]) ? key : -1;
    places ??= new Map(Array.from(points.x, (_, index) => [points.label(index), index]));
    return places.get(key) ?? -1;
  };
  const indexesOf = (keys) => keys.map(indexOf).filter((index) => index >= 0);

  async function load() {
    show(waiting);
    await made.run(async () => {
      const isLong = asked.method !== "pca";
      const preview = isLong && !isRows ? { ...body, method: "pca" } : undefined;
      await job(own("map/start"), body, (state) => {
        if (preview && !points) pointsOf(preview, page.signal).then((found) => {
          if (!points && !page.signal.aborted) take(found, t("PCA, until the map is computed"));
        }).catch(() => {}); // the map itself will tell
        tellWaiting(state);
      }, page.signal);
      show(waiting);
      const found = await pointsOf(body, page.signal);
      take(found);
      await paint();
      restore();
    });
    if (!page.signal.aborted && made.node.querySelector(".error:not([hidden])")) show(waiting, button(t("Start again"), load));
  }

  function tellWaiting({ id, progress, message }) {
    made.progress(progress || undefined, message);
    const told = stages()[message] ?? (message || t("Waiting for other work"));
    const stop = () => post(own(`jobs/${encodeURIComponent(id)}/cancel`), {}).catch((error) => made.fail(error.message));
    if (!waiting.firstChild) show(waiting, h("span", { class: "soft", role: "status" }), button(t("Cancel"), stop));
    waiting.firstChild.textContent = `${told} … ${percent(progress, 0)}`;
  }

  // Show points at once, in the color of links, and say how they were laid out.
  function take(found, note) {
    [points, places] = [found, undefined];
    const { shares, num_unknown: num } = found.meta;
    const usual = shares ? t("Principal components: {first} and {second} of the variance",
      { first: percent(shares[0], 0), second: percent(shares[1], 0) })
      : t("Distances on this map are distorted; neighbors are computed in the original space.");
    const unknown = num > 0 && t("{num} rows without a vector are left out.", { num });
    show(about, [`${number(found.x.length)} ${what}`, usual, unknown, note].filter(Boolean).join(" · "));
    scatter.setPoints({ x: points.x, y: points.y, labels: points.label });
    mark();
  }

  function restore() {
    const at = (page.params.zoom ?? "").split(",").map((one) => one.split(":"))
      .find(([id]) => id === encodeURIComponent(model.id));
    if (at) scatter.view = at.slice(1).map(Number);
    else if (shared.chosen !== undefined) mark(true);
    const { x, y, label, counts } = points;
    const more = (index) => (counts ? [index < 0 ? "count" : counts[index]] : []);
    made.exports({
      png: () => scatter.canvas, svg: () => scatter.toSvg(),
      csv: () => [["model", isRows ? "row" : "word", "x", "y", ...more(-1)],
        ...Array.from(x, (across, index) => [model.id, label(index), across, y[index], ...more(index)])],
    });
    made.code(pythonOf(shared, model), commandOf(shared, model));
  }

  async function paint() {
    if (!points) return;
    const mine = ++turn;
    const found = await made.run(() => paletteOf(shared, body, points));
    if (!found || mine !== turn || page.signal.aborted) return;
    const at = scatter.view;
    scatter.setPoints({ x: points.x, y: points.y, labels: points.label, ...found.paint });
    scatter.view = at;
    mark();
    show(legend, found.scale && [h("span", {}, found.scale[0]), h("span", { class: "scale" }), h("span", {}, found.scale[1])],
      found.names?.map((name, kind) => h("button", {
        type: "button", class: "plain", title: t("Select these points"),
        onclick: () => choose(shared, Array.from(points.x.keys()).filter((index) =>
          found.paint.category[index] === kind && !Number.isNaN(points.x[index])).map(keyOf)),
      }, h("i", { style: { background: color(`category-${kind % 10}`) } }), name)));
  }

  // The selection, the chosen point and the lines to its neighbors.
  function mark(isMoved = false) {
    if (!points) return;
    scatter.setSelection(indexesOf(shared.selection));
    const index = shared.chosen === undefined ? -1 : indexOf(shared.chosen);
    const others = index < 0 ? [] : indexesOf((map.near ?? []).map((one) => one.key));
    scatter.link(index, others, isMoved);
  }

  const map = {
    model, card: made, scatter, load, paint, indexOf, select: () => mark(),
    place: (index) => [points.x[index], points.y[index]],
    nearItem: (place) => near.querySelectorAll(".bars li")[place],
    async choose(isMoved) {
      const key = shared.chosen;
      map.near = undefined;
      mark(isMoved);
      try {
        const found = await (isRows ? nearRows : nearWords)(shared, model, key);
        if (shared.chosen !== key || page.signal.aborted) return;
        map.near = found.near;
        mark();
        const isAway = points && !isRows && indexOf(key) < 0;
        const away = t("“{word}” is not among the points of this map.", { word: key });
        show(near, isAway && h("p", { class: "soft note wrap" }, away), found.head, bars(found.near.map((one) => ({
          label: one.label, value: one.score, onclick: () => pick(shared, one.key, { isMoved: true }),
        })), { max: 1 }));
      } catch (error) {
        if (error.name !== "AbortError") show(near, h("p", { class: "error wrap" }, error.message));
      }
      return map.near;
    },
  };
  return map;
}

const stages = () => ({
  Starting: t("Starting"), "Moving the points": t("Moving the points"), "Embedding the rows": t("Embedding the rows"),
  "Finding the nearest neighbors of every point": t("Finding the nearest neighbors of every point"),
});

async function pointsOf(body, signal) {
  const { meta, columns: { x, y, is_known: isKnown, labels, ends, counts } } = await columns(own("map/points"), body, signal);
  isKnown.values.forEach((known, index) => { if (!known) x.values[index] = NaN; });
  const text = new TextDecoder();
  const label = (index) => text.decode(labels.values.subarray(index ? ends.values[index - 1] : 0, ends.values[index]));
  return { meta, label, x: x.values, y: y.values, counts: counts?.values };
}

// Colors and what they mean: {paint, names} or {paint, scale}.
async function paletteOf({ page, color: name, isRows }, body, points) {
  const all = categories();
  if (name === "cluster") {
    const clusters = Math.min(10, Math.max(2, Number(page.params.clusters) || 10));
    const { meta, columns: { category } } = await columns(own("map/clusters"), { ...body, clusters }, page.signal);
    return { paint: { colors: all, category: category.values }, names: meta.names.map((near) => near.join(" · ")) };
  }
  if (name === "none") return { paint: {} };
  if (isRows) {
    const { meta, columns: { category, value } } =
      await columns(own("map/rows/column"), { name: name.slice("column:".length) }, page.signal);
    const ends = () => [meta.low, meta.high].map((one) => String(Number(one.toPrecision(6))));
    if (value) return { paint: { value: value.values }, scale: ends() };
    const names = [...meta.names, ...(meta.has_others ? [t("others and none")] : [])];
    return { paint: { colors: all, category: category.values }, names };
  }
  // Vectors of a file have no counts, but their words stand in the order of frequency.
  const often = ({ counts }, index) => (counts ? Math.log(counts[index] + 1) : -Math.log(index + 1));
  return { paint: { value: Float32Array.from(points.x, (_, index) => often(points, index)) }, scale: [t("rare"), t("frequent")] };
}

async function nearWords({ page }, model, word) {
  const body = { model: model.id, word, num: NUM_NEAR, known_only: true };
  const { neighbors } = await post(own("words/neighbors"), body, page.signal);
  const told = neighbors ? t("Nearest to “{word}”", { word }) : t("“{word}” is not in this vocabulary.", { word });
  const near = (neighbors ?? []).map((one) => ({ key: one.word, label: one.word, score: one.score }));
  return { near, head: h("h3", { class: "wrap" }, told) };
}

async function nearRows({ page }, model, index) {
  const { rows } = await post(own("map/rows/search"), { model: model.id, index, num: NUM_NEAR + 1 }, page.signal);
  const chosen = rows.find((row) => row.index === index);
  const cells = Object.entries(chosen?.cells ?? {}).map(([name, cell]) => `${name}: ${cell}`).join(" · ");
  const others = rows.filter((row) => row !== chosen).slice(0, NUM_NEAR);
  return {
    near: others.map((row) => ({ key: row.index, label: row.text.slice(0, 120), score: row.score })),
    head: chosen && [h("blockquote", { class: "wrap" }, chosen.text), h("p", { class: "soft note" }, cells),
      h("h3", {}, t("Nearest rows"))],
  };
}

function pythonOf({ asked, isRows, rows, color: name, page }, model) {
  const units = (isRows ? `from sememe.explore.rows import OwnRows\n\npoints = OwnRows(${py(rows.path)}).points_by(model)`
    : `from sememe.plots.vocabulary import word_points\n\npoints = word_points(model.words, ${asked.num})`)
    + "\nunits = points.units_ND\n";
  const laidOut = asked.method === "pca" ? "from sememe.plots.projection import project\n\nplaces, shares = project(units)"
    : "from sememe.plots.manifold import Manifold, lay_out\n\n"
    + `places = lay_out(units, Manifold(${py(asked.method)}, ${asked.neighbors}))`;
  const colored = name === "cluster" ? "\n\nfrom sememe.plots.vocabulary import cluster_points\n\n"
    + `clusters, names = cluster_points(units, points.labels, ${page.params.clusters ?? 10})` : "";
  return `${loaded(model)}\n${units}\n${laidOut}${colored}`;
}

const commandOf = ({ asked: { method, num, neighbors }, isRows, rows, color: name, page }, model) =>
  `sememe plot map ${sh(model.path)} --method ${method} ${isRows ? `--rows ${sh(rows.path)}` : `--words ${num}`}`
    + `${method === "pca" ? "" : ` --neighbors ${neighbors}`}`
    + `${name === "cluster" ? ` --clusters ${page.params.clusters ?? 10}` : ""} --out map.csv`;

// ---- the selection and what changed --------------------------------------------------------------

function selectionCard(shared) {
  const { page, isRows, maps } = shared;
  const made = card({ title: t("Selection"), name: "map-selection" });
  const model = page.models.find((one) => can(one, "words"));
  function fill() {
    const keys = shared.selection;
    const named = (key) => (isRows ? maps.find((one) => one.indexOf(key) >= 0)?.scatter.labels(key) ?? `${key}` : key);
    const num = number(keys.length);
    made.node.querySelector(".code").hidden = true;
    if (!keys.length) {
      made.exports({});
      return void show(made.body, h("p", { class: "soft" },
        t("Draw around points with the lasso (⬚, or hold Shift): the same points light up in every map.")));
    }
    announce(t("{num} selected", { num }));
    const isFew = !isRows && keys.length <= 40;
    const alike = () => page.open("words", { part: "similarity", list: keys.join(" ") });
    const more = keys.length - MOST_SHOWN;
    show(made.body, h("div", { class: "tools" }, h("strong", {}, t("{num} selected", { num })),
      button(t("Clear"), () => choose(shared, [])),
      isFew && keys.length > 1 && button(t("Similarity of these words"), alike)),
    h("div", { class: isRows ? "chosen rows" : "chosen" }, keys.slice(0, MOST_SHOWN).map((key) =>
      button(named(key), () => pick(shared, key, { isMoved: true }), { class: "plain" })),
    more > 0 && h("span", { class: "soft" }, t("and {num} more, all of them in the CSV", { num: number(more) }))));
    made.exports({ csv: () => [[isRows ? "row" : "word", "model", "x", "y"], ...keys.flatMap((key) =>
      maps.filter((one) => one.indexOf(key) >= 0).map((one) => [named(key), one.model.id, ...one.place(one.indexOf(key))]))] });
    if (isFew && model && keys.length >= 3)
      made.code(`${loaded(model)}from sememe.plots.projection import pca\n\npca(model.words, ${py(keys)}, "map.png")`,
        `sememe plot pca ${sh(model.path)} ${keys.map(sh).join(" ")} --out map.png`);
  }
  fill();
  return { node: made.node, fill };
}

function changesCard(shared) {
  const { page } = shared;
  const models = page.models.filter((one) => can(one, "words") && !one.is_one_hot);
  if (shared.isRows || models.length < 2) return;
  const made = card({
    title: t("Neighbors gained and lost"), name: "map-changes",
    about: t("Words whose nearest neighbors differ most, among the 5,000 most frequent words that both models have."),
  });
  const pairs = models.flatMap((one, index) => models.slice(index + 1).map((other) => [one, other]));
  const choices = pairs.map((pair, index) => [index, pair.map((one) => one.id).join(" – ")]);
  const compare = (word) => made.run(async (isCurrent) => {
    const [model, other] = pairs[Number(page.params.pair)] ?? pairs[0];
    const ask = (more) => post(own("map/changes"), { model: model.id, other: other.id, top: 20, ...more }, page.signal);
    // The chosen word may be unknown to one of the two.
    const found = await (word ? ask({ word }).catch(() => ask({})) : ask({}));
    if (!isCurrent()) return;
    const row = ({ word: name, overlap, lost, gained }) => [
      button(name, () => pick(shared, name, { isMoved: true }), { class: "plain" }), percent(overlap, 0),
      lost.join(", "), gained.join(", ")];
    const heads = [t("Word"), t("In common"), t("Neighbors in {model} alone", { model: model.id }),
      t("Neighbors in {model} alone", { model: other.id })];
    const share = percent(found.mean, 0);
    show(made.body, h("p", {}, t("On average, {share} of the ten nearest words are the same.", { share })),
      found.word && table(heads, [row(found.word)], t("The chosen word")),
      table(heads, found.changes.map(row), t("Most changed")));
    made.exports({ csv: () => [["word", "overlap", `only ${model.id}`, `only ${other.id}`],
      ...[found.word, ...found.changes].filter(Boolean).map((one) =>
        [one.word, one.overlap, one.lost.join(" "), one.gained.join(" ")])] });
    made.code(`import sememe\nfrom sememe.vectors.comparison import Comparison\n\n`
      + `first, second = sememe.load(${py(model.path)}), sememe.load(${py(other.path)})\n`
      + "comparison = Comparison(first.words, second.words, 5000)\n"
      + `comparison.overlaps(10).mean(), comparison.${found.word ? `change(${py(found.word.word)})` : "most_changed(20)"}`,
    `sememe inspect changes ${[model.path, other.path].map(sh).join(" ")}${found.word ? ` --word ${sh(found.word.word)}` : ""}`);
  });
  if (pairs.length > 1) show(made.tools, field(t("Models"), select(choices, page.params.pair ?? 0, (index) => {
    page.update({ pair: index });
    compare(shared.chosen);
  })));
  return { node: made.node, compare };
}
