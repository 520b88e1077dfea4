// Pictures and tables to keep: PNG and SVG of what is drawn, CSV of its numbers.

import { color, h, svg } from "./dom.js";

function download(name, blob) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// A cell that a spreadsheet would run as a formula starts with an apostrophe.
const cell = (value) => {
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : `${value ?? ""}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

export function saveCsv(name, rows) {
  const text = rows.map((row) => row.map(cell).join(",")).join("\r\n");
  download(`${name}.csv`, new Blob(["\ufeff", text, "\r\n"], { type: "text/csv" }));
}

const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity",
  "stroke-opacity", "font-size", "font-family", "font-weight", "text-anchor", "dominant-baseline"];

// An SVG with the styles of the page written into it, on the color of the page.
function standalone(picture) {
  const copy = picture.cloneNode(true);
  const { width, height } = picture.getBoundingClientRect();
  const own = [picture, ...picture.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((node, index) => {
    const style = getComputedStyle(own[index]);
    for (const name of KEPT) node.setAttribute(name, style.getPropertyValue(name));
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  if (!copy.hasAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const [left, top, wide, high] = copy.getAttribute("viewBox").split(/[ ,]+/);
  copy.prepend(svg("rect", { x: left, y: top, width: wide, height: high, fill: color("card") }));
  return new XMLSerializer().serializeToString(copy);
}

// An SVG, or its text, without the characters that XML cannot hold: words of a model may have them.
function svgFile(picture) {
  const text = typeof picture === "string" ? picture : standalone(picture);
  const kept = text.replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "");
  return new Blob([kept], { type: "image/svg+xml" });
}

export function saveSvg(name, picture) {
  download(`${name}.svg`, svgFile(picture));
}

// A canvas as it is, or an SVG drawn at twice its size.
export async function savePng(name, picture) {
  let canvas = picture;
  if (!(picture instanceof HTMLCanvasElement)) {
    const image = new Image();
    image.src = URL.createObjectURL(svgFile(picture));
    await image.decode();
    canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * image.naturalWidth, 2 * image.naturalHeight];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(image.src);
  }
  canvas.toBlob((blob) => download(`${name}.png`, blob), "image/png");
}
