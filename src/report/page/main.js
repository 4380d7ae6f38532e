// SPDX-License-Identifier: Apache-2.0
// The frame: tabs, languages, light and dark, and what the address remembers (#tab=layers&side=1).

const page = JSON.parse(document.getElementById("document").textContent);

function remembered() { return new URLSearchParams(window.location.hash.slice(1)); }

function remember(changes) {
  const values = remembered();
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) values.delete(name);
    else values.set(name, value);
  }
  window.history.replaceState(null, "", `#${values}`);
}

function rememberTensor(name) { remember({ tensor: name }); }

for (const checkpoint of page.checkpoints || []) {
  if (checkpoint.catalog) checkpoint.tensors = new Tensors(checkpoint.catalog);
}

function tabNames() {
  if (page.kind === "plan") return ["plan"];
  const names = ["overview"];
  if (page.kind === "difference") names.unshift("difference");
  if (page.checkpoints.some((checkpoint) => checkpoint.tensors)) names.push("tensors", "layers");
  return names.concat(["diagnosis", "proof"]);
}

// Where a path ends says most.
function shortPath(path) {
  const words = path.split("/").filter((word) => word !== "");
  return words.length > 3 ? `…/${words.slice(-2).join("/")}` : path;
}

function shortTitle() {
  if (page.kind === "plan") return `${shortPath(page.plan.source.path)} → ${shortPath(page.plan.target.path)}`;
  return page.checkpoints.map((checkpoint) => shortPath(checkpoint.path)).join(" ↔ ");
}

class Frame {
  constructor(root) {
    this.root = root;
    language = remembered().get("lang") === "zh" || remembered().get("lang") === "en"
      ? remembered().get("lang") : page.language;
    this.prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
    this.prefersDark.addEventListener("change", () => this.draw());
    this.theme = remembered().get("theme");
    document.addEventListener("keydown", (event) => {
      const field = document.querySelector(".search");
      if (event.key === "/" && field && document.activeElement !== field) {
        event.preventDefault();
        field.focus();
      }
    });
    this.draw();
  }
  isDark() { return this.theme ? this.theme === "dark" : this.prefersDark.matches; }
  side() { return Math.min(Number(remembered().get("side")) || 0, (page.checkpoints || [0]).length - 1); }
  tab() {
    const names = tabNames();
    const wanted = remembered().get("tab");
    return names.includes(wanted) ? wanted : names[0];
  }
  go(changes) {
    remember(changes);
    this.draw();
    window.scrollTo(0, 0);
  }
  draw() {
    tip.hide();
    document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
    document.documentElement.dataset.theme = this.isDark() ? "dark" : "light";
    const title = page.kind === "plan" ? [page.plan.source.path, page.plan.target.path].join(" → ")
      : page.checkpoints.map((checkpoint) => checkpoint.path).join(" ↔ ");
    document.title = `${title} · shardwright`;
    const body = element("main", {});
    replaceChildren(this.root, this.header(title), this.tabs(), body);
    this.fill(body);
  }
  header(title) {
    const dark = this.isDark();
    return element("header", {},
      element("span", { class: "brand" }, "shardwright"),
      element("h1", { title }, shortTitle()),
      element("button", {
        type: "button", id: "language", class: "quiet",
        onclick: () => {
          language = language === "zh" ? "en" : "zh";
          this.go({ lang: language });
        },
      }, text("language.other")),
      element("button", {
        type: "button", id: "theme", class: "quiet",
        onclick: () => { this.theme = dark ? "light" : "dark"; this.go({ theme: this.theme }); },
      }, text(dark ? "theme.light" : "theme.dark")));
  }
  tabs() {
    const names = tabNames();
    if (names.length === 1) return null;
    const tabs = element("nav", { class: "tabs", role: "tablist" }, ...names.map((name) => {
      const checkpoint = page.checkpoints[this.side()];
      const errors = name === "diagnosis" ? checkpoint.diagnosis.findings.filter((f) => f.severity === "error").length
        : name === "proof" && checkpoint.proof && checkpoint.proof.findings ? checkpoint.proof.findings.length : 0;
      return element("button", {
        type: "button", role: "tab", id: `tab-${name}`, "aria-selected": String(name === this.tab()),
        onclick: () => this.go({ tab: name, tensor: null }),
      }, text(`tab.${name}`), errors > 0 ? element("span", { class: "badge" }, String(errors)) : null);
    }));
    if (page.kind !== "difference" || this.tab() === "difference") return tabs;
    return element("div", {}, tabs, element("nav", { class: "sides" },
      ...page.checkpoints.map((checkpoint, side) => element("button", {
        type: "button", class: "quiet", "aria-pressed": String(side === this.side()), title: checkpoint.path,
        onclick: () => this.go({ side: String(side), tensor: null }),
      }, `${text(side === 0 ? "side.left" : "side.right")}: ${checkpoint.path}`))));
  }
  fill(body) {
    const tab = this.tab();
    if (tab === "plan") {
      const { node, list, tensors } = planTab(page.plan);
      body.append(node);
      this.revealRemembered(tensors, (i) => list.reveal(i));
      return;
    }
    if (tab === "difference") { body.append(differenceTab(page.difference)); return; }
    const checkpoint = page.checkpoints[this.side()];
    if (tab === "overview") {
      body.append(...overviewOf(checkpoint, (i) => this.go({ tab: "tensors", tensor: checkpoint.tensors.name(i) })));
    } else if (tab === "diagnosis") body.append(diagnosisTab(checkpoint));
    else if (tab === "proof") body.append(proofTab(checkpoint));
    else if (checkpoint.error) body.append(errorBox(checkpoint.error));
    else if (tab === "layers") body.append(layersTab(checkpoint));
    else {
      const { node, reveal } = tensorsTab(checkpoint);
      body.append(node);
      this.revealRemembered(checkpoint.tensors, reveal);
    }
  }
  revealRemembered(tensors, reveal) {
    const at = tensors.names.indexOf(remembered().get("tensor"));
    if (at >= 0) reveal(at);
  }
}

new Frame(document.getElementById("app"));
