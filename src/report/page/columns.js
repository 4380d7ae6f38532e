// SPDX-License-Identifier: Apache-2.0
// Decodes what the program wrote in columns; docs/report.md describes them.

function decodeNames(column) {
  const names = new Array(column.rest.length);
  let before = "";
  for (let i = 0; i < names.length; ++i) {
    before = before.slice(0, column.shared[i]) + column.rest[i];
    names[i] = before;
  }
  return names;
}

// `00001` of `model-00001-of-00278.safetensors`: without what all begin and end with, whole numbers
// left whole. Ranks are short as they are.
function shortNames(names) {
  if (names.length < 2 || names.some((name) => /^rank \d+$/.test(name))) return names;
  const first = names[0];
  let head = 0;
  while (names.every((name) => head < name.length && name[head] === first[head])) ++head;
  while (head > 0 && /\d/.test(first[head - 1])) --head;
  let tail = 0;
  while (names.every((name) => tail < name.length - head
    && name[name.length - 1 - tail] === first[first.length - 1 - tail])) ++tail;
  while (tail > 0 && /\d/.test(first[first.length - tail])) --tail;
  const short = names.map((name) => name.slice(head, name.length - tail));
  return short.every((name) => name.length > 0) ? short : names;
}

// Layers as C++ writes them: none, or all of them in one tensor.
const NO_LAYER = -1;
const STACKED = -2;

// A checkpoint's tensors: `size` of them, asked by number.
class Tensors {
  constructor(columns) {
    this.columns = columns;
    this.names = decodeNames(columns.names);
    this.size = this.names.length;
    this.lower = null;
    this.bytes = this.names.map(
      (_, i) => this.elements(i) * columns.dtype_bytes[columns.dtype[i]]);
    this.defects = new Map(columns.defects);
    // Files that hold no part of a tensor are left out of pictures.
    this.usedHolders = [...new Set(columns.held.flat())].sort((a, b) => a - b);
    this.holderPlace = new Map(this.usedHolders.map((holder, place) => [holder, place]));
    this.shortNames = shortNames(this.usedHolders.map((holder) => columns.holders[holder]));
  }
  name(i) { return this.names[i]; }
  dtype(i) { return this.columns.dtypes[this.columns.dtype[i]]; }
  shape(i) { return this.columns.shapes[this.columns.shape[i]]; }
  role(i) { return this.columns.role[i]; }
  component(i) { return this.columns.components[this.columns.component[i]]; }
  layer(i) { return this.columns.layer[i]; }
  kind(i) { return this.columns.kinds[this.columns.kind[i]]; }
  elements(i) { return this.shape(i).reduce((product, extent) => product * extent, 1); }
  holders(i) { return this.columns.holder[i] < 0 ? null : this.columns.held[this.columns.holder[i]]; }
  pieceCount(i) { const held = this.holders(i); return held === null ? NaN : held.length; }
  holderName(holder) { return this.columns.holders[holder]; }
  // What tells it from the others, for axes.
  shortHolder(holder) { return this.shortNames[this.holderPlace.get(holder)]; }
  holderFill(holder) { return holderColour(this.holderPlace.get(holder), this.usedHolders.length); }

  // Origin, shape and holder of each stored piece; null where the page does not have them.
  pieces(i) {
    const held = this.holders(i);
    if (held === null) return null;
    const shape = this.shape(i);
    const numbers = this.columns.boxes[this.columns.box[i]];
    const axes = shape.length;
    return held.map((holder, piece) => {
      if (numbers.length === 0) return { origin: shape.map(() => 0), shape, holder };
      const at = piece * 2 * axes;
      return {
        origin: numbers.slice(at, at + axes),
        shape: numbers.slice(at + axes, at + 2 * axes),
        holder,
      };
    });
  }

  // What every word, or the pattern, is in.
  search(text) {
    if (this.lower === null) this.lower = this.names.map((name) => name.toLowerCase());
    const wanted = text.trim().toLowerCase();
    const all = d3.range(this.size);
    if (wanted === "") return all;
    if (wanted.includes("*")) {
      const parts = wanted.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
      const pattern = new RegExp(`^${parts.join(".*")}$`);
      return all.filter((i) => pattern.test(this.lower[i]));
    }
    const words = wanted.split(/\s+/);
    return all.filter((i) => words.every((word) => this.lower[i].includes(word)));
  }
}
