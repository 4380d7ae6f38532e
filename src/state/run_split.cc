// SPDX-License-Identifier: Apache-2.0
#include "state/run_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/text.h"
#include "layout/hybrid_stages.h"
#include "model/arguments.h"

namespace shardwright {
namespace {

constexpr std::string_view kLayout = "pipeline_model_parallel_layout";
constexpr std::string_view kPattern = "hybrid_layer_pattern";
constexpr std::string_view kFirst = "decoder_first_pipeline_num_layers";
constexpr std::string_view kLast = "decoder_last_pipeline_num_layers";
constexpr std::string_view kWithEmbedding = "account_for_embedding_in_pipeline_split";
constexpr std::string_view kWithLoss = "account_for_loss_in_pipeline_split";
constexpr std::size_t kMostLayoutBytes = 1 << 16;  // expanded

using Counts = std::vector<std::int64_t>;

std::unexpected<Error> unfit(std::string_view name, const ArgValue& value,
                             std::string_view expected) {
  return fail(Code::kNotDivisible, "found {} {}, expected {}", name, to_string(value), expected);
}

// Takes `*N` off the front of the text: N, or 1 where there is none.
std::int64_t take_factor(std::string_view& text) {
  std::string_view behind = text.substr(std::min<std::size_t>(text.size(), 1));
  const auto factor = text.starts_with('*') ? take_number(behind) : std::nullopt;
  if (factor) text = behind;
  return factor.value_or(1);
}

// The text with what `*N` stands behind written out, be it groups in parentheses or letters;
// nothing where that is too long. What is neither stays, for others to refuse.
std::optional<std::string> written_out(std::string_view text, bool of_groups) {
  std::string whole;
  while (!text.empty()) {
    const std::size_t close =
        of_groups && text.starts_with('(') ? text.find(')') : std::string_view::npos;
    const bool is_group = close != std::string_view::npos;
    std::string_view unit = text.substr(0, is_group ? close + 1 : 1);
    text.remove_prefix(unit.size());
    const std::size_t before = text.size();
    const std::int64_t factor = is_group || !of_groups ? take_factor(text) : 1;
    if (is_group && text.size() < before) unit = unit.substr(1, unit.size() - 2);
    for (std::int64_t i = 0; i < factor && !unit.empty(); ++i) {
      if (unit.size() > kMostLayoutBytes - whole.size()) return std::nullopt;
      whole += unit;
    }
  }
  return whole;
}

// `Et|(tt|)*2,L` as Megatron writes it out: commas left out, first the groups and then the letters.
std::optional<std::string> layout_text(const ArgValue& value) {
  const auto* said = std::get_if<std::string>(&value);
  if (said == nullptr) return std::nullopt;
  std::string text = *said;
  std::erase(text, ',');
  const std::optional<std::string> letters = written_out(text, true);
  return letters ? written_out(*letters, false) : std::nullopt;
}

Result<Counts> counts_of_layout(const ArgValue& value, std::size_t chunks) {
  const std::optional<std::string> whole = layout_text(value);
  const bool is_known = whole && whole->find_first_not_of("EtmL|") == std::string::npos;
  if (!is_known) return unfit(kLayout, value, "stages of E, t, m and L between bars");
  const std::vector<std::string_view> stages = split_at(*whole, '|');
  if (stages.size() != chunks) {
    return unfit(kLayout, value, translated("{} stages", chunks));
  }
  if (const std::size_t first = whole->find('m'); first != std::string::npos) {
    const bool is_behind = whole->find('t', first) == std::string::npos;
    if (!is_behind || whole->find('|', first) < whole->rfind('m')) {
      return unfit(kLayout, value, "MTP layers in one stage, behind all layers of the decoder");
    }
  }
  Counts counts;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const bool is_last = i + 1 == stages.size();
    const auto count = [&](char kind) { return std::ranges::count(stages[i], kind); };
    if (count('E') != (i == 0 ? 1 : 0) || count('L') != (is_last ? 1 : 0)) {
      return unfit(kLayout, value, "E once in the first stage, L once in the last");
    }
    counts.push_back(count('t'));
  }
  return counts;
}

Result<Counts> counts_of_pattern(const ArgValue& value, std::size_t chunks) {
  const std::string_view pattern = std::get<std::string>(value);
  Counts counts;
  for (const std::string_view stage : split_at(decoder_pattern(pattern), '|')) {
    counts.push_back(std::ssize(stage));
  }
  if (counts.size() == chunks) return counts;
  return unfit(kPattern, value, translated("{} stages", chunks));
}

// A whole number of an argument, from 0 to `most`.
Result<std::optional<std::int64_t>> number_said(const Arguments& arguments, std::string_view name,
                                                std::int64_t most) {
  const ArgValue* const value = find_set(arguments, name);
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
  const ArgValue* const pattern = find_set(arguments, kPattern);
  const auto* text = pattern == nullptr ? nullptr : std::get_if<std::string>(pattern);
  if (text != nullptr && tells_stages(*text)) return counts_of_pattern(*pattern, chunks);
  if (chunks == 1) return Counts{layers};  // whatever is said of stages
  if (const auto* layout = find_set(arguments, kLayout)) return counts_of_layout(*layout, chunks);
  const auto first = SW_TRY(number_said(arguments, kFirst, layers));
  const auto last = SW_TRY(number_said(arguments, kLast, layers));
  if (first || last) return counts_of_ends(layers, config, first, last);
  return counts_of_even(layers, chunks, is_true(arguments, kWithEmbedding),
                        is_true(arguments, kWithLoss));
}

}  // namespace

Result<PipelineSplit> split_of_run(const Arguments& arguments, std::int64_t layers,
                                   const ParallelConfig& config) {
  // Stages without layers are few; more are a mistake of whoever recorded them.
  constexpr std::int64_t kMostEmpty = 4096;
  constexpr std::int64_t kMostLayers = 1 << 20;
  const std::int64_t most = std::min(layers, kMostLayers) + kMostEmpty;
  if (layers > kMostLayers || config.pipeline > most ||
      config.virtual_pipeline > most / config.pipeline) {
    return fail(Code::kNotDivisible,
                "found {} layers for {} pipeline stages times {} virtual ones, expected fewer",
                layers, config.pipeline, config.virtual_pipeline);
  }
  const Counts counts = SW_TRY(counts_of_run(arguments, layers, config));
  const std::int64_t all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (all != layers || std::ranges::min(counts) < 0) {
    return fail(Code::kNotDivisible, "found {} layers, expected the {} of all pipeline stages",
                layers, all);
  }
  return PipelineSplit::of_counts(counts, config.pipeline);
}

std::optional<std::int64_t> prediction_chunk_of_run(const Arguments& arguments,
                                                    const ParallelConfig& config) {
  const ArgValue* const layout = find_set(arguments, kLayout);
  const bool has_chunks = config.pipeline * config.virtual_pipeline > 1;
  const auto whole = layout != nullptr && has_chunks ? layout_text(*layout) : std::nullopt;
  const std::size_t place = whole ? whole->find('m') : std::string::npos;
  if (place == std::string::npos) return std::nullopt;
  return std::count(whole->begin(), whole->begin() + static_cast<std::ptrdiff_t>(place), '|');
}

std::string said_of_stages(const Arguments& arguments) {
  std::string said;
  for (const std::string_view name :
       {kLayout, kFirst, kLast, kWithEmbedding, kWithLoss, kPattern}) {
    const ArgValue* const value = find_set(arguments, name);
    if (value == nullptr || *value == ArgValue{false}) continue;
    const auto* const pattern = name == kPattern ? std::get_if<std::string>(value) : nullptr;
    if (name == kPattern && (pattern == nullptr || !tells_stages(*pattern))) continue;
    said += fmt::format("{}{} {}", said.empty() ? "" : ", ", name, to_string(*value));
  }
  return said;
}

}  // namespace shardwright
