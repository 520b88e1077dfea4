// Context: one word in many sentences, a point for each use, from the input vectors to the last layer.

import { columns, get, own, post, translated } from "../api.js";
import { announce, categories, color, h, show } from "../dom.js";
import { number, percent, t } from "../i18n.js";
import { Scatter } from "../scatter.js";
import { button, card, failIn, field, loaded, modelCard, player, py, select, sh, slider, wordInput } from "../widgets.js";

const NUMBERS = [50, 150, 300, 500];
const [NEAREST, LABELED, FEW] = [6, 12, 10];
const FIRST = ["bert", "sentence", "elmo", "gpt"]; // kinds whose vectors differ most between senses
const isStatic = (model) => model.num_layers === 1;

export const view = {
  id: "context", title: "Context", most: 4, uses: (model) => model.capabilities.includes("embed_words"),
  needs: () => t("This view needs a model that reads words in their context, such as ELMo, BERT or GPT."),
  // A network and word vectors of the same language.
  first(known) {
    const rank = (model) => (FIRST.indexOf(model.kind) + FIRST.length + 1) % (FIRST.length + 1);
    const network = known.filter((model) => !isStatic(model)).sort((a, b) => rank(a) - rank(b))[0];
    const own = known.filter((one) => isStatic(one) && !one.is_one_hot && (!network || one.language === network.language));
    const vectors = own.find((model) => model.kind === "word2vec") ?? own[0];
    return [...new Set([network, vectors, ...known].filter(Boolean))];
  },
  render(root, page) {
    const stage = { page, panels: [] };
    start(root, stage).catch(failIn(root));
    return () => stage.panels.forEach((one) => one.stop());
  },
};

// What is before a word, the word, and what follows; Python counts characters, JavaScript halves of rare ones.
function parts({ sentence, start, end }) {
  const marks = [...sentence];
  return [[0, start], [start, end], [end]].map((range) => marks.slice(...range));
}

// A sentence with the word marked, short enough for a list.
function marked(use, around = Infinity) {
  const [left, word, right] = parts(use);
  return [left.length > around ? `…${left.slice(-around).join("")}` : left.join(""), h("mark", {}, word.join("")),
    right.length > around ? `${right.slice(0, around).join("")}…` : right.join("")];
}

// A use in a few words.
function snippet(use) {
  const [left, word, right] = parts(use).map((part) => part.join(""));
  const [before, after] = /\s/u.test(use.sentence) ? [/(?:\S+\s+){0,2}\S*$/u, /^\S*(?:\s+\S+){0,2}/u]
    : [/.{0,4}$/su, /^.{0,5}/su];
  return before.exec(left)[0] + word + after.exec(right)[0];
}

async function start(root, stage) {
  const { page } = stage;
  show(root, h("p", { class: "soft", role: "status" }, t("Looking for words in the text …")));
  const query = new URLSearchParams({ model: page.models[0].id });
  const examples = await get(own(`context/examples?${query}`), page.signal);
  const first = page.params.word ? page.params : examples.words[0] ?? { word: "" };
  stage.asked = { word: first.word, set: first.set ?? "", num: Number(page.params.num) || 150 };
  const top = wordCard(stage, examples);
  const middle = h("div", { class: "view context" });
  show(root, top.node, middle);
  const found = stage.asked.word && await top.run(() => post(own("context/uses"), stage.asked, page.signal));
  if (!found) return;
  stage.uses = found.uses;
  top.tell(found, await translated(examples.text));
  if (stage.uses.length > 1) await drawStage(middle, stage, top);
}

// ---- the word -----------------------------------------------------------------------------------

function wordCard(stage, examples) {
  const { page, asked } = stage;
  const ask = (more) => page.update({ ...asked, pick: null, ...more }, { redraw: true });
  const made = card({ title: t("A word in many sentences"), name: "context-word", className: "plain-card",
    about: t("Each point is one use of the word. Move the slider from the input vectors, without context, to the last layer.") });
  const word = wordInput({ label: t("Word"), value: asked.word, models: () => page.models.filter((model) => model.num_words),
    onEnter: (value) => value && ask({ word: value, set: "" }) });
  const sentence = h("input", { type: "text", value: page.params.own ?? "", spellcheck: "false", maxlength: 2000,
    onkeydown: (event) => event.key === "Enter" && ask({ own: sentence.value.trim() }) });
  const wide = field(t("A sentence of your own with this word"), sentence);
  wide.classList.add("wide");
  const chip = (one) => button(one.word, () => ask({ ...one, own: null, color: null }),
    { class: "chip", "aria-pressed": String(one.word === asked.word && one.set === asked.set) });
  const sources = h("span");
  show(made.body, h("div", { class: "tools" }, word, sources,
    field(t("Uses"), select(NUMBERS.map((num) => [num, num]), asked.num, (num) => ask({ num }))),
    button(t("Show"), () => ask({ word: word.input.value.trim() || asked.word }), { class: "primary" }), wide,
    button(t("Find the nearest uses"), () => ask({ own: sentence.value.trim() }))),
  [[t("In the text:"), ""], [t("With known senses:"), "set"]].map(([title, kind]) => {
    const chips = examples.words.filter((one) => Boolean(one.set) === Boolean(kind)).map(chip);
    return chips.length > 0 && h("div", { class: "examples" }, h("span", { class: "soft" }, title), chips);
  }));
  // What was searched, and the sense sets that have the word.
  made.tell = (found, text) => {
    const sets = Object.entries(found.sets);
    if (sets.length) show(sources, field(t("Sentences"), select(
      [["", t("of the text")], ...sets.map(([name, num]) => [name, t("{num} with known senses ({name})", { num, name })])],
      asked.set, (set) => ask({ set, color: null }))));
    const told = asked.set ? t("{num} ready-made sentences; which sense they have is known.", { num: found.uses.length })
      : searched(found, text, asked.word);
    made.body.append(h("p", { class: "soft note" }, told));
    announce(told);
  };
  return made;
}

function searched(found, text, word) {
  const told = [t("Text: {text} ({documents} documents, {size} MB).",
    { text, documents: number(found.num_documents), size: number(found.num_bytes / 1e6, 1) })];
  if (!found.uses.length) told.push(t("“{word}” does not occur in it.", { word }));
  else told.push(t("{num} of {found} uses shown.", { num: found.uses.length, found: number(found.num_found) }));
  if (found.num_checked < found.num_hits)
    told.push(t("{checked} of {hits} places were looked at, evenly spread.",
      { checked: number(found.num_checked), hits: number(found.num_hits) }));
  if (found.is_part) told.push(t("It occurs only inside longer words."));
  if (!found.is_whole) told.push(t("Only the first part of the text is searched."));
  if (found.uses.length && found.uses.length < FEW) told.push(t("These are few: groups need more uses."));
  return told.join(" ");
}

// ---- all models ---------------------------------------------------------------------------------

async function drawStage(root, stage, top) {
  const { page, asked, uses } = stage;
  stage.panels = page.models.map((model) => newPanel(stage, model));
  const tools = h("div", { class: "tools" });
  const legend = h("div", { class: "examples", role: "group", "aria-label": t("Colors") });
  const reader = card({ title: t("Sentence"), name: "context-sentence" });
  reader.node.hidden = true;
  show(root, h("section", { class: "card controls" }, tools, legend),
    h("div", { class: "side-by-side contexts" }, stage.panels.map((panel) => panel.card.node)), reader.node, listOf(stage));
  Object.assign(stage, { tools, legend, reader });
  const body = { ...asked, clusters: Number(page.params.clusters) || 0, sentence: page.params.own ?? "" };
  await Promise.all(stage.panels.map(async (panel) => {
    const found = await panel.card.run(() => columns(own("context/points"), { model: panel.model.id, ...body }, page.signal));
    if (found) panel.found = { ...found.meta, ...found.columns };
  }));
  if (page.signal.aborted) return;
  stage.drawn = stage.panels.filter((panel) => panel.found);
  if (!stage.drawn.length) return;
  const { problem } = stage.drawn[0].found;
  if (problem) top.fail(problem);
  stage.depth = Math.max(...stage.drawn.map((panel) => panel.found.num_layers - 1));
  stage.step = Math.min(Number(page.params.layer ?? stage.depth) || 0, stage.depth);
  drawTools(stage);
  for (const panel of stage.drawn) panel.begin();
  paint(stage);
  if (uses[page.params.pick]) choose(stage, Number(page.params.pick), false);
}

function drawTools(stage) {
  const { page, depth } = stage;
  const go = (step) => {
    stage.step = step;
    page.update({ layer: step });
    for (const panel of stage.drawn) panel.move();
  };
  const control = slider({ label: t("Layer"), min: 0, max: depth, value: stage.step, onChange: go,
    text: (step) => t("{step} of {depth}", { step, depth }) });
  const play = player(page, () => {
    const next = (stage.step + 1) % (depth + 1); // from the last layer back to the first
    control.move(next);
    go(next);
    return next < depth;
  }, 900);
  const ways = colorings(stage);
  stage.coloring = ways.find((one) => one.id === page.params.color) ?? ways[0];
  const chooser = select(ways.map(({ id, title }) => [id, title]), stage.coloring.id, (id) => {
    stage.coloring = ways.find((one) => one.id === id);
    page.update({ color: id });
    paint(stage);
  });
  const clusters = select([[0, t("automatic")], ...[2, 3, 4, 5, 6].map((num) => [num, num])], page.params.clusters ?? 0,
    (num) => page.update({ clusters: num, color: null }, { redraw: true }));
  show(stage.tools, depth > 0 && [control, play], field(t("Color"), chooser),
    ways.some((one) => one.id.startsWith("clusters")) && field(t("Clusters"), clusters));
}

// What can color the points: [{id, title, of: use index → category, names} or {value}]
function colorings({ uses, asked, drawn }) {
  const groups = [...new Set(uses.map((use) => use.group))].filter(Boolean);
  const count = (name) => uses.filter((use) => use.group === name).length;
  const kept = groups.sort((a, b) => count(b) - count(a)).slice(0, 9);
  const grouping = (id, title) => ({ id, title, names: groups.length > 9 ? [...kept, t("others")] : kept,
    of: (index) => (kept.indexOf(uses[index].group) + 10) % 10 });
  const found = asked.set && groups.length > 1 ? [grouping("senses", t("known senses"))] : [];
  for (const { model, found: { clusters, cluster } } of drawn) {
    if (clusters.length < 2) continue;
    const names = clusters.map(({ words }, index) => words.join(" · ") || t("group {num}", { num: index + 1 }));
    found.push({ id: `clusters:${model.id}`, title: t("clusters of {model}", { model: model.id }), names,
      of: (index) => cluster.values[index] });
  }
  if (!asked.set && groups.length > 1) found.push(grouping("documents", t("documents")));
  found.push({ id: "place", title: t("place in the text"), value: uses.map((_, index) => index) });
  return found;
}

function paint(stage) {
  const { coloring: { of, names }, uses, legend, drawn } = stage;
  for (const panel of drawn) panel.paint();
  let chosen = -1;
  const items = (names ?? []).map((name, category) => {
    const members = Array.from(uses.keys()).filter((index) => of(index) === category);
    const dot = h("i", { class: "dot", style: { background: categories()[category] } });
    return button([dot, name, h("small", {}, members.length)], () => {
      chosen = chosen === category ? -1 : category;
      items.forEach((item, place) => item.setAttribute("aria-pressed", String(place === chosen)));
      for (const panel of drawn) panel.scatter.setSelection(chosen < 0 ? [] : members);
    }, { class: "chip", "aria-pressed": "false" });
  });
  show(legend, items.length ? items
    : h("span", { class: "soft" }, t("From light, the first use in the text, to strong, the last.")));
}

// ---- one model ----------------------------------------------------------------------------------

function newPanel(stage, model) {
  const { page } = stage;
  const made = modelCard(page, model, "context");
  const [plot, told, nearest] = [h("div", { class: "plot" }), h("p", { class: "soft note" }), h("div")];
  const panel = { model, card: made, told, nearest };
  panel.stop = () => cancelAnimationFrame(panel.frame) || panel.scatter?.observer.disconnect();
  const at = () => Math.round((stage.step / (stage.depth || 1)) * (panel.found.num_layers - 1));
  // The points of a layer, and after them one's own sentence; a use that the model does not know is NaN.
  const row = (name, layer) => {
    const { is_known: known, own: mine, [name]: { values } } = panel.found;
    const places = rowOf(values, layer, stage.uses).map((value, place) => (known.values[place] ? value : NaN));
    return mine ? [...places, mine.values[2 * layer + (name === "x" ? 0 : 1)]] : places;
  };
  const label = t("Uses of “{word}” in {model} as points; arrow keys move, Enter picks",
    { word: stage.asked.word, model: model.id });
  panel.begin = () => {
    show(made.body, plot, told, nearest);
    panel.scatter = new Scatter(plot, { label, onPick: (place) => place < stage.uses.length && choose(stage, place) });
    [panel.x, panel.y] = [row("x", at()), row("y", at())];
    panel.move(false);
  };
  panel.paint = () => {
    const { of, value } = stage.coloring;
    const [num, { view }] = [stage.uses.length, panel.scatter]; // another color keeps the zoom
    const layers = Array.from({ length: panel.found.num_layers }, (_, layer) => layer);
    const labeled = panel.found.is_one_point ? new Set() : farApart(panel.x.slice(0, num), panel.y, LABELED);
    const palette = [...categories(), color("ink")];
    panel.scatter.setPoints({
      x: panel.x, y: panel.y, colors: palette,
      size: panel.x.map((_, place) => (place < num ? (num > 200 ? 3.4 : 4.4) : 8)),
      frame: { x: layers.flatMap((layer) => row("x", layer)), y: layers.flatMap((layer) => row("y", layer)) },
      category: value ? undefined : panel.x.map((_, place) => (place < num ? of(place) : palette.length - 1)),
      value: value && panel.x.map((_, place) => value[place] ?? num),
      labels: (place) => (place === num ? t("your sentence") : labeled.has(place) ? snippet(stage.uses[place]) : ""),
      told: (place) => (place === num ? [t("your sentence"), ": ", page.params.own] : marked(stage.uses[place], 90)),
    });
    Object.assign(panel.scatter, { marked: stage.pick ?? (panel.found.own ? num : -1), view });
  };
  // Let the points move to their places in the layer of the slider.
  panel.move = (isMoving = true) => {
    cancelAnimationFrame(panel.frame);
    const [from, to] = [[panel.x, panel.y], [row("x", at()), row("y", at())]];
    const isStill = !isMoving || matchMedia("(prefers-reduced-motion: reduce)").matches;
    const begin = performance.now();
    const step = (now) => {
      const share = isStill ? 1 : Math.max(0, Math.min(1, (now - begin) / 450));
      const part = share * share * (3 - 2 * share);
      [panel.x, panel.y] = to.map((places, axis) =>
        places.map((place, one) => from[axis][one] + part * (place - from[axis][one])));
      panel.scatter.setPositions(panel.x, panel.y);
      if (share < 1) panel.frame = requestAnimationFrame(step);
    };
    step(begin);
    tellLayer(stage, panel, at());
  };
  return panel;
}

// Points of which each is far from those before it, so that their labels have room.
function farApart(x, y, most) {
  const distances = x.map((value) => (Number.isNaN(value) ? -1 : Infinity));
  const found = new Set();
  let last = distances.indexOf(Infinity);
  while (found.size < most && distances[last] > 0) {
    found.add(last);
    x.forEach((value, place) => {
      distances[place] = Math.min(distances[place], Math.hypot(value - x[last], y[place] - y[last]));
    });
    last = distances.indexOf(Math.max(...distances));
  }
  return found;
}

const rowOf = (values, layer, { length }) => Array.from(values.subarray(layer * length, (layer + 1) * length));

// What is known about a layer, and what may be saved of it.
function tellLayer(stage, panel, layer) {
  const { model, card: made, found, told, nearest } = panel;
  const { uses } = stage;
  const last = found.num_layers - 1;
  const lines = [isStatic(model) ? "" : t("Layer {layer} of {num}", { layer, num: last })];
  if (layer < last && layer === 0) lines.push(t("input vectors: uses differ only by position and spelling"));
  if (found.is_one_point) lines.push(t("One vector for the word, whatever the sentence: all uses fall on one point."));
  else lines.push(t("Mean cosine of two uses: {cosine}", { cosine: found.mean_cosines[layer].toFixed(3) }));
  if (found.same_sense && !found.is_one_point) lines.push(t("The nearest use has the same sense: {share} (by chance {chance})",
    { share: percent(found.same_sense[layer], 0), chance: percent(found.chance, 0) }));
  if (found.num_unknown) lines.push(t("{num} uses are unknown to the model.", { num: found.num_unknown }));
  show(told, lines.filter(Boolean).join(" · "));
  const cosines = found.cosines && rowOf(found.cosines.values, layer, uses);
  const best = cosines && Array.from(uses.keys()).filter((place) => found.is_known.values[place])
    .sort((a, b) => cosines[b] - cosines[a]).slice(0, NEAREST);
  if (best) show(nearest, h("h3", {}, t("Nearest to your sentence")), found.is_one_point
    ? h("p", { class: "soft" }, t("All uses are equally near: {cosine}", { cosine: cosines[best[0]].toFixed(4) }))
    : h("ol", { class: "uses" }, best.map((place) => item(stage, place, cosines[place].toFixed(4), 60))));
  const heads = ["model", "layer", "sentence", "start", "end", "group", "cluster", "x", "y", ...(cosines ? ["cosine"] : [])];
  const cells = (use, place) => [model.id, layer, use.sentence, use.start, use.end, use.group, found.cluster.values[place],
    ...[found.x, found.y].map((axis) => axis.values[layer * uses.length + place]), ...(cosines ? [cosines[place]] : [])];
  made.exports({ png: () => panel.scatter.canvas, svg: () => panel.scatter.toSvg(), csv: () => [heads, ...uses.map(cells)] });
  const { params, state } = stage.page;
  const text = stage.asked.set ? "" : state.text;
  const options = { text, set: stage.asked.set, num: stage.asked.num, clusters: Number(params.clusters),
    sentence: cosines && params.own };
  const given = Object.entries(options).filter(([name, value]) => value && (name !== "num" || value !== 150));
  const call = [py(stage.asked.word), ...given.map(([name, value]) => `${name}=${py(value)}`)].join(", ");
  made.code(`${loaded(model)}from sememe.explore.word_contexts import word_contexts\n\n`
    + `found = word_contexts(model, ${call})\nfound.rows(layer=${layer})`,
  `sememe inspect context ${[model.path, stage.asked.word].map(sh).join(" ")} --layer ${layer}`
    + given.map(([name, value]) => ` --${name} ${sh(String(value))}`).join(""));
}

// ---- one use, and all as a list -----------------------------------------------------------------

function choose(stage, place, isNew = true) {
  const { page, uses, reader, drawn } = stage;
  const use = uses[place];
  stage.pick = place;
  page.update({ pick: place });
  for (const { scatter } of drawn) {
    scatter.marked = place;
    scatter.draw();
  }
  reader.node.hidden = false;
  show(reader.body, h("p", { class: "wrap sentence" }, h("span", { class: "soft" }, use.before, " "), marked(use),
    h("span", { class: "soft" }, " ", use.after)),
  h("p", { class: "soft wrap" }, use.group && `${stage.asked.set ? t("Sense") : t("Document")}: ${use.group}`),
  button(t("Find the nearest uses of this one"), () => page.update({ own: use.sentence }, { redraw: true })));
  if (isNew) reader.node.scrollIntoView({ block: "nearest" });
  announce(use.sentence);
}

// A use in a list; a click opens it.
const item = (stage, place, told, around) => h("li", {}, h("span", { class: "value" }, told),
  button(marked(stage.uses[place], around), () => choose(stage, place), { class: "plain" }));

const listOf = (stage) => h("details", { class: "card all-uses" },
  h("summary", {}, t("All {num} sentences", { num: stage.uses.length })),
  h("ol", { class: "uses" }, stage.uses.map((_, place) => item(stage, place, place + 1))));
