// SPDX-License-Identifier: Apache-2.0
#include "verify/option_words.h"

#include <array>
#include <string_view>
#include <utility>

namespace shardwright {
namespace {

struct OptionWord {
  std::string_view flag;
  std::string_view option;
};

constexpr std::array kOptionWords = {
    OptionWord{"--to safetensors", "names=\"stored\""},
    OptionWord{"--accept-loss", "accept_loss="},
    OptionWord{"--as", "as_="},
    OptionWord{"--dtype", "dtype="},
    OptionWord{"--family", "family="},
    OptionWord{"--hf-config", "hf_config="},
    OptionWord{"--map", "map="},
    OptionWord{"--mtp drop", "mtp=\"drop\""},
    OptionWord{"--mtp", "mtp="},
    OptionWord{", or take the first with --check-replicas none", ""},  // no option takes a guess
    OptionWord{"--replica N", "replica=N"},
    OptionWord{"--replica", "replica="},
    OptionWord{"--source-ep", "source_ep="},
    OptionWord{"--source-etp", "source_etp="},
    OptionWord{"--source-tp", "source_tp="},
};

// Another flag may begin with the same letters.
bool ends_a_word(char next) { return next != '-' && (next < 'a' || next > 'z'); }

}  // namespace

Error in_words_of_options(Error error) {
  std::string& text = error.message;
  for (const auto& [flag, option] : kOptionWords) {
    for (std::size_t at = text.find(flag); at != std::string::npos; at = text.find(flag, at)) {
      const std::size_t end = at + flag.size();
      if (end == text.size() || ends_a_word(text[end])) {
        text.replace(at, flag.size(), option);
        at += option.size();
      } else {
        at = end;
      }
    }
  }
  return error;
}

}  // namespace shardwright
