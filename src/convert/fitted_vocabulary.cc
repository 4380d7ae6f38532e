// SPDX-License-Identifier: Apache-2.0
#include "convert/fitted_vocabulary.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/fail.h"
#include "base/notes.h"
#include "canonical/families.h"
#include "canonical/model_facts.h"
#include "layout/model_head.h"
#include "layout/recorded_words.h"
#include "layout/shard_rule.h"
#include "plan/canonical.h"
#include "plan/draft.h"
#include "state/recorded_run.h"

namespace shardwright {
namespace {

// What the family has beyond the vocabulary; nothing where it is not known.
VocabularyRows rows_of_family(const ConvertRequest& request, const Checkpoint& source,
                              std::span<const TensorDesc> descs) {
  const auto mappings = load_mappings(request, source);
  if (!mappings) return {};
  Notes told_elsewhere;
  const auto facts = find_model_facts(request, source, *mappings, descs, told_elsewhere);
  if (!facts) return {};
  return vocabulary_rows(*facts->mapping, facts->sizes, descs).value_or(VocabularyRows());
}

// Whether the run would have padded its words to the rows that there are. A --vocab-size that the
// tokenizer overruled is another number than that of its words.
bool explains_rows(const RecordedRun& run, const VocabularyRows& vocabulary,
                   const TensorDesc& table) {
  const std::int64_t words = vocabulary.of(table.name).value_or(0);
  const std::int64_t rows = table.shape[0];
  return words >= rows || pads_to(run, words, rows);
}

}  // namespace

VocabularyRows meant_rows(const ConvertRequest& request, const Checkpoint& source,
                          const TargetParts& parts) {
  const std::vector<TensorDesc> descs = descs_of(std::span<const DraftTensor>(parts.tensors));
  VocabularyRows rows;
  if (request.make_vocab_size_divisible_by) rows = rows_of_family(request, source, descs);
  const OutputHeads heads(descs);
  const RecordedRun run = recorded_run(source.arguments);
  // The lowest: others may have rows beyond the words.
  std::optional<std::int64_t> lowest;
  for (const TensorDesc& desc : descs) {
    if (!heads.has_vocabulary_rows(desc)) continue;
    lowest = std::min(lowest.value_or(desc.shape[0]), desc.shape[0]);
  }
  if (lowest) rows.usual = words_of(run, *lowest);
  const auto is_explained = [&](const TensorDesc& desc) {
    return !heads.has_vocabulary_rows(desc) || explains_rows(run, rows, desc);
  };
  if (rows.usual && !std::ranges::all_of(descs, is_explained)) rows.usual.reset();
  return rows;
}

Status fit_vocabulary(const ConvertRequest& request, const VocabularyRows& vocabulary,
                      TargetParts& parts, ArgumentList& edits) {
  const OutputHeads heads(descs_of(parts.tensors));
  for (DraftTensor& tensor : parts.tensors) {
    if (!heads.has_vocabulary_rows(tensor.desc)) continue;
    const std::int64_t rows = tensor.desc.shape[0];
    const std::int64_t tp = request.parallel.tensor;
    const bool pads = request.make_vocab_size_divisible_by.has_value();
    const std::optional<std::int64_t> known =
        tensor.true_rows ? tensor.true_rows : vocabulary.of(tensor.desc.name);
    const std::int64_t meaning = std::min(known.value_or(rows), rows);
    const std::int64_t divisor = request.make_vocab_size_divisible_by.value_or(128);
    const std::int64_t padded = padded_vocabulary(meaning, divisor, tp);
    if (rows % tp != 0 && !pads) {
      return fail(Code::kVocabularyNotDivisible,
                  "tensor {}: found {} vocabulary rows, expected a multiple of --tp {}; "
                  "--make-vocab-size-divisible-by {} makes it {} rows, filled with zeros",
                  tensor.desc.name, rows, tp, divisor, padded);
    }
    if (pads) resize_rows(tensor, padded);
    if (!tensor.desc.name.ends_with("word_embeddings.weight") ||
        is_optimizer_name(tensor.desc.name)) {
      continue;
    }
    edits.emplace_back("padded_vocab_size", tensor.desc.shape[0]);
    if (pads) edits.emplace_back("make_vocab_size_divisible_by", divisor);
  }
  return {};
}

}  // namespace shardwright
