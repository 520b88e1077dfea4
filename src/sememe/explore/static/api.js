// Requests to the service that has sent this page, and to no other.

import { t } from "./i18n.js";

export class ApiError extends Error {}

async function request(path, body, signal) {
  const sent = body && { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(path, { signal, ...sent }).catch((error) => {
    throw error.name === "AbortError" ? error : new ApiError(t("The service does not answer: it may have been stopped."));
  });
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw new ApiError(await translated(told.error?.message ?? `Status ${response.status}`));
}

// A message of the service in the language of the page.
export async function translated(text) {
  if (document.documentElement.lang !== "zh-CN" || text.length > 2000) return text;
  const answer = await fetch(own(`translation?${new URLSearchParams({ text })}`)).catch(() => null);
  return answer?.ok ? (await answer.json()).text : text;
}

// Paths: api("neighbors") is a route of the service, own("words") one of the explorer.
export const api = (name) => `/v1/${name}`;
export const own = (name) => `/explore/api/${name}`;

export const get = async (path, signal) => (await request(path, undefined, signal)).json();
export const post = async (path, body, signal) => (await request(path, body, signal)).json();

const TYPES = { float32: Float32Array, uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, int32: Int32Array };

// {meta, columns: {name: {values, shape}}} of explore/routing.py
export async function columns(path, body, signal) {
  const bytes = await (await request(path, body, signal)).arrayBuffer();
  const size = new DataView(bytes).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, size)));
  let offset = 4 + size;
  const found = {};
  for (const { name, type, shape } of header.columns) {
    const length = shape.reduce((a, b) => a * b, 1);
    const values = new TYPES[type](bytes, offset, length);
    found[name] = { values, shape };
    offset += Math.ceil(values.byteLength / 8) * 8;
  }
  return { meta: header.meta, columns: found };
}

// Start a job of the service, follow its progress, and return when it is done.
export async function job(path, body, onProgress, signal) {
  let state = await post(path, body, signal);
  while (state.state === "running") {
    onProgress?.(state);
    await new Promise((resolve) => setTimeout(resolve, 300));
    state = await get(own(`jobs/${encodeURIComponent(state.id)}`), signal);
  }
  if (state.state === "failed") throw new ApiError(state.error);
  return state;
}
