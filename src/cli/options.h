// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/convert_request.h"
#include "shardwright/diagnose.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace shardwright::cli {

// CLI11's header costs seconds in every file that includes it: options.cc, console_args.cc and
// command_line.cc do.

/// Makes a value canonical. What was found and what is allowed, or nothing; CLI11 puts the flag's
/// name in front.
using Check = std::function<std::string(std::string& text)>;

using Synonyms = std::map<std::string_view, std::string_view>;

/// The words that a value may be. Case, `-` for `_` and a leading `torch.` make no difference.
struct Vocabulary {
  std::vector<std::string_view> words;
  Synonyms aliases = {};  ///< what others call one of the words
  /// What could mean several, and the hint to give, in the language spoken.
  std::map<std::string_view, std::string> doubts = {};
  std::string_view more = {};  ///< what else is allowed, to end the list of words
};

/// Makes `text` one of the words. What is wrong with it, or nothing.
[[nodiscard]] std::string choose_word(std::string& text, const Vocabulary& vocabulary);

/// `hf, torch_dist or legacy`.
[[nodiscard]] std::string word_list(const std::vector<std::string_view>& words);

// How options are declared: what is written to must live as long as the app. Names are long ones,
// the first of which is ours, or a positional's. `type` and `text` are what the help shows.

inline constexpr std::int64_t kMostRanks = std::int64_t{1} << 20;
inline constexpr std::int64_t kMostThings = 1'000'000'000;

// The parallel sizes, with what Megatron-LM, its checkpoint tools (`--target-…`), Megatron-Bridge
// and LoongForge call them. to_canonical_flags() has made `-` of `_` and `--tp` of `-tp`.
inline constexpr const char* kTp =
    "--tp,--tensor-model-parallel-size,--tensor-parallel-size,--tp-size,--target-tp,"
    "--target-tensor-model-parallel-size,--target-tensor-parallel-size";
inline constexpr const char* kPp =
    "--pp,--pipeline-model-parallel-size,--pipeline-parallel-size,--pp-size,--target-pp,"
    "--target-pipeline-model-parallel-size,--target-pipeline-parallel-size";
inline constexpr const char* kVpp =
    "--vpp,--num-virtual-stages-per-pipeline-rank,--virtual-pipeline-model-parallel-size,"
    "--virtual-pipeline-parallel-size,--vpp-size,--target-vpp,"
    "--target-virtual-pipeline-model-parallel-size,--target-virtual-pipeline-parallel-size";
inline constexpr const char* kEp =
    "--ep,--expert-model-parallel-size,--expert-parallel-size,--ep-size,--target-ep,"
    "--target-expert-model-parallel-size,--target-expert-parallel-size";
inline constexpr const char* kEtp =
    "--etp,--expert-tensor-parallel-size,--expert-tensor-model-parallel-size,--etp-size,"
    "--target-etp,--target-expert-tensor-parallel-size,"
    "--target-expert-tensor-model-parallel-size";
inline constexpr const char* kEncoderTp =
    "--encoder-tp,--encoder-tensor-model-parallel-size,--encoder-tensor-parallel-size,"
    "--encoder-tp-size,--target-encoder-tp,--target-encoder-tensor-model-parallel-size";

/// A positional that must be given and may not be empty; `what` says what it is.
void add_path(CLI::App& app, const std::string& name, std::string& path, const std::string& what);
/// Several, with nothing behind them.
void add_paths(CLI::App& app, const std::string& name, std::vector<std::string>& paths,
               const std::string& what);
/// One that may be left out.
void add_optional_path(CLI::App& app, const std::string& name, std::string& path,
                       const std::string& what);
CLI::Option* add_text(CLI::App& app, const std::string& name, std::string& value,
                      const std::string& type, const std::string& text);
void add_flag(CLI::App& app, const std::string& name, bool& value, const std::string& text);
/// May be given several times, with one value each.
void add_list(CLI::App& app, const std::string& name, std::vector<std::string>& values,
              const std::string& type, const std::string& text);

/// A whole number from 1 to `largest`.
void add_number(CLI::App& app, const std::string& name, std::int64_t& number,
                const std::string& text, std::int64_t largest = kMostThings);
CLI::Option* add_number(CLI::App& app, const std::string& name, std::optional<std::int64_t>& number,
                        const std::string& text, std::int64_t largest = kMostThings);
/// A finite number that is not negative.
void add_tolerance(CLI::App& app, const std::string& name, std::optional<double>& number,
                   const std::string& text);
/// `5GB`, as parse_bytes() reads it.
void add_size(CLI::App& app, const std::string& name, std::optional<std::uint64_t>& bytes,
              const std::string& text);

/// What no other kind fits: a value that `check` allows and `take` gets.
CLI::Option* add_checked(CLI::App& app, const std::string& name, const std::string& type,
                         const std::string& text, Check check,
                         const std::function<void(const std::string& text)>& take);
/// The same of a list. `take` says what is wrong with it, or nothing.
void add_checked_list(CLI::App& app, const std::string& name, const std::string& type,
                      const std::string& text,
                      const std::function<std::string(const std::vector<std::string>&)>& take);

template <class T>
struct Choice {
  std::string_view word;
  T value;
};

/// One of several words. `vocabulary` holds what else is taken for them.
template <class T>
CLI::Option* add_choice(CLI::App& app, const std::string& name, T& value,
                        const std::vector<Choice<T>>& choices, const std::string& text,
                        Vocabulary vocabulary = {}, std::string type = "") {
  std::string listed;
  for (const Choice<T>& choice : choices) {
    vocabulary.words.push_back(choice.word);
    listed += (listed.empty() ? "" : "|") + std::string(choice.word);
  }
  return add_checked(
      app, name, type.empty() ? listed : type, text,
      [vocabulary](std::string& word) { return choose_word(word, vocabulary); },
      [&value, choices](const std::string& word) {
        value = std::ranges::find(choices, word, &Choice<T>::word)->value;
      });
}

/// A list that `read` makes sense of: Result<std::vector<T>> of the texts.
template <class T, class Read>
void add_read_list(CLI::App& app, const std::string& name, std::vector<T>& values, Read read,
                   const std::string& type, const std::string& text) {
  add_checked_list(app, name, type, text, [&values, read](const std::vector<std::string>& texts) {
    Result<std::vector<T>> result = read(texts);
    if (!result) return result.error().message;
    values = *std::move(result);
    return std::string();
  });
}

void require(CLI::Option* option);
/// What `name` stands for and must not be given beside it, although it must be without: IN of a
/// conversion that a file describes. To be called when it is read.
void make_needless(CLI::App& app, const std::vector<std::string>& names);
/// The first argument that is given and not among `allowed`, and none of the console's; empty:
/// none.
[[nodiscard]] std::string given_besides(const CLI::App& app,
                                        const std::vector<std::string_view>& allowed);
/// `option` means nothing without `other`.
void require_with(CLI::Option* option, CLI::Option* other);
[[nodiscard]] bool is_given(const CLI::App& app, const std::string& name);
/// The value of an option as its check made it. REQUIRES: it is given.
[[nodiscard]] std::string given_word(const CLI::App& app, const std::string& name);

// Options that several commands have.

/// `--as FORMAT`: which of the checkpoints that `where` holds is meant.
void add_format(CLI::App& app, std::string& format, const std::string& where);
/// `--family`, `--map` and add_models().
void add_family(CLI::App& app, std::string& family, std::vector<std::string>& map_files,
                std::string& models_dir);
/// `--models` or $SHARDWRIGHT_MODELS, for tests and development; the help does not show it.
void add_models(CLI::App& app, std::string& models_dir);
/// `--replica N`: whose copies are taken of tensors that each tensor rank stored.
void add_replica(CLI::App& app, SourceOptions& source);
/// `--accept-loss` and the sizes of an MLite source.
void add_source(CLI::App& app, SourceOptions& source);
void add_threads(CLI::App& app, int& threads);
void add_shard_size(CLI::App& app, std::uint64_t& bytes);
void add_overwrite(CLI::App& app, bool& overwrite);

}  // namespace shardwright::cli
