// Fine-tuned models: labels, tags, scores, choices and answers, and which words they depend on.

import { own, post } from "../api.js";
import { barGroups, textPicture } from "../charts.js";
import { categories, color, h, show } from "../dom.js";
import { percent, t } from "../i18n.js";
import {
  area, bars, button, exampleChips, examplesOf, inputCard, loaded, markedText, modelCards, sh, table,
} from "../widgets.js";

const readsPairs = ({ kind, capabilities }) => kind === "pairs" || (kind === "regress" && capabilities.includes("score_pairs"));
const linesOf = (text) => (text ?? "").split("\n").filter((line) => line.trim());

export function drawTasks(root, page) {
  const [first] = page.models;
  const examples = examplesOf(page, first.language);
  const texts = (examples[readsPairs(first) ? "pairs" : first.kind] ?? examples.classify).map(([text]) => text);
  const all = modelCards(page, "tasks", fill);
  const hasRows = page.models.some(({ kind }) => kind !== "tag"); // a tagger predicts one tag per word
  const reads = (kind) => page.models.some((model) => model.kind === kind);
  let hasWhy = page.params.why !== "0";
  const made = (isRead, name, label, rows) =>
    isRead && area(label, page.params[name] ?? examples[name][0][0], () => read(), rows);
  const text = area(reads("answer") ? t("Text with the answer") : t("Text"), page.params.text ?? texts[0], () => read(), 3);
  const fields = {
    question: made(reads("answer"), "question", t("Question"), 1),
    other: made(page.models.some(readsPairs), "other", t("Second text"), 2),
    choices: made(reads("choose"), "choices", t("Choices, one per line"), 2),
  };
  const values = () => Object.fromEntries(Object.entries(fields).filter(([, one]) => one).map(([name, one]) =>
    [name, one.input.value]));
  const read = (value = text.input.value) => {
    text.input.value = value;
    page.update({ text: value, ...values(), why: hasWhy ? undefined : "0" });
    all.ask();
  };
  async function fill(model, one, signal) {
    const { choices, ...more } = values();
    const body = { model: model.id, text: text.input.value, ...more, choices: linesOf(choices) };
    const hasWords = hasWhy && model.kind !== "tag";
    const found = await post(own("predict"), body, signal);
    const shown = drawPrediction(model, found);
    const why = h("div");
    const picture = () => (shown.parts ? textPicture(shown.parts) : barGroups([{ title: body.text, items: shown.items }]));
    show(one.body, shown.node, why);
    one.exports({ picture, csv: () => shown.rows });
    const whyCall = hasWords ? "\n\nfrom sememe.tasks.importance import word_importance\n\nword_importance(model, row)" : "";
    const flags = [["second", more.other], ["question", more.question], ...body.choices.map((choice) => ["choice", choice])];
    one.code(`${loaded(model)}row = ${found.row}\nmodel.predict([row])[0]${whyCall}`,
      `sememe inspect prediction ${[model.path, body.text].map(sh).join(" ")}`
        + flags.filter(([, value]) => value).map(([name, value]) => ` --${name} ${sh(value)}`).join("")
        + (hasWords ? " --importance" : ""));
    if (hasWords) await drawImportance(model, one, why, shown, body, signal);
  }
  const box = h("input", { type: "checkbox", checked: hasWhy, onchange: () => {
    hasWhy = box.checked;
    read();
  } });
  show(root, inputCard(t("Fine-tuned models"),
    hasRows && t("Words are hidden one by one: the more the prediction drops, the more it depends on a word."),
  [fields.question, text, fields.other, fields.choices, button(t("Show"), () => read(), { class: "primary" }),
    hasRows && h("label", {}, box, " ", t("Which words matter"))],
  exampleChips(texts.map((one) => [one, () => read(one)]))), all.node);
  read();
}

// What a prediction looks like: {node, parts of the text or items with bars for its picture, rows of its table}
function drawPrediction(model, { prediction, items: given, spans, parts: pieces }) {
  const items = given.map(([label, value, mark]) => ({ label, value, text: percent(value, 2), mark }));
  const types = [...new Set(spans.map(({ type }) => type))].sort();
  const parts = pieces.map(([text, span]) => (span ? { text, hue: categories()[types.indexOf(span.type) % 10], share: 0.35,
    note: span.type, className: span.type ? "" : "answer", title: `${span.type} ${percent(span.probability)}` } : { text }));
  const told = ({ type, text, start, end, probability }) => [model.id, type, text, start, end, probability];
  if (model.kind === "regress") return { node: h("p", { class: "big" }, given[0][1].toFixed(4)),
    items: [{ label: t("Score"), value: given[0][1] }], rows: [["model", "score"], [model.id, given[0][1]]] };
  if (model.kind === "answer") return { parts, rows: [["model", "", "answer", "start", "end", "probability"],
    ...prediction.candidates.map(told)],
  node: [h("p", { class: "big wrap" }, prediction.text || t("The text has no answer.")), markedText(parts),
    bars(items.slice(0, 5), { max: 1 })] };
  if (model.kind === "tag") return { parts, rows: [["model", "type", "text", "start", "end", "probability"], ...spans.map(told)],
    node: [markedText(parts), spans.length ? table([t("Type"), t("Text"), t("Probability")],
      spans.map(({ type, text, probability }) => [type, text, probability]))
      : h("p", { class: "soft" }, t("No word has a tag."))] };
  return { node: bars(items, { max: 1 }), items,
    rows: [["model", "label", "probability"], ...items.map(({ label, value }) => [model.id, label, value])] };
}

async function drawImportance(model, one, node, shown, body, signal) {
  const { words, parts: pieces, prediction, score, hidden_by: hiddenBy } = await post(own("importance"), body, signal);
  const most = Math.max(1e-9, ...words.map(({ drop }) => Math.abs(drop)));
  const isScore = model.kind === "regress";
  const scoreText = (value) => (isScore ? value.toFixed(4) : percent(value, 2));
  const digits = Math.min(6, Math.max(isScore ? 2 : 1, Math.ceil((isScore ? 1 : -1) - Math.log10(most)))); // small drops
  const parts = pieces.map(([text, drop]) => (drop === null ? { text } : { text, share: (0.7 * Math.abs(drop)) / most,
    hue: color(drop < 0 ? "red" : "blue"), title: t("Without this word: {score}", { score: scoreText(score - drop) }),
    note: (isScore ? drop : 100 * drop).toFixed(digits).replace(/^-(?=0\.0+$)/, "").replace("-", "−") }));
  show(node, h("h3", {}, t("Which words matter for “{label}”", { label: isScore ? scoreText(score) : prediction })),
    h("p", { class: "hint" }, isScore ? t("The number under a word: how far the score drops without it.")
      : t("The number under a word: how many percentage points the probability drops without it."), " ",
    hiddenBy ? t("[MASK] is put in its place.") : t("The word is left out."), " ",
    t("Blue words support the prediction, red ones speak against it.")),
    words.length ? markedText(parts, { className: "important", label: t("Words and how much the prediction depends on them") })
      : h("p", { class: "soft" }, t("A text of one word is not changed.")));
  one.exports({ picture: () => textPicture(shown.parts ? [...shown.parts, { text: "\n" }, ...parts] : parts),
    csv: () => [...shown.rows, [], ["model", "text", "word", "start", "end", "drop"],
      ...words.map((word) => [model.id, word.text_index + 1, word.word, word.start, word.end, word.drop])] });
}
