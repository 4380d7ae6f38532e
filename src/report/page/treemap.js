// SPDX-License-Identifier: Apache-2.0
// Where the bytes are: roles, components, layers, modules, tensors. Three levels are drawn at a time.
const SHOWN_LEVELS = 3;

// Nested nodes {name, role, bytes, children, tensor}; single children are joined with their parents.
function byteTree(tensors, objects) {
  const root = { name: text("overview.root"), bytes: 0, children: new Map() };
  const enter = (node, key, name, role) => {
    let child = node.children.get(key);
    if (child === undefined) {
      child = { name, role, bytes: 0, children: new Map() };
      node.children.set(key, child);
    }
    return child;
  };
  for (let i = 0; i < tensors.size; ++i) {
    const role = tensors.role(i);
    const bytes = tensors.bytes[i];
    // A stack's bytes are those of its layers.
    const depth = tensors.layer(i) === STACKED ? tensors.shape(i)[0] || 1 : 1;
    for (let at = 0; at < depth; ++at) {
      const layer = tensors.layer(i) === STACKED ? at : tensors.layer(i);
      const path = [[`role ${role}`, text(`role.${role}`)], [tensors.component(i), tensors.component(i)]];
      if (layer !== NO_LAYER) path.push([`layer ${layer}`, text("overview.layer", { number: layer })]);
      for (const word of tensors.kind(i).split(".")) path.push([`word ${word}`, word]);
      let node = root;
      node.bytes += bytes / depth;
      for (const [key, name] of path) {
        node = enter(node, key, name, role);
        node.bytes += bytes / depth;
      }
      node.tensor = i;
    }
  }
  if (objects.bytes > 0) {
    root.bytes += objects.bytes;
    enter(root, "objects", text("role.objects"), 5).bytes += objects.bytes;
  }
  const finish = (node, depth) => {
    const children = [...node.children.values()].map((child) => finish(child, depth + 1));
    if (depth > 0 && children.length === 1 && node.tensor === undefined) {
      const only = children[0];
      return { ...only, name: `${node.name} › ${only.name}` };
    }
    return { name: node.name, role: node.role, bytes: node.bytes, tensor: node.tensor, children };
  };
  return finish(root, 0);
}

class Treemap {
  constructor(tensors, objects, onTensor) {
    this.onTensor = onTensor;
    this.path = [byteTree(tensors, objects)];
    this.crumbs = element("nav", { class: "crumbs" });
    this.picture = element("div", { class: "treemap" });
    this.node = element("div", {}, this.crumbs, this.picture);
    new ResizeObserver(() => this.draw()).observe(this.picture);
  }
  enter(node) {
    if (node.children.length > 0) {
      this.path.push(node);
      this.draw();
    } else if (node.tensor !== undefined) {
      tip.hide();
      this.onTensor(node.tensor);
    }
  }
  draw() {
    const width = this.picture.clientWidth;
    const height = this.picture.clientHeight;
    if (width === 0) return;
    const root = this.path[this.path.length - 1];
    replaceChildren(this.crumbs, ...this.path.map((node, depth) => element("button", {
      type: "button",
      onclick: () => { this.path.length = depth + 1; this.draw(); },
    }, `${node.name} · ${showBytes(node.bytes)}`)));
    const shallow = (node, depth) => ({
      node,
      value: node.children.length === 0 || depth === SHOWN_LEVELS ? node.bytes : 0,
      children: depth === SHOWN_LEVELS ? [] : node.children.map((child) => shallow(child, depth + 1)),
    });
    const tree = d3.hierarchy(shallow(root, 0), (d) => d.children)
      .sum((d) => d.value).sort((a, b) => b.value - a.value);
    const isGroup = (d) => d.depth > 0 && Boolean(d.children);
    d3.treemap().size([width, height]).paddingInner(1).paddingOuter((d) => (isGroup(d) ? 2 : 0))
      .paddingTop((d) => (isGroup(d) ? 19 : 0)).round(true)(tree);
    // What is no wider than a line is part of its parent's area.
    const shown = tree.descendants().filter(
      (d) => d.depth > 0 && d.x1 - d.x0 >= 2 && d.y1 - d.y0 >= 2);
    const svg = d3.create("svg").attr("width", width).attr("height", height)
      .attr("role", "img").attr("aria-label", text("overview.bytes"));
    const cells = svg.selectAll("g").data(shown).enter().append("g")
      .attr("class", "cell").attr("transform", (d) => `translate(${d.x0},${d.y0})`);
    const fill = (d) => {
      const base = d3.hsl(roleColour(d.data.node.role));
      if (!isGroup(d)) return base.toString();
      return d3.hsl(base.h, base.s, base.l * (d.depth === 1 ? 0.74 : 0.87)).toString();
    };
    cells.append("rect").attr("width", (d) => d.x1 - d.x0).attr("height", (d) => d.y1 - d.y0)
      .attr("rx", 2).attr("fill", fill);
    const label = (d) => {
      return d.y1 - d.y0 < 16 ? "" : fitText(d.data.node.name, d.x1 - d.x0 - 9, 12);
    };
    cells.append("text").attr("x", 5).attr("y", 14).attr("fill", (d) => inkOn(fill(d))).text(label);
    cells.filter((d) => !d.children && d.y1 - d.y0 >= 34 && d.x1 - d.x0 >= 72).append("text")
      .attr("class", "minor").attr("x", 5).attr("y", 29).attr("fill", (d) => inkOn(fill(d)))
      .text((d) => showBytes(d.data.node.bytes));
    cells.each((d, index, nodes) => {
      const { node } = d.data;
      const share = ((100 * node.bytes) / this.path[0].bytes).toFixed(1);
      nodes[index].addEventListener("pointermove",
        (event) => tip.show(event, node.name, `${showBytes(node.bytes)} · ${share} %`));
      nodes[index].addEventListener("pointerleave", () => tip.hide());
      nodes[index].addEventListener("click", () => {
        tip.hide();
        // From the outside inwards, one level at a click.
        this.enter(d.ancestors()[d.depth - 1].data.node);
      });
    });
    replaceChildren(this.picture, svg.node());
  }
}
