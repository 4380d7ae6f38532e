// SPDX-License-Identifier: Apache-2.0
#include "codec/torch_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/endian.h"
#include "codec/pickle_encode.h"
#include "codec/torch_file.h"
#include "codec/torch_golden.h"
#include "io/memory_directory.h"
#include "testing/golden_files.h"

namespace shardwright {
namespace {

using ::testing::HasSubstr;

std::string golden_stream(const std::string& name) { return read_golden("torch_save/" + name); }

TEST(TorchStream, ReadsWhatOldAndNewTorchWrote) {
  int tensors = 0;
  for (const char* path :
       {"1.6.0/20_legacy_state_dict", "1.6.0/22_legacy_views", "1.10.2/20_legacy_state_dict",
        "1.10.2/22_legacy_views", "2.13.0/20_legacy_state_dict", "2.13.0/21_legacy_dtypes",
        "2.13.0/22_legacy_views"}) {
    const std::string bytes = golden_stream(std::string(path) + ".pt");
    const auto file = make_memory_file(path, bytes);
    const auto stream = TorchFile::open(*file);
    ASSERT_TRUE(stream) << stream.error().message;
    const auto expected = nlohmann::json::parse(golden_stream(std::string(path) + ".json"));
    tensors += compare(
        bytes, [&](pickle::Value v) { return stream->locate(v); }, stream->root(), expected, path);
  }
  EXPECT_GT(tensors, 40);
}

TEST(TorchFile, ReadsBothForms) {
  for (const char* name : {"2.13.0/20_legacy_state_dict.pt", "2.13.0/01_state_dict.pt"}) {
    const auto file = make_memory_file(name, golden_stream(name));
    const TorchFile torch = TorchFile::open(*file).value();
    const std::string pickle = torch.pickle(1 << 20).value();
    EXPECT_EQ(pickle.substr(0, 2), "\x80\x02");
    EXPECT_EQ(pickle.back(), '.');
    EXPECT_EQ(torch.locate(torch.root().find("w")).value().dtype, DType::kF32);
  }
}

// Every cut and every flipped byte gives an error or the same tensors.
TEST(TorchStream, CutOrFlippedFilesNeverReadDifferently) {
  const std::string bytes = golden_stream("2.13.0/20_legacy_state_dict.pt");
  const auto whole = make_memory_file("a", bytes);
  const TorchStream original = TorchStream::open(*whole).value();
  const LocatedTensor expected = original.locate(original.document().root().find("w")).value();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(TorchStream::open(*make_memory_file("a", bytes.substr(0, length)))) << length;
  }
  int survived = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    const auto file = make_memory_file("a", flipped);
    const auto stream = TorchStream::open(*file);
    if (!stream) continue;
    const auto place = stream->locate(stream->document().root().find("w"));
    if (!place || place->range.offset != expected.range.offset) continue;
    EXPECT_LE(place->range.offset + place->range.length, bytes.size());
    ++survived;
  }
  EXPECT_GT(survived, 0) << "payload bytes are nobody's business here";
}

// magic, protocol, machine, object, keys, and what follows them
std::string stream_of(std::int64_t protocol, bool little_endian, pickle::Document& object,
                      const std::vector<std::string>& keys, const std::string& data) {
  const auto encoded = [](pickle::Document& document, pickle::Value root) {
    document.set_root(root);
    return pickle::encode(document, pickle::Protocol::kTwo).value();
  };
  pickle::Document rest;
  const pickle::Value machine = rest.dict();
  rest.set(machine, "little_endian", rest.boolean(little_endian));
  std::vector<pickle::Value> names;
  for (const std::string& key : keys) names.push_back(rest.string(key));
  std::string bytes =
      golden_stream("2.13.0/20_legacy_state_dict.pt").substr(0, 15);  // the magic number
  bytes += encoded(rest, rest.integer(protocol)) + encoded(rest, machine);
  bytes += encoded(object, object.root());
  return bytes + encoded(rest, rest.list(names)) + data;
}

Error refusal(const std::string& bytes) {
  const auto stream = TorchStream::open(*make_memory_file("old.pt", bytes));
  EXPECT_FALSE(stream);
  return stream ? Error{} : stream.error();
}

TEST(TorchStream, RefusesWhatDoesNotAgree) {
  pickle::Document object;
  object.set_root(make_torch_tensor(object, DType::kF32, {2}, "0"));
  const std::string data = std::string("\2\0\0\0\0\0\0\0", 8) + std::string(8, 'x');
  ASSERT_TRUE(
      TorchStream::open(*make_memory_file("a", stream_of(1001, true, object, {"0"}, data))));
  EXPECT_THAT(refusal(stream_of(1002, true, object, {"0"}, data)).message, HasSubstr("protocol"));
  EXPECT_THAT(refusal(stream_of(1001, false, object, {"0"}, data)).message,
              HasSubstr("big-endian"));
  EXPECT_THAT(refusal(stream_of(1001, true, object, {"1"}, data)).message,
              HasSubstr("a storage that no tensor has"));
  EXPECT_THAT(refusal(stream_of(1001, true, object, {"0", "0"}, data + data)).message,
              HasSubstr("storage 0 of 2 elements"));
  EXPECT_THAT(refusal(stream_of(1001, true, object, {"0"}, data.substr(0, 15))).message,
              HasSubstr("to end behind the file"));
  std::string other = data;
  other[0] = '\3';
  EXPECT_THAT(refusal(stream_of(1001, true, object, {"0"}, other)).message,
              HasSubstr("storage 0 of 3 elements"));
}

}  // namespace
}  // namespace shardwright
