// SPDX-License-Identifier: Apache-2.0
#include "state/run_split.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "layout/hybrid_stages.h"
#include "model/arguments.h"

namespace shardwright {
namespace {

constexpr std::string_view kLayout = "pipeline_model_parallel_layout";
constexpr std::string_view kPattern = "hybrid_layer_pattern";
constexpr std::size_t kMostLayoutBytes = 1 << 16;  // expanded

using Counts = std::vector<std::int64_t>;

const ArgValue* said(const Arguments& arguments, std::string_view name) {
  const auto found = arguments.find(name);
  return found == arguments.end() || found->second == ArgValue{} ? nullptr : &found->second;
}

std::unexpected<Error> unfit(std::string_view name, const ArgValue& value,
                             std::string_view expected) {
  return fail(Code::kNotDivisible, "found {} {}, expected {}", name, to_string(value), expected);
}

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t bar = text.find('|');
    parts.push_back(text.substr(0, bar));
    if (bar == std::string_view::npos) return parts;
    text.remove_prefix(bar + 1);
  }
}

// The number behind `*N` at a place, which it leaves behind; nothing where there is none.
std::optional<std::size_t> take_factor(std::string_view text, std::size_t& at) {
  if (at >= text.size() || text[at] != '*') return std::nullopt;
  std::size_t factor = 0;
  const char* const begin = text.data() + at + 1;
  const auto read = std::from_chars(begin, text.data() + text.size(), factor);
  if (read.ec != std::errc() || read.ptr == begin) return std::nullopt;
  at += 1 + static_cast<std::size_t>(read.ptr - begin);
  return factor;
}

bool repeat(std::string_view text, std::size_t times, std::string& whole) {
  if (!text.empty() && times > (kMostLayoutBytes - whole.size()) / text.size()) return false;
  for (std::size_t i = 0; i < times; ++i) whole += text;
  return true;
}

// Groups `(tt|)*3` and then letters `t*3` written out, commas left out; nothing where that is too
// long. What is no group stays, as an unknown letter.
std::optional<std::string> written_out(std::string text) {
  std::erase(text, ',');
  for (const bool of_groups : {true, false}) {
    std::string whole;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t close = of_groups && text[at] == '(' ? text.find(')', at) : at;
      std::size_t behind = close == std::string::npos ? text.size() : close + 1;
      const std::size_t first = behind;
      const std::optional<std::size_t> factor =
          of_groups && text[at] != '(' ? std::nullopt : take_factor(text, behind);
      std::string_view part = std::string_view(text).substr(at, first - at);
      if (factor && of_groups) part = part.substr(1, part.size() - 2);
      if (!repeat(part, factor.value_or(1), whole)) return std::nullopt;
      at = behind;
    }
    text = std::move(whole);
  }
  return text;
}

Result<Counts> counts_of_layout(const ArgValue& value, std::size_t chunks) {
  const auto* text = std::get_if<std::string>(&value);
  const std::optional<std::string> whole = text == nullptr ? std::nullopt : written_out(*text);
  const bool is_known = whole && whole->find_first_not_of("EtmL|") == std::string::npos;
  if (!is_known) return unfit(kLayout, value, "stages of E, t, m and L between bars");
  const std::vector<std::string_view> stages = parts_of(*whole);
  if (stages.size() != chunks) {
    return unfit(kLayout, value, translated("{} stages", chunks));
  }
  Counts counts;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const bool is_last = i + 1 == stages.size();
    const auto count = [&](char kind) { return std::ranges::count(stages[i], kind); };
    if (count('E') != (i == 0 ? 1 : 0) || count('L') != (is_last ? 1 : 0)) {
      return unfit(kLayout, value, "E once in the first stage, L once in the last");
    }
    if (count('m') > 0 && (!is_last || count('t') == 0)) {
      return fail(Code::kUnsupportedFormat,
                  "found {} {}: MTP layers apart from the decoder's last layer are not supported",
                  kLayout, to_string(value));
    }
    counts.push_back(count('t'));
  }
  return counts;
}

Result<Counts> counts_of_pattern(const ArgValue& value, std::size_t chunks) {
  const std::string_view pattern = std::get<std::string>(value);
  Counts counts;
  for (const std::string_view stage : parts_of(pattern.substr(0, pattern.find('/')))) {
    counts.push_back(std::ssize(stage));
  }
  if (counts.size() == chunks) return counts;
  return unfit(kPattern, value, translated("{} stages", chunks));
}

// A whole number of an argument, from 0 to `most`.
Result<std::optional<std::int64_t>> number_said(const Arguments& arguments, std::string_view name,
                                                std::int64_t most) {
  const ArgValue* const value = said(arguments, name);
  if (value == nullptr) return std::nullopt;
  const auto* number = std::get_if<std::int64_t>(value);
  if (number != nullptr && *number >= 0 && *number <= most) return *number;
  return unfit(name, *value, translated("0 to {}", most));
}

// Of the first and the last stage as many as is said, the others share the rest evenly.
Result<Counts> counts_of_ends(std::int64_t layers, const ParallelConfig& config,
                              std::optional<std::int64_t> first, std::optional<std::int64_t> last) {
  const std::int64_t others = config.pipeline - (first ? 1 : 0) - (last ? 1 : 0);
  const std::int64_t rest = layers - first.value_or(0) - last.value_or(0);
  if (rest < 0 || others < 0 || (others == 0 ? rest != 0 : rest % others != 0)) {
    return fail(Code::kNotDivisible,
                "found {} layers beside those of the first and the last stage, expected a multiple "
                "of {} other stages",
                rest, others);
  }
  Counts ranks(static_cast<std::size_t>(config.pipeline), others == 0 ? 0 : rest / others);
  if (first) ranks.front() = *first;
  if (last) ranks.back() = *last;
  Counts counts;
  for (std::int64_t v = 0; v < config.virtual_pipeline; ++v) {
    for (const std::int64_t rank : ranks) {
      if (rank % config.virtual_pipeline != 0) {
        return fail(Code::kNotDivisible, "found a stage of {} layers, expected a multiple of {}",
                    rank, config.virtual_pipeline);
      }
      counts.push_back(rank / config.virtual_pipeline);
    }
  }
  return counts;
}

// Evenly, what is counted as a layer of the first stage and of the last included.
Result<Counts> counts_of_even(std::int64_t layers, std::size_t chunks, bool with_embedding,
                              bool with_loss) {
  const std::int64_t embedding = with_embedding ? 1 : 0;
  const std::int64_t loss = with_loss ? 1 : 0;
  const std::int64_t all = layers + embedding + loss;
  const auto stages = static_cast<std::int64_t>(chunks);
  if (all % stages != 0) {
    return fail(Code::kNotDivisible, "found {} layers, expected a multiple of {} pipeline stages",
                all, stages);
  }
  Counts counts(chunks, all / stages);
  counts.front() -= embedding;
  counts.back() -= loss;
  return counts;
}

Result<Counts> counts_of_run(const Arguments& arguments, std::int64_t layers,
                             const ParallelConfig& config) {
  const auto chunks = static_cast<std::size_t>(config.pipeline * config.virtual_pipeline);
  if (const ArgValue* layout = said(arguments, kLayout)) return counts_of_layout(*layout, chunks);
  const ArgValue* const pattern = said(arguments, kPattern);
  const auto* text = pattern == nullptr ? nullptr : std::get_if<std::string>(pattern);
  if (text != nullptr && tells_stages(*text)) return counts_of_pattern(*pattern, chunks);
  const auto first = SW_TRY(number_said(arguments, "decoder_first_pipeline_num_layers", layers));
  const auto last = SW_TRY(number_said(arguments, "decoder_last_pipeline_num_layers", layers));
  if (first || last) return counts_of_ends(layers, config, first, last);
  const auto is_set = [&](std::string_view name) {
    const ArgValue* const value = said(arguments, name);
    return value != nullptr && *value == ArgValue{true};
  };
  return counts_of_even(layers, chunks, is_set("account_for_embedding_in_pipeline_split"),
                        is_set("account_for_loss_in_pipeline_split"));
}

}  // namespace

Result<PipelineSplit> split_of_run(const Arguments& arguments, std::int64_t layers,
                                   const ParallelConfig& config) {
  // Stages without layers are few; more are a mistake of whoever recorded them.
  constexpr std::int64_t kMostEmpty = 4096;
  const std::int64_t most = layers + kMostEmpty;
  if (config.pipeline > most || config.virtual_pipeline > most / config.pipeline) {
    return fail(Code::kNotDivisible, "found {} layers, expected one per stage of --pp {}", layers,
                config.pipeline);
  }
  if (config.pipeline == 1) return PipelineSplit::make(layers, config);
  const Counts counts = SW_TRY(counts_of_run(arguments, layers, config));
  const std::int64_t all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (all != layers || std::ranges::min(counts) < 0) {
    return fail(Code::kNotDivisible, "found {} layers, expected {}, which pipeline stages have",
                layers, all);
  }
  return PipelineSplit::of_counts(counts, config.pipeline);
}

}  // namespace shardwright
