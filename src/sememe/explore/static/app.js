// The page: its header, the view that the address names, and the models chosen for it.
//
// The address restores everything: #/words?models=a,b&word=king. A view is
//   {id, title, uses: (model, params, open, state) → boolean, most: models side by side, render(root, page),
//    needs: () → which models, where it cannot do without}
// `render` may return a function to call when the view is left. `page` has
//   models     the chosen models          params    what the address says
//   state      what the service told      signal    aborted when the view is left
//   update(…)  change the address         open(view, params) go to another view

import { color, h, isDark, show } from "./dom.js";
import { get, own } from "./api.js";
import { language, speak, t } from "./i18n.js";
import { view as attention } from "./views/attention.js";
import { view as context } from "./views/context.js";
import { view as ladder } from "./views/ladder.js";
import { view as learning } from "./views/learning.js";
import { view as map } from "./views/map.js";
import { view as predictions } from "./views/predictions.js";
import { view as words } from "./views/words.js";
import { problem } from "./widgets.js";

const VIEWS = [words, map, context, attention, predictions, learning, ladder];
const [header, main] = ["header", "main"].map((id) => document.getElementById(id));
let state = { models: [], is_ready: false };
let leave = () => {};
const ASKED = ["word", "a", "b", "c", "list", "odd", "pairs", "vectors", "text", "other", "others", "question", "choices"];

function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { id: path, params: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

export function address(id, params) {
  const kept = Object.entries(params).filter(([, value]) => ![undefined, null, ""].includes(value));
  const query = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
  return `#/${id}${query ? `?${query}` : ""}`;
}

const usable = (view, params) => {
  const open = state.models.filter((model) => !model.error);
  return open.filter((model) => view.uses(model, params, open, state));
};

// The models that the address names, else the first that suit the view.
function chosenFor(view, params) {
  const known = usable(view, params);
  const named = (params.models ?? "").split(",").map((id) => known.find((model) => model.id === id));
  const found = named.filter(Boolean).slice(0, view.most);
  return found.length ? found : (view.first?.(known, params) ?? known).slice(0, Math.min(view.few ?? 2, view.most));
}

// Those that are drawn anew with every view, and keep the focus.
const controls = () => [...document.querySelectorAll("header a, header button, .chooser button")];

function render() {
  const focused = controls().indexOf(document.activeElement);
  leave();
  leave = () => {};
  const leaving = new AbortController();
  const { id, params } = place();
  const view = VIEWS.find((one) => (id ? one.id === id : usable(one).length)) ?? (id ? null : learning);
  drawHeader(view, params);
  if (!view) return void show(main, h("p", { class: "error", role: "alert" }, t("There is no view “{id}”.", { id })));
  const models = chosenFor(view, params);
  document.title = `${t(view.title)} – sememe`;
  const root = h("div", { class: `view ${view.id}` });
  show(main, chooser(view, models, params), failures(), root);
  controls()[focused]?.focus({ preventScroll: true });
  const page = {
    models, params, state, signal: leaving.signal,
    // Changes the address without drawing anew, unless it says so. Back undoes another word or text, unless it is being typed.
    update(more, { redraw = false, typed = false } = {}) {
      const isStep = !typed && ASKED.some((name) => more[name] && params[name] && more[name] !== params[name]);
      Object.assign(params, more);
      history[redraw || isStep ? "pushState" : "replaceState"](null, "", address(view.id, params));
      if (redraw) render();
    },
    open(other, more = {}) {
      location.hash = address(other, { models: params.models, ...more });
    },
  };
  const isEmpty = view.needs && state.is_ready && !usable(view).length;
  const left = isEmpty ? void show(root, h("p", { class: "card" }, view.needs())) : view.render(root, page);
  leave = () => {
    leaving.abort();
    left?.();
  };
}

// The models that could not be loaded, each with its reason.
const failures = () => state.models.filter((model) => model.error).map(({ id, error }) => problem(error, `${id}: `));

// Which models the view shows, side by side.
function chooser(view, chosen, params) {
  const known = usable(view, params);
  if (!known.length) return null;
  const choose = (model) => {
    const ids = chosen.map((one) => one.id);
    const next = ids.includes(model.id) ? ids.filter((id) => id !== model.id)
      : view.most === 1 ? [model.id] : [...ids, model.id].slice(-view.most);
    if (!next.length) return;
    location.hash = address(view.id, { ...place().params, models: next.join(",") });
  };
  return h("div", { class: "chooser", role: "group", "aria-label": t("Models") },
    h("span", { class: "soft" }, view.most === 1 ? t("Model") : t("Models (up to {num})", { num: view.most })),
    known.map((model) => {
      const index = chosen.indexOf(model);
      return h("button", {
        type: "button", class: "chip", "aria-pressed": String(index >= 0),
        title: `${t(model.title)} · ${model.path}`,
        style: index >= 0 ? { borderColor: color(`category-${index}`) } : {}, onclick: () => choose(model),
      }, model.id, h("small", {}, t(model.title)));
    }));
}

function drawHeader(view, params) {
  show(header,
    h("a", { class: "skip", href: "#main", onclick: skip }, t("Skip to content")),
    h("a", { class: "brand", href: "#/" }, "sememe", h("span", {}, t("explore"))),
    h("nav", { "aria-label": t("Views") }, VIEWS.map((one) => h("a", {
      href: address(one.id, { models: params.models }), "aria-current": one === view ? "page" : undefined,
    }, t(one.title)))),
    h("div", { class: "settings" },
      h("button", { type: "button", lang: language === "zh" ? "en" : "zh-CN", onclick: switchLanguage },
        language === "zh" ? "English" : "中文"),
      h("button", { type: "button", onclick: switchTheme, "aria-label": t("Light or dark") }, "◐")));
  header.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }); // on a phone
}

function skip(event) {
  event.preventDefault(); // the address names a view, not a place on the page
  main.focus();
}

async function switchLanguage() {
  const next = language === "zh" ? "en" : "zh";
  localStorage.setItem("language", next);
  await learn(next);
  render();
}

const learn = async (name) => speak(name, name === "zh" ? await get(own("messages/zh")) : {});
function switchTheme() {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("theme", theme);
  render();
}

// Draw anew as models are loaded, but not while somebody types.
async function follow() {
  for (let drawn = JSON.stringify(state), now = drawn; !state.is_ready || now !== drawn;) {
    await new Promise((resolve) => setTimeout(resolve, 400));
    if (!state.is_ready) state = await get(own("state"));
    now = JSON.stringify(state);
    if (now === drawn || document.activeElement.matches("main input, main textarea")) continue;
    drawn = now;
    render();
  }
}

async function start() {
  const theme = localStorage.getItem("theme");
  if (theme) document.documentElement.dataset.theme = theme;
  state = await get(own("state"));
  const isChinese = state.language === "zh" || navigator.language.startsWith("zh");
  await learn(localStorage.getItem("language") ?? (isChinese ? "zh" : "en"));
  addEventListener("hashchange", render);
  render();
  await follow();
}

start().catch((error) => show(main, h("p", { class: "error", role: "alert" }, error.message)));
