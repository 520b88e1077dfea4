// Predictions: hidden words, next words, generation step by step, next sentences; fine-tuned models in tasks.js.
//
// Every part asks each chosen model by itself, so that one that fails does not stop the others.

import { api, own, post } from "../api.js";
import { barGroups, textPicture } from "../charts.js";
import { announce, color, h, show } from "../dom.js";
import { number, percent, t } from "../i18n.js";
import {
  area, bars, button, drawParts, exampleChips, examplesOf, field, inputCard, loaded, markedText, modelCards, py, select, sh,
  slider,
} from "../widgets.js";
import { drawTasks } from "./tasks.js";

const PARTS = {
  masks: { needs: "fill", draw: drawMasks, title: () => t("Masked words") },
  next: { needs: "next_words", draw: drawNext, title: () => t("Next words") },
  generate: { needs: "generate", draw: drawGeneration, title: () => t("Generation") },
  follows: { needs: "follows", draw: drawFollows, title: () => t("Next sentence") },
  tasks: { needs: "predict", draw: drawTasks, title: () => t("Fine-tuned models") },
};
const rank = ({ kind }) => ["ngram", "nnlm", "gpt"].indexOf(kind) + 1 || 4; // of language models
const can = (model, part) => model.capabilities.includes(PARTS[part].needs);
const partsOf = (models) => Object.keys(PARTS).filter((part) => models.some((model) => can(model, part)));
const partOf = (params, models) => {
  const parts = partsOf(models);
  return parts.includes(params.part) ? params.part : parts[0] ?? "masks";
};

export const view = {
  id: "predictions", title: "Predictions", most: 4, few: 3,
  needs: () => t("This view needs BERT, a language model (n-gram, NNLM, GPT) or a fine-tuned model."),
  uses: (model, params, models) => (params ? can(model, partOf(params, models)) : partsOf([model]).length > 0),
  // Several models of one language; one fine-tuned model, because others may read different rows.
  first: (known, params) => (known.length && partOf(params, known) === "tasks" ? known.slice(0, 1)
    : known.filter(({ language }) => language === known[0].language).sort((a, b) => rank(a) - rank(b))),
  render(root, page) {
    const open = page.state.models.filter((model) => !model.error);
    drawParts(root, page, Object.fromEntries(partsOf(open).map((part) => [part, PARTS[part]])), partOf(page.params, open));
  },
};

const examplesFor = (page) => examplesOf(page, page.models[0].language);
const NUM = 10; // of probabilities shown
const go = (onclick) => button(t("Show"), onclick, { class: "primary" });

// ---- masked words ----

const MASK = "[MASK]";
// The words of a text and what is between them. Chinese characters are tokens by themselves.
const piecesOf = (text) => text.match(/\[MASK\]|\p{Script=Han}|[\p{L}\p{M}\p{N}]+|\s+|[^]/gu) ?? [];
const isWord = (piece) => piece === MASK || /^[\p{L}\p{N}]/u.test(piece);
const numbersOf = (list) => new Set(list.split(",").filter((one) => /^\d+$/.test(one)).map(Number));

function drawMasks(root, page) {
  const examples = examplesFor(page).masks;
  const [first, places] = page.params.text === undefined ? examples[0] : [page.params.text, ""];
  let pieces = piecesOf(first);
  let masked = numbersOf(page.params.masked ?? places);
  const words = h("div");
  const all = modelCards(page, "masks", fill);
  const text = area(t("Text"), first, () => read(text.input.value));
  const isHidden = (index) => pieces[index] === MASK || (masked.has(index) && isWord(pieces[index]));
  const given = () => pieces.map((piece, index) => (isHidden(index) ? MASK : piece)).join("");

  function read(value, numbers = "") {
    pieces = piecesOf(value);
    masked = numbersOf(numbers);
    text.input.value = value;
    draw();
  }
  function toggle(index) {
    masked.delete(index) || masked.add(index);
    draw();
    words.querySelectorAll("button")[pieces.slice(0, index).filter(isWord).length]?.focus();
  }
  function draw() {
    page.update({ text: pieces.join(""), masked: [...masked].sort((a, b) => a - b).join(",") || "-" });
    show(words, markedText(pieces.map((piece, index) => (isWord(piece) ? {
      text: piece, onclick: () => toggle(index), pressed: isHidden(index), className: isHidden(index) ? "hidden-word" : "",
      title: t("Click to hide or show this word"),
    } : { text: piece })), { className: "hidden-words", label: t("Words to hide") }));
    all.ask();
  }
  async function fill(model, one, signal) {
    const hidden = [...pieces.keys()].filter(isHidden);
    if (!hidden.length) {
      one.exports({});
      return void show(one.body, h("p", { class: "soft" }, t("Click a word above to hide it.")));
    }
    const { masks } = await post(api("fill"), { model: model.id, text: given(), num: 1000 }, signal);
    const tokens = await post("/tokenize", { model: model.id, inputs: hidden.map((index) => pieces[index]) }, signal);
    const groups = masks.map((guesses, mask) => maskGroup(guesses, mask, pieces[hidden[mask]], tokens[mask], (token) => {
      read(pieces.map((piece, index) => (index === hidden[mask] ? token : piece)).join(""),
        [...masked].filter((index) => index !== hidden[mask]).join(","));
    }));
    const picture = () => barGroups(groups);
    show(one.body, groups.map(({ title, items }) => [h("h3", {}, title), bars(items, { max: 1 })]));
    one.exports({ picture, csv: () => [["model", "mask", "rank", "token", "probability"],
      ...masks.flatMap((guesses, mask) => guesses.slice(0, 100).map(({ token, probability }, index) =>
        [model.id, mask + 1, index + 1, token, probability]))] });
    one.code(`${loaded(model)}model.fill(${py(given())}, top=8)`, `sememe fill ${sh(model.path)} ${sh(given())} --num 8`);
  }
  show(root, inputCard(PARTS.masks.title(),
    t("BERT is trained to predict hidden words. Click words to hide them; yellow marks the word of the text."),
    [text, go(() => read(text.input.value))], words, exampleChips(examples.map(([one, numbers]) =>
      [one, () => read(one, numbers)]))), all.node);
  draw();
}

// The most likely tokens for one mask, and the word of the text with its rank.
function maskGroup(guesses, mask, truth, tokens, onPick) {
  const place = guesses.findIndex(({ token }) => token.toLowerCase() === truth.toLowerCase());
  const shown = guesses.slice(0, 8).map((guess, index) => ({ ...guess, rank: index + 1 }));
  if (place >= 8) shown.push({ ...guesses[place], rank: place + 1 });
  return {
    title: truth === MASK ? t("Mask {num}", { num: mask + 1 })
      : place < 0 && tokens.length > 1 ? t("In place of “{word}”, which is {num} tokens ({tokens}): one mask cannot give it",
        { word: truth, num: tokens.length, tokens: tokens.map(({ text: token }) => token).join(" ") })
      : place < 0 ? t("In place of “{word}”, which is not among the first {num} tokens",
        { word: truth, num: number(guesses.length) })
        : t("In place of “{word}”: rank {rank}", { word: truth, rank: number(place + 1) }),
    items: shown.map(({ token, probability, rank }) => ({
      label: rank > 8 ? `${number(rank)}. ${token}` : token, value: probability, text: percent(probability, 2),
        mark: rank === place + 1,
      title: t("Write this word into the text"), onclick: () => onPick(token),
    })),
  };
}

// ---- next words ----

// A word that the text ends in may go on in a suggestion: 北京 in 北京大学.
function joined(text, word) {
  for (let num = Math.min(text.length, word.length); num; num--)
    if (word.startsWith(text.slice(-num))) return text.slice(0, -num) + word;
  return text + word;
}
const endsInHan = (text) => /\p{Script=Han}$/u.test(text.trimEnd());

function drawNext(root, page) {
  const examples = examplesFor(page).next.map(([text]) => text);
  const all = modelCards(page, "next", fill);
  const text = area(t("Start of a text"), page.params.text ?? examples[0], () => read());
  // With a space at its end, no word of the text is completed; Chinese has none.
  const given = () => text.input.value.replace(/(\S)$/u, (mark) => (endsInHan(mark) ? mark : `${mark} `));
  function read(value = text.input.value) {
    text.input.value = value;
    page.update({ text: value });
    all.ask();
  }
  async function fill(model, one, signal) {
    const { suggestions } = await post(api("next"), { model: model.id, text: given(), num: NUM }, signal);
    const items = suggestions.map(({ word, probability }) => ({
      label: word, value: probability, text: percent(probability, 2), title: t("Go on with this word"),
      onclick: () => read(endsInHan(given()) ? joined(given(), word) : given() + word),
    }));
    const max = Math.max(0.05, ...items.map(({ value }) => value));
    const picture = () => barGroups([{ title: `${given()} …`, items }], { max });
    show(one.body, items.length ? bars(items, { max }) : h("p", { class: "soft" }, t("No word is known to follow.")));
    one.exports({ picture, csv: () => [["model", "text", "word", "probability"],
      ...suggestions.map(({ word, probability }) => [model.id, given(), word, probability])] });
    one.code(`${loaded(model)}model.next_words(${py(given())}, count=${NUM})`,
      `sememe suggest ${sh(model.path)} ${sh(given())} --num ${NUM}`);
  }
  show(root, inputCard(PARTS.next.title(),
    t("An n-gram model counts, NNLM reads a few words, GPT all of them. Click a word to go on with it."),
    [text, go(() => read())], exampleChips(examples.map((one) => [`${one} …`, () => read(one)]))), all.node);
  read();
}

// ---- generation ----

const SAMPLING = { max_tokens: 20, temperature: 1, top_k: 0, top_p: 1, seed: 1 };
const shownToken = (token) => (token.text === "" ? t("⟨end⟩") : token.text.replaceAll("\n", "⏎\n"));
const visible = (text) => (text.trim() ? text.replace(/^ /, "␣") : text.replaceAll(" ", "␣") || "␣");

function drawGeneration(root, page) {
  const examples = examplesFor(page).next.map(([text]) => text);
  const options = Object.fromEntries(Object.entries(SAMPLING).map(([name, usual]) => [name, Number(page.params[name] ?? usual)]));
  const all = modelCards(page, "generate", fill);
  const prompt = area(t("Start of a text"), page.params.text ?? examples[0], () => read());
  // "at" has for each model the tokens chosen by hand, "step" the token whose alternatives are shown.
  const part = (name, index) => (page.params[name] ?? "").split(";")[index] ?? "";
  const keep = (name, index, value) => {
    const parts = page.models.map((_, place) => (place === index ? value : part(name, place)));
    page.update({ [name]: parts.some((one) => one !== "") ? parts.join(";") : undefined });
  };
  const set = (name) => (value) => {
    options[name] = Number(value);
    read();
  };
  function read(text = prompt.input.value) {
    prompt.input.value = text;
    const changed = Object.entries(options).map(([name, value]) => [name, value === SAMPLING[name] ? undefined : value]);
    page.update({ text, at: undefined, step: undefined, ...Object.fromEntries(changed) });
    all.ask();
  }
  async function fill(model, one, signal, index) {
    const choices = part("at", index).split(",").filter(Boolean).map((choice) => choice.split(":").map(Number));
    const { max_tokens, seed } = options;
    // An n-gram model draws by its probabilities.
    const body = { prompt: prompt.input.value, count: NUM, ...(model.kind === "ngram" ? { max_tokens, seed } : options) };
    const asked = { ...body, model: model.id, choices: Object.fromEntries(choices) };
    const { steps } = await post(own("generation"), asked, signal);
    const choose = (chosen) => {
      keep("at", index, chosen.map((choice) => choice.join(":")).join(","));
      keep("step", index, chosen.at(-1)[0]);
      one.run(() => fill(model, one, signal, index));
    };
    drawSteps(one, { model, steps, choices, body, choose,
      at: Number(part("step", index) || choices.at(-1)?.[0] || 0),
      keep: (step) => keep("step", index, step) });
    const used = Object.entries(body)
      .filter(([name, value]) => name in SAMPLING && (name === "max_tokens" || value !== SAMPLING[name]));
    const byHand = choices.length ? [`{${choices.map((pair) => pair.join(": ")).join(", ")}}`] : [];
    const given = ["model", py(body.prompt), ...byHand, ...used.map((pair) => pair.join("="))].join(", ");
    const flags = used.map(([name, value]) => `--${name.replace("_", "-")} ${value}`).join(" ");
    one.code(`${loaded(model)}from sememe.explore.prediction_results import steered_steps\n\n`
      + `for step in steered_steps(${given}):\n    print(step.chosen, step.tokens)`,
      `sememe inspect generation ${sh(model.path)} ${sh(body.prompt)} ${flags}`
        + choices.map(([step, id]) => ` --choose ${step + 1}=${id}`).join(""));
  }
  const seed = h("input", { type: "number", min: 0, max: 999999, value: options.seed, onchange: () =>
    set("seed")(seed.value || 1) });
  const other = button(t("Other seed"), () => {
    seed.value = options.seed + 1;
    set("seed")(seed.value);
  });
  const range = (name, label, min, max, step, digits) =>
    slider({ label, min, max, step, value: options[name], onChange: set(name), text: (one) => one.toFixed(digits) });
  show(root, inputCard(PARTS.generate.title(),
    t("Click a token to see what else was likely there, and an alternative to go on from it."),
    [prompt, button(t("Generate"), () => read(), { class: "primary" })],
    h("div", { class: "tools" }, range("max_tokens", t("Tokens"), 1, 60, 1, 0),
      range("temperature", t("Temperature"), 0, 2, 0.1, 1),
      field(t("Top k"), select([[0, t("all")], ...[2, 5, 10, 20, 50].map((one) => [one, one])], options.top_k, set("top_k"))),
      range("top_p", t("Top p"), 0.05, 1, 0.05, 2), field(t("Seed"), seed), other),
    exampleChips(examples.map((one) => [`${one} …`, () => read(one)]))), all.node);
  all.ask();
}

// The most likely tokens, and the chosen one behind them if it is none of these.
const withChosen = ({ tokens, chosen }) => (tokens.some(({ id }) => id === chosen.id) ? tokens : [...tokens, chosen]);

function drawSteps(one, { model, steps, choices, body, choose, at, keep }) {
  const [words, list] = [h("div"), h("div", { class: "alternatives", "aria-live": "polite" })];
  const isNarrowed = (body.temperature ?? 1) !== 1 || body.top_k > 0 || body.top_p < 1;
  at = Math.min(at, steps.length - 1);
  const parts = () => [{ text: body.prompt }, ...steps.map(({ chosen }, step) => ({
    text: shownToken(chosen), hue: color("blue"), share: Math.max(0.06, 0.75 * chosen.probability), pressed: step === at,
    title: percent(chosen.probability, 2), onclick: () => look(step), className: choices.some(([own]) => own === step) ? "by-hand"
      : "",
  }))];
  const told = ({ probability, drawn }) => (!isNarrowed ? percent(probability, 2)
    : `${percent(probability, 2)} → ${drawn ? percent(drawn) : "–"}`);
  function look(step) {
    at = step;
    keep(step);
    draw();
    words.querySelectorAll("button")[step]?.focus();
  }
  function draw() {
    show(words, markedText(parts(), { label: t("Generated tokens") }));
    const { chosen, tokens, num_kept: num } = steps[at];
    const listed = withChosen(steps[at]);
    show(list, h("h3", {}, t("Token {num}: {token}", { num: at + 1, token: visible(shownToken(chosen)) })),
      h("p", { class: "hint" }, isNarrowed
        ? t("Probability → after temperature, top k and top p ({num} tokens left). Yellow was chosen.", { num: number(num) })
        : t("Probability. Yellow was chosen.")),
      bars(listed.map((token) => ({ label: visible(shownToken(token)), value: token.probability, text: told(token),
        mark: token.id === chosen.id,
        title: t("Go on with this token"), onclick: token.text === "<unk>" ? undefined
          : () => choose([...choices.filter(([step]) => step < at), [at, token.id]]) })), { max: 1 }));
  }
  words.addEventListener("keydown", (event) => {
    const next = at + ({ ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0);
    if (next === at || !steps[next]) return;
    event.preventDefault();
    look(next);
  });
  list.classList.toggle("narrowed", isNarrowed);
  show(one.body, words, list);
  draw();
  announce(steps.map((step) => step.chosen.text).join(""));
  one.exports({ picture: () => textPicture(parts()),
    csv: () => [["model", "step", "token", "id", "probability", "drawn", "chosen"],
      ...steps.flatMap((step, place) => withChosen(step).map(({ text, id, probability, drawn }) =>
        [model.id, place + 1, text, id, probability, drawn,
        id === step.chosen.id]))] });
}

// ---- next sentences ----

function drawFollows(root, page) {
  const [[first, others]] = examplesFor(page).follows;
  const all = modelCards(page, "follows", fill);
  const text = area(t("Text"), page.params.text ?? first, () => read());
  const more = area(t("Texts that may follow it, one per line"), page.params.others ?? others, () => read(), 3);
  const read = () => {
    page.update({ text: text.input.value, others: more.input.value });
    all.ask();
  };
  async function fill(model, one, signal) {
    const given = more.input.value.split("\n").filter((line) => line.trim());
    const { probabilities } = await post(own("follows"), { model: model.id, text: text.input.value, others: given }, signal);
    const items = given.map((label, index) => ({ label, value: probabilities[index], text: percent(probabilities[index], 2) }));
    const picture = () => barGroups([{ title: text.input.value, items }]);
    show(one.body, bars(items, { max: 1 }));
    one.exports({ picture, csv: () => [["model", "text", "next", "probability"],
      ...items.map(({ label, value }) => [model.id, text.input.value, label, value])] });
    one.code(`${loaded(model)}[model.follows(${py(text.input.value)}, other) for other in ${py(given)}]`,
      given.map((other) => `sememe next ${[model.path, text.input.value, other].map(sh).join(" ")}`).join("\n"));
  }
  show(root, inputCard(PARTS.follows.title(),
    t("BERT is also trained to tell whether a text follows another or comes from elsewhere."),
    [text, more, go(read)]), all.node);
  read();
}
