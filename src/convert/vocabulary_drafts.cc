// SPDX-License-Identifier: Apache-2.0
#include "convert/vocabulary_drafts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "canonical/tied_head.h"
#include "compare/tensor_values.h"
#include "convert/more_sources.h"
#include "io/memory_directory.h"
#include "plan/canonical.h"
#include "tensor/convert.h"

namespace shardwright {
namespace {

class Extending {
 public:
  Extending(Drafting& drafting, std::int64_t rows)
      : drafting_(drafting), rows_(rows), wanted_(*drafting.request().extend_vocab) {}

  Status run(const IsTable& is_table, std::span<const std::string> others) {
    if (wanted_ <= rows_) {
      return fail(Code::kUsage,
                  "--extend-vocab {}: the vocabulary has {} rows already, expected fewer; rows are "
                  "added, never taken away",
                  wanted_, rows_);
    }
    // A tied model's files may have a head of their own, which no rule takes for a table.
    const std::vector<std::string> heads =
        output_layer_names(descs_of(std::span<const DraftTensor>(drafting_.parts.tensors)));
    const auto is_head = [&](const DraftTensor& tensor) {
      return std::ranges::find(heads, tensor.desc.name) != heads.end() &&
             !tensor.desc.shape.empty() && tensor.desc.shape[0] == rows_;
    };
    // Rows of its own behind those of the vocabulary would be taken for new tokens.
    const auto is_higher = [&](const DraftTensor& tensor) {
      const Dims& shape = tensor.desc.shape;
      return !shape.empty() && tensor.true_rows.value_or(shape[0]) != rows_ &&
             ends_as_any(tensor.desc.name, others);
    };
    std::vector<DraftTensor*> tables;
    for (DraftTensor& tensor : drafting_.parts.tensors) {
      if (is_optimizer_name(tensor.desc.name)) {
        return fail(Code::kOptimizerUnsupported,
                    "{}: its optimizer has no states of new rows; --optimizer drop leaves all out",
                    drafting_.request().input);
      }
      if (!is_higher(tensor) && (is_table(tensor) || is_head(tensor))) {
        tables.push_back(&tensor);
        continue;
      }
      const std::string& name = tensor.desc.name;
      if (!ends_as_any(name, others)) continue;
      return fail(Code::kShapeMismatch,
                  "--extend-vocab {}: tensor {} of shape {} has an entry for each token too, and "
                  "nobody can say what those of new tokens are; extend the model with the software "
                  "that trains it",
                  wanted_, printable(name), to_string(tensor.desc.shape));
    }
    if (tables.empty()) {
      return fail(Code::kUsage,
                  "--extend-vocab {}: no tensor with a row for each token is converted", wanted_);
    }
    for (DraftTensor* table : tables) SW_TRY(extend_table(*table));
    drafting_.tell(translated(
        "the vocabulary gets {} rows instead of {}: new rows of {} are the mean of the others; the "
        "tokenizer has to know their tokens",
        wanted_, rows_, name_list(names_)));
    return {};
  }

 private:
  Status extend_table(DraftTensor& table) {
    const std::string& name = table.desc.name;
    const Dims& shape = table.desc.shape;
    if (shape.size() > 2 || shape[0] < rows_ || !is_castable_float(table.desc.dtype) ||
        table.recipe.add != 0.0) {
      return fail(Code::kShapeMismatch,
                  "tensor {}: found {} of shape {}, expected a floating point row for each of {} "
                  "tokens",
                  printable(name), torch_name(table.desc.dtype), to_string(shape), rows_);
    }
    const std::uint32_t source = SW_TRY(mean_row(table));
    set_height(table);
    append_rows(source, table);
    names_.push_back(name);
    return {};
  }

  // Rows that mean something, and zeros.
  void set_height(DraftTensor& tensor) const {
    const std::int64_t height = std::max(tensor.desc.shape[0], wanted_);
    resize_rows(tensor, rows_);
    resize_rows(tensor, height);
    tensor.true_rows = wanted_;
  }

  void append_rows(std::uint32_t source, DraftTensor& tensor) const {
    const bool is_matrix = tensor.desc.shape.size() == 2;
    TensorView view{{{rows_}, {1}}, source, {0}, {-1}, {1}};
    if (is_matrix) {
      view.box.origin.push_back(0);
      view.box.shape.push_back(tensor.desc.shape[1]);
      view.axis.push_back(0);
      view.step.push_back(1);
    }
    for (; view.box.origin[0] < wanted_; ++view.box.origin[0]) tensor.recipe.views.push_back(view);
  }

  // A source tensor with the mean of the rows, in the type that the table is written in.
  Result<std::uint32_t> mean_row(const DraftTensor& table) {
    const std::vector<double> mean = SW_TRY(mean_of(table));
    const DType dtype = table.desc.dtype;
    const std::int64_t width = std::ssize(mean);
    std::string bytes(static_cast<std::size_t>(width * bytes_of(dtype)), '\0');
    SW_TRY(convert_run({DType::kF64, dtype, 0.0}, width,
                       reinterpret_cast<const std::byte*>(mean.data()), sizeof(double),
                       reinterpret_cast<std::byte*>(bytes.data()), bytes_of(dtype)));
    const std::string name = "mean of " + table.desc.name;
    return add_made_source(drafting_, {name, dtype, {width}},
                           make_memory_file(name, std::move(bytes)));
  }

  Result<std::vector<double>> mean_of(const DraftTensor& table) {
    DraftTensor rows = table;
    resize_rows(rows, rows_);
    rows.desc.dtype = DType::kF64;
    Plan plan;
    plan.target.tensors.push_back({rows.desc, ChunkList(rows.desc.shape.size())});
    plan.tensors.push_back(std::move(rows.recipe));
    plan.quantised = drafting_.result.plan.quantised;
    plan.source = std::move(drafting_.catalog);
    Result<std::vector<double>> mean = mean_of_rows(plan);
    drafting_.catalog = std::move(plan.source);
    if (mean) return mean;
    return std::unexpected(
        std::move(mean).error().within(translated("tensor {}", table.desc.name)));
  }

  Result<std::vector<double>> mean_of_rows(const Plan& plan) const {
    for (const TensorView& view : plan.tensors[0].views) {
      SW_TRY(check_coverage(plan.source.tensors[view.source]));
    }
    const Dims& shape = plan.target.tensors[0].desc.shape;
    const auto width = static_cast<std::size_t>(shape.size() == 2 ? shape[1] : 1);
    std::vector<double> sums(width, 0.0);
    TensorValues values(plan, *drafting_.source().files);
    const TileGrid grid = values.grid(0);
    std::size_t column = 0;  // tiles follow each other, row by row
    for (std::int64_t ordinal = 0; ordinal < grid.count(); ++ordinal) {
      const std::span<const std::byte> bytes = SW_TRY(values.read(0, grid.tile(ordinal)));
      for (std::size_t at = 0; at < bytes.size(); at += sizeof(double)) {
        double value = 0.0;
        std::memcpy(&value, bytes.data() + at, sizeof value);
        sums[column] += value;
        column = column + 1 == width ? 0 : column + 1;
      }
    }
    for (double& sum : sums) sum /= static_cast<double>(rows_);
    return sums;
  }

  Drafting& drafting_;
  std::int64_t rows_;
  std::int64_t wanted_;
  std::vector<std::string> names_;
};

}  // namespace

std::set<std::string> hf_tables(const Correspondence& correspondence) {
  std::set<std::string> names;
  for (const Block& block : correspondence.blocks) {
    if (!correspondence.megatron[block.megatron].vocabulary) continue;
    names.insert(correspondence.hf[block.hf].desc.name);
  }
  for (const HfCopy& copy : correspondence.copies) {
    if (names.contains(copy.original)) names.insert(copy.desc.name);
  }
  return names;
}

Result<std::int64_t> vocabulary_of(const ModelFacts& facts) {
  const auto rows = facts.sizes.find("vocab");
  if (rows != facts.sizes.end()) return rows->second;
  return fail(Code::kUsage, "--extend-vocab: models of the family {} have no vocabulary",
              facts.mapping->family);
}

Status extend_vocabulary(Drafting& drafting, std::int64_t rows, const IsTable& is_table,
                         std::span<const std::string> others) {
  if (!drafting.request().extend_vocab) return {};
  return Extending(drafting, rows).run(is_table, others);
}

}  // namespace shardwright
