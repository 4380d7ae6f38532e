// SPDX-License-Identifier: Apache-2.0
#include "exec/plan_fingerprint.h"

#include <bit>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/digest.h"
#include "base/endian.h"

namespace shardwright {
namespace {

// Each value goes in with its length where it has one, so that no two lists look alike.
class Summary {
 public:
  void number(std::uint64_t value) {
    append_le(buffer_, value);
    if (buffer_.size() >= kBufferBytes) flush();
  }
  void signed_number(std::int64_t value) { number(static_cast<std::uint64_t>(value)); }
  void real(double value) { number(std::bit_cast<std::uint64_t>(value)); }
  void text(std::string_view text) {
    number(text.size());
    flush();
    digest_.add(text);
  }
  void dims(const Dims& dims) {
    number(static_cast<std::uint64_t>(dims.size()));
    for (const std::int64_t dim : dims) signed_number(dim);
  }
  void box(const Box& box) {
    dims(box.origin);
    dims(box.shape);
  }
  [[nodiscard]] std::string take() {
    flush();
    return digest_.text();
  }

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{64} << 10;

  void flush() {
    digest_.add(buffer_);
    buffer_.clear();
  }

  Digest digest_;
  std::string buffer_;  // numbers that are on their way: one by one they would cost more
};

void add_tensor(const StoredTensor& tensor, Summary& summary) {
  summary.text(tensor.desc.name);
  summary.number(static_cast<std::uint64_t>(tensor.desc.dtype));
  summary.dims(tensor.desc.shape);
  summary.number(static_cast<std::uint64_t>(tensor.encoding));
  summary.number(tensor.chunks.size());
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    const Chunk chunk = tensor.chunks[i];
    summary.box(chunk.box);
    summary.number(chunk.file);
    summary.number(chunk.range.offset);
    summary.number(chunk.range.length);
    summary.dims(chunk.strides);
  }
}

void add_catalog(const Catalog& catalog, Summary& summary) {
  summary.number(catalog.files.size());
  for (const std::string& file : catalog.files) summary.text(file);
  summary.number(catalog.tensors.size());
  for (const StoredTensor& tensor : catalog.tensors) add_tensor(tensor, summary);
  summary.number(catalog.objects.size());
  for (const StoredObject& object : catalog.objects) {
    summary.text(object.name);
    summary.number(object.file);
    summary.number(object.range.offset);
    summary.number(object.range.length);
  }
}

void add_recipe(const TensorRecipe& recipe, Summary& summary) {
  summary.number(recipe.views.size());
  for (const TensorView& view : recipe.views) {
    summary.box(view.box);
    summary.number(view.source);
    summary.dims(view.source_origin);
    summary.dims(view.axis);
    summary.dims(view.step);
  }
  summary.number(recipe.fill.has_value() ? 1 : 0);
  summary.real(recipe.fill.value_or(0.0));
  summary.real(recipe.add);
  summary.number(recipe.quantising == nullptr ? 0 : 1);
  if (recipe.quantising == nullptr) return;
  const Quantising& quantising = *recipe.quantising;
  summary.number(static_cast<std::uint64_t>(quantising.scheme));
  summary.number(static_cast<std::uint64_t>(quantising.part));
  summary.dims(quantising.shape);
  summary.signed_number(quantising.block_rows);
  summary.signed_number(quantising.block_columns);
  summary.number(quantising.has_exponents ? 1 : 0);
}

void add_adapted(const AdaptedSource& adapted, Summary& summary) {
  summary.number(adapted.values);
  summary.number(adapted.out);
  summary.signed_number(adapted.in ? std::int64_t{*adapted.in} : -1);
  summary.signed_number(adapted.out_axis);
  summary.signed_number(adapted.in_axis);
  summary.signed_number(adapted.each_axis.value_or(-1));
  summary.real(adapted.scale);
  summary.number(adapted.factors == nullptr ? 0 : adapted.factors->size());
  if (adapted.factors == nullptr) return;
  for (const float factor : *adapted.factors) summary.real(factor);
}

void add_packing(const WordPacking& words, Summary& summary) {
  summary.signed_number(words.axis);
  summary.number(words.is_interleaved ? 1 : 0);
}

}  // namespace

std::string fingerprint_of(const Plan& plan) {
  Summary summary;
  add_catalog(plan.source, summary);
  for (const QuantisedSource& quantised : plan.quantised) {
    summary.number(quantised.values);
    summary.number(quantised.scales);
    summary.dims(quantised.block);
    summary.dims(quantised.stride);
    summary.number(static_cast<std::uint64_t>(quantised.bits));
    add_packing(quantised.words, summary);
    summary.number(static_cast<std::uint64_t>(quantised.zero));
    for (const std::uint32_t companion : companions_of(quantised)) summary.number(companion);
    if (const auto& zeros = quantised.zeros) {
      summary.dims(zeros->block);
      summary.dims(zeros->stride);
      add_packing(zeros->words, summary);
      summary.number(zeros->added);
    }
    summary.number(quantised.second ? 1 + (quantised.second->divides ? 1 : 0) : 0);
    summary.number(quantised.groups ? 1 + static_cast<std::uint64_t>(quantised.groups->axis) : 0);
  }
  for (const AdaptedSource& adapted : plan.adapted) add_adapted(adapted, summary);
  for (const WeightedSource& weighted : plan.weighted) {
    summary.number(weighted.values);
    summary.real(weighted.weight);
    summary.number(weighted.term);
    summary.real(weighted.add);
    summary.number(weighted.is_low_half ? 1 : 0);
  }
  add_catalog(plan.target, summary);
  for (const std::uint64_t size : plan.file_sizes) summary.number(size);
  for (const TensorRecipe& recipe : plan.tensors) add_recipe(recipe, summary);
  for (const ObjectRecipe& object : plan.objects) {
    summary.number(object.is_copy ? 1 : 0);
    summary.number(object.source);
    summary.text(object.bytes == nullptr ? std::string_view() : std::string_view(*object.bytes));
  }
  for (const Literal& literal : plan.literals) {
    summary.number(literal.file);
    summary.number(literal.offset);
    summary.text(literal.bytes);
  }
  for (const TargetArchive& archive : plan.archives) {
    summary.number(archive.file);
    summary.text(archive.prefix);
    summary.number(archive.pickle.size());
    for (const auto& piece : archive.pickle) summary.text(*piece);
    summary.number(archive.storages->size());
    for (const ByteRange& storage : *archive.storages) {
      summary.number(storage.offset);
      summary.number(storage.length);
    }
  }
  return summary.take();
}

Result<SourceSummary> summary_of_source(const Plan& plan, SourceFiles& files,
                                        SourceIdentity identity) {
  Summary summary;
  std::string untold;
  for (std::uint32_t i = 0; i < plan.source.files.size(); ++i) {
    const FileVersion version = SW_TRY(files.version(i));
    summary.text(plan.source.files[i]);
    summary.number(version.size_bytes);
    summary.signed_number(version.modified_ns);
    if (identity == SourceIdentity::kFiles) summary.signed_number(version.changed_ns);
    if (!version.tells_contents && untold.empty()) untold = SW_TRY(files.get(i))->name();
  }
  return SourceSummary{summary.take(), std::move(untold)};
}

Result<std::string> source_fingerprint(const Plan& plan, SourceFiles& files,
                                       SourceIdentity identity) {
  return SW_TRY(summary_of_source(plan, files, identity)).fingerprint;
}

}  // namespace shardwright
