// SPDX-License-Identifier: Apache-2.0
// Who holds which layer, and of one layer which share of each tensor.

// `experts.17.` of all experts is one row.
function foldExperts(kind) { return kind.replace(/(experts?\.)\d+(?=\.|$)/g, "$1*"); }

// Bytes by layer and holder. A tensor that stacks layers counts layers on its first axis.
function layerShares(tensors) {
  const layers = new Map();
  const count = tensors.columns.holders.length;
  const enter = (component, layer) => {
    const key = `${component}\n${layer}`;
    if (!layers.has(key)) {
      layers.set(key, { component, layer, held: new Float64Array(count), tensors: new Map() });
    }
    return layers.get(key);
  };
  const add = (i, component, layer, holder, bytes, whole) => {
    const entry = enter(component, layer);
    entry.held[holder] += bytes;
    const kind = `${tensors.role(i) === 0 ? "" : `${text(`role.${tensors.role(i)}`)}: `}${foldExperts(tensors.kind(i))}`;
    if (!entry.tensors.has(kind)) entry.tensors.set(kind, { bytes: 0, held: new Float64Array(count), seen: new Set() });
    const row = entry.tensors.get(kind);
    row.held[holder] += bytes;
    if (!row.seen.has(i)) { row.seen.add(i); row.bytes += whole; }
  };
  for (let i = 0; i < tensors.size; ++i) {
    const component = tensors.component(i);
    const layer = tensors.layer(i);
    const width = tensors.columns.dtype_bytes[tensors.columns.dtype[i]];
    const stacked = layer === STACKED && tensors.shape(i).length > 0;
    for (const piece of tensors.pieces(i) || []) {
      const bytes = piece.shape.reduce((product, extent) => product * extent, width);
      if (!stacked) {
        add(i, component, layer, piece.holder, bytes, tensors.bytes[i]);
        continue;
      }
      const depth = tensors.shape(i)[0];
      for (let at = 0; at < piece.shape[0]; ++at) {
        add(i, component, piece.origin[0] + at, piece.holder, bytes / piece.shape[0], tensors.bytes[i] / depth);
      }
    }
  }
  return [...layers.values()].sort((a, b) => d3.ascending(a.component, b.component) || a.layer - b.layer);
}

function layersTab(checkpoint) {
  const { tensors } = checkpoint;
  const entries = layerShares(tensors);
  const node = element("div", {});
  if (!entries.some((entry) => entry.layer >= 0)) {
    node.append(section(text("layers.title"), text("layers.none")));
  }
  const most = d3.max(entries, (entry) => d3.max(entry.held)) || 1;
  const shade = d3.scaleSequential(d3.interpolateRgb(colour("heat-low"), colour("heat-high"))).domain([0, 1]);
  const ofLayer = (bytes) => (bytes === 0 ? empty : shade(Math.sqrt(bytes / most)));
  const holders = tensors.usedHolders;
  const columns = holders.map((holder) => tensors.shortHolder(holder));
  const empty = colour("surface");
  const name = (entry) => (entry.layer < 0 ? text("overview.outside") : text("overview.layer", { number: entry.layer }));
  const one = element("div", {});
  const limit = 400;
  const showLayer = (entry) => {
    const all = [...entry.tensors];
    const kinds = all.slice(0, limit);
    const held = (r, c) => kinds[r][1].held[holders[c]];
    replaceChildren(one, section(text("layers.one", { component: entry.component, layer: name(entry) }),
      text("layers.one_hint"), heatmap({
        rows: kinds.map(([kind]) => kind),
        columns,
        fill: (r, c) => (held(r, c) === 0 ? empty : shade(Math.min(1, held(r, c) / kinds[r][1].bytes))),
        lines: (r, c) => [kinds[r][0], tensors.holderName(holders[c]), showBytes(held(r, c)),
          text("layers.share", { share: ((100 * held(r, c)) / (kinds[r][1].bytes || 1)).toFixed(1) })],
      }), all.length > limit ? element("p", { class: "hint" }, text("layers.more", { count: all.length - limit })) : null));
  };
  const shown = entries.slice(0, 2000);
  const components = new Set(entries.map((entry) => entry.component)).size;
  const overview = element("div", { class: "scrolled" });
  const drawAll = (selected) => replaceChildren(overview, heatmap({
    rows: shown.map((entry) => (components > 1 ? `${entry.component} · ${name(entry)}` : name(entry))),
    columns,
    selected,
    fill: (r, c) => ofLayer(shown[r].held[holders[c]]),
    lines: (r, c) => [shown[r].component, name(shown[r]), tensors.holderName(holders[c]), showBytes(shown[r].held[holders[c]])],
    onRow: (r) => { drawAll(r); showLayer(shown[r]); },
  }));
  const first = Math.max(0, shown.findIndex((entry) => entry.layer >= 0));
  if (shown.length > 0) {
    drawAll(first);
    showLayer(shown[first]);
  }
  node.append(section(text("layers.title"), text("layers.hint"), overview,
    tensors.columns.without_boxes > 0 ? element("p", { class: "hint" }, text("detail.left_out")) : null), one);
  return node;
}
