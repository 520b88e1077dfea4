// Elements of the page. Strings become text nodes, never markup: words of a model cannot inject any.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(node.style, value); // by script, as the policy wants
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  append(node, children);
  return node;
}

function append(node, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
}

// h("p", {class: "soft"}, "text", h("b", {}, "more"))
export const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);

// The same for SVG.
export const svg = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

// Replace what a node holds.
export function show(node, ...children) {
  node.replaceChildren();
  append(node, children);
  return node;
}

// Tell readers of the screen what has changed.
export function announce(text) {
  document.getElementById("status").textContent = text;
}

let numIds = 0;
export const newId = () => `id-${++numIds}`;

export const isDark = () =>
  (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

// The value of a CSS variable in the current theme: of light-dark(#…, #…) one of the two.
export const color = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).match(/#\w+/g)[isDark() ? 1 : 0];

// The colors of categories, in a fixed order.
export const categories = () => Array.from({ length: 10 }, (_, index) => color(`category-${index}`));

// Call a function once typing has paused.
export function debounced(call, ms = 120) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...given), ms);
  };
}
