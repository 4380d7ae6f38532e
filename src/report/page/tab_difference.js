// SPDX-License-Identifier: Apache-2.0
// What is different between two checkpoints.

// Rows of the comparison: those that differ first, then the equal ones.
class Compared {
  constructor(difference) {
    this.difference = difference;
    this.names = decodeNames(difference.names);
    this.differing = difference.delta.length;
  }
  delta(i) {
    const value = i < this.differing ? this.difference.delta[i] : 0;
    return value === "inf" ? Infinity : value;
  }
  mismatch(i) { return i < this.differing ? this.difference.mismatch[i] : null; }
}

function heatStrip(compared) {
  const { difference } = compared;
  const cells = new Map();
  const rows = new Map();
  const layers = new Set();
  for (let i = 0; i < compared.names.length; ++i) {
    const layer = difference.layer[i];
    const role = difference.role[i] === 0 ? "" : `${text(`role.${difference.role[i]}`)}: `;
    const row = `${role}${difference.component[i]} · ${foldExperts(difference.kind[i])}`;
    rows.set(row, (rows.get(row) || 0) + 1);
    layers.add(layer);
    const key = `${row}\n${layer}`;
    const cell = cells.get(key) || { count: 0, delta: 0, differing: 0, mismatch: null };
    cell.count += 1;
    cell.delta = Math.max(cell.delta, compared.delta(i));
    cell.differing += i < compared.differing ? 1 : 0;
    cell.mismatch = cell.mismatch || compared.mismatch(i);
    cells.set(key, cell);
  }
  const columns = [...layers].sort((a, b) => a - b);
  const names = [...rows.keys()].slice(0, 400);
  const at = (r, c) => cells.get(`${names[r]}\n${columns[c]}`);
  const finite = [...cells.values()].map((cell) => cell.delta).filter((delta) => delta > 0 && delta < Infinity);
  const low = d3.min(finite) || 1e-9;
  const high = Math.max(d3.max(finite) || 1, low * 10);
  const scale = d3.scaleLog().domain([low, high]).range([0.25, 1]).clamp(true);
  const fill = (r, c) => {
    const cell = at(r, c);
    if (!cell) return null;
    if (cell.differing === 0) return colour("line");
    return d3.interpolateYlOrRd(cell.delta === Infinity ? 1 : cell.delta === 0 ? 0.25 : scale(cell.delta));
  };
  const strip = heatmap({
    rows: names,
    columns: columns.map((layer) => (layer < 0 ? text("difference.no_layer") : String(layer))),
    fill,
    mark: (r, c) => Boolean(at(r, c) && at(r, c).mismatch),
    lines: (r, c) => {
      const cell = at(r, c);
      if (!cell) return [names[r]];
      return [names[r], `${text("column.delta")} ${showNumber(cell.delta === Infinity ? "inf" : cell.delta)}`,
        `${showCount(cell.differing)} / ${showCount(cell.count)}`];
    },
  });
  // A step of the scale for each power of two or so.
  const steps = d3.range(0.25, 1.001, 0.05).map((share) => {
    const step = element("span", { class: "step" });
    step.style.background = d3.interpolateYlOrRd(share);
    return step;
  });
  return element("div", {}, finite.length === 0 ? null : element("p", { class: "scale" },
    `|Δ| ${showNumber(low)} `, ...steps, ` ${showNumber(high)}`), strip);
}

function differenceTab(difference) {
  if (difference.error) return errorBox(difference.error);
  const compared = new Compared(difference);
  const node = element("div", {});
  const all = compared.names.length;
  node.append(!difference.differs
    ? element("p", { class: difference.equal ? "banner good" : "banner bad" }, text(
      difference.equal ? "difference.equal" : "difference.partly",
      { count: showCount(difference.compared), left: showCount(difference.not_compared) },
    ))
    : element("p", { class: "banner bad" }, text("difference.different", {
      count: showCount(compared.differing), all: showCount(all), delta: showNumber(difference.max_delta),
    })));
  node.append(element("section", { class: "card" }, facts([
    [text("side.left"), difference.left], [text("side.right"), difference.right],
    [text("difference.names"), text(`difference.${difference.names_of}`)],
    [text("column.differing"), showCount(difference.differing)],
    [text("overview.notes"), difference.notes.join("\n")],
  ])));
  if (all > 0) node.append(section(text("difference.heat"), text("difference.heat_hint"), heatStrip(compared)));
  if (compared.differing > 0) {
    const order = d3.range(compared.differing).sort((a, b) => compared.delta(b) - compared.delta(a) || a - b);
    const list = new VirtualList(44, (index) => {
      const i = order[index];
      const mismatch = compared.mismatch(i);
      return element("div", { class: "row" },
        element("div", { class: "row-name", title: compared.names[i] }, compared.names[i]),
        element("div", { class: "row-facts" }, mismatch
          ? `${text("difference.mismatch")}: ${mismatch[0]} ≠ ${mismatch[1]}`
          : `${text("column.delta")} ${showNumber(difference.delta[i])} · ${showCount(difference.elements_differing[i])} ${text("column.differing")}`));
    });
    list.node.style.height = `${Math.min(480, 44 * order.length + 4)}px`;
    list.show(order.length);
    node.append(section(text("difference.list"), null, list.node));
  }
  for (const [key, names] of [["only_left", difference.missing_right], ["only_right", difference.missing_left]]) {
    if (names.length === 0) continue;
    const list = new VirtualList(28, (index) => element("div", { class: "row" },
      element("div", { class: "row-name" }, names[index])));
    list.node.style.height = `${Math.min(360, 28 * names.length + 4)}px`;
    list.show(names.length);
    node.append(section(`${text(`difference.${key}`)}: ${showCount(names.length)}`, null, list.node));
  }
  return node;
}
