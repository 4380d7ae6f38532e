// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/fail.h"
#include "canonical/mlite_naming.h"
#include "io/source_files.h"
#include "plan/canonical.h"
#include "shardwright/reader.h"
#include "verify/model_source.h"
#include "verify/option_words.h"
#include "verify/stored_source.h"
#include "verify/view.h"

namespace shardwright {
namespace {

bool tells_something(const FamilyChoice& choice) {
  return !choice.family.empty() || !choice.hf_config_dir.empty() || !choice.map_files.empty() ||
         !choice.models_dir.empty();
}

bool tells_something(const SourceOptions& source) {
  return tells_sizes(source) || source.replica || source.accept_loss;
}

// What would be given and then not be heeded.
Status check_options(const ReadOptions& options) {
  if (options.naming == Naming::kStored &&
      (tells_something(options.family) || tells_something(options.source))) {
    return fail(Code::kUsage,
                "what is said of the model or the source changes nothing of names=\"stored\"; say "
                "names=\"megatron\" or names=\"hf\", or leave it out");
  }
  if (options.naming != Naming::kHf && options.dtype) {
    return fail(Code::kUsage, "dtype= is for names=\"hf\"; other names have the stored type");
  }
  if (options.naming != Naming::kHf && options.mtp != MtpPolicy::kDefault) {
    return fail(Code::kUsage, "mtp= is for names=\"hf\"; other names have all layers");
  }
  return {};
}

// A config.json is as good as the folder that it lies in.
std::string folder_of_config(std::string path) {
  constexpr std::string_view kFile = "config.json";
  if (path == kFile) return ".";
  if (!path.ends_with(kFile) || path[path.size() - kFile.size() - 1] != '/') return path;
  path.resize(path.size() - kFile.size());
  return path;
}

Result<std::unique_ptr<TensorSource>> stored_source(std::string_view path,
                                                    const FormatChoice& choice) {
  Defects defects(Defects::Policy::kSetAside);
  Checkpoint checkpoint = SW_TRY(open_checkpoint(path, defects, choice));
  return source_by_stored_names(std::move(checkpoint), defects.aside());
}

Result<std::unique_ptr<TensorSource>> open_source(std::string_view path, ReadOptions options) {
  SW_TRY(check_options(options));
  options.family.hf_config_dir = folder_of_config(std::move(options.family.hf_config_dir));
  switch (options.naming) {
    case Naming::kStored:
      return stored_source(path, options.format);
    case Naming::kCanonical:
      return source_by_megatron_names(path, options);
    case Naming::kHf:
      return source_by_hf_names(path, options);
  }
  return fail(Code::kUsage, "{}: the tensors' names are asked for in no known way", path);
}

}  // namespace

Result<TensorReader> TensorReader::open(std::string_view path, Naming naming,
                                        const FormatChoice& choice) {
  ReadOptions options;
  options.naming = naming;
  options.format = choice;
  return open(path, options);
}

Result<TensorReader> TensorReader::open(std::string_view path, const ReadOptions& options) {
  Result<std::unique_ptr<TensorSource>> source = open_source(path, options);
  if (!source) return std::unexpected(in_words_of_options(std::move(source).error()));
  return TensorReader(*std::move(source));
}

TensorReader::TensorReader(std::unique_ptr<TensorSource> source) : source_(std::move(source)) {}
TensorReader::TensorReader(TensorReader&& other) noexcept = default;
TensorReader& TensorReader::operator=(TensorReader&& other) noexcept = default;
TensorReader::~TensorReader() = default;

const Location& TensorReader::location() const { return source_->checkpoint().location; }
std::span<const TensorDesc> TensorReader::tensors() const { return source_->tensors(); }
std::vector<std::size_t> TensorReader::order() const { return source_->order(); }
std::optional<std::size_t> TensorReader::find(std::string_view name) const {
  return source_->find(name);
}
const std::map<std::string, Error, std::less<>>& TensorReader::unreadable() const {
  return source_->unreadable();
}
const TensorDesc& TensorReader::desc(std::size_t tensor) const { return source_->desc(tensor); }
bool TensorReader::has_megatron_names() const {
  return shardwright::has_megatron_names(source_->stored());
}
Status TensorReader::read(std::size_t tensor, const Box& box, std::span<std::byte> bytes) {
  return source_->read_checked(tensor, box, bytes);
}
std::span<const std::string> TensorReader::objects() const { return source_->objects(); }
Result<std::string> TensorReader::read_object(std::size_t object) {
  return source_->read_object(object);
}
std::vector<std::string> TensorReader::documents() const { return source_->documents(); }
Result<std::string> TensorReader::read_document(std::string_view name) const {
  return source_->read_document(name);
}
Status TensorReader::check_unchanged() const {
  return source_->checkpoint().files->check_unchanged();
}
std::vector<std::string> TensorReader::take_notes() { return source_->take_notes(); }

}  // namespace shardwright
