// SPDX-License-Identifier: Apache-2.0
#include "codec/torch_archive.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/crc32.h"
#include "base/endian.h"
#include "codec/pickle_encode.h"
#include "codec/torch_golden.h"
#include "codec/torch_item_reader.h"
#include "codec/zip_layout.h"
#include "io/memory_directory.h"
#include "io/recording_directory.h"
#include "testing/golden_files.h"

namespace shardwright {
namespace {

using nlohmann::json;
using pickle::Value;
using ::testing::HasSubstr;

std::string golden_archive(const std::string& name) { return read_golden("torch_save/" + name); }

TEST(TorchArchive, ReadsWhatFiveVersionsOfTorchWrote) {
  int tensors = 0;
  for (const char* version : {"1.6.0", "1.10.2", "2.0.1", "2.6.0", "2.13.0"}) {
    for (const char* name : {"01_state_dict", "02_dtypes", "03_views_shared", "04_parameter",
                             "09_many_storages", "10_tied_and_repeated", "14_bare_tensor"}) {
      const std::string path = std::string(version) + "/" + name;
      const std::string bytes = golden_archive(path + ".pt");
      const auto file = make_memory_file(path, bytes);
      const auto archive = TorchArchive::open(*file);
      ASSERT_TRUE(archive) << archive.error().message;
      const int found = compare(
          bytes, [&](pickle::Value v) { return archive->locate(v); }, archive->root(),
          json::parse(golden_archive(path + ".json")), path);
      EXPECT_GT(found, 0) << path;
      tensors += found;
    }
  }
  EXPECT_GT(tensors, 250);
}

TEST(TorchArchive, GivesTheCrcOfEachStorage) {
  const std::string bytes = golden_archive("2.13.0/14_bare_tensor.pt");
  const auto file = make_memory_file("a", bytes);
  const TorchArchive archive = TorchArchive::open(*file).value();
  const LocatedTensor tensor = archive.locate(archive.root()).value();
  EXPECT_EQ(
      crc32(as_bytes(std::string_view(bytes).substr(tensor.storage.offset, tensor.storage.length))),
      tensor.storage_crc);
  const std::string without = golden_archive("2.13.0/40_no_crc32.pt");
  const auto other = make_memory_file("b", without);
  const TorchArchive no_crc = TorchArchive::open(*other).value();
  EXPECT_EQ(no_crc.locate(no_crc.root().find("w")).value().storage_crc, 0u);
}

// Each local header of a server's file would be a request.
TEST(TorchArchive, DeducesWhereAServersFileHasItsStorages) {
  int deduced = 0;
  for (const char* version : {"1.6.0", "1.10.2", "2.0.1", "2.6.0", "2.13.0"}) {
    for (const char* name : {"01_state_dict", "02_dtypes", "03_views_shared", "04_parameter",
                             "09_many_storages", "10_tied_and_repeated", "14_bare_tensor"}) {
      const std::string path = std::string(version) + "/" + name;
      const std::string bytes = golden_archive(path + ".pt");
      MemoryDirectory folder;
      folder.put("f", bytes);
      RecordingDirectory recorded(folder, true);
      const auto file = recorded.open("f").value();
      const TorchArchive archive = TorchArchive::open(*file).value();
      const std::size_t before = recorded.records().at("f").reads.size();
      deduced += compare(
          bytes, [&](pickle::Value v) { return archive.locate(v); }, archive.root(),
          json::parse(golden_archive(path + ".json")), path);
      EXPECT_EQ(recorded.records().at("f").reads.size(), before) << path;
    }
  }
  EXPECT_GT(deduced, 250);
}

TEST(TorchArchive, LooksAtTheHeaderOfAStorageWithoutACrcOrInAnotherPlace) {
  const auto reads_to_locate = [](const std::string& bytes, const char* key, bool is_right) {
    MemoryDirectory folder;
    folder.put("f", bytes);
    RecordingDirectory recorded(folder, true);
    const auto file = recorded.open("f").value();
    const TorchArchive archive = TorchArchive::open(*file).value();
    const std::size_t before = recorded.records().at("f").reads.size();
    const auto place = archive.locate(archive.root().find(key));
    EXPECT_EQ(place.has_value(), is_right);
    return recorded.records().at("f").reads.size() - before;
  };
  EXPECT_EQ(reads_to_locate(golden_archive("2.13.0/40_no_crc32.pt"), "w", true), 1u);
  // Records that are not aligned: what follows tells that the storage ends elsewhere.
  const auto archive_of = [](std::uint32_t alignment, std::uint32_t of_pickle) {
    const std::string original = golden_archive("2.13.0/01_state_dict.pt");
    const auto file = make_memory_file("f", original);
    const TorchArchive archive = TorchArchive::open(*file).value();
    std::vector<zip::Record> records;
    for (const zip::Entry& entry : archive.zip().entries()) {
      const bool is_pickle = &entry == archive.record("data.pkl");
      records.push_back({entry.name, entry.bytes, is_pickle ? of_pickle : alignment});
    }
    const zip::Layout layout = zip::Layout::make(std::move(records)).value();
    std::string out;
    std::vector<std::uint32_t> crcs;
    for (std::size_t i = 0; i < layout.records().size(); ++i) {
      const std::string contents = archive.zip().read(archive.zip().entries()[i], 1 << 20).value();
      crcs.push_back(crc32(as_bytes(contents)));
      layout.append_header(i, out);
      out += contents;
      layout.append_descriptor(i, crcs.back(), out);
    }
    layout.append_directory(crcs, out);
    return out;
  };
  const auto reads_of_all = [](const std::string& bytes) {
    MemoryDirectory folder;
    folder.put("f", bytes);
    RecordingDirectory recorded(folder, true);
    const auto file = recorded.open("f").value();
    const TorchArchive archive = TorchArchive::open(*file).value();
    const std::size_t before = recorded.records().at("f").reads.size();
    compare(
        bytes, [&](pickle::Value v) { return archive.locate(v); }, archive.root(),
        json::parse(golden_archive("2.13.0/01_state_dict.json")), "f");
    return recorded.records().at("f").reads.size() - before;
  };
  EXPECT_EQ(reads_of_all(archive_of(64, 64)), 0u);
  EXPECT_GT(reads_of_all(archive_of(1, 64)), 0u);
  EXPECT_GT(reads_of_all(archive_of(64, 1)), 0u) << "nobody knows who wrote it";
}

Error open_error(const std::string& bytes) {
  const auto file = make_memory_file("file.pt", bytes);
  const auto archive = TorchArchive::open(*file);
  EXPECT_FALSE(archive.has_value());
  return archive ? Error{} : archive.error();
}

TEST(TorchArchive, NamesWhatIsNoTorchArchive) {
  using Case = std::pair<std::string, const char*>;
  for (const auto& [bytes, what] :
       {Case{golden_archive("2.13.0/20_legacy_state_dict.pt"), "the format of before torch 1.6"},
        Case{golden_archive("2.13.0/25_legacy_proto4.pt"), "the format of before torch 1.6"},
        Case{std::string(257, '\x01') + "ustar", "a tar archive"}, Case{"\x1f\x8b rest", "gzip"},
        Case{"PYTORCH1\x01...", "preview"},
        Case{std::string(8, '\x01') + "{\"a\":1}",
             "safetensors file, expected a torch.save archive; give it"},
        Case{"\x80\x04K\x01.", "a bare pickle"}}) {
    const Error error = open_error(bytes);
    EXPECT_EQ(error.code, Code::kUnsupportedFormat) << what;
    EXPECT_THAT(error.message, HasSubstr(what));
    EXPECT_THAT(error.message, HasSubstr("file.pt@0: found "));
  }
  const Error damaged = open_error("\x01\x02");
  EXPECT_EQ(damaged.code, Code::kTorchArchive);
  EXPECT_THAT(damaged.message, HasSubstr("file.pt@0: found unknown bytes"));
  EXPECT_EQ(open_error("").code, Code::kTorchArchive);
  const Error script = open_error(golden_archive("2.13.0/30_torchscript.pt"));
  EXPECT_EQ(script.code, Code::kUnsupportedFormat);
  EXPECT_THAT(script.message, HasSubstr("TorchScript"));
}

std::string archive_of(std::vector<std::pair<std::string, std::string>> records) {
  std::vector<zip::Record> plan;
  for (const auto& [name, contents] : records) plan.push_back({name, contents.size()});
  const zip::Layout layout = zip::Layout::make(plan).value();
  std::string out;
  std::vector<std::uint32_t> crcs;
  for (std::size_t i = 0; i < records.size(); ++i) {
    crcs.push_back(crc32(as_bytes(records[i].second)));
    layout.append_header(i, out);
    out += records[i].second;
    layout.append_descriptor(i, crcs.back(), out);
  }
  layout.append_directory(crcs, out);
  return out;
}

TEST(TorchArchive, RefusesAnArchiveOfOtherThings) {
  EXPECT_THAT(open_error(archive_of({{"data.pkl", "N."}})).message,
              HasSubstr("no record lies in a folder"));
  EXPECT_THAT(open_error(archive_of({{"a/x", "N."}})).message,
              HasSubstr("it has no record a/data.pkl"));
  EXPECT_THAT(open_error(archive_of({{"a/data.pkl", "N."}, {"b/x", ""}})).message,
              HasSubstr("found a record 'b/x', expected all in the folder a"));
  const Error big = open_error(archive_of({{"a/data.pkl", "N."}, {"a/byteorder", "big"}}));
  EXPECT_EQ(big.code, Code::kUnsupportedFormat);
  EXPECT_THAT(big.message, HasSubstr("big-endian"));
  const Error broken = open_error(archive_of({{"a/data.pkl", "N"}}));
  EXPECT_EQ(broken.code, Code::kPickleCorrupt);
  EXPECT_THAT(broken.message, HasSubstr("file.pt record 'a/data.pkl'"));
}

Error first_tensor_error(const std::string& name) {
  const std::string bytes = golden_archive(name);
  const auto file = make_memory_file("file.pt", bytes);
  const auto archive = TorchArchive::open(*file);
  if (!archive) {
    ADD_FAILURE() << archive.error().message;
    return {};
  }
  Value value = archive->root();
  while (!is_tensor(value) && value.size() > 0)
    value = value.is(pickle::Kind::kDict) ? value.value(0) : value[0];
  const auto tensor = archive->locate(value);
  EXPECT_FALSE(tensor.has_value()) << name;
  return tensor ? Error{} : tensor.error();
}

TEST(FlipSigns, OfImaginaryPartsOrOfAll) {
  const auto flipped = [](DType dtype, const SignFlips& flips, std::size_t bytes) {
    std::string text(bytes, 'a');
    flip_signs(dtype, flips, std::as_writable_bytes(std::span(text)));
    std::string signs;
    for (const char byte : text) signs += byte == 'a' ? '.' : '-';
    return signs;
  };
  EXPECT_EQ(flipped(DType::kC64, {true, false}, 16), ".......-.......-");
  EXPECT_EQ(flipped(DType::kC64, {false, true}, 8), "...-...-");
  EXPECT_EQ(flipped(DType::kC64, {true, true}, 8), "...-....");
  EXPECT_EQ(flipped(DType::kC32, {true, false}, 8), "...-...-");
  EXPECT_EQ(flipped(DType::kF64, {false, true}, 16), ".......-.......-");
  EXPECT_EQ(flipped(DType::kBF16, {false, true}, 4), ".-.-");
}

// A view's flags in its pickle: what torch says of real views, and what it cannot mean.
TEST(ReadTorchView, TakesFlagsOfNumbersThatHaveSigns) {
  pickle::Document document;
  const auto view = [&](DType dtype, std::string_view key, Value flag) {
    const Value plain = make_torch_tensor(document, dtype, {3}, "0");
    std::vector<Value> arguments;
    for (std::size_t i = 0; i < plain.args().size(); ++i) arguments.push_back(plain.args()[i]);
    const Value flags = document.dict();
    document.set(flags, key, flag);
    arguments.push_back(flags);
    return read_torch_view(document.reduce(plain.callable(), document.tuple(arguments)));
  };
  const Value yes = document.boolean(true);
  EXPECT_EQ(view(DType::kC64, "conj", yes).value().flips, (SignFlips{true, false}));
  EXPECT_EQ(view(DType::kF32, "neg", yes).value().flips, (SignFlips{false, true}));
  EXPECT_EQ(view(DType::kF32, "neg", document.boolean(false)).value().flips, SignFlips());
  EXPECT_FALSE(view(DType::kF32, "conj", yes));
  EXPECT_FALSE(view(DType::kI64, "neg", yes));
  EXPECT_FALSE(view(DType::kC64, "other", yes));
  EXPECT_FALSE(view(DType::kC64, "conj", document.none()));
}

TEST(TorchArchive, RefusesTensorsThatAreNotPlainElements) {
  for (const auto& [name, fragment] : std::initializer_list<std::pair<const char*, const char*>>{
           {"2.13.0/11_sparse.pt", "_rebuild_sparse_tensor"},
           {"2.13.0/12_quantized.pt", "_rebuild_qtensor"},
           {"2.13.0/13_conj_neg.pt", "a conjugate or negative view"},
           {"2.13.0/42_meta_tensor.pt", "_rebuild_meta_tensor_no_storage"},
           {"malicious/21_storage_key_path.pt", "an odd storage key"},
           {"malicious/23_size_oob.pt", "expected a view within its storage"},
           {"malicious/23b_stride_zero_huge.pt", "expanded from"},
           {"malicious/23d_overflow.pt", "more elements than int64"},
           {"malicious/23e_ndim_stride_mismatch.pt", "a broken offset, shape or stride"}}) {
    const Error error = first_tensor_error(name);
    EXPECT_EQ(error.code, Code::kTorchArchive) << name;
    EXPECT_THAT(error.message, HasSubstr(fragment)) << name;
    EXPECT_THAT(error.message, HasSubstr("file.pt: tensor: found")) << name;
  }
}

/// A tensor on a storage, each part of which a test can set.
struct Tensor {
  std::string function = "_rebuild_tensor_v2";
  std::string storage_class = "FloatStorage";
  std::string dtype = {};
  std::vector<std::int64_t> shape = {2, 3};
  std::vector<std::int64_t> strides = {3, 1};
  std::int64_t offset = 0;
  std::int64_t numel = 6;
  int extra_arguments = 0;

  [[nodiscard]] Result<TorchTensor> read() const {
    pickle::Document document;
    const auto tuple_of = [&](const std::vector<std::int64_t>& numbers) {
      std::vector<Value> values;
      for (const std::int64_t number : numbers) values.push_back(document.integer(number));
      return document.tuple(values);
    };
    const Value storage = document.persistent_id(
        document.tuple({document.string("storage"), document.global("torch", storage_class),
                        document.string("0"), document.string("cpu"), document.integer(numel)}));
    std::vector<Value> args = {
        storage,           document.integer(offset), tuple_of(shape),
        tuple_of(strides), document.boolean(false),  document.ordered_dict()};
    if (!dtype.empty()) args.push_back(document.global("torch", dtype));
    for (int i = 0; i < extra_arguments; ++i) args.push_back(document.dict());
    const Value root =
        document.reduce(document.global("torch._utils", function), document.tuple(args));
    return read_torch_tensor(root);
  }
};

TEST(TorchTensor, TakesViewsWithinTheStorageOnly) {
  EXPECT_TRUE(Tensor{}.read()->is_dense());
  EXPECT_TRUE(Tensor{.extra_arguments = 1}.read()) << "an empty metadata dict";
  const Tensor transposed{.shape = {3, 2}, .strides = {1, 3}};
  EXPECT_FALSE(transposed.read()->is_dense());
  EXPECT_TRUE((Tensor{.shape = {1, 3}, .strides = {77, 1}}.read()->is_dense()))
      << "the stride of a single element says nothing";
  EXPECT_TRUE((Tensor{.shape = {100, 3}, .strides = {0, 1}}.read())) << "expanded rows";
  EXPECT_TRUE((Tensor{.shape = {}, .strides = {}, .offset = 5}.read()));
  EXPECT_TRUE((Tensor{.shape = {0, 3}, .strides = {3, 1}, .offset = 99}.read()))
      << "no element, no place";
  const std::int64_t huge = std::int64_t{1} << 62;
  for (const Tensor& bad :
       {Tensor{.offset = 1},
        Tensor{.strides = {4, 1}},
        Tensor{.numel = 5},
        Tensor{.shape = {3, 3}},
        Tensor{.shape = {}, .strides = {}, .offset = 6},
        Tensor{.offset = -1},
        Tensor{.strides = {-3, 1}},
        Tensor{.shape = {-2, 3}},
        Tensor{.strides = {3}},
        Tensor{.strides = {huge, huge}},
        Tensor{.offset = std::numeric_limits<std::int64_t>::max()},
        Tensor{.shape = {huge, huge}, .strides = {0, 0}},
        Tensor{.shape = {huge, 0}, .strides = {1, 1}, .numel = -1},
        Tensor{.numel = huge},
        Tensor{.shape = {17'000'000}, .strides = {0}},
        Tensor{.storage_class = "QInt8Storage"},
        Tensor{.storage_class = "UntypedStorage"},
        Tensor{.extra_arguments = 2},
        Tensor{.function = "_rebuild_tensor_v3"},
        Tensor{.function = "_rebuild_tensor_v3", .dtype = "bits8"},
        Tensor{.function = "_rebuild_tensor_v3", .dtype = "int32"},
        Tensor{.function = "_rebuild_tensor_v4"},
        Tensor{.shape = {1, 1, 1, 1, 1, 1, 1, 1, 1}, .strides = {1, 1, 1, 1, 1, 1, 1, 1, 1}}}) {
    const auto recipe = bad.read();
    ASSERT_FALSE(recipe.has_value()) << bad.function << " " << bad.numel << " " << bad.offset;
    EXPECT_EQ(recipe.error().code, Code::kTorchArchive) << recipe.error().message;
  }
  const Tensor newer{.function = "_rebuild_tensor_v3",
                     .storage_class = "UntypedStorage",
                     .dtype = "uint16",
                     .numel = 12};
  EXPECT_EQ(newer.read()->dtype, DType::kU16);
  EXPECT_EQ(newer.read()->storage_bytes, 12u);
}

TEST(TorchTensor, RefusesWhatIsNoTensor) {
  pickle::Document document;
  EXPECT_THAT(read_torch_tensor({}).error().message, HasSubstr("found nothing"));
  EXPECT_FALSE(read_torch_tensor(document.integer(1)));
  EXPECT_FALSE(is_tensor(document.integer(1)));
  const Value parameter = document.global("torch._utils", "_rebuild_parameter");
  Value nested = document.integer(1);
  for (int i = 0; i < 10; ++i) nested = document.reduce(parameter, document.tuple({nested}));
  EXPECT_FALSE(read_torch_tensor(nested)) << "a tower of parameters";
  const Value cycle = document.reduce(parameter, document.list());
  EXPECT_FALSE(read_torch_tensor(cycle));
}

TEST(TorchArchive, ReplacesThePickleAndKeepsTheRest) {
  for (const char* name :
       {"2.13.0/03_views_shared.pt", "2.13.0/43_align4096.pt", "1.6.0/01_state_dict.pt"}) {
    const std::string bytes = golden_archive(name);
    const auto file = make_memory_file("old", bytes);
    const TorchArchive old = TorchArchive::open(*file).value();
    const std::string pickle = pickle::encode(old.document(), pickle::Protocol::kTwo).value();
    const std::string fresh = old.with_pickle(pickle, 1 << 20).value();
    const auto fresh_file = make_memory_file("new", fresh);
    const TorchArchive again = TorchArchive::open(*fresh_file).value();
    ASSERT_EQ(again.zip().entries().size(), old.zip().entries().size());
    for (const zip::Entry& entry : old.zip().entries()) {
      if (entry.name.ends_with("data.pkl")) continue;
      EXPECT_EQ(again.zip().read(*again.zip().find(entry.name), 1 << 20).value(),
                old.zip().read(entry, 1 << 20).value());
    }
    const std::uint64_t alignment =
        std::string_view(name).find("4096") == std::string_view::npos ? 64 : 4096;
    for (const zip::Entry& entry : again.zip().entries()) {
      EXPECT_EQ(again.zip().locate(entry)->offset % alignment, 0u) << name << entry.name;
    }
    EXPECT_EQ(old.with_pickle(pickle, 100).error().code, Code::kLimit);
  }
  const std::string same = golden_archive("2.13.0/01_state_dict.pt");
  const auto file = make_memory_file("same", same);
  const TorchArchive archive = TorchArchive::open(*file).value();
  const std::string pickle = archive.zip().read(*archive.record("data.pkl"), 1 << 20).value();
  EXPECT_TRUE(archive.with_pickle(pickle, 1 << 20).value() == same);
}

/// Every cut and every flipped byte gives an error or the same tensors at the same places.
TEST(TorchArchive, CutOrFlippedFilesNeverReadDifferently) {
  const std::string good = golden_archive("2.13.0/03_views_shared.pt");
  const auto describe = [](const std::string& bytes) -> Result<std::string> {
    const auto file = make_memory_file("file.pt", bytes);
    const TorchArchive archive = SW_TRY(TorchArchive::open(*file));
    std::string text;
    for (std::size_t i = 0; i < archive.root().size(); ++i) {
      text += archive.root().key(i).text();
      if (!is_tensor(archive.root().value(i))) continue;
      const LocatedTensor tensor = SW_TRY(archive.locate(archive.root().value(i)));
      text += fmt::format(" {} {} {} {} {};", torch_name(tensor.dtype), to_string(tensor.shape),
                          to_string(tensor.strides), tensor.range.offset, tensor.range.length);
    }
    return text;
  };
  const std::string expected = describe(good).value();
  for (std::size_t length = 0; length < good.size(); ++length) {
    ASSERT_FALSE(describe(good.substr(0, length)).has_value()) << length;
  }
  for (std::size_t position = 0; position < good.size(); ++position) {
    for (const int mask : {0x01, 0x10, 0xff}) {
      std::string bytes = good;
      bytes[position] = static_cast<char>(bytes[position] ^ mask);
      ASSERT_EQ(describe(bytes).value_or(expected), expected) << position;
    }
  }
}

class ItemsTest : public ::testing::Test {
 protected:
  std::string bytes_ = golden_archive("2.13.0/items.distcp");
  json rows_ = json::parse(golden_archive("2.13.0/items.json"));
  static ByteRange range(const json& row) { return {row["offset"], row["length"]}; }
};

TEST_F(ItemsTest, AreReadAsTorchWroteThem) {
  const auto file = make_memory_file("items", bytes_);
  TensorItemReader reader(*file);
  ASSERT_GE(rows_.size(), 34u);
  for (const json& row : rows_) {
    const std::string note = row["note"];
    const auto tensor = reader.read(range(row));
    ASSERT_TRUE(tensor) << note << ": " << tensor.error().message;
    EXPECT_EQ(torch_name(tensor->dtype), row["dtype"].get<std::string>()) << note;
    EXPECT_EQ(std::vector<std::int64_t>(tensor->shape.begin(), tensor->shape.end()),
              row["shape"].get<std::vector<std::int64_t>>())
        << note;
    EXPECT_EQ(tensor->strides.empty(), row["dense"].get<bool>()) << note;
    EXPECT_EQ(hex_of(bytes_, *tensor), row["hex"].get<std::string>()) << note;
    EXPECT_EQ(crc32(as_bytes(
                  std::string_view(bytes_).substr(tensor->storage.offset, tensor->storage.length))),
              tensor->storage_crc)
        << note;
  }
}

TEST_F(ItemsTest, HaveThePickleThatWeWrite) {
  const auto file = make_memory_file("items", bytes_);
  int compared = 0;
  for (const json& row : rows_) {
    const TorchArchive archive = TorchArchive::open(*file, range(row)).value();
    const TorchTensor recipe = read_torch_tensor(archive.root()).value();
    const auto elements = element_count(recipe.shape).value() * bytes_of(recipe.dtype);
    if (!recipe.is_dense() || recipe.is_parameter || recipe.offset != 0 ||
        recipe.storage_bytes != static_cast<std::uint64_t>(elements)) {
      continue;
    }
    const std::string pickle = archive.zip().read(*archive.record("data.pkl"), 1 << 20).value();
    EXPECT_TRUE(torch_tensor_pickle(recipe.dtype, recipe.shape) == pickle) << row["note"];
    ++compared;
  }
  EXPECT_GE(compared, 29);
}

TEST_F(ItemsTest, CostOneReadWhenSmallAndTwoElse) {
  // Items as torch writes them, with payloads of 10 KB.
  MemoryDirectory directory;
  std::string bytes;
  std::vector<ByteRange> items;
  for (int i = 0; i < 10; ++i) {
    const Dims shape{1, 2500 + i};
    const std::string payload(static_cast<std::size_t>(shape[1]) * 4, static_cast<char>(i));
    const std::uint64_t size = payload.size();
    const TorchLayout layout =
        TorchLayout::make(torch_tensor_pickle(DType::kF32, shape), std::span(&size, 1)).value();
    const std::uint32_t crc = crc32(as_bytes(payload));
    items.push_back({bytes.size(), layout.total_bytes()});
    bytes += layout.head() + payload + layout.tail(std::span(&crc, 1));
  }
  directory.put("big", bytes);
  directory.put("small", bytes_);
  RecordingDirectory recording(directory);
  const auto big = recording.open("big").value();
  TensorItemReader big_reader(*big);
  for (const ByteRange& item : items) ASSERT_TRUE(big_reader.read(item));
  const FileRecord record = recording.records().at("big");
  EXPECT_EQ(record.reads.size(), 20u);
  // The first directory is found with a guess, every later one exactly: 463 bytes for seven records
  // and 98 for the end records; the head is 704 bytes.
  for (std::size_t read = 2; read < record.reads.size(); ++read) {
    EXPECT_EQ(record.reads[read].length, read % 2 == 0 ? 561u : 704u);
  }
  const auto small = recording.open("small").value();
  TensorItemReader small_reader(*small);
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(small_reader.read(range(rows_[static_cast<std::size_t>(i)])));
  EXPECT_EQ(recording.records().at("small").reads.size(), 20u);
}

TEST_F(ItemsTest, MayHaveOtherKeysAndRecordOrders) {
  std::string pickle = torch_tensor_pickle(DType::kU8, {3000});
  const std::size_t key = pickle.find("0q\x03");  // the storage key and its memo slot
  ASSERT_NE(key, std::string::npos);
  pickle[key] = '7';
  const std::string payload(3000, 'p');
  for (const auto& records :
       {std::vector<std::pair<std::string, std::string>>{{"a/data/7", payload},
                                                         {"a/data.pkl", pickle}},
        {{"a/version", "3\n"}, {"a/data.pkl", pickle}, {"a/data/7", payload}},
        {{"a/data/0", "decoy"}, {"a/data.pkl", pickle}, {"a/data/7", payload}},
        {{"a/data.pkl", pickle}, {"a/data/7", payload}, {"a/data/0", "decoy"}}}) {
    const std::string bytes = archive_of(records);
    const auto file = make_memory_file("item", bytes);
    const auto tensor = TensorItemReader(*file).read({0, bytes.size()});
    ASSERT_TRUE(tensor) << tensor.error().message;
    EXPECT_EQ(bytes.substr(tensor->range.offset, tensor->range.length), payload);
  }
}

TEST_F(ItemsTest, RefusesWhatIsNoTensorItem) {
  const auto error_of = [](const std::string& bytes) {
    const auto file = make_memory_file("__0_0.distcp", bytes);
    const auto tensor = TensorItemReader(*file).read({0, bytes.size()});
    EXPECT_FALSE(tensor.has_value());
    return tensor ? Error{} : tensor.error();
  };
  const std::string pickle = torch_tensor_pickle(DType::kU8, {3});
  const Error object = error_of(golden_archive("2.13.0/object.pt"));
  EXPECT_EQ(object.code, Code::kTorchArchive);
  EXPECT_THAT(object.message,
              HasSubstr("__0_0.distcp@0 record 'object/data.pkl': tensor: found dict"));
  EXPECT_THAT(error_of(archive_of({{"a/data.pkl", pickle}})).message,
              HasSubstr("it has no record a/data/0"));
  EXPECT_THAT(error_of(archive_of({{"a/data.pkl", pickle}, {"a/data/0", "abcd"}})).message,
              HasSubstr("found 4 bytes, expected 3 as the pickle says"));
  EXPECT_EQ(
      error_of(archive_of({{"a/data.pkl", pickle}, {"a/data/0", "abc"}, {"a/byteorder", "big"}}))
          .code,
      Code::kUnsupportedFormat);
  EXPECT_EQ(error_of(archive_of({{"a/data.pkl", std::string(2 << 20, ' ')}})).code, Code::kLimit);
  EXPECT_EQ(error_of("").code, Code::kZipCorrupt);
  EXPECT_THAT(error_of(archive_of({{"x", ""}})).message, HasSubstr("no record lies in a folder"));
  const auto file = make_memory_file("cut", bytes_);
  TensorItemReader reader(*file);
  EXPECT_EQ(reader.read({bytes_.size() - 10, 1575}).error().code, Code::kShortRead);
  EXPECT_TRUE(reader.read(range(rows_[0]))) << "an error before does no harm";
}

TEST_F(ItemsTest, CutOrFlippedItemsNeverReadDifferently) {
  const auto describe = [](const std::string& bytes, ByteRange item) -> Result<std::string> {
    const auto file = make_memory_file("item", bytes);
    TensorItemReader reader(*file);
    const LocatedTensor tensor = SW_TRY(reader.read(item));
    return fmt::format("{} {} {} {} {}", torch_name(tensor.dtype), to_string(tensor.shape),
                       to_string(tensor.strides), tensor.range.offset, tensor.range.length);
  };
  for (const std::size_t row : {std::size_t{10}, rows_.size() - 2}) {
    const ByteRange whole = range(rows_[row]);
    const std::string good = bytes_.substr(whole.offset, whole.length);
    const std::string expected = describe(good, {0, good.size()}).value();
    for (std::size_t length = 0; length < good.size(); ++length) {
      ASSERT_FALSE(describe(good, {0, length}).has_value()) << length;
    }
    for (std::size_t position = 0; position < good.size(); ++position) {
      for (const int mask : {0x01, 0x10, 0xff}) {
        std::string bytes = good;
        bytes[position] = static_cast<char>(bytes[position] ^ mask);
        ASSERT_EQ(describe(bytes, {0, good.size()}).value_or(expected), expected) << position;
      }
    }
  }
}

}  // namespace
}  // namespace shardwright
