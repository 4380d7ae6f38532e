// SPDX-License-Identifier: Apache-2.0
#include "layout/recorded_words.h"

#include "base/checked.h"
#include "layout/shard_rule.h"

namespace shardwright {

bool pads_to(const RecordedRun& run, std::int64_t words, std::int64_t rows) {
  const std::int64_t divisor = run.vocabulary_divisor.value_or(0);
  const std::int64_t tensor = run.sizes.tensor.value_or(0);
  if (words < 1 || words > rows || divisor < 1 || tensor < 1) return false;
  // A step of the padding is no longer than what there is.
  if (divisor > rows || tensor > rows / divisor) return false;
  return padded_vocabulary(words, divisor, tensor) == rows;
}

std::optional<std::int64_t> words_of(const RecordedRun& run, std::int64_t rows) {
  if (!run.vocabulary || run.null_tokenizer == NullTokenizer::kNone) return run.vocabulary;
  const auto more = checked_add(*run.vocabulary, std::int64_t{1});
  if (!more) return std::nullopt;
  const bool fits_told = pads_to(run, *run.vocabulary, rows);
  if (fits_told != pads_to(run, *more, rows)) return fits_told ? run.vocabulary : more;
  return run.null_tokenizer == NullTokenizer::kCountsOneMore ? more : run.vocabulary;
}

}  // namespace shardwright
