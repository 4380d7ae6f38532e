// SPDX-License-Identifier: Apache-2.0
#include "base/translated.h"

#include <fmt/format.h>

#include <atomic>
#include <vector>

namespace shardwright {
namespace {

using Argument = fmt::basic_format_arg<fmt::format_context>;

std::atomic<Translator>& spoken_now() {
  static constinit std::atomic<Translator> translator = nullptr;
  return translator;
}

Argument argument_of(const std::string_view& text) {
  return fmt::format_args(fmt::make_format_args(text)).get(0);
}

// Takes the place of what is a phrase; one word may be a name, which is never translated.
struct PhraseTranslation {
  Translator translate;
  const Argument& own;

  Argument operator()(std::string_view text) const {
    const std::string_view said = text.contains(' ') ? translate(text) : std::string_view();
    return said.empty() ? own : argument_of(said);
  }
  Argument operator()(fmt::string_view text) const {
    return (*this)(std::string_view(text.data(), text.size()));
  }
  Argument operator()(const char* text) const { return (*this)(std::string_view(text)); }
  template <class T>
  Argument operator()(const T& /*value*/) const {
    return own;
  }
};

}  // namespace

Speaking::Speaking(Translator translator) noexcept
    : before_(spoken_now().exchange(translator, std::memory_order_acq_rel)) {}

Speaking::~Speaking() { spoken_now().store(before_, std::memory_order_release); }

bool speaks_english() noexcept { return spoken_now().load(std::memory_order_acquire) == nullptr; }

std::string in_language(std::string_view english) {
  const Translator translate = spoken_now().load(std::memory_order_acquire);
  const std::string_view said = translate == nullptr ? std::string_view() : translate(english);
  return std::string(said.empty() ? english : said);
}

std::string vtranslated(fmt::string_view format, fmt::format_args args) {
  const Translator translate = spoken_now().load(std::memory_order_acquire);
  if (translate == nullptr) return fmt::vformat(format, args);
  std::vector<Argument> said;
  for (int i = 0; const Argument own = args.get(i); ++i) {
    said.push_back(fmt::visit_format_arg(PhraseTranslation{translate, own}, own));
  }
  const std::string_view other = translate({format.data(), format.size()});
  return fmt::vformat(other.empty() ? format : fmt::string_view(other.data(), other.size()),
                      fmt::format_args(said.data(), static_cast<int>(said.size())));
}

}  // namespace shardwright
