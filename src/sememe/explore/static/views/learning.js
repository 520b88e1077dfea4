// How it learns: a step of word2vec with its numbers, a training in which points move, BERT's masks.

import { columns, job, own, post } from "../api.js";
import { barGroups, colorKey, lineChart, matrix, textPicture } from "../charts.js";
import { announce, color, debounced, h, show } from "../dom.js";
import { language, number, percent, t } from "../i18n.js";
import { Scatter } from "../scatter.js";
import {
  area, bars, button, card, drawParts, exampleChips, examplesOf, field, inputCard, loaded, markedText, player, py, select, sh,
  slider, table,
} from "../widgets.js";

const PARTS = {
  step: { draw: drawStep, title: () => t("A step of word2vec") },
  film: { draw: drawFilm, title: () => t("A training") },
  masks: { draw: drawMasks, title: () => t("BERT's masks") },
};

export const view = {
  id: "learning", title: "How it learns", most: 1,
  uses: ({ kind }, params) => kind === "bert" ? params?.part === "masks" || !params : kind === "word2vec" && !params,
  render(root, page) {
    const { masks, ...others } = PARTS;
    const parts = page.state.models.some(({ kind, error }) => kind === "bert" && !error) ? PARTS : others;
    return drawParts(root, page, parts, page.params.part in parts ? page.params.part : "step");
  },
};

// Options that the address keeps: {values, controls}; those with their usual value are left out of it.
function optionsOf(page, usual, choices, onChange) {
  const values = Object.fromEntries(Object.entries(usual).map(([name, value]) =>
    [name, page.params[name] === undefined ? value : typeof value === "number" ? Number(page.params[name]) : page.params[name]]));
  const set = (name) => (value) => {
    values[name] = typeof usual[name] === "number" ? Number(value) : value;
    page.update({ [name]: values[name] === usual[name] ? undefined : value });
    onChange(name);
  };
  const controls = Object.entries(choices).map(([name, [label, given]]) => field(label,
    select(given.map((one) => (Array.isArray(one) ? one : [one, one])), values[name], set(name))));
  const changed = () => Object.entries(values).filter(([name, value]) => value !== usual[name]);
  return { values, controls, python: () => changed().map(([name, value]) => `, ${name}=${py(value)}`).join(""),
    flags: () => changed().map(([name, value]) => ` --${name.replace("_", "-")} ${value}`).join("") };
}

// Examples of sentences to click.
const sentencesOf = (page, name, onClick) => {
  const texts = examplesOf(page, name).sentence.map(([text]) => text);
  return [texts[0], exampleChips(texts.map((text) => [text, () => onClick(text)]))];
};

// ---- a step of word2vec ----

const MOST_PASSES = 60;

function drawStep(root, page) {
  let step = Math.max(0, Number(page.params.step ?? 0) || 0);
  let num = 1; // pairs of a pass
  const [first, chips] = sentencesOf(page, language, (text) => restart(text));
  const text = area(t("Sentence"), page.params.text ?? first, () => restart(), 1);
  const options = optionsOf(page, { dim: 8, window: 2, negatives: 3, learning_rate: 0.2, seed: 1 }, {
    dim: [t("Dimensions"), [2, 4, 8, 16]], window: [t("Window"), [1, 2, 3, 5]], negatives: [t("Noise words"), [1, 2, 3, 5, 10]],
    learning_rate: [t("Learning rate"), [0.025, 0.05, 0.1, 0.2, 0.5]], seed: [t("Seed"), [1, 2, 3, 4, 5]],
  }, (name) => (name === "window" ? restart() : load()));
  const pair = card({ title: t("1. A pair from the window"), name: "step-pair",
    about: t("Each word is the center once. Its vector is to recognize the words around it among random noise words.") });
  const sums = card({ title: t("2. Dot products and sigmoids"), name: "step-decisions",
    about: t("The sigmoid makes a probability of a dot product: it should be 1 for the true word, 0 for noise words.") });
  const update = card({ title: t("3. The update"), name: "step-update",
    about: t("The input vector v moves towards the true word, away from noise words; their output vectors u move, too.") });
  const losses = card({ title: t("The loss of each pass over the sentence"), name: "step-losses" });
  const slide = slider({ label: t("Step"), min: 1, max: 2, value: step + 1, onChange: (value) => go(value - 1) });
  function go(value) {
    step = Math.max(0, Math.min(MOST_PASSES * num - 1, 4999, value));
    slide.move(step + 1);
    load();
    return step < slide.input.max - 1;
  }
  const restart = (value = text.input.value) => {
    [text.input.value, step] = [value, 0];
    load();
  };
  const load = debounced(() => pair.run(async (isCurrent) => {
    page.update({ text: text.input.value, step: step || undefined });
    const given = { text: text.input.value, ...options.values };
    const found = await post(own("learning/step"), { ...given, step }, page.signal);
    if (!isCurrent()) return;
    num = found.num_pairs;
    slide.input.max = Math.min(5000, MOST_PASSES * num);
    slide.move(step + 1);
    drawPair(pair, found);
    drawDecisions(sums, found, options.values.learning_rate);
    drawUpdate(update, found);
    drawLosses(losses, found);
    pair.code("from sememe.models.word2vec.steps import training_step\n\n"
      + `at = training_step(${py(given.text)}, ${step}${options.python()})\nat.pair, at.decisions, at.input, at.outputs`,
    `sememe inspect step ${sh(given.text)} --step ${step}${options.flags()}`);
  }, () => [pair, sums, update, losses].forEach((one) => one.clear())), 30);
  const play = player(page, () => go(step + 1), 700);
  const jump = (label, value, name) => button(label, () => { play.stop(); go(value()); }, { "aria-label": name });
  show(root, inputCard(PARTS.step.title(), t("Skip-gram with negative sampling on one sentence, pair after pair."),
    [text, button(t("Start"), () => restart(), { class: "primary" }), options.controls],
    h("div", { class: "tools" }, slide, jump("◀", () => step - 1, t("Step back")), jump("▶|", () => step + 1, t("Step on")), play,
      jump(t("Next pass"), () => (Math.floor(step / num) + 1) * num)), chips), pair.node,
  h("div", { class: "panels" }, h("div", { class: "view" }, sums.node, losses.node), update.node));
  load();
}

function drawPair(one, { sentence, window: [first, last], pair: [center, context], decisions, num_pairs: num, step }) {
  const roles = { [center]: ["blue", 0.45, t("center")], [context]: ["category-1", 0.45, t("to recognize")] };
  const role = (index) => roles[index] ?? (index >= first && index <= last ? ["faint", 0.25, t("window")] : ["", 0, "\u00a0"]);
  const parts = sentence.flatMap((text, index) => {
    const [hue, share, note] = role(index);
    return [{ text: index ? " " : "" }, { text, note, share, hue: hue && color(hue) }];
  });
  show(one.body, markedText(parts), h("p", {},
    t("Pair {pair} of {num} in pass {pass}:", { pair: (step % num) + 1, num, pass: Math.floor(step / num) + 1 }), " ",
    t("“{center}” is to recognize “{context}” among the noise words {noise}.",
      { center: sentence[center], context: sentence[context], noise: decisions.slice(1).map(({ name }) => name).join(", ") }),
    " ", t("By chance a noise word may be the center or another word of the window, never the word to recognize.")));
  announce(t("Step {num}", { num: step + 1 }));
  one.exports({ picture: () => textPicture(parts) });
}

function drawDecisions(one, { center, decisions, loss }, rate) {
  const heads = [t("Word u"), t("Label"), `v(${center}) · u`, "σ(v · u)", t("Error: label − σ"), t("Error × {rate}", { rate })];
  const rows = decisions.map(({ name, label, score, probability, step }) =>
    [name, String(label), score, probability, label - probability, step]);
  const items = decisions.map(({ name, probability, label }) =>
    ({ label: `σ(v · u(${name}))`, value: probability, text: probability.toFixed(4), mark: label === 1 }));
  const parts = decisions.map(({ label, probability }) => `− ln(${label ? "" : "1 − "}${probability.toFixed(4)})`);
  show(one.body, table(heads, rows), h("br"), bars(items, { max: 1 }),
    h("p", { class: "formula wrap" }, t("Loss"), " = ", parts.join(" "), " = ", h("strong", {}, loss.toFixed(4))));
  one.exports({ picture: () => barGroups([{ items }]),
    csv: () => [["word", "label", "dot product", "sigmoid", "error", "step"], ...rows] });
}

function drawUpdate(one, { center, decisions, input, outputs }) {
  const rows = [[`v(${center})`, input.before], ...outputs.map(({ name, before }) => [`u(${name})`, before]),
    [t("v({word}) after", { word: center }), input.after],
    ...outputs.map(({ name, after }) => [t("u({word}) after", { word: name }), after])];
  const limit = Math.max(1e-9, ...rows.flatMap(([, values]) => values.map(Math.abs)));
  const columns = input.before.map((_, index) => String(index + 1));
  const picture = matrix({
    rows: rows.map(([name]) => name), columns, cell: 46, label: t("Vectors before and after the step"),
    values: (row, column) => rows[row][1][column] / limit,
    text: columns.length <= 16 ? (row, column) => rows[row][1][column].toFixed(2).replace("-", "−") : undefined,
    title: (row, column) => `${rows[row][0]}, ${column + 1}: ${rows[row][1][column].toFixed(6)}`,
  });
  const terms = decisions.map(({ name, step }) => `${step < 0 ? "−" : "+"} ${Math.abs(step).toFixed(4)} u(${name})`).join(" ");
  show(one.body, h("p", { class: "formula wrap" }, `v(${center}) ← v(${center}) ${terms}`), h("p", { class: "hint" },
    t("Each u moves by its own error × learning rate × v({word}).", { word: center }), " ",
    !outputs.some(({ before }) => before.some(Boolean)) && t("Output vectors start at zero: the first step cannot move v yet.")),
  colorKey(Number(limit.toPrecision(2))), picture);
  const csv = () => [["vector", ...columns], ...rows.map(([name, values]) => [name, ...values])];
  one.exports({ picture: () => picture, csv });
}

// Only whole passes: a pass that has begun is the mean of a few pairs.
function drawLosses(one, { losses, num_pairs: num, step }) {
  const whole = (step + 1) % num ? losses.slice(0, -1) : losses;
  const points = whole.map((loss, index) => [index + 1, loss]);
  if (points.length < 2) {
    one.exports({});
    return show(one.body, h("p", { class: "soft" }, t("Go on for two passes over the sentence to see how the loss falls.")));
  }
  const picture = lineChart({ points, xLabel: t("pass"), yLabel: t("mean loss of a pair"),
    label: t("Loss by pass: from {first} to {last}", { first: whole[0].toFixed(3), last: whole.at(-1).toFixed(3) }) });
  show(one.body, picture);
  one.exports({ picture: () => picture, csv: () => [["pass", "loss"], ...points] });
}

// ---- a training ----

function drawFilm(root, page) {
  const options = optionsOf(page, { epochs: 20, dim: 50, window: 5, negatives: 5, num_words: 200, seed: 1 }, {
    epochs: [t("Epochs"), [5, 10, 20, 50]], dim: [t("Dimensions"), [10, 20, 50, 100]], window: [t("Window"), [2, 5, 10]],
    negatives: [t("Noise words"), [2, 5, 10]], num_words: [t("Words shown"), [50, 100, 200, 500]],
    seed: [t("Seed"), [1, 2, 3, 4, 5]],
  }, () => {});
  const made = card({ title: PARTS.film.title(), name: "film",
    about: t("Words begin at random near one place. Drag the slider: those that are used alike move together.") });
  // A job has an id once the server has answered; until then, the wish to end it waits.
  const end = () => post(own(`jobs/${encodeURIComponent(id)}/cancel`), {});
  const cancel = button(t("Cancel"), () => { isUnwanted = true; if (id) end(); }, { hidden: true });
  const [told, stage] = [h("p", { class: "hint", role: "status" }), h("div")];
  let [id, isUnwanted, left] = ["", false, () => {}];
  const train = () => made.run(async (isCurrent) => {
    page.update({ trained: 1 });
    [id, isUnwanted, cancel.hidden] = ["", false, false];
    const body = { ...options.values };
    try {
      await job(own("learning/film"), body, (state) => {
        if (!id && isUnwanted) { ({ id } = state); end(); }
        ({ id } = state);
        made.progress(state.progress, state.message);
        show(told, state.message === "training" ? t("Training: {share}", { share: percent(state.progress, 0) })
          : t("Reading the text …"));
      }, page.signal);
    } finally {
      cancel.hidden = true;
      show(told);
    }
    const found = await columns(own("learning/film/snapshots"), body, page.signal);
    if (!isCurrent()) return;
    left();
    left = drawSnapshots(page, made, stage, found);
    const { corpus } = found.meta;
    const call = `, num_words=${body.num_words}${options.python().replace(/, num_words=\d+/, "")}`;
    made.code("from sememe.models.word2vec.snapshots import train_film\n\n"
      + `film = train_film(${corpus ? py(corpus) : "None"}${call})\nfilm.words, film.positions_SN2, film.losses_S`,
    `sememe inspect film ${corpus ? `${sh(corpus)} ` : ""}--out film.csv${options.flags()}`);
  });
  const go = button(t("Train"), train, { class: "primary" });
  show(made.body, h("div", { class: "tools" }, options.controls, go, cancel), told, stage);
  show(root, made.node);
  if (page.params.trained) train();
  return () => left();
}

function drawSnapshots(page, made, stage, { meta, columns: { positions } }) {
  const { words, counts, num_words: ends, losses } = meta;
  const [last, num] = [ends.length - 1, words.length];
  const at = (snapshot, word, axis) => positions.values[2 * (Math.min(snapshot, last) * num + word) + axis];
  // Between two snapshots words move in a straight line.
  const places = (time, axis) => Float32Array.from(words, (_, word) =>
    at(Math.floor(time), word, axis) * (1 - (time % 1)) + at(Math.floor(time) + 1, word, axis) * (time % 1));
  const [plot, about, missing] = [h("div", { class: "plot film" }), h("p", { class: "formula" }), h("p", { role: "status" })];
  const label = t("{num} words on the first two principal components of the last snapshot", { num });
  const scatter = new Scatter(plot, { label });
  scatter.setPoints({ x: places(last, 0), y: places(last, 1), labels: (index) => words[index] });
  let time = Math.min(last, Number(page.params.snapshot ?? last));
  const slide = slider({ label: t("Snapshot"), min: 0, max: last, step: 0.1, value: time, onChange: (value) => go(value),
    text: (value) => number(Math.floor(value)) });
  function go(value) {
    time = Math.max(0, Math.min(last, value));
    const snapshot = Math.floor(time);
    slide.move(time);
    scatter.setPositions(places(time, 0), places(time, 1));
    const loss = losses[snapshot].toFixed(3);
    show(about, snapshot ? t("{num} words of text read, loss {loss}", { num: number(ends[snapshot]), loss })
      : t("Before training: random vectors, loss {loss}", { loss }));
    keep();
    return time < last;
  }
  const keep = debounced(() => page.signal.aborted
    || page.update({ snapshot: time === last ? undefined : Math.floor(time) }), 200);
  const play = player(page, () => go(Math.round(10 * time + 1) / 10), 60);
  play.addEventListener("click", () => time >= last && go(0), { capture: true });
  const search = h("input", { type: "text", spellcheck: "false", onchange: () => {
    const word = search.value.trim().toLowerCase();
    scatter.focus(words.indexOf(word));
    show(missing, word && !words.includes(word) && t("“{word}” is not among the points of this map.", { word }));
  } });
  const picture = lineChart({ points: losses.map((loss, index) => [ends[index] / 1e6, loss]),
    xLabel: t("million words of text"), yLabel: t("mean loss of a pair"), high: 260, wide: 320,
    label: t("Loss from {first} to {last}", { first: losses[0].toFixed(3), last: losses[last].toFixed(3) }) });
  show(stage, h("div", { class: "tools" }, slide, play, field(t("Find a word"), search)), missing, about,
    h("div", { class: "film-row" }, plot, h("div", {}, h("h3", {}, t("Loss")), picture)));
  made.exports({ png: () => scatter.canvas, svg: () => scatter.toSvg(), csv: () => [
    ["snapshot", "words of text", "loss", "word", "count", "x", "y"],
    ...ends.flatMap((end, snapshot) => words.map((word, index) => [snapshot, end, losses[snapshot], word, counts[index],
      at(snapshot, index, 0), at(snapshot, index, 1)]))] });
  go(time);
  return () => {
    play.stop();
    scatter.destroy();
  };
}

// ---- BERT's masks ----

const NUM = 1000; // draws
const FATES = [["masked", "blue", 0.8], ["replaced", "red", 0.1], ["kept", "green", 0.1]]; // 1, 2 and 3 on the server

function drawMasks(root, page) {
  const [model] = page.models;
  const [first, chips] = sentencesOf(page, model.language, (one) => load(one));
  const text = area(t("Text"), page.params.text ?? first, () => load());
  const options = optionsOf(page, { rate: 0.15, unit: "token", seed: 1 }, {
    rate: [t("Tokens to predict"), [[0.15, "15%"], [0.3, "30%"], [0.4, "40%"], [0.8, "80%"]]],
    unit: [t("Unit"), [["token", t("tokens")], ["word", t("whole words")]]], seed: [t("Seed"), [1, 2, 3, 4, 5]],
  }, () => load());
  const made = card({ title: PARTS.masks.title(), name: "masks",
    about: t("In each epoch other tokens are to be predicted: 80% become [MASK], 10% a random token, 10% stay.") });
  const stage = h("div");
  const load = (value = text.input.value) => made.run(async (isCurrent) => {
    text.input.value = value;
    page.update({ text: value });
    const body = { model: model.id, text: value, num: NUM, ...options.values };
    const found = await columns(own("learning/masks"), body, page.signal);
    if (!isCurrent()) return;
    drawDraws(page, made, stage, model, found);
    made.code(`${loaded(model)}from sememe.models.bert.mask_draws import draw_masks\n\n`
      + `draws = draw_masks(model, ${py(value)}, num=${NUM}${options.python()})\n`
      + "draws.tokens, draws.seen(0), draws.counts(), draws.shares()",
    `sememe inspect masks ${[model.path, value].map(sh).join(" ")}${options.flags()}`);
  }, () => { show(stage); made.exports({}); });
  const go = button(t("Show"), () => load(), { class: "primary" });
  show(made.body, h("div", { class: "tools" }, text, go, options.controls), chips, stage);
  show(root, made.node);
  load();
}

function drawDraws(page, made, stage, model, { meta: { tokens, names }, columns: { fates, seen } }) {
  const size = tokens.length;
  const hues = ["", ...FATES.map(([, hue]) => color(hue))];
  const titles = ["", t("[MASK]"), t("random token"), t("unchanged")];
  const [words, counts, often] = [h("div"), h("div"), h("div")];
  let draw = Math.max(0, Math.min(NUM, Number(page.params.draw ?? 1)) - 1);
  const slide = slider({ label: t("Draw"), min: 1, max: NUM, value: draw + 1, onChange: (value) => go(value - 1) });
  const spaced = (make) => tokens.flatMap((token, index) =>
    [{ text: index && model.language !== "zh" && !token.startsWith("##") ? " " : "" }, make(token, index)]);
  const parts = () => spaced((token, index) => {
    const [fate, id] = [fates, seen].map((column) => column.values[draw * size + index]);
    return { text: names[id], hue: hues[fate], share: fate ? 0.4 : 0, note: fate ? token : "\u00a0", title: titles[fate] };
  });
  function go(value) {
    draw = Math.max(0, Math.min(NUM - 1, value));
    slide.move(draw + 1);
    keep();
    const [found, hidden] = [[0, 0, 0, 0], new Array(size).fill(0)];
    fates.values.subarray(0, (draw + 1) * size).forEach((fate, place) => {
      found[fate]++;
      hidden[place % size] += fate > 0;
    });
    const total = Math.max(1, found[1] + found[2] + found[3]);
    const most = Math.max(1, ...hidden);
    show(words, markedText(parts()));
    show(counts, bars(FATES.map(([, , expected], index) => ({ label: titles[index + 1], value: found[index + 1] / total,
      text: t("{num} = {share}, expected {expected}", { num: number(found[index + 1]), share: percent(found[index + 1] / total),
        expected: percent(expected, 0) }) })), { max: 1 }));
    show(often, markedText(spaced((text, index) =>
      ({ text, hue: hues[1], share: (0.6 * hidden[index]) / most, note: percent(hidden[index] / (draw + 1), 0) }))));
    return draw < NUM - 1;
  }
  const keep = debounced(() => page.signal.aborted || page.update({ draw: draw ? draw + 1 : undefined }), 200);
  const play = player(page, () => go(draw + 1), 350);
  const jump = (label, value) => button(label, () => { play.stop(); go(value()); });
  const key = [1, 2, 3].map((fate) => [h("span", { class: "swatch", style: { background: hues[fate] } }), titles[fate]]);
  show(stage, h("div", { class: "tools" }, slide, jump(t("Draw again"), () => draw + 1), play,
    jump(t("All {num}", { num: number(NUM) }), () => NUM - 1)),
  h("p", { class: "hint" }, key, " — ", t("below each: the true token, which BERT must predict")), words,
  h("div", { class: "panels" }, h("div", {}, h("h3", {}, t("Tokens to predict in all draws so far")), counts),
    h("div", {}, h("h3", {}, t("How often each token was to be predicted")), often)));
  made.exports({ picture: () => textPicture(parts()), csv: () => [["draw", "position", "token", "seen", "fate"],
    ...[...fates.values.keys()].filter((place) => fates.values[place]).map((place) => [Math.floor(place / size) + 1,
      (place % size) + 1, tokens[place % size], names[seen.values[place]], FATES[fates.values[place] - 1][0]])] });
  go(draw);
}
