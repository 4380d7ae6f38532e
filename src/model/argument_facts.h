// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/argument_check.h"

namespace shardwright {

/// The language model's tensors of a Megatron model, by layer and by what follows its number.
class LanguageTensors {
 public:
  using Layer = std::map<std::string_view, const TensorDesc*>;

  /// Borrows `canonical`.
  explicit LanguageTensors(std::span<const TensorDesc> canonical);

  [[nodiscard]] const std::map<std::int64_t, Layer>& layers() const { return layers_; }
  /// Layers of the decoder: one more than the highest number.
  [[nodiscard]] std::int64_t layer_count() const;
  /// Layers for multi-token prediction, likewise.
  [[nodiscard]] std::int64_t prediction_layers() const { return prediction_layers_; }
  /// A tensor outside layers (`embedding.word_embeddings.weight`), or nullptr.
  [[nodiscard]] const TensorDesc* outside(std::string_view name) const;
  /// The first layer's tensor whose name within the layer is one of these, or nullptr.
  [[nodiscard]] const TensorDesc* in_some_layer(
      std::initializer_list<std::string_view> names) const;

 private:
  std::map<std::int64_t, Layer> layers_;
  Layer outside_;
  std::int64_t prediction_layers_ = 0;
};

/// What arguments state, and what was found to contradict them.
class StatedArguments {
 public:
  explicit StatedArguments(const Arguments& args) : args_(args) {}

  /// The first of these that is a whole number that a size can be. One that can't is contradicted
  /// by any tensor.
  [[nodiscard]] std::optional<std::int64_t> number(std::initializer_list<std::string_view> names);
  [[nodiscard]] std::optional<bool> flag(std::string_view name) const;
  [[nodiscard]] const Arguments& all() const { return args_; }
  [[nodiscard]] std::optional<std::string> text(std::string_view name) const;
  [[nodiscard]] const ArgValue* find(std::string_view name) const { return find_set(args_, name); }
  /// The first of these that is there, even as None.
  [[nodiscard]] std::optional<std::string_view> named(
      std::initializer_list<std::string_view> names) const;

  /// Notes that the tensors can speak for or against an argument, if it is set. None may leave
  /// anything open.
  void hold(std::string_view argument);
  /// Notes what `shown` says where the argument says something else. Once for each argument.
  void contradict(std::string_view argument, std::string_view shown);
  void expect(std::string_view argument, std::optional<std::int64_t> stated, std::int64_t shown,
              const TensorDesc& tensor);

  [[nodiscard]] bool is_contradicted(std::string_view argument) const;
  [[nodiscard]] ArgumentCheck take();

 private:
  const Arguments& args_;
  std::set<std::string, std::less<>> held_;
  std::vector<Contradiction> found_;
};

/// `tensor NAME (64, 32)`.
[[nodiscard]] std::string shown_by(const TensorDesc& tensor);

/// Sizes of attention: heads, groups, channels and ranks of latent attention.
void check_attention(const LanguageTensors& model, StatedArguments& stated);

/// Mamba mixers, and which layers of a hybrid model are of which kind.
void check_hybrid(const LanguageTensors& model, StatedArguments& stated);

/// Widths of MLPs and experts, their number, and which layers have them.
void check_mlp(const LanguageTensors& model, StatedArguments& stated);

/// The letters of a hybrid model's main layers, without its pipeline's and prediction's marks;
/// nothing for a model that has none.
[[nodiscard]] std::optional<std::string> hybrid_pattern(const StatedArguments& stated);

/// Whether layers are told one by one elsewhere, so that arguments speak of none of them.
[[nodiscard]] bool is_heterogeneous(const StatedArguments& stated);

}  // namespace shardwright
