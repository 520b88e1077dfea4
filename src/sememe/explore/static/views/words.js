// Words: neighbors, analogies, similarities, the odd one out, pairs on a plane, and vectors.
//
// Every part asks each chosen model by itself, so that one that lacks a word does not stop the others.

import { ApiError, get, own, post } from "../api.js";
import { barGroups, colorKey, matrix, shade } from "../charts.js";
import { debounced, h, show, svg } from "../dom.js";
import { number, percent, t } from "../i18n.js";
import {
  area, bars, button, drawParts, exampleChips, failIn, field, loaded, modelCards, problem, py, select, sh, table, wordInput,
} from "../widgets.js";

const STATIC = ["word2vec", "glove", "fasttext", "vectors", "sif", "doc2vec", "counts"];
const IN_CONTEXT = ["bert", "elmo", "gpt", "ulmfit", "nnlm"];
const part = (draw, title) => ({ title, draw: (body, page) => {
  examplesFor(page).then((examples) => page.signal.aborted || draw(body, page, examples)).catch(failIn(body));
} });
const PARTS = {
  neighbors: part(drawNeighbors, () => t("Neighbors")), analogy: part(drawAnalogy, () => t("Analogies")),
  similarity: part(drawSimilarity, () => t("Similarity")), odd: part(drawOdd, () => t("Odd one out")),
  pairs: part(drawPairs, () => t("Pairs on the plane")), vectors: part(drawVectors, () => t("Vectors")),
};

export const view = {
  id: "words", title: "Words", most: 4, uses: (model) => model.capabilities.includes("words"),
  needs: () => t("This view needs a model with vectors of words, such as word2vec or BERT."),
  // One model of each generation, of one language.
  first(known) {
    const best = (kinds, models) => kinds.map((kind) => models.find((model) => model.kind === kind)).find(Boolean);
    const first = best(STATIC, known) ?? known[0];
    const second = best(IN_CONTEXT, known.filter((model) => model.language === first?.language));
    const others = known.filter((model) => model.kind !== "onehot"); // one-hot vectors have no neighbors
    return [...new Set([first, second, ...others, ...known].filter(Boolean))];
  },
  render: (root, page) => drawParts(root, page, PARTS, page.params.part in PARTS ? page.params.part : "neighbors"),
};

const known = new Map(); // examples by models

async function examplesFor(page) {
  const models = page.models.map((model) => model.id).join(",");
  if (!known.has(models)) known.set(models, await get(own(`words/examples?${new URLSearchParams({ models })}`), page.signal));
  return known.get(models);
}

// ---- what the parts share ----

function ask(path, model, body, signal) {
  if (Object.values(body).some((one) => one.length === 0)) throw new ApiError(t("Type a word."));
  return post(own(`words/${path}`), { model: model.id, ...body }, signal);
}
const listed = (text) => text.split(/[\s,，、;；]+/u).filter(Boolean);
const openNeighbors = (page, word) => page.update({ part: "neighbors", word }, { redraw: true });
const noSimilarity = () => t("One-hot vectors have no similarity: all words are equally far apart, so no word is nearest.");

// Which vectors a network's words are.
function wordsAre(model) {
  const told = {
    "input table": () => t("input vectors, before any context"),
    "input table: the tokens that are whole words": () => t("input vectors of tokens that are whole words, before any context"),
    "words by themselves, by their spelling": () => t("words by themselves, from their spelling"),
    "table of words, which is the softmax too": () => t("input vectors, which are the output layer too"),
  };
  return told[model.words_are]?.() ?? model.words_are;
}

function described(model) {
  const size = t("{title}: {num} words, {dim} dimensions",
    { title: t(model.title), num: number(model.num_words), dim: number(model.dim) });
  const unseen = model.has_subwords && t("unseen words from sub-words");
  return { about: [size, wordsAre(model), unseen].filter(Boolean).join(" · ") };
}

// What was looked up instead of a word, and which words are unknown.
function remarks({ notes = [], unknown = [] }) {
  return [
    notes.map(({ query, words }) => h("p", { class: "soft note" }, words.length === 1
      ? t("“{query}” is looked up as “{word}”.", { query, word: words[0] })
      : t("“{query}” is not in the vocabulary: the mean of {words} is used.", { query, words: words.join(" + ") }))),
    unknown.map(({ message }) => problem(message)),
  ];
}

// The width of a picture in a card, in pixels: drawn at its own size, its labels are as large as other text.
const widthOf = ({ body }) => Math.max(280, Math.min(1400, body.clientWidth || 640));

// The frame of a part that asks about a list of words, one card for each model.
function drawList(root, page, { param, first, examples, label, name, fill }) {
  const all = modelCards(page, name, fill, described);
  const input = wordInput({ label, value: page.params[param] ?? first, models: () => page.models, onEnter: draw });
  input.classList.add("wide");
  function draw(text) {
    input.input.value = text;
    page.update({ [param]: text });
    all.ask(text);
  }
  show(root, h("div", { class: "tools" }, input, button(t("Show"), () => draw(input.input.value))),
    exampleChips(examples.map((text) => [text, () => draw(text)])), all.node);
  draw(input.input.value);
}

// ---- neighbors ----

function drawNeighbors(root, page, examples) {
  const all = modelCards(page, "neighbors", (model, one, signal, _, asked) => fillNeighbors(model, one, asked, signal, pick),
    described);
  let [num, turn, isTyped] = [Number(page.params.num) || 12, 0, false];
  const input = wordInput({
    label: t("Word"), value: page.params.word ?? examples.words[0], models: () => page.models, onEnter: (word) => draw(word),
  });
  const pick = (word) => {
    input.input.value = word;
    draw(word);
  };
  // While one types, only words of the vocabulary are looked up; Enter looks up anything.
  input.input.addEventListener("input", debounced(() => draw(input.input.value.trim(), true), 10));

  async function draw(word, known_only = false) {
    if (!word && known_only) return;
    const mine = ++turn;
    const lists = await all.ask({ word, num, known_only });
    if (mine !== turn || page.signal.aborted) return;
    const isFound = lists.some(Boolean);
    // The first word while typing is a step, those after it replace it.
    if (!known_only || isFound) page.update({ word, num: num === 12 ? undefined : num }, { typed: isTyped && known_only });
    isTyped = known_only && (isTyped || isFound);
    // A list that is still that of an earlier word says so by its color, and has nothing to share.
    all.cards.forEach((one, index) => {
      if (!known_only && !lists[index]) one.words = undefined;
      one.body.classList.toggle("stale", known_only && Boolean(one.words) && !lists[index]);
    });
    markShared(all.cards.filter((one, index) => lists[index] || !isFound));
  }
  const sizes = select([5, 12, 25, 50, 100].map((one) => [one, one]), num, (value) => {
    num = Number(value);
    draw(input.input.value.trim());
  });
  show(root,
    h("div", { class: "tools" }, input, field(t("Neighbors per model"), sizes),
      button(t("Show"), () => draw(input.input.value.trim()))),
    exampleChips([...examples.words.map((word) => [word, () => pick(word)]),
      ...(examples.unseen ? [[t("{word} (unseen)", { word: examples.unseen }), () => pick(examples.unseen)]] : [])]),
    page.models.length > 1 && h("p", { class: "soft" }, t("Highlighted words are in the lists of several models.")),
    all.node);
  draw(input.input.value);
}

async function fillNeighbors(model, one, body, signal, pick) {
  if (model.is_one_hot) return void show(one.body, h("p", {}, noSimilarity()));
  const answer = await ask("neighbors", model, body, signal);
  const { neighbors } = answer;
  if (!neighbors) return; // of a word that is being typed
  one.words = neighbors.map(({ word }) => word);
  const count = answer.count > 0 ? t("Nearest to “{word}”, seen {num} times", { word: body.word, num: number(answer.count) })
    : t("Nearest to “{word}”", { word: body.word });
  show(one.body, h("h3", { class: "wrap" }, count), remarks(answer),
    answer.is_unseen && h("p", { class: "soft note" }, t("Not in the vocabulary: its vector is made of its sub-words.")),
    bars(neighbors.map(({ word, score }) => ({ label: word, value: score, onclick: () => pick(word) })), { max: 1 }));
  const rows = neighbors.map(({ word, score }) => [model.id, body.word, word, score]);
  const keep = () => barGroups([{ title: `${model.id}: ${count}`, items: neighbors.map(({ word, score }, index) =>
    ({ label: word, value: score, mark: one.isShared?.[index] })) }]);
  one.exports({ picture: keep, csv: () => [["model", "word", "neighbor", "cosine"], ...rows] });
  one.code(`${loaded(model)}model.words.neighbors(${py(body.word)}, num=${body.num})`,
    `sememe neighbors ${sh(model.path)} ${sh(body.word)} --num ${body.num}`);
  return neighbors;
}

function markShared(made) {
  const times = new Map();
  for (const { words = [] } of made) for (const word of words) times.set(word, (times.get(word) ?? 0) + 1);
  for (const one of made) {
    one.isShared = (one.words ?? []).map((word) => times.get(word) > 1);
    [...one.body.querySelectorAll(".bars li")].forEach((item, index) => {
      const shared = times.get(one.words?.[index]) ?? 0;
      item.classList.toggle("marked", shared > 1);
      item.title = shared > 1 ? t("in the lists of {num} models", { num: shared }) : "";
    });
  }
}

// ---- analogies ----

function drawAnalogy(root, page, examples) {
  const all = modelCards(page, "analogy", (model, one, signal, _, asked) => fillAnalogy(model, one, asked, signal, page),
    described);
  const named = ["a", "b", "c"].map((name) => page.params[name]);
  const given = named.every(Boolean) ? named : examples.analogies[0];
  let method = page.params.method === "mul" ? "mul" : "add";
  const labels = [t("a"), t("is to b"), t("as c is to …")];
  const inputs = labels.map((label, index) =>
    wordInput({ label, value: given[index] ?? "", models: () => page.models, onEnter: () => draw() }));

  function draw() {
    const [a, b, c] = inputs.map((one) => one.input.value.trim());
    page.update({ a, b, c, method: method === "mul" ? "mul" : undefined });
    all.ask({ a, b, c, method, num: 5 });
  }
  const use = (words) => {
    inputs.forEach((one, index) => { one.input.value = words[index]; });
    draw();
  };
  const methods = select([["add", "3CosAdd"], ["mul", "3CosMul"]], method, (value) => {
    method = value;
    draw();
  });
  show(root, h("div", { class: "tools" }, inputs, field(t("Method"), methods), button(t("Show"), draw)),
    exampleChips(examples.analogies.map((words) => [words.join(" : "), () => use(words)])), all.node);
  draw();
}

async function fillAnalogy(model, one, body, signal, page) {
  if (model.is_one_hot) return void show(one.body, h("p", {}, noSimilarity()));
  const answer = await ask("analogy", model, { ...body, width: widthOf(one) }, signal);
  const { a, b, c, method } = body;
  const { answers, plane } = answer;
  const best = answers[0]?.word ?? "?";
  const isSum = method === "add";
  const last = plane.labels.length - 1; // b − a + c
  const picture = drawPlane(plane, {
    label: t("{a}, {b}, {c} and the answers {answers} on a plane; b − a + c ends near {best}",
      { a, b, c, answers: answers.map(({ word }) => word).join(", "), best }),
    kind: (index) => (index === last ? "target" : index < 3 ? "first" : index === 3 ? "second" : "other"),
    names: [a, b, c, ...answers.map(({ word }) => word), `${b} − ${a} + ${c}`],
  });
  show(one.body, h("p", { class: "formula wrap" }, `${b} − ${a} + ${c} ≈ `, h("strong", {}, best)), remarks(answer),
    bars(answers.map(({ word, score }, index) =>
      ({ label: word, value: score, mark: index === 0, onclick: () => openNeighbors(page, word) })), isSum ? { max: 1 } : {}),
    arithmetic(answer, body), picture);
  one.exports({ picture: () => picture, csv: () => [["model", "a", "b", "c", "method", "answer", "score"],
    ...answers.map(({ word, score }) => [model.id, a, b, c, method, word, score])] });
  one.code(`${loaded(model)}model.words.analogy(${py(a)}, ${py(b)}, ${py(c)}, num=5${isSum ? "" : ', method="mul"'})`,
    `sememe analogy ${sh(model.path)} ${[a, b, c].map(sh).join(" ")}${isSum ? "" : " --method mul"}`);
}

// The cosines that make up each score.
function arithmetic({ answers, length }, { a, b, c, method }) {
  const half = (value) => (1 + value) / 2;
  const isSum = method === "add";
  const heads = isSum ? ["x", `cos(x, ${b})`, `− cos(x, ${a})`, `+ cos(x, ${c})`, `÷ ${length.toFixed(4)}`]
    : ["x", `(1 + cos(x, ${b})) ÷ 2`, `× (1 + cos(x, ${c})) ÷ 2`, `÷ ((1 + cos(x, ${a})) ÷ 2)`, "="];
  return h("details", { class: "arithmetic", open: true }, h("summary", {}, t("The arithmetic")),
    h("p", { class: "soft" }, isSum
      ? t("The score is the cosine of x and b − a + c: words are unit vectors, and their sum has the length {length}.",
        { length: length.toFixed(4) })
      : t("The score is a product of cosines, shifted to lie between 0 and 1, so that no single one dominates.")),
    table(heads, answers.map(({ word, score, cosines: [toA, toB, toC] }) =>
      (isSum ? [word, toB, -toA, toC, score] : [word, half(toB), half(toC), half(toA), score]))));
}

// ---- words on a plane ----

// {width, height, points, centres, labels, lines, shares}: places are computed by the service.
function drawPlane(plane, { label, kind, names, onPick }) {
  const { width, height, points, centres, labels, lines, shares } = plane;
  const picture = svg("svg", { class: "chart plane", role: "img", "aria-label": label, viewBox: `0 0 ${width} ${height + 18}` });
  const at = (index) => points[index].map((one) => one.toFixed(1));
  for (const [from, to] of lines) {
    const [[x1, y1], [x2, y2]] = [at(from), at(to)];
    picture.append(svg("line", { class: "join", x1, y1, x2, y2 }));
  }
  points.forEach(([x, y], index) => {
    const [cx, cy] = centres[index];
    // A label that had to move away shows with a thin line where it belongs.
    const isAway = Math.abs(cy - y) > 20 || Math.abs(cx - x) > 22 + 4 * labels[index].length;
    if (isAway) picture.append(svg("line", { class: "grid", x1: x, y1: y, x2: cx, y2: cy }));
    // One beside its point begins there, whatever the font.
    const side = isAway || Math.abs(cy - y) > 6 ? 0 : Math.sign(cx - x);
    const name = names?.[index] ?? labels[index];
    picture.append(svg("circle", { class: kind(index), cx: x, cy: y, r: 4 }, svg("title", {}, name)),
      svg("text", { x: side ? x + 7 * side : cx, y: cy, class: `${kind(index)}${onPick ? " pick" : ""}`,
        "text-anchor": ["end", "middle", "start"][side + 1], "dominant-baseline": "central",
        onclick: onPick && (() => onPick(name)) }, labels[index], svg("title", {}, name)));
  });
  const [first, second] = shares.map((share) => percent(share, 0));
  picture.append(svg("text", { class: "small other", x: 4, y: height + 12 },
    t("Principal components: {first} and {second} of the variance", { first, second })));
  return picture;
}

const asPairs = (text) => text.split(/[,，、;；\n]+/u).map((one) => one.split(/[:：]/u).map((word) => word.trim()))
  .filter((pair) => pair.join(""));
const pairText = (pairs) => pairs.map((pair) => pair.join(":")).join(", ");

function drawPairs(root, page, examples) {
  const sets = {
    capitals: t("Countries and capitals"), gender: t("Male and female"), antonyms: t("Antonyms"), verbs: t("Forms of verbs"),
    plurals: t("Singular and plural"), own: t("Frequent words"),
  };
  const all = modelCards(page, "pairs", (model, one, signal, _, pairs) => fillPairs(model, one, pairs, signal, page), described);
  const names = Object.keys(examples.pairs);
  const text = area(t("Pairs, as in first:second, first:second"), page.params.pairs ?? pairText(examples.pairs[names[0]]),
    () => draw(), 3);
  function draw(pairs = text.input.value) {
    text.input.value = pairs;
    page.update({ pairs });
    all.ask(asPairs(pairs));
  }
  show(root, h("div", { class: "tools" }, text, button(t("Show"), () => draw())),
    exampleChips(names.map((name) => [sets[name], () => draw(pairText(examples.pairs[name]))])),
    h("p", { class: "soft" }, t("Parallel lines mean that the words of these pairs differ in the same way.")), all.node);
  draw();
}

async function fillPairs(model, one, pairs, signal, page) {
  if (!pairs.length || pairs.some((pair) => pair.length !== 2 || pair.includes("")))
    throw new ApiError(t("Write every pair with a colon, and commas between pairs: hot:cold, big:small."));
  const answer = await ask("plane", model, { pairs, width: widthOf(one) }, signal);
  const { words, plane, coordinates } = answer;
  const firsts = new Set(pairs.map(([first]) => first));
  const kept = plane.lines.map(([from, to]) => `${words[from]} – ${words[to]}`).join(", ");
  const picture = drawPlane(plane, {
    label: t("Pairs on the plane: {pairs}", { pairs: kept }), names: words,
    kind: (index) => (firsts.has(words[index]) ? "first" : "second"), onPick: (word) => openNeighbors(page, word),
  });
  show(one.body, picture, remarks(answer));
  one.exports({ picture: () => picture, csv: () => [["model", "word", "x", "y"],
    ...words.map((word, index) => [model.id, word, ...coordinates[index]])] });
  const used = plane.lines.map(([from, to]) => [words[from], words[to]]);
  one.code(`${loaded(model)}from sememe.plots.projection import pca\n\n`
    + `pca(model.words, [${used.map(([from, to]) => `(${py(from)}, ${py(to)})`).join(", ")}], "pairs.svg")`,
  `sememe plot pca ${sh(model.path)} --pairs ${sh(used.map((pair) => pair.join(":")).join(","))} --out pairs.svg`);
}

// ---- similarities and the odd one out ----

function drawSimilarity(root, page, examples) {
  const texts = examples.lists.map((words) => words.join(" "));
  drawList(root, page, {
    param: "list", first: texts[0], examples: texts, name: "similarity",
    label: t("Words, separated by spaces or commas"),
    async fill(model, one, signal, index, text) {
      const answer = await ask("similarities", model, { words: listed(text) }, signal);
      const { words, cosines } = answer;
      const told = (word, row) => `${word}: ${cosines[row].map((cosine) => cosine.toFixed(2)).join(" ")}`;
      const picture = matrix({
        rows: words, columns: words, values: (row, column) => cosines[row][column],
        text: words.length <= 12 ? (row, column) => cosines[row][column].toFixed(2) : undefined,
        label: t("Cosines of {words}", { words: words.map(told).join("; ") }),
      });
      const key = [colorKey(1), h("p", { class: "soft" }, t("Antonyms are close, too: they are used in the same contexts."))];
      show(one.body, model.is_one_hot ? h("p", {}, noSimilarity()) : key, picture, remarks(answer));
      one.exports({ picture: () => picture,
        csv: () => [["", ...words], ...words.map((word, row) => [word, ...cosines[row]])] });
      one.code(`${loaded(model)}words = ${py(words)}\n[[model.words.similarity(a, b) for b in words] for a in words]`,
        `sememe similarity ${sh(model.path)} ${words.map(sh).join(" ")} --matrix`);
    },
  });
}

function drawOdd(root, page, examples) {
  const texts = examples.odd.map((words) => words.join(" "));
  drawList(root, page, {
    param: "odd", first: texts[0], examples: texts, name: "odd",
    label: t("Three words or more, separated by spaces or commas"),
    async fill(model, one, signal, index, text) {
      if (model.is_one_hot) return void show(one.body, h("p", {}, noSimilarity()));
      const answer = await ask("similarities", model, { words: listed(text) }, signal);
      const { words, means, odd } = answer;
      show(one.body,
        h("p", { class: "formula wrap" }, odd === null ? t("Give at least three words.")
          : [t("The odd one out:"), " ", h("strong", {}, odd)]),
        h("p", { class: "soft" }, t("Mean similarity of each word with the others:")),
        bars(words.map((word, index) =>
          ({ label: word, value: means[index], mark: word === odd, onclick: () => openNeighbors(page, word) })), { max: 1 }),
        remarks(answer));
      const rows = words.map((word, index) => [model.id, word, means[index], word === odd]);
      const keep = () => barGroups([{ title: `${model.id}: ${t("The odd one out:")} ${odd ?? "?"}`,
        items: words.map((word, index) => ({ label: word, value: means[index], mark: word === odd })) }]);
      one.exports({ picture: keep, csv: () => [["model", "word", "mean cosine", "odd"], ...rows] });
      one.code(`${loaded(model)}model.words.odd_one_out(${py(words)})`,
        `sememe odd ${sh(model.path)} ${words.map(sh).join(" ")}`);
    },
  });
}

// ---- vectors as cells ----

function drawVectors(root, page, examples) {
  const sums = examples.analogies.filter((words) => words.length === 3)
    .map(([a, b, c]) => [a, b, c, `${b} - ${a} + ${c}`].join(", "));
  const texts = [...sums, ...examples.lists.map((words) => words.join(", "))].slice(0, 6);
  drawList(root, page, {
    param: "vectors", first: texts[0], examples: texts, name: "vectors",
    label: t("Words and sums such as king - man + woman, separated by commas"),
    async fill(model, one, signal, index, text) {
      const words = text.split(/[,，、;；]+/u).map((word) => word.trim()).filter(Boolean);
      const answer = await ask("vectors", model, { words }, signal);
      const picture = strips(answer, widthOf(one));
      show(one.body, colorKey(answer.limit), picture, remarks(answer));
      one.exports({ picture: () => picture, csv: () => answer.words.map((word, row) => [word, ...answer.values[row]]) });
      one.code(`${loaded(model)}from sememe.plots.heatmaps import combine\n\n`
        + `[combine(model.words, text) for text in ${py(answer.words)}]`,
        `sememe plot heatmap ${sh(model.path)} ${answer.words.map(sh).join(" ")} --out vectors.svg`);
    },
  });
}

// The values of each vector as a strip of cells.
function strips({ words, values, limit }, wide) {
  const [high, dim] = [26, values[0].length];
  const cell = wide / dim;
  const row = (word, index) => svg("g", {},
    svg("text", { x: 0, y: index * (high + 22) + 13 }, word),
    values[index].map((value, place) => svg("rect", {
      x: (place * cell).toFixed(2), y: index * (high + 22) + 18, width: (cell * (cell > 4 ? 0.94 : 1)).toFixed(2), height: high,
      style: { fill: shade(value / limit) },
    }, svg("title", {}, `${word}, ${place + 1}: ${value.toFixed(4)}`))));
  return svg("svg", {
    class: "chart strips", role: "img", viewBox: `0 0 ${wide} ${words.length * (high + 22)}`,
    "aria-label": t("Vectors of {words}, {dim} values each", { words: words.join(", "), dim }),
  }, words.map(row));
}
