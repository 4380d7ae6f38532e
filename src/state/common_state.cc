// SPDX-License-Identifier: Apache-2.0
#include "state/common_state.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "base/endian.h"
#include "base/fail.h"
#include "codec/pickle_encode.h"
#include "codec/torch_archive.h"
#include "state/group_settings.h"
#include "state/optimizer_chain.h"
#include "state/plain_arguments.h"
#include "state/reshardable_state.h"

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Kind;
using pickle::Value;

// Enums that Megatron-Core has had since 0.12; a newer one in a pickle stops an older loader.
constexpr std::array<std::string_view, 4> kOldEnums = {"AttnBackend", "ModelType", "RerunMode",
                                                       "RerunState"};

// What Python 3.11 alone makes of an enum's member, `getattr(Class, "name")` or, of a signal, the
// global `signal.SIGTERM`: the member's name. Loaders that take only weights refuse both.
Value named_member(Document& document, Value value) {
  if (value.is(Kind::kGlobal) && value.module() == "signal")
    return document.string(std::string(value.name()));
  if (!value.is(Kind::kReduce) || !value.callable().is_global("builtins", "getattr")) return {};
  const Value pair = value.args();
  if (pair.size() != 2 || !pair[0].is(Kind::kGlobal) || !pair[1].is(Kind::kString)) return {};
  return pair[0].module().starts_with("megatron.") ? pair[1] : Value();
}

// The member of an enum that not every Megatron-Core version can load, as its plain value; else
// nothing.
Value plain_member(Document& document, Value value) {
  if (const Value name = named_member(document, value)) return name;
  if (!value.is(Kind::kReduce) || !value.callable().is(Kind::kGlobal)) return {};
  const Value cls = value.callable();
  if (!cls.module().starts_with("megatron.")) return {};
  for (const std::string_view old : kOldEnums) {
    if (cls.name() == old) return {};
  }
  if (value.args().size() != 1) return {};
  const Value member = value.args()[0];
  return member.is(Kind::kInt) || member.is(Kind::kString) ? member : Value();
}

void flatten_new_enums(Document& document, Value args, std::vector<std::string>& notes) {
  const Value attributes = argument_pairs(args);
  if (!attributes.is(Kind::kDict)) return;
  std::vector<std::pair<std::string, Value>> replaced;
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    const std::string name(attributes.key(i).text());
    const Value value = attributes.value(i);
    if (const Value member = plain_member(document, value)) replaced.emplace_back(name, member);
    if (!value.is(Kind::kList)) continue;
    for (std::size_t e = 0; e < value.size(); ++e) {
      const Value member = plain_member(document, value[e]);
      if (!member) continue;
      document.set_element(value, e, member);
      notes.push_back(translated(
          "args.{} is stored as plain values: not every Megatron-Core loads its enum", name));
    }
  }
  for (const auto& [name, member] : replaced) {
    document.set(attributes, name, member);
    notes.push_back(translated(
        "args.{} is stored as a plain value: not every Megatron-Core loads its enum", name));
  }
}

void leave_classes_out(Document& document, Value state, std::vector<std::string>& notes) {
  const std::set<std::string> names = erase_classes(document, state.find("optimizer"));
  if (names.empty()) return;
  notes.push_back(
      translated("optimizer parameter groups are written without {}: Megatron-Core does not load "
                 "classes, and a run takes them from its own options",
                 fmt::join(names, ", ")));
}

// Of the model's parameters, as Megatron derives it from its flags.
std::vector<std::pair<std::string, Value>> dtype_arguments(Document& document, Value args,
                                                           DType dtype) {
  std::vector<std::pair<std::string, Value>> arguments = {
      {"bf16", document.boolean(dtype == DType::kBF16)},
      {"fp16", document.boolean(dtype == DType::kF16)}};
  constexpr std::string_view kType = "params_dtype";
  if (argument_pairs(args).find(kType)) {
    arguments.emplace_back(kType, document.global("torch", torch_name(dtype)));
  }
  return arguments;
}

void edit_arguments(Document& document, Value args, const CommonStateEdits& edits,
                    std::vector<std::string>& notes) {
  std::vector<std::pair<std::string, Value>> changed;
  for (const auto& [name, value] : edits.arguments) {
    changed.emplace_back(name, make_plain_value(document, value));
  }
  if (edits.dtype)
    std::ranges::move(dtype_arguments(document, args, *edits.dtype), std::back_inserter(changed));
  for (const auto& [name, value] : changed) {
    if (set_argument(document, args, name, value)) continue;
    notes.push_back(
        translated("'args' are no arguments of a run (a {}): what the conversion changes of those "
                   "is not in them",
                   kind_name(args.kind())));
    return;
  }
  flatten_new_enums(document, args, notes);
}

}  // namespace

Result<CommonState> CommonState::read(std::string bytes) {
  auto state = std::make_shared<const StateDocument>(SW_TRY(StateDocument::read(bytes)));
  Arguments arguments = SW_TRY(plain_arguments(state->dict().find("args")));
  return CommonState(std::move(bytes), std::move(state), std::move(arguments));
}

std::optional<std::int64_t> CommonState::iteration() const {
  Value iteration = state_->dict().find("iteration");
  if (!iteration) iteration = state_->dict().find("global_step");  // of Lightning
  if (!iteration) iteration = state_->dict().find("step");         // of MLite
  return iteration ? iteration.as_int() : std::nullopt;
}

StateSharding CommonState::sharding() const { return sharding_of(state_->dict()); }

Result<std::string> CommonState::encode(const CommonStateEdits& edits,
                                        std::vector<std::string>& notes) const {
  StateDocument edited = SW_TRY(StateDocument::read(bytes_));
  Document& document = edited.document();
  const Value state = edited.dict();
  if (!state.find("args")) {
    document.set(state, "args", document.object(document.global("argparse", "Namespace")));
    if (!state.find("checkpoint_version")) {
      document.set(state, "checkpoint_version", document.real(3.0));
    }
  }
  if (const Value args = state.find("args")) edit_arguments(document, args, edits, notes);
  if (edits.numbered_layers) {
    document.set(state, "content_metadata",
                 make_content_metadata(document, *edits.numbered_layers));
  }
  if (edits.iteration && !state.find("iteration")) {
    document.set(state, "iteration", document.integer(*edits.iteration));
  }
  if (edits.drop_optimizer) {
    document.erase(state, "optimizer");
  } else {
    complete_idle_optimizers(document, state);
    leave_classes_out(document, state, notes);
    const bool regroups = SW_TRY(regroup_optimizer(document, state, edits.chain, notes));
    if (regroups && edits.has_chained_names) {
      notes.emplace_back(
          "optimizer states keep the names that they had in the old layout's chain of optimizers "
          "(chained_0, ...), and the new one's is another: Megatron-Core may not find them");
    }
    if (edits.says_reshardable) say_reshardable(document, state);
  }
  return edited.encode();
}

Result<std::string> new_common_state(const std::vector<std::pair<std::string, ArgValue>>& arguments,
                                     std::int64_t iteration, bool has_numbered_layers) {
  Document document;
  const Value args = document.object(document.global("argparse", "Namespace"));
  for (const auto& [name, value] : arguments) {
    document.set_attribute(args, name, make_plain_value(document, value));
  }
  const Value state = document.dict();
  document.set(state, "args", args);
  document.set(state, "checkpoint_version", document.real(3.0));
  document.set(state, "iteration", document.integer(iteration));
  document.set(state, "content_metadata", make_content_metadata(document, has_numbered_layers));
  document.set_root(state);
  TorchLayoutOptions options;
  options.prefix = "common";
  return encode_torch_object(SW_TRY(pickle::encode(document, pickle::Protocol::kTwo)), options);
}

Result<std::string> empty_extra_state() {
  Document document;
  const std::array<Value, 1> nothing = {document.none()};
  document.set_root(document.list(nothing));
  return encode_torch_object(SW_TRY(pickle::encode(document, pickle::Protocol::kTwo)));
}

}  // namespace shardwright
