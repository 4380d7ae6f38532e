// SPDX-License-Identifier: Apache-2.0
// Every tensor: a list to search and, beside it, the one that was picked.

// Numbers of a tensor's values and how large they are.
function statisticsOf(statistics, i) {
  if (!statistics) return section(text("statistics.title"), text("statistics.absent"));
  if (statistics.error) return errorBox(statistics.error);
  const figures = facts(["min", "max", "mean", "std", "zero", "nan", "inf"].map(
    (name) => [text(`statistics.${name}`), ["zero", "nan", "inf"].includes(name)
      ? showCount(statistics[name][i] === null ? NaN : statistics[name][i]) : showNumber(statistics[name][i])]));
  figures.classList.add("figures");
  const histogram = statistics.histogram[i];
  if (histogram === null) return section(text("statistics.title"), null, figures);
  const [first, letters] = histogram;
  const heights = [...letters].map((letter) => parseInt(letter, 36) / 35);
  const width = 560;
  const height = 120;
  const x = d3.scaleBand().domain(d3.range(heights.length)).range([8, width - 8]).paddingInner(0.1);
  const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("class", "histogram")
    .attr("role", "img").attr("aria-label", text("statistics.histogram"));
  svg.selectAll("rect").data(heights).enter().append("rect").attr("x", (_, bar) => x(bar))
    .attr("width", x.bandwidth()).attr("y", (share) => 98 - 92 * share).attr("height", (share) => 92 * share)
    .attr("fill", colour("accent"));
  const every = Math.ceil(heights.length / 10);
  svg.append("g").attr("class", "axis").selectAll("text")
    .data(d3.range(heights.length).filter((bar) => bar % every === 0)).enter().append("text")
    .attr("x", (bar) => x(bar) + x.bandwidth() / 2).attr("y", 113).attr("text-anchor", "middle")
    .attr("fill", colour("muted")).text((bar) => `2^${first + bar}`);
  return section(text("statistics.title"), null, figures,
    element("p", { class: "hint" }, text("statistics.histogram")), svg.node());
}

function piecesOf(tensors, i) {
  const pieces = tensors.pieces(i) || [];
  const most = 64;
  const rows = pieces.slice(0, most).map((piece) => element("li", {},
    element("b", {}, tensors.holderName(piece.holder)), " ",
    `[${piece.origin.map((begin, axis) => `${begin}…${begin + piece.shape[axis]}`).join(", ")}]`));
  if (pieces.length > most) rows.push(element("li", {}, text("detail.more", { count: pieces.length - most })));
  return element("details", {}, element("summary", {}, pieceWords(pieces.length)),
    element("ul", { class: "pieces" }, ...rows));
}

function pieceWords(count) {
  return count === 1 ? text("list.piece") : text("list.pieces", { count: showCount(count) });
}

function placeText(tensors, i) {
  const layer = tensors.layer(i);
  const words = [text(`role.${tensors.role(i)}`), tensors.component(i)];
  if (layer === STACKED) words.push(text("overview.stacked"));
  else if (layer !== NO_LAYER) words.push(text("overview.layer", { number: layer }));
  return words.join(" › ");
}

function tensorFacts(tensors, i) {
  return facts([
    [text("detail.place"), placeText(tensors, i)],
    [text("column.dtype"), tensors.dtype(i)],
    [text("column.shape"), showShape(tensors.shape(i))],
    [text("column.bytes"), showBytes(tensors.bytes[i])],
    [text("column.pieces"), showCount(tensors.pieceCount(i))],
  ]);
}

// A list of tensors with a search field over it; `onPick(number)` gets the one that is clicked.
class TensorList {
  constructor(tensors, { orders, onPick }) {
    this.tensors = tensors;
    this.orders = orders;
    this.picked = -1;
    this.onPick = onPick;
    this.rows = [];
    this.search = element("input", {
      type: "search", class: "search", placeholder: text("list.search"), "aria-label": text("list.search"),
      oninput: () => this.filter(),
    });
    this.order = element("select", { onchange: () => this.filter() },
      ...Object.keys(orders).map((key) => element("option", { value: key }, text(key))));
    const roles = [...new Set(tensors.columns.role)].sort();
    this.role = element("select", { onchange: () => this.filter() },
      element("option", { value: "" }, text("list.all_roles")),
      ...roles.map((role) => element("option", { value: role }, text(`role.${role}`))));
    this.total = element("p", { class: "hint count" });
    this.empty = element("p", { class: "hint" }, text("list.none"));
    this.list = new VirtualList(44, (index) => this.row(this.rows[index]));
    this.node = element("div", { class: "finder" },
      element("div", { class: "finder-head" }, this.search, this.order, roles.length > 1 ? this.role : null),
      this.total, this.empty, this.list.node);
    this.list.node.addEventListener("keydown", (event) => this.step(event));
    this.filter();
  }
  row(i) {
    const bad = this.tensors.defects.has(i);
    const dot = element("span", { class: "dot" });
    dot.style.background = roleColour(this.tensors.role(i));
    return element("div", {
      class: `row${i === this.picked ? " picked" : ""}`, role: "option",
      "aria-selected": String(i === this.picked), onclick: () => this.pick(i),
    }, element("div", { class: "row-name", title: this.tensors.name(i) }, dot, this.tensors.name(i)),
    element("div", { class: `row-facts${bad ? " bad-text" : ""}` },
      `${this.tensors.dtype(i)}  ${showShape(this.tensors.shape(i))}  ·  ${showBytes(this.tensors.bytes[i])}`
      + `  ·  ${pieceWords(this.tensors.pieceCount(i))}`));
  }
  filter() {
    const found = this.tensors.search(this.search.value);
    const role = this.role.value;
    this.rows = role === "" ? found : found.filter((i) => this.tensors.role(i) === Number(role));
    const order = this.orders[this.order.value];
    if (order) this.rows = d3.range(this.rows.length).map((at) => this.rows[at]).sort((a, b) => order(a, b) || a - b);
    this.total.textContent = text("list.count",
      { shown: showCount(this.rows.length), all: showCount(this.tensors.size) });
    this.empty.hidden = this.rows.length > 0;
    this.list.show(this.rows.length);
  }
  step(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by === undefined || this.rows.length === 0) return;
    event.preventDefault();
    const at = this.rows.indexOf(this.picked) + by;
    const index = Math.max(0, Math.min(this.rows.length - 1, at));
    this.pick(this.rows[index]);
    this.list.scrollTo(index);
  }
  pick(i) {
    this.picked = i;
    this.list.draw();
    this.onPick(i);
  }
  // From elsewhere on the page.
  reveal(i) {
    this.search.value = "";
    this.role.value = "";
    this.filter();
    this.list.scrollTo(this.rows.indexOf(i));
    this.pick(i);
  }
}

function tensorsTab(checkpoint) {
  const { tensors, statistics } = checkpoint;
  const orders = {
    "list.by_name": null,
    "list.by_bytes": (a, b) => tensors.bytes[b] - tensors.bytes[a],
    "list.by_pieces": (a, b) => tensors.pieceCount(b) - tensors.pieceCount(a),
  };
  if (statistics && !statistics.error) {
    const greatest = (i) => Math.max(Math.abs(Number(statistics.min[i])), Math.abs(Number(statistics.max[i])));
    const bad = (i) => statistics.nan[i] + statistics.inf[i];
    orders["list.by_greatest"] = (a, b) => greatest(b) - greatest(a);
    orders["list.by_bad"] = (a, b) => bad(b) - bad(a);
  }
  const detail = element("div", { class: "detail card" },
    element("p", { class: "hint" }, text("list.pick")));
  const list = new TensorList(tensors, {
    orders,
    onPick: (i) => {
      rememberTensor(tensors.name(i));
      replaceChildren(detail, element("h2", { class: "name" }, tensors.name(i)), tensorFacts(tensors, i),
        element("h3", {}, text("detail.map")), element("p", { class: "hint" }, text("detail.zoom")),
        shardMap(tensors, i), piecesOf(tensors, i), statisticsOf(statistics, i));
    },
  });
  const node = element("div", { class: "split" }, list.node, detail);
  return { node, reveal: (i) => list.reveal(i), list };
}
