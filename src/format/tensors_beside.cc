// SPDX-License-Identifier: Apache-2.0
#include "format/tensors_beside.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_set>

#include "base/text.h"
#include "base/translated.h"
#include "codec/torch_tensor.h"

namespace shardwright {
namespace {

using pickle::Kind;
using pickle::Value;

constexpr std::uint64_t kVisitBytes = 64;  // about what a value takes in the walk's two lists

bool has_parts(Value value) {
  constexpr std::array kKinds = {Kind::kList, Kind::kTuple,  Kind::kSet,    Kind::kFrozenSet,
                                 Kind::kDict, Kind::kReduce, Kind::kObject, Kind::kPersistentId};
  return value && std::ranges::find(kKinds, value.kind()) != kKinds.end();
}

std::string text_of_key(Value key) {
  if (const auto text = key.as_string()) return printable(*text);
  if (const auto number = key.as_int()) return std::to_string(*number);
  return "?";
}

// A walk through a value: nothing in it is visited twice.
class TensorSearch {
 public:
  explicit TensorSearch(Allowance& allowance) : allowance_(allowance) {}

  Status run(Value root) {
    SW_TRY(visit(root));
    while (!pending_.empty()) {
      const Value next = pending_.back();
      pending_.pop_back();
      // A storage is a tensor's bytes.
      if (is_tensor(next) || next.is(Kind::kPersistentId)) {
        has_tensor_ = true;
        continue;
      }
      has_optimizer_ |= next.find("state") && next.find("param_groups");
      SW_TRY(visit_elements(next));
      SW_TRY(visit(next.items()));
      SW_TRY(visit(next.appended()));
      SW_TRY(visit(next.state()));
    }
    return {};
  }

  [[nodiscard]] bool has_tensor() const { return has_tensor_; }
  /// A dict is laid out as torch's optimizers have theirs.
  [[nodiscard]] bool has_optimizer() const { return has_optimizer_; }

 private:
  Status visit_elements(Value value) {
    const bool is_dict = value.is(Kind::kDict);
    for (std::size_t i = 0; i < value.size(); ++i) {
      SW_TRY(visit(is_dict ? value.value(i) : value[i]));
    }
    return {};
  }

  Status visit(Value value) {
    if (!has_parts(value) || seen_.contains(value.id())) return {};
    SW_TRY(allowance_.take(kVisitBytes, "its values"));
    seen_.insert(value.id());
    pending_.push_back(value);
    return {};
  }

  Allowance& allowance_;
  std::vector<Value> pending_;
  std::unordered_set<std::uint32_t> seen_;
  bool has_tensor_ = false;
  bool has_optimizer_ = false;
};

}  // namespace

Result<bool> TensorsBeside::add(Value key, Value value, Allowance& allowance) {
  TensorSearch search(allowance);
  SW_TRY(search.run(value));
  if (!search.has_tensor()) return false;
  keys.push_back(text_of_key(key));
  has_optimizer |= search.has_optimizer() || keys.back().contains("optim");
  return true;
}

std::string state_beside(std::optional<std::int64_t> step) {
  if (!step) {
    return translated(
        "the optimizer's parameter groups and loss scale are not written: set them in the run that "
        "loads these states");
  }
  return translated(
      "the optimizer's step ({}), its parameter groups and loss scale are not written: set them in "
      "the run that loads these states",
      *step);
}

void tell_beside(const TensorsBeside& beside, const std::string& path, Checkpoint& checkpoint) {
  if (beside.has_optimizer && checkpoint.unread_optimizer_file.empty()) {
    checkpoint.unread_optimizer_file = path;
  }
  if (beside.keys.empty()) return;
  checkpoint.notes.push_back(
      translated("{}: only the model's tensors are read; those under {} are left out", path,
                 name_list(beside.keys)));
}

}  // namespace shardwright
