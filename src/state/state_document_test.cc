// SPDX-License-Identifier: Apache-2.0
#include "state/state_document.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "codec/pickle_encode.h"
#include "codec/torch_layout.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

std::string pickle_of_an_empty_dict() {
  pickle::Document document;
  return pickle::encode(document, document.dict(), pickle::Protocol::kTwo).value();
}

// Whose storages have these numbers.
std::string state_with_storages(const std::vector<std::string>& numbers) {
  const auto file =
      make_memory_file("empty", encode_torch_object(pickle_of_an_empty_dict()).value());
  std::vector<TorchStorage> storages;
  for (const std::string& number : numbers) storages.push_back({number, "of the source"});
  constexpr std::uint64_t kMostBytes = 1 << 20;
  return TorchArchive::open(*file)
      .value()
      .with_pickle(pickle_of_an_empty_dict(), kMostBytes, storages)
      .value();
}

// torch.save counts from 0 on; other writers need not.
TEST(StateDocument, AddedTensorsTakeNoStorageThatIsThere) {
  constexpr int kTensors = 4;
  StateDocument state = StateDocument::read(state_with_storages({"2", "4"})).value();
  for (int i = 0; i < kTensors; ++i) {
    const pickle::Value tensor =
        state.add_tensor(DType::kU8, {2}, std::string(2, static_cast<char>('a' + i)));
    state.document().set(state.dict(), fmt::format("{}", i), tensor);
  }
  const auto file = make_memory_file("common.pt", state.encode().value());
  const TorchArchive archive = TorchArchive::open(*file).value();
  for (int i = 0; i < kTensors; ++i) {
    const LocatedTensor place = archive.locate(archive.root().find(fmt::format("{}", i))).value();
    std::array<char, 2> found{};
    ASSERT_EQ(place.range.length, found.size());
    ASSERT_TRUE(file->read_at(place.range.offset, std::as_writable_bytes(std::span(found))));
    EXPECT_EQ(found[0], 'a' + i);
  }
}

}  // namespace
}  // namespace shardwright
