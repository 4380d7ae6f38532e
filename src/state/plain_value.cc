// SPDX-License-Identifier: Apache-2.0
#include "state/plain_value.h"

#include <vector>

#include "base/allowance.h"
#include "base/fail.h"

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Kind;
using pickle::Value;

constexpr int kDeepest = 16;

// A list may be in the pickle once and in many others: the copies are counted.
Result<Value> copy_value(Document& document, Value value, int depth, Allowance& allowance) {
  constexpr std::uint64_t kNodeBytes = 64;
  SW_TRY(allowance.take(kNodeBytes + value.text().size(), "its values"));
  if (depth > kDeepest) return fail(Code::kLimit, "found values nested deeper than {}", kDeepest);
  std::vector<Value> elements;
  switch (value.kind()) {
    case Kind::kNone:
      return document.none();
    case Kind::kBool:
      return document.boolean(*value.as_bool());
    case Kind::kInt:
      return document.integer(*value.as_int());
    case Kind::kFloat:
      return document.real(*value.as_double());
    case Kind::kString:
      return document.string(value.text());
    case Kind::kGlobal:
      return document.global(value.module(), value.name());
    case Kind::kList:
    case Kind::kTuple:
      for (std::size_t i = 0; i < value.size(); ++i) {
        elements.push_back(SW_TRY(copy_value(document, value[i], depth + 1, allowance)));
      }
      return document.sequence(value.kind(), elements);
    case Kind::kDict: {
      const Value dict = document.dict();
      for (std::size_t i = 0; i < value.size(); ++i) {
        const Value key = SW_TRY(copy_value(document, value.key(i), depth + 1, allowance));
        document.add_pair(dict, key,
                          SW_TRY(copy_value(document, value.value(i), depth + 1, allowance)));
      }
      return dict;
    }
    default:
      return fail(Code::kStateUnreadable, "found a {}, expected a plain value",
                  pickle::kind_name(value.kind()));
  }
}

}  // namespace

Result<Value> copy_plain_value(Document& document, Value value) {
  Allowance allowance(0);
  return copy_value(document, value, 0, allowance);
}

}  // namespace shardwright
