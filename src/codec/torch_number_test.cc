// SPDX-License-Identifier: Apache-2.0
#include "codec/torch_number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/crc32.h"
#include "base/endian.h"
#include "codec/pickle_encode.h"
#include "codec/zip_layout.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

using pickle::Value;

// What is stored as the only record but the pickle, and how the pickle spells it.
struct StoredNumber {
  std::string storage_class = "FloatStorage";
  std::string bytes;
  std::int64_t elements = 1;
  std::vector<std::int64_t> shape = {};
  std::int64_t offset = 0;
  bool is_damaged = false;
};

std::string bytes_of_float(float value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

StoredNumber stored(float value) { return {.bytes = bytes_of_float(value)}; }

std::string archive_with(const StoredNumber& number) {
  pickle::Document document;
  const auto tuple_of = [&](const std::vector<std::int64_t>& numbers) {
    std::vector<Value> values;
    for (const std::int64_t one : numbers) values.push_back(document.integer(one));
    return document.tuple(values);
  };
  const Value storage = document.persistent_id(document.tuple(
      {document.string("storage"), document.global("torch", number.storage_class),
       document.string("0"), document.string("cpu"), document.integer(number.elements)}));
  const std::vector<std::int64_t> strides(number.shape.size(), 1);
  document.set_root(document.reduce(
      document.global("torch._utils", "_rebuild_tensor_v2"),
      document.tuple({storage, document.integer(number.offset), tuple_of(number.shape),
                      tuple_of(strides), document.boolean(false), document.ordered_dict()})));
  const std::pair<std::string, std::string> records[] = {
      {"a/data.pkl", pickle::encode(document, pickle::Protocol::kTwo).value()},
      {"a/data/0", number.bytes}};
  std::vector<zip::Record> plan;
  for (const auto& [name, contents] : records) plan.push_back({name, contents.size()});
  const zip::Layout layout = zip::Layout::make(plan).value();
  std::string out;
  std::vector<std::uint32_t> crcs;
  for (std::size_t i = 0; i < std::size(records); ++i) {
    const std::string& contents = records[i].second;
    crcs.push_back(crc32(as_bytes(contents)) ^ (number.is_damaged && i == 1 ? 1U : 0U));
    layout.append_header(i, out);
    out += contents;
    layout.append_descriptor(i, crcs.back(), out);
  }
  layout.append_directory(crcs, out);
  return out;
}

Result<std::optional<std::int64_t>> count_in(const StoredNumber& number) {
  const auto file = make_memory_file("state.pt", archive_with(number));
  const TorchFile torch = TorchFile::open(*file).value();
  return read_torch_count(*file, torch, torch.root());
}

using Count = std::optional<std::int64_t>;

TEST(TorchNumber, IsTheOnlyElementOfATensor) {
  EXPECT_EQ(count_in(stored(0)).value(), Count(0));
  EXPECT_EQ(count_in(stored(12000)).value(), Count(12000));
  StoredNumber second{.bytes = bytes_of_float(7) + bytes_of_float(9), .elements = 2, .offset = 1};
  EXPECT_EQ(count_in(second).value(), Count(9));
  second.shape = {1, 1};
  EXPECT_EQ(count_in(second).value(), Count(9));
}

TEST(TorchNumber, IsNothingWhereItCountsNothing) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {-1.0F, -kInfinity, kInfinity, std::nanf(""), 2e15F}) {
    EXPECT_EQ(count_in(stored(value)).value(), std::nullopt) << value;
  }
  const std::string two = bytes_of_float(7) + bytes_of_float(9);
  EXPECT_EQ(count_in({.bytes = two, .elements = 2, .shape = {2}}).value(), std::nullopt);
  EXPECT_EQ(count_in({.bytes = two, .elements = 2, .shape = {0}}).value(), std::nullopt);
  EXPECT_EQ(count_in({.storage_class = "DoubleStorage", .bytes = two}).value(), std::nullopt);
}

TEST(TorchNumber, ThatWasAlteredIsAnError) {
  StoredNumber number = stored(3);
  number.is_damaged = true;
  EXPECT_EQ(count_in(number).error().code, Code::kPayloadDamaged);
}

// Nobody keeps a step in so much; what claims to is not read into memory.
TEST(TorchNumber, InAnEndlessStorageIsAnError) {
  constexpr std::int64_t kElements = (std::int64_t{1} << 18) + 1;
  const StoredNumber number{.bytes = std::string(4 * kElements, '\0'), .elements = kElements};
  EXPECT_EQ(count_in(number).error().code, Code::kLimit);
}

TEST(TorchNumber, OfPythonNeedsNoTensor) {
  const auto file = make_memory_file("state.pt", archive_with(stored(3)));
  const TorchFile torch = TorchFile::open(*file).value();
  pickle::Document document;
  EXPECT_EQ(read_torch_count(*file, torch, document.integer(5)).value(), Count(5));
  EXPECT_EQ(read_torch_count(*file, torch, document.real(6.0)).value(), Count(6));
  EXPECT_EQ(read_torch_count(*file, torch, document.real(6.5)).value(), std::nullopt);
  EXPECT_EQ(read_torch_count(*file, torch, document.integer(-5)).value(), std::nullopt);
  EXPECT_EQ(read_torch_count(*file, torch, document.string("5")).value(), std::nullopt);
  EXPECT_EQ(read_torch_count(*file, torch, document.none()).value(), std::nullopt);
}

}  // namespace
}  // namespace shardwright
