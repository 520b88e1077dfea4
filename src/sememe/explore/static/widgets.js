// What all views are built of: cards, tabs, fields, lists with bars, tables.

import { announce, color, debounced, h, newId, show } from "./dom.js";
import { get, own, translated } from "./api.js";
import { saveCsv, savePng, saveSvg } from "./exports.js";
import { t } from "./i18n.js";

// A part of a view with its heading, its downloads, and the code that gives the same result.
// {title, about, name} → {node, body, tools, run, exports, code}
export function card({ title, about, name, className = "" }) {
  const body = h("div", { class: "body" });
  const tools = h("div", { class: "tools" });
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const bar = h("progress", { hidden: true, max: 1 });
  const saves = h("div", { class: "saves" });
  const code = h("details", { class: "code", hidden: true });
  const node = h("section", { class: `card ${className}`, "data-card": name },
    h("h2", {}, title), about && h("p", { class: "about" }, about),
    tools, bar, error, body, h("footer", {}, saves, code));
  let turn = 0;
  const made = {
    node, body, tools, name,
    clear() {
      show(body);
      show(saves);
      code.hidden = true;
    },
    // Run work that fills the card; its failure is told in the card, and `clear` takes away what was there. The last call wins.
    async run(work, clear) {
      const mine = ++turn;
      const isCurrent = () => mine === turn;
      node.setAttribute("aria-busy", "true");
      const timer = setTimeout(() => isCurrent() && made.progress(undefined), 400);
      try {
        const found = await work(isCurrent);
        if (isCurrent()) error.hidden = true;
        return found;
      } catch (failure) {
        if (failure.name === "AbortError" || !isCurrent()) return;
        clear?.();
        made.fail(failure.message);
      } finally {
        clearTimeout(timer);
        if (isCurrent()) {
          bar.hidden = true;
          node.setAttribute("aria-busy", "false");
        }
      }
    },
    fail(message) {
      show(error, message);
      error.hidden = false;
    },
    // From 0 to 1, or undefined where nobody knows.
    progress(share, message = "") {
      bar.hidden = false;
      if (share === undefined) bar.removeAttribute("value");
      else bar.value = share;
      bar.title = message;
    },
    // {png: () => canvas or SVG, svg: () => SVG or text, csv: () => rows}; absent ones are left out. `picture` is PNG and SVG.
    exports({ picture, ...more }) {
      const given = picture ? { png: picture, svg: picture, ...more } : more;
      const file = `sememe-${name}`;
      const kinds = { png: savePng, svg: saveSvg, csv: saveCsv };
      show(saves, Object.entries(given).map(([kind, make]) =>
        h("button", { type: "button", "data-save": kind, onclick: async () => kinds[kind](file, await make()) },
          t("Save {kind}", { kind: kind.toUpperCase() }))));
    },
    // The Python call and the command that give the same result.
    code(python, command) {
      code.hidden = false;
      show(code, h("summary", {}, t("Python call and command")),
        [["Python", python], [t("Command"), command]].map(([label, text]) =>
          h("div", { class: "listing" }, h("span", { class: "soft" }, label), h("pre", { tabindex: 0 }, text),
            h("button", { type: "button", onclick: () => copy(text) }, t("Copy")))));
    },
  };
  return made;
}

async function copy(text) {
  await navigator.clipboard.writeText(text);
  announce(t("Copied."));
}

// How Python and a shell write a text.
export const py = (value) => JSON.stringify(value);
export const sh = (text) => (/^[\w@%+=:,./-]+$/u.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);
export const loaded = (model) => `import sememe\n\nmodel = sememe.load(${py(model.path)})\n`;

// Tabs of a view; `chosen` is an id of [{id, title}]. Tabs inside a card have a prefix of their own.
export function tabs(parts, chosen, onChoose, prefix = "tab") {
  const mark = (one) => buttons.forEach((button, index) => {
    button.setAttribute("aria-selected", String(parts[index].id === one));
    button.tabIndex = parts[index].id === one ? 0 : -1;
  });
  const buttons = parts.map(({ id, title }) => h("button", {
    type: "button", role: "tab", id: `${prefix}-${id}`, onclick: () => {
      mark(id);
      onChoose(id);
    },
  }, title));
  mark(chosen);
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const place = buttons.indexOf(document.activeElement);
    const next = buttons[(place + step + buttons.length) % buttons.length];
    next.focus();
    next.click();
  };
  return h("div", { class: "tabs", role: "tablist", onkeydown: move }, buttons);
}

// Tabs that the address keeps, and what the chosen one draws: parts are {id: {title: () => text, draw(body, page)}}.
export function drawParts(root, page, parts, part) {
  const choose = (id) => {
    page.update({ part: id }, { redraw: true });
    document.getElementById(`tab-${id}`)?.focus();
  };
  const body = h("div", { class: "view", role: "tabpanel", "aria-labelledby": `tab-${part}` });
  show(root, tabs(Object.entries(parts).map(([id, { title }]) => ({ id, title: title() })), part, choose), body);
  // The language of a model, which its examples need, is known once it is loaded.
  if (page.models.every(({ language }) => language !== undefined)) return parts[part].draw(body, page);
  show(body, h("p", { class: "soft", role: "status" }, t("Loading models …")));
}
export const examplesOf = (page, language) => page.state.examples[language === "zh" ? "zh" : "en"];

// A control with its label.
export function field(label, control) {
  control.id ||= newId();
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control);
}

export const button = (label, onclick, properties = {}) =>
  h("button", { type: "button", onclick, ...properties }, label);

export const select = (choices, chosen, onChoose) =>
  h("select", { onchange: (event) => onChoose(event.target.value) },
    choices.map(([value, label]) => h("option", { value, selected: String(value) === String(chosen) }, label)));

// A field for a text of several lines; Enter with Ctrl or Cmd is like the button.
export function area(label, value, onEnter, rows = 2) {
  const input = h("textarea", { rows, value, spellcheck: "false", onkeydown: (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) onEnter();
  } });
  const node = field(label, input);
  node.classList.add("wide");
  return Object.assign(node, { input });
}

// Examples to click: [[label, onclick]]
export const exampleChips = (items) => items.length > 0 && h("div",
  { class: "examples", role: "group", "aria-label": t("Examples") },
  h("span", { class: "soft" }, t("Examples")), items.map(([label, onclick]) => button(label, onclick, { class: "chip" })));

// A number that a slider sets; `onChange` when the user moves it. {input, move(value)}
export function slider({ label, min, max, step = 1, value, onChange, text = String }) {
  const told = h("output", {}, text(value));
  const input = h("input", { type: "range", id: newId(), min, max, step, value, oninput: () => {
    show(told, text(Number(input.value)));
    onChange(Number(input.value));
  } });
  const move = (next) => {
    input.value = next;
    show(told, text(next));
  };
  const node = h("div", { class: "field slider" }, h("label", { for: input.id }, label, " ", told), input);
  return Object.assign(node, { input, move });
}

// A button that calls `next` again and again, until it returns false or is pressed again.
export function player(page, next, ms) {
  let timer = 0;
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    show(made, "▶ ", t("Play"));
  };
  const made = button("", () => {
    if (timer) return stop();
    timer = setInterval(() => next() === false && stop(), ms);
    show(made, "⏸ ", t("Stop"));
  }, { class: "play" });
  stop();
  page.signal.addEventListener("abort", stop);
  return Object.assign(made, { stop });
}

// A field for one word, with the words of a model that begin like it.
export function wordInput({ label, value, models, onEnter }) {
  const list = h("ul", { class: "options", role: "listbox", id: newId(), "aria-label": label, hidden: true });
  let chosen = -1;
  const input = h("input", {
    type: "text", value, autocomplete: "off", spellcheck: "false", autocapitalize: "off", role: "combobox",
    "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id,
  });
  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    chosen = -1;
  };
  const enter = (word) => {
    if (word !== undefined) input.value = word;
    close();
    onEnter(input.value.trim());
  };
  const mark = (place) => {
    chosen = place;
    [...list.children].forEach((item, index) => item.setAttribute("aria-selected", String(index === chosen)));
    if (list.children[chosen]) input.setAttribute("aria-activedescendant", list.children[chosen].id);
  };
  const complete = debounced(async () => {
    // The last of several words is completed.
    const given = input.value;
    const [before, start] = /^(.*[\s,，、;；]+)?(.*)$/su.exec(given).slice(1);
    if (!start || !models().length) return close();
    const query = new URLSearchParams({ model: models()[0].id, start, num: 8 });
    const { words } = await get(own(`complete?${query}`)).catch(() => ({ words: [] }));
    if (input.value !== given || document.activeElement !== input) return;
    show(list, words.map((word) => h("li", {
      role: "option", id: newId(), "aria-selected": "false",
      onpointerdown: (event) => { event.preventDefault(); enter((before ?? "") + word); },
    }, (before ?? "") + word)));
    list.hidden = !words.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    chosen = -1;
  }, 80);
  input.addEventListener("input", complete);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return; // Enter ends the writing of Chinese characters
    const num = list.hidden ? 0 : list.children.length;
    if (event.key === "Enter") enter(chosen >= 0 ? list.children[chosen].textContent : undefined);
    else if (event.key === "Escape") close();
    else if (num && event.key === "ArrowDown") mark((chosen + 1) % num);
    else if (num && event.key === "ArrowUp") mark((chosen + num - 1) % num);
    else return;
    event.preventDefault();
  });
  const node = field(label, input);
  node.classList.add("word");
  node.append(list);
  return Object.assign(node, { input });
}

// Labels with a bar each: [{label, value, text, mark, title, onclick}]
export function bars(items, { max } = {}) {
  const most = max ?? Math.max(1e-9, ...items.map((item) => Math.abs(item.value)));
  return h("ol", { class: "bars" }, items.map((item) =>
    h("li", { class: item.mark ? "marked" : "", title: item.title },
      item.onclick ? button(item.label, item.onclick, { class: "plain" }) : h("span", {}, item.label),
      h("span", { class: "track" }, h("span", {
        class: item.value < 0 ? "bar negative" : "bar",
        style: { width: `${Math.min(100, (100 * Math.abs(item.value)) / most)}%` },
      })),
      h("span", { class: "value" }, item.text ?? item.value.toFixed(4)))));
}

export const table = (heads, rows, caption) =>
  h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption ?? t("Table") },
    h("table", {}, caption && h("caption", {}, caption),
    h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) =>
      h("td", { class: typeof cell === "number" && "number" }, typeof cell === "number" ? cell.toFixed(4) : cell)))))));

// A text with colored parts: [{text, hue, share: 0…1, note, title, onclick, pressed}]. Notes are shown under words.
export const markedText = (parts, { className = "", label } = {}) =>
  h("p", { class: `marked-text ${className}`, "aria-label": label, role: label ? "group" : undefined }, parts.map((part) => {
    const properties = {
      class: `mark ${part.note ? "noted" : ""} ${part.className ?? ""}`, title: part.title,
      style: part.share ? { background: `color-mix(in srgb, ${part.hue} ${Math.round(100 * part.share)}%, transparent)` } : {},
    };
    const inner = [part.note ? h("span", {}, part.text) : part.text, part.note && h("small", {}, part.note)];
    if (!part.onclick) return part.share || part.note ? h("span", properties, inner) : part.text;
    return h("button", { type: "button", ...properties, onclick: part.onclick,
      "aria-pressed": part.pressed === undefined ? undefined : String(part.pressed) }, inner);
  }));

// The card of a model, in the model's color.
export function modelCard(page, model, name, given) {
  const one = card({ title: model.id, about: t(model.title), name: `${name}-${model.id}`, ...given });
  one.node.style.borderTop = `3px solid ${color(`category-${page.models.indexOf(model)}`)}`;
  return one;
}

// One card for each model, side by side; one that fails shows only the reason.
// `fill(model, card, signal, index, …given)` asks and draws; `ask(…given)` gives up the question before.
export function modelCards(page, name, fill, more = () => ({ className: "tight" })) {
  const made = page.models.map((model) => modelCard(page, model, name, more(model)));
  let last = new AbortController();
  page.signal.addEventListener("abort", () => last.abort());
  const ask = (...given) => {
    last.abort();
    last = new AbortController();
    const { signal } = last;
    return Promise.all(made.map((one, index) =>
      one.run(() => fill(page.models[index], one, signal, index, ...given), one.clear)));
  };
  return { node: h("div", { class: "side-by-side" }, made.map((one) => one.node)), ask, cards: made };
}

// A message of the service that stands beside results, soon in the language of the page.
export function problem(message, before = "") {
  const node = h("p", { class: "error note" }, before, message);
  translated(message).then((text) => show(node, before, text));
  return node;
}

// Say in a view why it cannot be drawn, unless it has been left.
export const failIn = (root) => (error) =>
  error.name === "AbortError" || show(root, h("p", { class: "error", role: "alert" }, error.message));

// The card above them, with what is asked.
export function inputCard(title, about, controls, ...more) {
  const one = card({ title, about, name: "input" });
  show(one.body, h("div", { class: "tools" }, controls), more);
  return one.node;
}
