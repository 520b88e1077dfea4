// The language of the interface: English in the code, Chinese from localization/zh/explore.tsv.

let texts = {};
export let language = "en";

// The text in the language in use, with values in its places: {num} of {num: 5}.
export function t(text, values = {}) {
  return (texts[text] ?? text).replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

export function speak(name, given) {
  [language, texts] = [name, given];
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
}

export const number = (value, digits = 0) =>
  value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
export const percent = (value, digits = 1) => `${(100 * value).toFixed(digits)}%`;
