// SPDX-License-Identifier: Apache-2.0
// Rows by columns on a canvas, for many more cells than a page can have elements.

// rows, columns: labels; fill(row, column): a colour or null; tip(row, column): lines; onRow(row).
function heatmap({ rows, columns, fill, lines, onRow, selected, mark }) {
  const rowHeight = 20;
  const head = 20;
  const labelWidth = Math.min(400, 20 + d3.max(rows, (row) => textWidth(row, 12)));
  const canvas = element("canvas", { class: "heat-canvas" });
  const node = element("div", { class: "heat" }, canvas);
  let cell = 0;
  const draw = () => {
    const width = node.clientWidth;
    if (width === 0) return;
    cell = Math.max(3, Math.min(88, (width - labelWidth) / columns.length));
    if (cell > 5) cell = Math.floor(cell);
    const full = labelWidth + cell * columns.length;
    const height = head + rowHeight * rows.length;
    const ratio = Math.min(window.devicePixelRatio || 1, 16_000 / Math.max(height, full));
    canvas.width = full * ratio;
    canvas.height = height * ratio;
    canvas.style.width = `${full}px`;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    // A column's name wherever there is room for it.
    const widest = d3.max(columns, (column) => context.measureText(column).width) + 6;
    const every = Math.max(1, Math.ceil(widest / cell));
    context.fillStyle = colour("muted");
    context.textAlign = "center";
    columns.forEach((column, c) => {
      const middle = labelWidth + (c + 0.5) * cell;
      if (c % every === 0 && (every === 1 || middle + widest / 2 < full)) {
        context.fillText(column, middle, head / 2);
      }
    });
    rows.forEach((row, r) => {
      const y = head + r * rowHeight;
      context.textAlign = "right";
      context.fillStyle = r === selected ? colour("accent") : colour("ink");
      context.fillText(fitText(row, labelWidth - 12, 12, true), labelWidth - 8, y + rowHeight / 2);
      columns.forEach((_, c) => {
        const x = labelWidth + c * cell;
        const gap = cell > 5 ? 1 : 0;
        const shade = fill(r, c);
        if (shade === null) return;
        context.fillStyle = shade;
        context.fillRect(x, y + 1, cell - gap, rowHeight - 2);
        if (mark && mark(r, c)) {
          context.strokeStyle = colour("bad");
          context.lineWidth = 1.5;
          context.beginPath();
          context.moveTo(x + 2, y + 3); context.lineTo(x + cell - 3, y + rowHeight - 3);
          context.moveTo(x + cell - 3, y + 3); context.lineTo(x + 2, y + rowHeight - 3);
          context.stroke();
        }
      });
    });
  };
  const at = (event) => {
    const bounds = canvas.getBoundingClientRect();
    return {
      r: Math.floor((event.clientY - bounds.top - head) / rowHeight),
      c: Math.floor((event.clientX - bounds.left - labelWidth) / cell),
    };
  };
  canvas.addEventListener("pointermove", (event) => {
    const { r, c } = at(event);
    if (r < 0 || r >= rows.length || c < 0 || c >= columns.length) { tip.hide(); return; }
    tip.show(event, ...lines(r, c));
  });
  canvas.addEventListener("pointerleave", () => tip.hide());
  if (onRow) {
    canvas.classList.add("clickable");
    canvas.addEventListener("click", (event) => {
      const { r } = at(event);
      if (r >= 0 && r < rows.length) onRow(r);
    });
  }
  new ResizeObserver(draw).observe(node);
  return node;
}
