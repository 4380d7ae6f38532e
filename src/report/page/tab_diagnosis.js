// SPDX-License-Identifier: Apache-2.0
// What diagnose and verify say.

function findingList(findings, words) {
  return element("ul", { class: "findings" }, ...findings.map((finding) => element("li", {},
    element("span", { class: `chip ${finding.severity}` }, text(`severity.${finding.severity}`)),
    element("code", {}, finding.code), element("span", { class: "finding-text" }, words(finding)))));
}

function sizesText(sizes) { return sizes.map(([name, size]) => `${name} ${size}`).join(" · "); }

function diagnosisTab(checkpoint) {
  const { diagnosis } = checkpoint;
  const complete = diagnosis.complete === null ? "unknown" : diagnosis.complete ? "yes" : "no";
  const rows = [
    [text("fact.format"), diagnosis.format],
    [text("diagnosis.sizes"), sizesText(diagnosis.sizes)],
    ...diagnosis.components.map((component) => [text("diagnosis.component"),
      `${component.name}: ${sizesText(component.sizes)}`]),
    [text("diagnosis.reason"), sentence(diagnosis.reason)],
    [text("diagnosis.evidence"), diagnosis.evidence.map(sentence).join("\n")],
    [text("diagnosis.confidence"), text(`diagnosis.${diagnosis.confidence}`)],
    [text("diagnosis.pattern"), diagnosis.expected_pattern],
    [text("diagnosis.on_disk"), diagnosis.disk_pattern === diagnosis.expected_pattern ? "" : diagnosis.disk_pattern],
    [text("diagnosis.loader"), sentence(diagnosis.loader_note)],
    [text("diagnosis.complete"), text(`diagnosis.${complete}`)],
    [text("diagnosis.missing"), diagnosis.missing.slice(0, 50).join("\n")],
    [text("diagnosis.unexpected"), diagnosis.unexpected.slice(0, 50).join("\n")],
  ];
  return element("div", {},
    section(text("tab.diagnosis"), null, facts(rows)),
    section(text("diagnosis.findings"), null, diagnosis.findings.length === 0
      ? element("p", { class: "banner good" }, text("diagnosis.none"))
      : findingList(diagnosis.findings, (finding) => sentence(finding.message)),
    diagnosis.next ? element("p", {}, `${text("diagnosis.next")}: `, element("code", {}, diagnosis.next)) : null));
}

function proofTab(checkpoint) {
  const { proof, tensors } = checkpoint;
  const node = element("div", {});
  if (!proof) node.append(section(text("tab.proof"), text("proof.absent")));
  else if (proof.error) node.append(errorBox(proof.error));
  else {
    const { counts } = proof;
    node.append(proof.proven
      ? element("p", { class: "banner good" }, text("proof.proven", {
        tensors: showCount(counts.tensors), chunks: showCount(counts.chunks),
        checked: showCount(counts.payloads_checked),
      }))
      : element("p", { class: "banner bad" }, text("proof.not_proven", { count: showCount(proof.findings.length) })));
    if (proof.findings.length > 0) {
      const list = new VirtualList(64, (index) => {
        const row = findingList([proof.findings[index]],
          (finding) => `${sentence(finding.title)}: ${finding.message}`);
        row.title = proof.findings[index].message;
        row.classList.add("row");
        return row;
      });
      list.node.style.height = `${Math.min(480, 64 * proof.findings.length + 4)}px`;
      list.show(proof.findings.length);
      node.append(section(text("proof.findings"), null, list.node));
    }
    node.append(section(text("proof.checks"), null,
      element("ul", { class: "checks" }, ...proof.checks.map((check) => element("li", {}, sentence(check)))),
      facts([[text("overview.notes"), proof.notes.join("\n")]])));
  }
  if (tensors && tensors.defects.size > 0) {
    const defects = [...tensors.defects.values()].slice(0, 200);
    node.append(section(text("proof.holes"), null,
      element("ul", { class: "checks bad-text" }, ...defects.map((message) => element("li", {}, message)))));
  }
  return node;
}
