// SPDX-License-Identifier: Apache-2.0
// A list of any length that has only the rows in sight as elements.
class VirtualList {
  // `renderRow(index)` makes the element of a row of `rowHeight` pixels.
  constructor(rowHeight, renderRow) {
    this.rowHeight = rowHeight;
    this.renderRow = renderRow;
    this.count = 0;
    this.space = element("div", { class: "list-space" });
    this.node = element("div", { class: "list", tabindex: "0", role: "listbox" }, this.space);
    this.node.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.node);
  }
  show(count) {
    this.count = count;
    // Browsers end a scrolled area at some ten million pixels.
    this.space.style.height = `${Math.min(count * this.rowHeight, 8e6)}px`;
    this.node.scrollTop = 0;
    this.draw();
  }
  scrollTo(index) {
    this.node.scrollTop = Math.max(0, index * this.rowHeight - this.node.clientHeight / 2);
    this.draw();
  }
  draw() {
    const first = Math.max(0, Math.floor(this.node.scrollTop / this.rowHeight) - 5);
    const visible = Math.ceil(this.node.clientHeight / this.rowHeight) + 10;
    const rows = [];
    for (let i = first; i < Math.min(this.count, first + visible); ++i) {
      const row = this.renderRow(i);
      row.style.top = `${i * this.rowHeight}px`;
      rows.push(row);
    }
    replaceChildren(this.space, ...rows);
  }
}
