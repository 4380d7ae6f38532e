// SPDX-License-Identifier: Apache-2.0
// Elements and texts. Strings only ever become text nodes: names come from checkpoints of strangers.

function element(tag, properties, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function replaceChildren(node, ...children) {
  node.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
}

let language = "en";

function text(key, parameters) {
  const words = TEXTS[language][key];
  if (words === undefined) throw new Error(`no text ${key}`);
  return words.replace(/\{(\w+)\}/g, (_, name) => String(parameters[name]));
}

// A sentence that comes in both languages.
function sentence(phrase) { return phrase[language] || phrase.en; }

const countFormat = d3.format(",");
function showCount(count) { return Number.isFinite(count) ? countFormat(count) : "–"; }

// In powers of 1000, as the program prints them.
function showBytes(bytes) {
  bytes = Math.round(bytes);
  const units = ["bytes", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (bytes >= 1000 && unit + 1 < units.length) { bytes /= 1000; ++unit; }
  return unit === 0 ? `${bytes} ${units[0]}` : `${bytes.toFixed(bytes < 10 ? 2 : bytes < 100 ? 1 : 0)} ${units[unit]}`;
}

function showShape(shape) { return shape.length === 0 ? "()" : shape.join(" × "); }

function showNumber(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return value;
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6)) return value.toExponential(3);
  return String(Number(value.toPrecision(6)));
}

const measure = document.createElement("canvas").getContext("2d");
function textWidth(words, size) {
  measure.font = `${size}px system-ui, sans-serif`;
  return measure.measureText(words).width;
}

// As much of a text as fits into so many pixels; nothing where that says nothing.
function fitText(words, room, size, fromEnd = false) {
  if (textWidth(words, size) <= room) return words;
  for (let length = words.length - 1; length >= 2; --length) {
    const cut = fromEnd ? `…${words.slice(-length)}` : `${words.slice(0, length)}…`;
    if (textWidth(cut, size) <= room) return cut;
  }
  return "";
}

function section(title, hint, ...children) {
  return element("section", { class: "card" },
    element("h2", {}, title), hint ? element("p", { class: "hint" }, hint) : null, ...children);
}

// Terms and what they are; rows without a value are left out.
function facts(rows) {
  const list = element("dl", { class: "facts" });
  for (const [term, value] of rows) {
    if (value === null || value === undefined || value === "") continue;
    list.append(element("dt", {}, term), element("dd", {}, value));
  }
  return list;
}

function errorBox(error, title = text("error.title")) {
  return element("div", { class: "banner bad" },
    element("strong", {}, `${title}: ${error.code} ${sentence(error.title)}`),
    element("p", {}, error.message));
}

// Follows the pointer; one for the whole page.
const tip = {
  node: null,
  show(event, ...lines) {
    if (this.node === null) {
      this.node = element("div", { class: "tip", role: "tooltip" });
      document.body.append(this.node);
    }
    replaceChildren(this.node, ...lines.map((line) => element("div", {}, line)));
    this.node.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = this.node;
    const left = Math.min(event.clientX + 14, window.innerWidth - width - 8);
    const below = event.clientY + 16;
    const top = below + height > window.innerHeight ? event.clientY - height - 10 : below;
    this.node.style.left = `${Math.max(8, left)}px`;
    this.node.style.top = `${Math.max(8, top)}px`;
  },
  hide() { if (this.node !== null) this.node.hidden = true; },
};

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const ROLE_COLOURS = ["role-0", "role-1", "role-2", "role-3", "role-4", "role-5"];
function roleColour(role) { return colour(ROLE_COLOURS[role]); }

// Up to ten holders have colours of a palette, more go round the circle.
function holderColour(holder, count) {
  if (count <= 10) return (d3.schemeTableau10 || d3.schemeCategory10)[holder % 10];
  return d3.hsl((holder * 360) / count, 0.55, holder % 2 ? 0.6 : 0.5).toString();
}

// Black or white, whichever is read better on a colour.
function inkOn(background) {
  const { r, g, b } = d3.rgb(background);
  const linear = [r, g, b].map((c) => {
    const share = c / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) ? "#111" : "#fff";
}
