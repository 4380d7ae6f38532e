// SPDX-License-Identifier: Apache-2.0
#include "format/peft/adapter.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/fail.h"
#include "base/text.h"
#include "format/peft/weights.h"
#include "io/watched_directory.h"
#include "layout/module_wrappers.h"
#include "model/expert_parameter.h"
#include "remote/open_path.h"
#include "tensor/strided_copy.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostAdapterConfigBytes = std::uint64_t{16} << 20;
// What PEFT's wrappers put in front of each name.
constexpr std::string_view kWrapperPrefix = "base_model.model.";

enum class AdapterRole : std::uint8_t {
  kIn,
  kOut,
  kEmbeddingIn,
  kEmbeddingOut,
  kBias,
  kMagnitude,
  kTokenRows,
  kSaved
};

// A tensor's name taken apart.
struct AdapterPart {
  AdapterRole role = AdapterRole::kSaved;
  std::string target;  // of kSaved the tensor, else the module
  bool is_under_rows = false;
};

std::string joined_words(const std::vector<std::string_view>& words) {
  return fmt::format("{}", fmt::join(words, "."));
}

// The role of what follows the module's name: `lora_A.weight`, and with the adapter's name in
// between, as PEFT has it in memory, `lora_A.default.weight`.
std::optional<AdapterRole> adapter_role_of(std::vector<std::string_view> words) {
  const std::string_view kind = words.front();
  words.erase(words.begin());
  const bool ends_in_name = !words.empty() && (words.back() == "weight" || words.back() == "bias");
  const std::string_view last = ends_in_name ? words.back() : std::string_view();
  if (ends_in_name) words.pop_back();
  if (!words.empty() && words.front() == "default") words.erase(words.begin());
  if (!words.empty()) return std::nullopt;
  if (kind == "lora_A" && last == "weight") return AdapterRole::kIn;
  if (kind == "lora_B" && last == "weight") return AdapterRole::kOut;
  if (kind == "lora_B" && last == "bias") return AdapterRole::kBias;
  if (kind == "lora_embedding_A" && last.empty()) return AdapterRole::kEmbeddingIn;
  if (kind == "lora_embedding_B" && last.empty()) return AdapterRole::kEmbeddingOut;
  if (kind == "lora_magnitude_vector" && last != "bias") return AdapterRole::kMagnitude;
  return std::nullopt;
}

// Trainers that save only what they trained leave `base_model.model` away, of all names.
enum class PeftWrapper : std::uint8_t { kNamed, kLeftAway };

// The words of a name as PEFT writes it, without `base_model.model`. Wrappers of the model within
// PEFT's, or around it, leave theirs too.
std::vector<std::string_view> words_of_peft(std::string_view name, PeftWrapper wrapper) {
  std::vector<std::string_view> words = split_at(name, '.');
  std::erase_if(words, is_module_wrapper);
  if (words.size() > 1 && words[0] == "module" && words[1] == "base_model") {
    words.erase(words.begin());
  }
  const bool has_prefix = words.size() > 1 && words[0] == "base_model" && words[1] == "model";
  if (has_prefix) words.erase(words.begin(), words.begin() + 2);
  if (has_prefix == (wrapper == PeftWrapper::kNamed)) return words;
  return {};
}

bool is_as_peft_writes(std::string_view name) {
  return name.starts_with(kWrapperPrefix) && !has_module_wrapper(name);
}

std::optional<AdapterPart> adapter_part_of(std::string_view name, PeftWrapper wrapper) {
  std::vector<std::string_view> words = words_of_peft(name, wrapper);
  if (words.empty() || std::ranges::any_of(words, &std::string_view::empty)) return std::nullopt;
  const auto lora =
      std::ranges::find_if(words, [](std::string_view word) { return word.starts_with("lora_"); });
  if (lora != words.end()) {
    if (lora == words.begin()) return std::nullopt;
    const std::optional<AdapterRole> role = adapter_role_of({lora, words.end()});
    words.erase(lora, words.end());
    if (!role) return std::nullopt;
    return AdapterPart{*role, joined_words(words)};
  }
  // With the adapter's name behind it or without.
  const auto rows = std::ranges::find(words, "trainable_tokens_delta");
  if (rows != words.end()) {
    const bool is_last =
        rows + 1 == words.end() || (rows + 2 == words.end() && rows[1] == "default");
    if (!is_last || rows - words.begin() < 2 || rows[-1] != "token_adapter") return std::nullopt;
    words.erase(rows - 1, words.end());
    return AdapterPart{AdapterRole::kTokenRows, joined_words(words)};
  }
  const auto original = std::ranges::find(words, "original_module");
  if (words.size() < 2 || original != words.end()) return std::nullopt;
  bool is_under_rows = false;
  const auto saved = std::ranges::find(words, "modules_to_save");
  if (saved != words.end()) {
    // With the adapter's name behind it.
    if (words.end() - saved < 3 || *(saved + 1) != "default") return std::nullopt;
    words.erase(saved, saved + 2);
  } else if (words[words.size() - 2] == "base_layer") {
    words.erase(words.end() - 2);
    is_under_rows = words.size() > 2 && words[words.size() - 2] == "token_adapter";
    if (is_under_rows) words.erase(words.end() - 2);
  }
  if (words.size() < 2) return std::nullopt;
  return AdapterPart{AdapterRole::kSaved, joined_words(words), is_under_rows};
}

// As their ends are called in the models that PEFT saves them of without being asked.
bool is_embedding_or_head(std::string_view module) {
  return module.ends_with("embed_tokens") || module.ends_with("lm_head");
}

bool may_be_saved_by(const LoraConfig& config, std::string_view tensor) {
  const std::string_view module = tensor.substr(0, tensor.rfind('.'));
  return config.saves(module) || is_embedding_or_head(module) ||
         (config.saves_biases && tensor.ends_with(".bias"));
}

// The last one's wrapper is the outermost (ParamWrapper).
constexpr std::array kParameters = {kGateUpParameter, kDownParameter};
constexpr std::string_view kInner = ".base_layer";
constexpr std::string_view kWeight = "weight";
constexpr std::int64_t kMostExperts = 1 << 14;  // of a layer; models have some 500

std::string_view last_word(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// The parts of a module, by role.
using AdapterParts = std::map<AdapterRole, std::uint32_t>;

// Files borrow the folder that they are in.
struct AdapterFiles {
  explicit AdapterFiles(std::shared_ptr<const Directory> opened)
      : folder(std::move(opened)), files(*folder, {}, 1) {}

  std::shared_ptr<const Directory> folder;
  SourceFiles files;
};

class AdapterOpening {
 public:
  explicit AdapterOpening(std::string path) { adapter_.path = std::move(path); }

  Result<PeftAdapter> run() {
    auto folder = std::make_shared<WatchedDirectory>(SW_TRY(open_directory(adapter_.path)));
    adapter_.config = SW_TRY(read_peft_config(*folder));
    SW_TRY(read_tensors(std::move(folder)));
    SW_TRY(check_parameters());
    SW_TRY(sort_tensors());
    for (const auto& [name, found] : found_) {
      const std::optional<std::string> parameter = parameter_of(name);
      SW_TRY(parameter ? add_experts(*parameter, found) : add_module(name, found));
    }
    if (adapter_.modules.empty() && adapter_.saved.empty() && adapter_.rows.empty()) {
      return fail(Code::kNothingStored, "{}: it has no tensors of an adapter",
                  adapter_.weights_file);
    }
    if (!adapter_.modules.empty()) {
      SW_TRY(check_alpha(adapter_.config, adapter_.modules.front().name, adapter_.modules.size()));
    }
    return std::move(adapter_);
  }

 private:
  Status read_tensors(std::shared_ptr<const Directory> folder) {
    const auto opened = std::make_shared<AdapterFiles>(std::move(folder));
    Checkpoint checkpoint;
    checkpoint.files = std::shared_ptr<SourceFiles>(opened, &opened->files);
    Defects first;
    adapter_.weights_file = SW_TRY(read_peft_weights(*opened->folder, checkpoint, first));
    adapter_.files = std::move(checkpoint.files);
    adapter_.catalog = std::move(checkpoint.catalog);
    adapter_.notes = std::move(checkpoint.notes);
    return {};
  }

  [[nodiscard]] const TensorDesc& desc(std::uint32_t tensor) const {
    return adapter_.catalog.tensors[tensor].desc;
  }

  Status check_parameters() const {
    for (const std::string& name : adapter_.config.target_parameters) {
      if (std::ranges::find(kParameters, last_word(name)) != kParameters.end()) continue;
      if (last_word(name) == kWeight) continue;
      return fail(Code::kUnsupportedFormat,
                  "{}: found {} in target_parameters, expected gate_up_proj or down_proj of "
                  "experts, or the weight of a module; let PEFT merge this adapter "
                  "(merge_and_unload)",
                  kPeftConfigFile, printable(name));
    }
    return {};
  }

  [[nodiscard]] bool is_targeted(std::string_view module, std::string_view parameter) const {
    const std::string name = fmt::format(".{}.{}", module, parameter);
    const auto is_it = [&](const std::string& end) { return name.ends_with("." + end); };
    return std::ranges::any_of(adapter_.config.target_parameters, is_it);
  }

  // Those of a module that are targeted.
  [[nodiscard]] std::vector<std::string_view> parameters_of(std::string_view module) const {
    std::vector<std::string_view> parameters;
    if (last_word(module) != "experts") return parameters;
    for (const std::string_view parameter : kParameters) {
      if (is_targeted(module, parameter)) parameters.push_back(parameter);
    }
    return parameters;
  }

  // The parameter that a wrapper's tensors are of, by how deep it lies in the others; nullopt where
  // it is no wrapper of one.
  [[nodiscard]] std::optional<std::string> parameter_of(std::string_view module) const {
    std::size_t depth = 0;
    for (; module.ends_with(kInner); ++depth) module.remove_suffix(kInner.size());
    const std::vector<std::string_view> parameters = parameters_of(module);
    if (depth >= parameters.size()) return std::nullopt;
    return fmt::format("{}.{}", module, parameters[parameters.size() - 1 - depth]);
  }

  [[nodiscard]] PeftWrapper wrapper_of_names() const {
    const bool is_named =
        std::ranges::any_of(adapter_.catalog.tensors, [](const StoredTensor& tensor) {
          return !words_of_peft(tensor.desc.name, PeftWrapper::kNamed).empty();
        });
    return is_named ? PeftWrapper::kNamed : PeftWrapper::kLeftAway;
  }

  Status sort_tensors() {
    std::vector<std::string> unknown;
    const PeftWrapper wrapper = wrapper_of_names();
    for (std::uint32_t i = 0; i < adapter_.catalog.tensors.size(); ++i) {
      const std::string& name = desc(i).name;
      if (is_said_again(i)) continue;
      const std::optional<AdapterPart> part = adapter_part_of(name, wrapper);
      const bool is_inner = part && part->role != AdapterRole::kSaved &&
                            part->target.ends_with(kInner) && !parameter_of(part->target);
      if (!part || is_inner ||
          (part->role == AdapterRole::kSaved && !may_be_saved_by(adapter_.config, part->target))) {
        unknown.push_back(name);
        continue;
      }
      if (adapter_.other_name.empty() && !is_as_peft_writes(name)) adapter_.other_name = name;
      if (part->role == AdapterRole::kSaved) {
        adapter_.saved.push_back({part->target, i, part->is_under_rows});
        continue;
      }
      if (part->role == AdapterRole::kTokenRows) {
        SW_TRY(add_rows(part->target, i));
        continue;
      }
      const auto [at, is_new] = found_[part->target].emplace(part->role, i);
      if (is_new) continue;
      return fail(Code::kDuplicateName, "{}: tensors {} and {} say the same", adapter_.weights_file,
                  printable(desc(at->second).name), printable(name));
    }
    std::ranges::sort(adapter_.saved, {}, &SavedTensor::name);
    const auto twice = std::ranges::adjacent_find(adapter_.saved, {}, &SavedTensor::name);
    if (twice != adapter_.saved.end()) {
      return fail(Code::kDuplicateName, "{}: tensors {} and {} say the same", adapter_.weights_file,
                  printable(desc(twice->tensor).name), printable(desc((twice + 1)->tensor).name));
    }
    if (unknown.empty()) return {};
    return fail(Code::kUnmatchedSource,
                "{}: {} neither of LoRA nor of what {} lists in modules_to_save: {}",
                adapter_.weights_file, unknown.size() == 1 ? "a tensor is" : "tensors are",
                kPeftConfigFile, name_list(unknown));
  }

  // PEFT saves embeddings and heads of resized vocabularies besides by the names that they have in
  // its wrapper: the same once more, and what was there before training.
  [[nodiscard]] bool is_said_again(std::uint32_t tensor) const {
    const std::string& name = desc(tensor).name;
    for (const std::string_view word : {".modules_to_save.", ".original_module."}) {
      const std::size_t at = name.find(word);
      if (at == std::string::npos || name.find('.', at + word.size()) != std::string::npos)
        continue;
      const std::string module = name.substr(0, at);
      const std::string plain = module + name.substr(at + word.size() - 1);
      if (!is_embedding_or_head(module)) continue;
      const auto found =
          std::ranges::find_if(adapter_.catalog.tensors, [&](const StoredTensor& stored) {
            return stored.desc.name == plain && stored.desc.dtype == desc(tensor).dtype;
          });
      if (found == adapter_.catalog.tensors.end()) continue;
      if (word == ".original_module." || found->desc.shape == desc(tensor).shape) return true;
    }
    return false;
  }

  // PEFT lists the rows in the order of its config's tokens.
  Status add_rows(const std::string& module, std::uint32_t tensor) {
    const std::vector<std::int64_t>* const tokens = adapter_.config.tokens_of(module);
    if (tokens == nullptr) {
      return fail(Code::kUnmatchedSource,
                  "{}: tensor {}: {} lists no such module in trainable_token_indices",
                  adapter_.weights_file, printable(desc(tensor).name), kPeftConfigFile);
    }
    if (desc(tensor).shape.size() != 2 || desc(tensor).shape[0] != std::ssize(*tokens)) {
      return fail(Code::kShapeMismatch,
                  "{}: tensor {} {}: expected a row for each of {} tokens, as {} lists in "
                  "trainable_token_indices",
                  adapter_.weights_file, printable(desc(tensor).name),
                  to_string(desc(tensor).shape), tokens->size(), kPeftConfigFile);
    }
    adapter_.rows.push_back({module, tensor, *tokens});
    return {};
  }

  Status add_module(const std::string& name, const AdapterParts& found) {
    const auto find = [&](AdapterRole role) -> std::optional<std::uint32_t> {
      const auto at = found.find(role);
      return at == found.end() ? std::nullopt : std::optional(at->second);
    };
    const bool is_embedding =
        found.contains(AdapterRole::kEmbeddingIn) || found.contains(AdapterRole::kEmbeddingOut);
    const auto in = find(is_embedding ? AdapterRole::kEmbeddingIn : AdapterRole::kIn);
    const auto out = find(is_embedding ? AdapterRole::kEmbeddingOut : AdapterRole::kOut);
    const bool is_mixed =
        is_embedding && (found.contains(AdapterRole::kIn) || found.contains(AdapterRole::kOut) ||
                         found.contains(AdapterRole::kBias));
    if (!in || !out || is_mixed) {
      return fail(Code::kUnmatchedSource,
                  "{}: module {}: found {}, expected lora_A and lora_B, or both of an embedding",
                  adapter_.weights_file, printable(name), names_of(found));
    }
    LoraModule module{
        name, is_embedding, *in, *out, find(AdapterRole::kBias), find(AdapterRole::kMagnitude)};
    // A router is a module with a parameter, which PEFT adapts as it does a linear's weight.
    const bool is_parameter = is_targeted(name, kWeight);
    module.configured = is_parameter ? fmt::format("{}.{}", name, kWeight) : name;
    SW_TRY(check_ranks(module));
    if (module.magnitude.has_value() != adapter_.config.uses_dora) {
      return fail(Code::kUnmatchedSource, "{}: module {}: found {}, but {} says use_dora {}",
                  adapter_.weights_file, printable(name),
                  module.magnitude ? translated("a lora_magnitude_vector")
                                   : translated("no lora_magnitude_vector"),
                  kPeftConfigFile, adapter_.config.uses_dora);
    }
    adapter_.modules.push_back(std::move(module));
    return {};
  }

  // A holds the experts' rows one behind another, the columns of B are dealt out to them: those of
  // rank 0 of all experts, then those of rank 1. Source: ParamWrapper.get_delta_weight.
  Status add_experts(const std::string& parameter, const AdapterParts& found) {
    const auto in = found.find(AdapterRole::kIn);
    const auto out = found.find(AdapterRole::kOut);
    if (in == found.end() || out == found.end() || found.size() != 2) {
      return fail(Code::kUnmatchedSource, "{}: parameter {}: found {}, expected lora_A and lora_B",
                  adapter_.weights_file, printable(parameter), names_of(found));
    }
    const StoredTensor a = adapter_.catalog.tensors[in->second];
    const StoredTensor b = adapter_.catalog.tensors[out->second];
    const std::int64_t rank = adapter_.config.rank_of(parameter);
    const bool is_gated = last_word(parameter) == kGateUpParameter;
    const std::int64_t parts = is_gated ? 2 : 1;
    const bool fits = a.desc.shape.size() == 2 && b.desc.shape.size() == 2 &&
                      a.desc.shape[0] == b.desc.shape[1] && a.desc.shape[0] % rank == 0 &&
                      b.desc.shape[0] % parts == 0 && a.desc.shape[1] > 0 && b.desc.shape[0] > 0 &&
                      a.desc.shape[0] / rank <= kMostExperts;
    if (!fits) {
      return fail(Code::kShapeMismatch,
                  "{}: tensors {} {} and {} {} are not those of experts of rank {}, as {} says",
                  adapter_.weights_file, printable(a.desc.name), to_string(a.desc.shape),
                  printable(b.desc.name), to_string(b.desc.shape), rank, kPeftConfigFile);
    }
    const std::int64_t experts = a.desc.shape[0] / rank;
    const Dims of_a = steps_of(a);
    const Dims of_b = steps_of(b);
    const std::int64_t rows = b.desc.shape[0] / parts;
    LoraParameter whole{parameter, 0, 0, in->second, out->second};
    whole.in = append(a, parameter + ".lora_A.weight", {experts, rank, a.desc.shape[1]}, 0,
                      {rank * of_a[0], of_a[0], of_a[1]});
    whole.out = append(b, parameter + ".lora_B.weight", {experts, b.desc.shape[0], rank}, 0,
                       {of_b[1], of_b[0], experts * of_b[1]});
    adapter_.parameters.push_back(std::move(whole));
    const std::string module = parameter.substr(0, parameter.rfind('.'));
    for (std::int64_t expert = 0; expert < experts; ++expert) {
      for (std::int64_t part = 0; part < parts; ++part) {
        const std::string_view projection =
            !is_gated ? kDownParameter : (part == 0 ? "gate_proj" : "up_proj");
        LoraModule made{fmt::format("{}.{}.{}", module, expert, projection), false, 0, 0, {}, {}};
        made.configured = parameter;
        made.stored_in = a.desc.name;
        made.stored_out = b.desc.name;
        made.experts = experts;
        made.in = append(a, made.name + ".lora_A.weight", {rank, a.desc.shape[1]},
                         expert * rank * of_a[0], of_a);
        made.out = append(b, made.name + ".lora_B.weight", {rows, rank},
                          part * rows * of_b[0] + expert * of_b[1], {of_b[0], experts * of_b[1]});
        adapter_.modules.push_back(std::move(made));
      }
    }
    return {};
  }

  // In elements, from row to row and from column to column: torch files may store a matrix turned.
  [[nodiscard]] static Dims steps_of(const StoredTensor& matrix) {
    Dims strides = matrix.chunks[0].strides;
    return strides.empty() ? row_major_strides(matrix.desc.shape) : strides;
  }

  // A part of a stored matrix, from an element on.
  std::uint32_t append(const StoredTensor& whole, const std::string& name, const Dims& shape,
                       std::int64_t from, const Dims& strides) {
    const int bytes = bytes_of(whole.desc.dtype);
    const Dims steps = byte_strides(strides, bytes);
    const ByteRange all = whole.chunks.range(0);
    const ByteRange range{all.offset + static_cast<std::uint64_t>(from * bytes),
                          static_cast<std::uint64_t>(span_bytes(shape, steps, bytes))};
    StoredTensor part{{std::string(kWrapperPrefix) + name, whole.desc.dtype, shape},
                      ChunkList(shape.size()),
                      Encoding::kRaw};
    part.chunks.push_back({Box::whole(shape), whole.chunks.file(0), range, strides});
    adapter_.catalog.tensors.push_back(std::move(part));
    return static_cast<std::uint32_t>(adapter_.catalog.tensors.size() - 1);
  }

  [[nodiscard]] std::string names_of(const AdapterParts& found) const {
    std::vector<std::string> names;
    for (const auto& [role, tensor] : found) names.push_back(desc(tensor).name);
    return name_list(names);
  }

  [[nodiscard]] Status check_ranks(const LoraModule& module) const {
    const TensorDesc& in = desc(module.in);
    const TensorDesc& out = desc(module.out);
    if (in.shape.size() != 2 || out.shape.size() != 2) {
      return fail(Code::kUnsupportedFormat,
                  "{}: tensors {} {} and {} {} are of a convolution; only matrices are supported",
                  adapter_.weights_file, printable(in.name), to_string(in.shape),
                  printable(out.name), to_string(out.shape));
    }
    if (in.shape[0] != out.shape[1]) {
      return fail(Code::kShapeMismatch, "{}: tensors {} {} and {} {} do not have the same rank",
                  adapter_.weights_file, printable(in.name), to_string(in.shape),
                  printable(out.name), to_string(out.shape));
    }
    const std::int64_t rank = adapter_.config.rank_of(module.configured);
    if (in.shape[0] == rank) return {};
    return fail(Code::kShapeMismatch, "{}: tensor {} {}: found rank {}, expected {} as {} says",
                adapter_.weights_file, printable(in.name), to_string(in.shape), in.shape[0], rank,
                kPeftConfigFile);
  }

  PeftAdapter adapter_;
  std::map<std::string, AdapterParts, std::less<>> found_;
};

}  // namespace

Result<LoraConfig> read_peft_config(const Directory& folder) {
  const Result<std::string> text =
      read_whole(folder, std::string(kPeftConfigFile), kMostAdapterConfigBytes);
  if (!text && text.error().code == Code::kNotFound) {
    return fail(
        Code::kConfigMissing,
        "{} is missing; give the folder of an adapter, as PEFT's save_pretrained() writes it",
        kPeftConfigFile);
  }
  if (!text) return std::unexpected(text.error());
  return read_lora_config(*text);
}

std::string note_on_names(const PeftAdapter& adapter) {
  if (adapter.other_name.empty()) return {};
  return translated(
      "{}: names are taken as PEFT gives them: {} has what wrappers put there, or lacks what PEFT "
      "puts before it",
      adapter.weights_file, printable(adapter.other_name));
}

Result<PeftAdapter> open_peft_adapter(const std::string& path) {
  Result<PeftAdapter> adapter = AdapterOpening(path).run();
  if (adapter) return adapter;
  return std::unexpected(std::move(adapter).error().within(path));
}

}  // namespace shardwright
