// SPDX-License-Identifier: Apache-2.0
// One tensor as a rectangle and who holds which part of it: replicas hatched, holes crossed in red.

// The two axes that are drawn: those that are cut, most cuts first, then the last ones.
function drawnAxes(shape, pieces) {
  const cuts = shape.map((_, axis) => new Set(pieces.map((piece) => piece.origin[axis])).size);
  const order = d3.range(shape.length).sort(
    (a, b) => cuts[b] - cuts[a] || shape[b] - shape[a] || a - b);
  const drawn = order.slice(0, 2).sort((a, b) => a - b);
  const cut = shape.map((_, axis) => axis).filter((axis) => cuts[axis] > 1);
  const hidden = cut.filter((axis) => !drawn.includes(axis));
  return { row: drawn.length > 1 ? drawn[0] : null, column: drawn[drawn.length - 1], cut, hidden };
}

function hatch(svg, id, ink) {
  const pattern = svg.append("defs").append("pattern").attr("id", id)
    .attr("patternUnits", "userSpaceOnUse").attr("width", 8).attr("height", 8);
  pattern.append("path").attr("d", "M-2,2 l4,-4 M0,8 l8,-8 M6,10 l4,-4")
    .attr("stroke", ink).attr("stroke-width", 1.4).attr("stroke-opacity", 0.6);
}

let mapNumber = 0;

function shardMap(tensors, i) {
  const pieces = tensors.pieces(i);
  if (pieces === null) return element("p", { class: "hint" }, text("detail.left_out"));
  const shape = tensors.shape(i);
  const { row, column, cut, hidden } = shape.length === 0
    ? { row: null, column: null, cut: [], hidden: [] } : drawnAxes(shape, pieces);
  const width = 560;
  const height = row === null ? 96 : 300;
  const margin = { top: 22, right: 12, bottom: 6, left: 62 };
  // What lies in one place on the picture: the same box more than once is a replica.
  const places = new Map();
  for (const piece of pieces) {
    const key = `${piece.origin.join()} ${piece.shape.join()}`;
    if (!places.has(key)) places.set(key, { ...piece, holders: [] });
    places.get(key).holders.push(piece.holder);
  }
  const extent = (axis) => (axis === null ? 1 : shape[axis]);
  const x = d3.scaleLinear().domain([0, extent(column) || 1]).range([margin.left, width - margin.right]);
  const y = d3.scaleLinear().domain([0, extent(row) || 1]).range([margin.top, height - margin.bottom]);
  const number = ++mapNumber;
  const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("class", "map")
    .attr("role", "img").attr("aria-label", text("detail.map"));
  hatch(svg, `replica-${number}`, "#000");
  hatch(svg, `hole-${number}`, colour("bad"));
  svg.append("defs").append("clipPath").attr("id", `clip-${number}`).append("rect")
    .attr("x", margin.left).attr("y", margin.top)
    .attr("width", width - margin.left - margin.right)
    .attr("height", height - margin.top - margin.bottom);
  const frame = svg.append("g").attr("clip-path", `url(#clip-${number})`);
  const plane = frame.append("g");
  const area = (fill) => plane.append("rect").attr("x", x(0)).attr("y", y(0))
    .attr("width", x(extent(column)) - x(0)).attr("height", y(extent(row)) - y(0)).attr("fill", fill);
  area(colour("surface"));
  area(`url(#hole-${number})`);
  const span = (place, axis) => (axis === null ? [0, 1]
    : [place.origin[axis], place.origin[axis] + place.shape[axis]]);
  const boxes = plane.selectAll("g").data([...places.values()]).enter().append("g").attr("class", "box");
  const rect = (selection, fill) => selection.append("rect")
    .attr("x", (d) => x(span(d, column)[0])).attr("y", (d) => y(span(d, row)[0]))
    .attr("width", (d) => x(span(d, column)[1]) - x(span(d, column)[0]))
    .attr("height", (d) => y(span(d, row)[1]) - y(span(d, row)[0]))
    .attr("fill", fill).attr("vector-effect", "non-scaling-stroke");
  rect(boxes, (d) => tensors.holderFill(d.holders[0])).attr("class", "piece");
  rect(boxes.filter((d) => d.holders.length > 1), `url(#replica-${number})`);
  const who = (d) => {
    const names = [...new Set(d.holders)].map((holder) => tensors.holderName(holder));
    const listed = names.length > 3 ? `${names[0]} …` : names.join(", ");
    return d.holders.length > 1 ? `${listed} ×${d.holders.length}` : listed;
  };
  const labels = svg.append("g").attr("class", "labels").attr("clip-path", `url(#clip-${number})`)
    .selectAll("text").data([...places.values()]).enter().append("text")
    .attr("text-anchor", "middle").attr("dominant-baseline", "central")
    .attr("fill", (d) => inkOn(tensors.holderFill(d.holders[0])))
    // Hatching leaves the letters alone.
    .attr("stroke", (d) => tensors.holderFill(d.holders[0]));
  boxes.each((d, index, nodes) => {
    const range = (axis) => d.origin[axis] + "…" + (d.origin[axis] + d.shape[axis]);
    nodes[index].addEventListener("pointermove", (event) => tip.show(event,
      [...new Set(d.holders)].slice(0, 8).map((holder) => tensors.holderName(holder)).join(", "),
      shape.length === 0 ? text("detail.whole") : `[${shape.map((_, axis) => range(axis)).join(", ")}]`));
    nodes[index].addEventListener("pointerleave", () => tip.hide());
  });
  const top = svg.append("g").attr("class", "axis").attr("transform", `translate(0,${margin.top})`);
  const left = svg.append("g").attr("class", "axis").attr("transform", `translate(${margin.left},0)`);
  const draw = (transform) => {
    plane.attr("transform", transform.toString());
    const zx = transform.rescaleX(x);
    const zy = transform.rescaleY(y);
    // Indices are whole numbers.
    const ticks = (axis, scale) => axis.tickValues(scale.ticks(6).filter(Number.isInteger))
      .tickFormat(d3.format("~s")).tickSizeOuter(0);
    if (column !== null) top.call(ticks(d3.axisTop(zx), zx));
    if (row !== null) left.call(ticks(d3.axisLeft(zy), zy));
    // Labels keep their size, in the part of their box that is in sight.
    const middle = (scale, [begin, end], low, high) => {
      const from = Math.max(scale(begin), low);
      const to = Math.min(scale(end), high);
      return { at: (from + to) / 2, room: to - from };
    };
    labels.each((d, index, nodes) => {
      const h = middle(zx, span(d, column), margin.left, width - margin.right);
      const v = middle(zy, span(d, row), margin.top, height - margin.bottom);
      d3.select(nodes[index]).attr("x", h.at).attr("y", v.at)
        .text(v.room > 15 ? fitText(who(d), h.room - 6, 12) : "");
    });
  };
  const zoom = d3.zoom().scaleExtent([1, 64])
    .translateExtent([[margin.left, margin.top], [width - margin.right, height - margin.bottom]])
    .extent([[margin.left, margin.top], [width - margin.right, height - margin.bottom]])
    .on("zoom", () => draw(d3.zoomTransform(svg.node())));
  svg.call(zoom);
  draw(d3.zoomIdentity);
  const most = d3.max([...places.values()], (place) => place.holders.length) || 0;
  const names = [];
  if (row !== null) names.push(`↓ ${text("detail.axis", { axis: row, extent: shape[row] })}`);
  if (column !== null) names.push(`→ ${text("detail.axis", { axis: column, extent: shape[column] })}`);
  if (most > 1) names.push(text("detail.replicas", { count: most }));
  return element("figure", { class: "map-figure" }, svg.node(),
    element("figcaption", {}, names.join(" · "), " ",
      element("button", { type: "button", class: "quiet", onclick: () => svg.call(zoom.transform, d3.zoomIdentity) },
        text("detail.reset"))),
    hidden.length > 0 ? element("p", { class: "hint" }, text("detail.projected", { count: cut.length })) : null,
    tensors.defects.has(i) ? element("p", { class: "bad-text" }, tensors.defects.get(i)) : null);
}
