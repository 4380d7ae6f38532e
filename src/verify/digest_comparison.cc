// SPDX-License-Identifier: Apache-2.0
#include "verify/digest_comparison.h"

#include <algorithm>
#include <functional>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>

#include "base/fail.h"
#include "layout/state_name.h"
#include "layout/texts.h"
#include "plan/canonical.h"
#include "verify/findings.h"

namespace shardwright {
namespace {

using HashList = std::vector<const TensorHash*>;

bool is_state(const TensorHash& tensor) { return is_optimizer_name(tensor.desc.name); }

template <typename Wanted>
HashList list_of(std::span<const TensorHash> tensors, const Wanted& is_wanted) {
  HashList list;
  for (const TensorHash& tensor : tensors) {
    if (is_wanted(tensor)) list.push_back(&tensor);
  }
  return list;
}

std::set<std::string_view> listed_names(const HashList& tensors) {
  std::set<std::string_view> names;
  for (const TensorHash* tensor : tensors) names.insert(tensor->desc.name);
  return names;
}

// Takes those out of a list that the other lacks; says how many they were.
std::size_t drop_lacking(HashList& tensors, const HashList& other) {
  const std::set<std::string_view> names = listed_names(other);
  return std::erase_if(
      tensors, [&](const TensorHash* tensor) { return !names.contains(tensor->desc.name); });
}

// Takes those out of both lists that only one of them has; says how many they were.
std::size_t drop_unshared(HashList& found, HashList& expected) {
  const std::size_t dropped = drop_lacking(found, expected);
  return dropped + drop_lacking(expected, found);
}

// One list of digests against another.
class DigestComparison {
 public:
  DigestComparison(const HashReport& found, const HashReport& expected, VerifyReport& report)
      : found_(found), expected_(expected), report_(report) {}

  void compare() {
    const auto all = [](const TensorHash&) { return true; };
    compare_lists(list_of(found_.model, all), list_of(expected_.model, all));
    compare_states();
    compare_extras();
    if (mismatches_ > 0) return;
    report_.proven.push_back(
        phrase("proven.digests",
               {{"count", compared_}, {"path", expected_.path}, {"digest", found_.model_digest}}));
  }

 private:
  // Another form need not have any; but one that has some has them all.
  void compare_states() {
    HashList found = list_of(found_.beside, is_state);
    HashList expected = list_of(expected_.beside, is_state);
    if (tell_left_out(found, expected)) return;
    if (found.empty() != expected.empty()) {
      report_.notes.push_back(translated("{} optimizer states are not compared: {}",
                                         found.size() + expected.size(), "only one side has any"));
      return;
    }
    if (has_stored_states(found_) != has_stored_states(expected_)) {
      // Names of two kinds: that one side lacks the other's shows nothing.
      const std::size_t unshared = drop_unshared(found, expected);
      add_finding(report_, Code::kDigestMismatch, expected_.path,
                  translated("{} optimizer states are not compared: {}", unshared,
                             translated("one side has them as states of the model's tensors, the "
                                        "other as they are stored ({})",
                                        expected_.path)),
                  Severity::kWarning);
    }
    compare_lists(found, expected);
  }

  // Of two checkpoints that both have states, the one whose states could not be read.
  bool tell_left_out(const HashList& found, const HashList& expected) {
    const bool has_found = !found.empty() || !found_.states_left.empty();
    const bool has_expected = !expected.empty() || !expected_.states_left.empty();
    if (!has_found || !has_expected) return false;
    bool is_left_out = false;
    for (const HashReport* side : {&found_, &expected_}) {
      if (side->states_left.empty()) continue;
      is_left_out = true;
      ++mismatches_;
      add_finding(report_, Code::kDigestMismatch, side->path,
                  translated("{}: its optimizer states are not compared: {}", side->path,
                             side->states_left));
    }
    return is_left_out;
  }

  // What only Hugging Face stores, another form may have in part; its models have all of theirs.
  void compare_extras() {
    HashList found = list_of(found_.beside, std::not_fn(is_state));
    HashList expected = list_of(expected_.beside, std::not_fn(is_state));
    std::size_t unshared = 0;
    if (!expected_.is_hf_model) unshared += drop_lacking(found, expected);
    if (!found_.is_hf_model) unshared += drop_lacking(expected, found);
    if (unshared > 0) {
      report_.notes.push_back(translated(
          "{} values that only Hugging Face stores are not compared: only one side keeps them",
          unshared));
    }
    compare_lists(found, expected);
  }

  void compare_lists(const HashList& found, const HashList& expected) {
    std::unordered_map<std::string_view, const TensorHash*> by_name;
    for (const TensorHash* tensor : found) by_name.emplace(tensor->desc.name, tensor);
    for (const TensorHash* wanted : expected) {
      const auto at = by_name.find(wanted->desc.name);
      if (at == by_name.end()) {
        mismatch(wanted->desc.name, "is not in the checkpoint");
        continue;
      }
      compare_one(*at->second, *wanted);
      by_name.erase(at);
    }
    for (const auto& [name, tensor] : by_name) {
      mismatch(std::string(name), "is in the checkpoint only");
    }
  }

  void compare_one(const TensorHash& found, const TensorHash& wanted) {
    ++compared_;
    const bool same_type =
        found.desc.dtype == wanted.desc.dtype && found.desc.shape == wanted.desc.shape;
    if (!same_type) {
      mismatch(wanted.desc.name,
               translated("found {} {}, expected {} {}", torch_name(found.desc.dtype),
                          to_string(found.desc.shape), torch_name(wanted.desc.dtype),
                          to_string(wanted.desc.shape)));
    } else if (found.digest != wanted.digest) {
      mismatch(wanted.desc.name, translated("found digest {}, expected {}; its elements differ",
                                            found.digest, wanted.digest));
    }
  }

  void mismatch(const std::string& name, std::string_view what) {
    ++mismatches_;
    add_finding(report_, Code::kDigestMismatch, name,
                fmt::format("tensor {}: {} ({})", name, what, expected_.path));
  }

  const HashReport& found_;
  const HashReport& expected_;
  VerifyReport& report_;
  std::uint64_t compared_ = 0;
  std::uint64_t mismatches_ = 0;
};

}  // namespace

bool has_stored_states(const HashReport& digests) {
  return std::ranges::any_of(digests.beside, [](const TensorHash& tensor) {
    const std::string& name = tensor.desc.name;
    const std::optional<StateName> state = split_state_name(name);
    return is_state(tensor) && (!state || join_state_name(state->kind, state->tensor) != name);
  });
}

void compare_digests_of(const HashReport& found, const HashReport& expected, VerifyReport& report) {
  DigestComparison(found, expected, report).compare();
}

}  // namespace shardwright
