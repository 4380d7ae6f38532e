// SPDX-License-Identifier: Apache-2.0
// What a checkpoint is and where its bytes are.

function factTiles(rows) {
  return element("div", { class: "tiles" }, ...rows.filter(([, value]) => value !== null).map(
    ([name, value]) => element("div", { class: "tile" },
      element("div", { class: "tile-value" }, value), element("div", { class: "tile-name" }, name))));
}

// Parts of a whole as one bar with a legend: [name, bytes, colour].
function shareBar(parts) {
  const all = d3.sum(parts, (part) => part[1]);
  const bar = element("div", { class: "bar" });
  const legend = element("ul", { class: "legend" });
  for (const [name, bytes, fill] of parts) {
    const share = all > 0 ? (100 * bytes) / all : 0;
    const piece = element("div", {
      onpointermove: (event) => tip.show(event, name, `${showBytes(bytes)} · ${share.toFixed(1)} %`),
      onpointerleave: () => tip.hide(),
    });
    piece.style.flexGrow = String(bytes);
    piece.style.background = fill;
    bar.append(piece);
    const dot = element("span", { class: "dot" });
    dot.style.background = fill;
    legend.append(element("li", {}, dot, `${name} `, element("b", {}, showBytes(bytes)),
      ` ${share.toFixed(1)} %`));
  }
  return element("div", {}, bar, legend);
}

// Bytes of each holder, as bars beside each other.
function holderBars(tensors) {
  const held = new Array(tensors.columns.holders.length).fill(0);
  for (let i = 0; i < tensors.size; ++i) {
    const bytes = tensors.columns.dtype_bytes[tensors.columns.dtype[i]];
    for (const piece of tensors.pieces(i) || []) {
      held[piece.holder] += piece.shape.reduce((product, extent) => product * extent, bytes);
    }
  }
  const shown = d3.range(held.length).filter((holder) => held[holder] > 0);
  const frame = element("div", { class: "bars" });
  const draw = () => {
    const width = frame.clientWidth;
    if (width === 0) return;
    const height = 190;
    const margin = { top: 8, right: 4, bottom: 24, left: 66 };
    const x = d3.scaleBand().domain(shown).range([margin.left, width - margin.right])
      .paddingInner(shown.length > 100 ? 0 : 0.15).paddingOuter(0.1);
    const y = d3.scaleLinear().domain([0, d3.max(held) || 1]).nice(4)
      .range([height - margin.bottom, margin.top]);
    const svg = d3.create("svg").attr("width", width).attr("height", height)
      .attr("role", "img").attr("aria-label", text("overview.holders"));
    svg.append("g").attr("class", "axis grid").attr("transform", `translate(${margin.left},0)`)
      .call(d3.axisLeft(y).ticks(4).tickFormat(showBytes).tickSize(-(width - margin.left - margin.right)));
    const bars = svg.selectAll(".held").data(shown).enter().append("rect").attr("class", "held")
      .attr("x", (holder) => x(holder)).attr("width", Math.max(1, Math.min(x.bandwidth(), 96)))
      .attr("y", (holder) => y(held[holder])).attr("height", (holder) => y(0) - y(held[holder]))
      .attr("fill", (holder) => tensors.holderFill(holder));
    bars.attr("transform", `translate(${Math.max(0, (x.bandwidth() - 96) / 2)},0)`);
    bars.each((holder, index, nodes) => {
      nodes[index].addEventListener("pointermove",
        (event) => tip.show(event, tensors.holderName(holder), showBytes(held[holder])));
      nodes[index].addEventListener("pointerleave", () => tip.hide());
    });
    const widest = d3.max(shown, (holder) => textWidth(tensors.shortHolder(holder), 11)) + 8;
    const most = Math.max(x.step(), 120);
    const every = Math.max(1, Math.ceil(Math.min(widest, most) / x.step()));
    svg.append("g").attr("class", "axis").selectAll("text")
      .data(shown.filter((_, index) => index % every === 0)).enter().append("text")
      .attr("x", (holder) => x(holder) + x.bandwidth() / 2).attr("y", height - 7)
      .attr("text-anchor", "middle").text((holder) => fitText(tensors.shortHolder(holder), most, 11));
    replaceChildren(frame, svg.node());
  };
  new ResizeObserver(draw).observe(frame);
  return frame;
}

function overviewOf(checkpoint, open) {
  if (checkpoint.error) return [errorBox(checkpoint.error)];
  const { tensors } = checkpoint;
  const { columns } = tensors;
  const bytes = d3.sum(tensors.bytes);
  const elements = d3.sum(d3.range(tensors.size), (i) => tensors.elements(i));
  const pieces = d3.sum(d3.range(tensors.size), (i) => tensors.pieceCount(i));
  const byRole = new Array(5).fill(0);
  const byType = new Map();
  for (let i = 0; i < tensors.size; ++i) {
    byRole[tensors.role(i)] += tensors.bytes[i];
    byType.set(tensors.dtype(i), (byType.get(tensors.dtype(i)) || 0) + tensors.bytes[i]);
  }
  const roles = byRole.map((held, role) => [text(`role.${role}`), held, roleColour(role)])
    .concat([[text("role.objects"), columns.objects.bytes, roleColour(5)]])
    .filter(([, held]) => held > 0);
  const types = [...byType].sort((a, b) => b[1] - a[1])
    .map(([name, held], index) => [name, held, d3.schemeSet2[index % 8]]);
  const pairs = (list) => list.map(([name, value]) => `${name} ${value}`).join(", ");
  const tree = new Treemap(tensors, columns.objects, open);
  return [
    ...checkpoint.losses.slice(0, 20).map((loss) => errorBox(loss, text("overview.loss"))),
    factTiles([
      [text("fact.format"), checkpoint.format],
      [text("fact.tensors"), showCount(tensors.size)],
      [text("fact.elements"), showCount(elements)],
      [text("fact.bytes"), showBytes(bytes)],
      [text("fact.pieces"), showCount(pieces)],
      [text("fact.holders"), showCount(tensors.usedHolders.length)],
      [text("fact.iteration"), checkpoint.iteration === null ? null : showCount(checkpoint.iteration)],
    ]),
    element("section", { class: "card" }, facts([
      [text("fact.folder"), checkpoint.folder],
      [text("fact.model"), pairs(checkpoint.model)],
      [text("fact.saved_with"), pairs(checkpoint.saved_with)],
      [text("overview.notes"), checkpoint.notes.join("\n")],
    ])),
    section(text("overview.bytes"), text("overview.bytes_hint"), tree.node),
    element("div", { class: "pair" },
      section(text("overview.roles"), null, shareBar(roles)),
      section(text("overview.dtypes"), null, shareBar(types))),
    section(text("overview.holders"), null, holderBars(tensors)),
  ];
}
