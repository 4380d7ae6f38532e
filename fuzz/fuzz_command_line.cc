// SPDX-License-Identifier: Apache-2.0
// Command lines, a word on each line; components of MIMO layouts.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/args.h"
#include "cli/dialect.h"
#include "expect.h"
#include "layout/component_spec.h"

namespace shardwright {
namespace {

void read(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == '\n') {
      words.emplace_back();
    } else if (c != '\0') {
      words.back() += c;
    }
  }
  const std::vector<std::string> canonical = cli::to_canonical_flags(words);
  const Result<cli::Request> request = cli::parse_arguments(canonical);
  expect(request.has_value() || request.error().code == Code::kUsage, "what is wrong is usage");
  static_cast<void>(cli::asks_for_json(canonical));
  static_cast<void>(parse_component(text));
}

}  // namespace
}  // namespace shardwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardwright::read(std::string(data, data + size));
  return 0;
}
