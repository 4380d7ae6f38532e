// SPDX-License-Identifier: Apache-2.0
#include "state/component_groups_fixture.h"

#include <fmt/format.h>

#include <array>

#include "codec/pickle_encode.h"
#include "codec/torch_archive.h"
#include "codec/torch_layout.h"
#include "io/memory_directory.h"
#include "state/state_document.h"

namespace shardwright {

using pickle::Document;
using pickle::Value;

Value make_groups(Document& document, const std::vector<GroupFacts>& groups) {
  std::vector<Value> made;
  for (const GroupFacts& facts : groups) {
    const Value group = document.dict();
    document.set(group, "lr", document.real(facts.lr));
    document.set(group, "betas", document.tuple({document.real(0.9), document.real(0.95)}));
    document.set(group, "params", document.list());
    document.set(group, "wd_mult", document.real(facts.wd_mult));
    document.set(group, "max_lr", document.real(facts.max_lr));
    document.set(group, "is_expert_parallel", document.boolean(facts.is_expert));
    if (facts.step) document.set(group, "step", document.integer(*facts.step));
    made.push_back(group);
  }
  return document.list(made);
}

std::string group_line(Value group) {
  std::string line = fmt::format(
      "wd_mult={} step={} lr={} max_lr={} expert={:d}", *group.find("wd_mult").as_double(),
      group.find("step").as_int().value_or(-1), *group.find("lr").as_double(),
      *group.find("max_lr").as_double(), *group.find("is_expert_parallel").as_bool());
  if (const Value params = group.find("params")) line += fmt::format(" params={}", params.size());
  return line;
}

std::string groups_entry(const std::vector<GroupFacts>& groups) {
  Document document;
  const std::array<Value, 1> shards = {make_groups(document, groups)};
  document.set_root(document.list(shards));
  return encode_torch_object(pickle::encode(document, pickle::Protocol::kTwo).value()).value();
}

std::vector<std::string> lines_of_entry(const std::string& bytes) {
  const auto file = make_memory_file("entry", bytes);
  const TorchArchive archive = TorchArchive::open(*file).value();
  std::vector<std::string> lines;
  const Value groups = archive.root()[0];
  for (std::size_t g = 0; g < groups.size(); ++g) lines.push_back(group_line(groups[g]));
  return lines;
}

std::vector<std::string> lines_of_state(const std::string& common_state) {
  const StateDocument state = StateDocument::read(common_state).value();
  const Value optimizer = state.dict().find("optimizer");
  std::vector<std::string> lines;
  const auto add = [&](Value part, const std::string& prefix) {
    const Value groups = part.find("optimizer").find("param_groups");
    for (std::size_t g = 0; g < groups.size(); ++g) lines.push_back(prefix + group_line(groups[g]));
  };
  add(optimizer, "");
  for (const std::int64_t part : {0, 1}) add(optimizer.find(part), fmt::format("{} ", part));
  return lines;
}

}  // namespace shardwright
