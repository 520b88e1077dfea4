// Ladder: the scores of all models as its report has them, with links into the other views.

import { address } from "../app.js";
import { get, own } from "../api.js";
import { matrix } from "../charts.js";
import { h, show } from "../dom.js";
import { language, number, t } from "../i18n.js";
import { card, py } from "../widgets.js";
import { view as attention } from "./attention.js";
import { view as context } from "./context.js";
import { view as learning } from "./learning.js";
import { view as map } from "./map.js";
import { view as predictions } from "./predictions.js";
import { view as words } from "./words.js";

// Where a score can be looked into: [view, what its address says]; other scores lead to the words.
const PLACES = {
  analogies: [words, { part: "analogy" }], groups: [words, { part: "similarity" }], odd: [words, { part: "odd" }],
  packages: [map, {}], retrieval: [map, {}], senses: [context, {}], perplexity: [predictions, {}], hidden: [predictions, {}],
};

export const view = {
  id: "ladder", title: "Ladder", most: 1,
  uses: () => false, // it shows all models at once
  render(root, page) {
    if (!page.state.has_ladder) return show(root, howTo());
    const made = card({ title: t("Ladder"), name: "ladder" });
    show(root, made.node);
    made.run(() => get(own(`ladder?${new URLSearchParams({ language })}`), page.signal))
      .then((found) => found && draw(made, found, page.state));
  },
};

const howTo = () => h("section", { class: "card" }, h("h2", {}, t("No ladder is open")),
  h("p", {}, t("A ladder is every kind of model, trained on the same text for the same time. Train one, then open it:")),
  h("pre", { tabindex: 0 }, "sememe ladder --budget 1m --out runs/ladder\nsememe explore runs/ladder"));

function draw(made, found, state) {
  const { columns, rows } = found;
  const model = (row) => state.models.find((one) => one.id === row.name && !one.error);
  const can = (row, other) => model(row) && other.uses(model(row), undefined, state.models, state);
  const link = (row, other, params, label, more) => (can(row, other)
    ? h("a", { href: address(other.id, { models: row.name, ...params }), ...more }, label) : h("span", more, label));
  const head = ({ title, metric, what, higher_is_better: isHigher }) => h("th", { scope: "col", title: what }, title,
    h("small", {}, metric, isHigher ? "" : `, ${t("lower is better")}`));
  const cell = (row) => (one, index) => {
    const [other, params] = PLACES[columns[index].name] ?? [words, {}];
    const title = [one.told, one.is_best && t("best of its column"), one.is_low && t("not above the best baseline")];
    const label = [one.text, one.is_low && " ▽"];
    return h("td", { class: one.is_best ? "number best" : "number", title: title.filter(Boolean).join("; ") },
      one.value === null ? label : link(row, other, params, label),
      columns[index].is_share && one.value !== null && h("span", { class: "track" },
        h("span", { class: "bar", style: { width: `${Math.max(0, Math.min(100, one.value))}%` } })));
  };
  const into = [words, map, context, attention, predictions, learning];
  const part = (row, other) => other === learning && { part: model(row).kind === "bert" ? "masks" : "step" };
  const links = (row) => into.filter((other) => can(row, other)).map((other) =>
    [link(row, other, { ...part(row, other) }, t(other.title), { "aria-label": `${row.title}: ${t(other.title)}` }), " "]);
  const line = (row, index) => [
    row.family !== rows[index - 1]?.family
      && h("tr", { class: "family" }, h("th", { scope: "rowgroup", colspan: columns.length + 3 }, row.family)),
    h("tr", {}, h("th", { scope: "row" }, row.title, h("small", {}, row.name === null ? row.why : links(row))),
      row.cells.map(cell(row)), h("td", { class: "number" }, `${number(row.seconds, 1)} s`),
      h("td", { class: "number" }, number(row.megabytes, 1)))];
  const baselines = h("tr", { class: "family" }, h("th", { scope: "row" }, t("Best baseline")), columns.map(({ baseline }) =>
    h("td", { class: "number", title: baseline?.name }, baseline?.score)), h("td", { colspan: 2 }));
  const heads = [t("Model"), columns.map(head), t("Training time"), t("MB")]
    .flat().map((one) => (one instanceof Node ? one : h("th", { scope: "col" }, one)));
  const picture = shares(columns, rows);
  show(made.body, h("p", { class: "wrap" }, found.title),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": t("Scores of all models") },
      h("table", { class: "ladder-table" }, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows.map(line), baselines))),
    h("p", { class: "soft" }, t("Bold: best of its column. ▽: not above the best baseline."), " ", found.spread),
    h("details", {}, h("summary", {}, t("As a picture")), picture),
    h("details", {}, h("summary", {}, t("How it was measured")),
      h("ul", {}, found.notes.map((note) => h("li", { class: "wrap" }, note)))));
  made.exports({ picture: () => opened(picture),
    csv: () => [[t("Model"), ...columns.map((one) => one.title)],
      ...rows.map((row) => [row.title, ...row.cells.map((one) => one.value)])] });
  made.code(`from sememe.ladder.results import Results\n\nresults = Results.load(${py(found.path)})\n`
    + `results.cell(${py(rows[0].name ?? "bert")}, ${py(columns[0].name)}).mean`, found.command);
}

// Only what is open has a size that can be saved.
function opened(picture) {
  picture.closest("details").open = true;
  return picture;
}

// Each column from its worst score, white, to its best, blue.
function shares(columns, rows) {
  const share = (row, column) => {
    const known = rows.map((one) => one.cells[column].value).filter((value) => value !== null);
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const part = (rows[row].cells[column].value - low) / (high - low || 1);
    return rows[row].cells[column].value === null ? 0 : columns[column].higher_is_better ? part : 1 - part;
  };
  return matrix({ cell: 46,
    rows: rows.map((row) => row.title), columns: columns.map((one) => one.title), values: (row, column) => -share(row, column),
    text: (row, column) => rows[row].cells[column].text.split(" ")[0], label: t("Scores of all models"),
    title: (row, column) => `${rows[row].title}, ${columns[column].title}: ${rows[row].cells[column].text}`,
  });
}
