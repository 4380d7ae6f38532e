// SPDX-License-Identifier: Apache-2.0
// A conversion: where the bytes come from and where they go.

// Streams between the holders of both sides, as wide as their bytes.
function flowPicture(plan, from, to) {
  const frame = element("div", { class: "flow" });
  const most = 3000;
  const flows = [...plan.flows].sort((a, b) => b[2] - a[2]).slice(0, most);
  const draw = () => {
    const width = frame.clientWidth;
    if (width === 0) return;
    const ends = (side) => {
      const sums = new Map();
      for (const flow of flows) sums.set(flow[side], (sums.get(flow[side]) || 0) + flow[2]);
      return [...sums].sort((a, b) => a[0] - b[0]);
    };
    const sides = [ends(0), ends(1)];
    // By where they come from, unless that is one place.
    const bySource = sides[0].length > 1;
    const shade = (source, target) => (bySource
      ? from.holderFill(source) : to.holderFill(target));
    const count = Math.max(sides[0].length, sides[1].length);
    const height = Math.max(180, Math.min(1600, count * 26 + 20));
    const gap = Math.min(6, (height * 0.3) / Math.max(1, count));
    const labelSize = 13;
    const labelWidth = [from, to].map((tensors, side) => Math.min(width / 3, 20
      + d3.max(sides[side], ([holder]) => textWidth(tensors.holderName(holder), labelSize)) || 0));
    const bar = 14;
    const tops = sides.map((list) => {
      const all = d3.sum(list, ([, bytes]) => bytes) || 1;
      const room = height - gap * (list.length - 1) - 8;
      let top = 4;
      return new Map(list.map(([holder, bytes]) => {
        const place = { top, size: (room * bytes) / all, bytes, used: 0 };
        top += place.size + gap;
        return [holder, place];
      }));
    });
    const svg = d3.create("svg").attr("width", width).attr("height", height)
      .attr("role", "img").attr("aria-label", text("plan.flow"));
    const x = [labelWidth[0], width - labelWidth[1]];
    const link = d3.linkHorizontal();
    const ordered = [...flows].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    for (const [source, target, bytes] of ordered) {
      const left = tops[0].get(source);
      const right = tops[1].get(target);
      const size = Math.max(0.6, (left.size * bytes) / left.bytes);
      const rightSize = (right.size * bytes) / right.bytes;
      const path = svg.append("path").attr("class", "stream").attr("fill", "none")
        .attr("d", link({ source: [x[0] + bar, left.top + left.used + size / 2],
          target: [x[1] - bar, right.top + right.used + rightSize / 2] }))
        .attr("stroke", shade(source, target))
        .attr("stroke-width", Math.max(0.6, Math.min(size, Math.max(rightSize, 0.6))));
      left.used += size;
      right.used += rightSize;
      path.node().addEventListener("pointermove", (event) => tip.show(event,
        `${from.holderName(source)} → ${to.holderName(target)}`, showBytes(bytes)));
      path.node().addEventListener("pointerleave", () => tip.hide());
    }
    [from, to].forEach((tensors, side) => {
      for (const [holder, place] of tops[side]) {
        svg.append("rect").attr("x", side === 0 ? x[0] : x[1] - bar).attr("y", place.top)
          .attr("width", bar).attr("height", Math.max(1, place.size)).attr("rx", 2)
          .attr("fill", (side === 0) === bySource ? shade(holder, holder) : colour("muted"));
        if (place.size < 9) continue;
        const label = svg.append("text").attr("x", side === 0 ? x[0] - 8 : x[1] + 8)
          .attr("y", place.top + place.size / 2).attr("dominant-baseline", "central")
          .attr("text-anchor", side === 0 ? "end" : "start").attr("fill", colour("ink"));
        label.attr("font-size", labelSize).append("tspan")
          .text(fitText(tensors.holderName(holder), labelWidth[side] - 12, labelSize, true));
        if (place.size > 26) {
          label.attr("y", place.top + place.size / 2 - 7);
          label.append("tspan").attr("class", "minor").attr("x", side === 0 ? x[0] - 8 : x[1] + 8)
            .attr("dy", 15).text(showBytes(place.bytes));
        }
      }
    });
    replaceChildren(frame, svg.node());
  };
  new ResizeObserver(draw).observe(frame);
  const shown = flows.length;
  return element("div", {}, frame, shown < plan.flow_count
    ? element("p", { class: "hint" }, text("plan.flow_more", { shown: showCount(shown), all: showCount(plan.flow_count) })) : null);
}

function planTab(plan) {
  const from = new Tensors(plan.from);
  const to = new Tensors(plan.to);
  const detail = element("div", { class: "detail card" }, element("p", { class: "hint" }, text("list.pick")));
  const onPick = (i) => {
    rememberTensor(to.name(i));
    const sources = plan.made_of[i];
    replaceChildren(detail,
      element("h2", { class: "name" }, to.name(i)), tensorFacts(to, i), shardMap(to, i),
      element("h3", {}, text("plan.made_of")),
      sources.length === 0 ? element("p", { class: "hint" }, text("plan.nothing")) : null,
      ...sources.slice(0, 12).map((source) => element("div", { class: "source" },
        element("h4", { class: "name" }, from.name(source)), tensorFacts(from, source), shardMap(from, source))),
      sources.length > 12 ? element("ul", { class: "pieces" },
        ...sources.slice(12, 200).map((source) => element("li", {}, from.name(source)))) : null);
  };
  const list = new TensorList(to, {
    orders: { "list.by_name": null, "list.by_bytes": (a, b) => to.bytes[b] - to.bytes[a] },
    onPick,
  });
  const side = (which) => `${which.path} (${which.format}${which.sizes && which.sizes.length > 0
    ? `, ${sizesText(which.sizes.filter(([, size]) => size > 1))}` : ""})`;
  const node = element("div", {},
    factTiles([
      [text("plan.read"), showBytes(plan.cost.bytes_read)],
      [text("plan.written"), showBytes(plan.cost.bytes_written)],
      [text("fact.tensors"), showCount(to.size)],
      [text("plan.memory"), plan.cost.peak_memory_bytes > 0 ? showBytes(plan.cost.peak_memory_bytes) : null],
    ]),
    element("section", { class: "card" }, facts([
      [text("plan.source"), side(plan.source)], [text("plan.target"), side(plan.target)],
      [text("fact.model"), plan.family], [text("overview.notes"), plan.notes.join("\n")],
    ])),
    section(text("plan.flow"), null, flowPicture(plan, from, to)),
    element("div", { class: "split" }, list.node, detail));
  return { node, list, tensors: to };
}
