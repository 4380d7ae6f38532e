// SPDX-License-Identifier: Apache-2.0
#include "state/state_document.h"

#include <utility>

#include "base/fail.h"
#include "codec/pickle_encode.h"
#include "codec/torch_tensor.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostStateBytes = std::uint64_t{1} << 30;

// An entry `common_state` has the dict in a list of one.
pickle::Value dict_of(const pickle::Document& document) {
  const pickle::Value root = document.root();
  return root.is(pickle::Kind::kList) && root.size() == 1 ? root[0] : root;
}

}  // namespace

StateDocument::StateDocument(std::unique_ptr<ReadableFile> file, TorchArchive torch,
                             pickle::Document document)
    : file_(std::move(file)),
      torch_(std::move(torch)),
      document_(std::move(document)),
      dict_(dict_of(document_).id()) {}

Result<StateDocument> StateDocument::read(const std::string& common_state) {
  auto file = make_memory_file("common state", common_state);
  TorchArchive torch = SW_TRY(TorchArchive::open(*file));
  const std::string text = SW_TRY(torch.zip().read(*torch.record("data.pkl"), kMostStateBytes));
  pickle::Document document = SW_TRY(pickle::decode(as_bytes(text)));
  StateDocument state(std::move(file), std::move(torch), std::move(document));
  if (!state.dict().is(pickle::Kind::kDict)) {
    return fail(Code::kStateUnreadable, "common state: found {}, expected a dict",
                pickle::kind_name(state.dict().kind()));
  }
  return state;
}

pickle::Value StateDocument::add_tensor(DType dtype, const Dims& shape, std::string bytes) {
  while (torch_.record(fmt::format("data/{}", next_storage_)) != nullptr) ++next_storage_;
  added_.push_back({std::to_string(next_storage_++), std::move(bytes)});
  return make_torch_tensor(document_, dtype, shape, added_.back().key);
}

Result<std::string> StateDocument::encode() const {
  return torch_.with_pickle(SW_TRY(pickle::encode(document_, dict(), pickle::Protocol::kTwo)),
                            kMostStateBytes, added_);
}

pickle::Value make_content_metadata(pickle::Document& document, bool has_numbered_layers) {
  const pickle::Value content = document.dict();
  document.set(content, "distrib_optim_sharding_type", document.string("fully_reshardable"));
  document.set(content, "singleton_local_shards", document.boolean(false));
  document.set(content, "chained_optim_avoid_prefix", document.boolean(true));
  if (has_numbered_layers) {
    document.set(content, "non_homogeneous_layers", document.boolean(true));
  }
  return content;
}

}  // namespace shardwright
