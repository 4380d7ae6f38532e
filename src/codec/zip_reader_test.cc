// SPDX-License-Identifier: Apache-2.0
#include "codec/zip_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libdeflate.h>

#include <fstream>
#include <functional>
#include <memory>

#include "base/crc32.h"
#include "base/endian.h"
#include "codec/zip_format.h"
#include "codec/zip_layout.h"
#include "io/memory_directory.h"
#include "io/recording_directory.h"
#include "testing/golden_files.h"

namespace shardwright::zip {
namespace {

using ::testing::HasSubstr;

std::string golden_zip(const std::string& name) { return read_golden("torch_save/" + name); }

/// A record of a hand-made archive; each field can be told apart in the two headers.
struct Piece {
  std::string name = "archive/data.pkl";
  std::string contents = "contents";
  std::uint16_t flags = kFlagUtf8;
  std::uint16_t method = kStored;
  std::string local_extra = {};
  std::string central_extra = {};
  std::uint32_t central_bytes = 0;  // 0: the true one
  std::uint32_t local_crc = 0;      // 0: the true one, or 0 with a descriptor
  std::string local_name = {};      // empty: the same
  std::string stored = {};          // empty: contents
};

/// What a common zip tool writes, with hooks for each lie.
struct Forge {
  std::vector<Piece> pieces = {};
  std::string front = {};
  std::string comment = {};
  std::function<void(std::string&)> edit_directory = [](std::string&) {};
  std::uint16_t count_delta = 0;
  bool zip64 = false;

  [[nodiscard]] std::string bytes() const {
    std::string out = front;
    std::string directory;
    for (const Piece& piece : pieces) add_piece(piece, out, directory);
    edit_directory(directory);
    const std::uint64_t begin = out.size();
    out += directory;
    if (zip64) add_end64(begin, directory.size(), out);
    append_le(out, kEndSignature);
    append_le(out, std::uint32_t{0});
    const auto count = static_cast<std::uint16_t>(pieces.size() + count_delta);
    append_le(out, count);
    append_le(out, count);
    append_le(out, static_cast<std::uint32_t>(directory.size()));
    append_le(out, static_cast<std::uint32_t>(begin));
    append_le(out, static_cast<std::uint16_t>(comment.size()));
    return out + comment;
  }

 private:
  static void add_piece(const Piece& piece, std::string& out, std::string& directory) {
    const std::string& stored = piece.stored.empty() ? piece.contents : piece.stored;
    const bool late = (piece.flags & kFlagDescriptor) != 0;
    const std::uint32_t crc = crc32(as_bytes(piece.contents));
    const auto position = static_cast<std::uint32_t>(out.size());
    const std::string& local_name = piece.local_name.empty() ? piece.name : piece.local_name;
    const auto stored_bytes = static_cast<std::uint32_t>(stored.size());
    const auto content_bytes = static_cast<std::uint32_t>(piece.contents.size());
    append_le(out, kLocalSignature);
    append_le(out, std::uint16_t{20});
    append_le(out, piece.flags);
    append_le(out, piece.method);
    append_le(out, std::uint32_t{0x21});
    append_le(out, piece.local_crc != 0 ? piece.local_crc : late ? 0 : crc);
    append_le(out, late ? 0 : stored_bytes);
    append_le(out, late ? 0 : content_bytes);
    append_le(out, static_cast<std::uint16_t>(local_name.size()));
    append_le(out, static_cast<std::uint16_t>(piece.local_extra.size()));
    out += local_name + piece.local_extra + stored;
    if (late) {
      append_le(out, kDescriptorSignature);
      append_le(out, crc);
      append_le(out, stored_bytes);
      append_le(out, content_bytes);
    }
    append_le(directory, kCentralSignature);
    append_le(directory, std::uint32_t{20});
    append_le(directory, piece.flags);
    append_le(directory, piece.method);
    append_le(directory, std::uint32_t{0x21});
    append_le(directory, crc);
    const bool lie = piece.central_bytes != 0;
    append_le(directory, lie ? piece.central_bytes : stored_bytes);
    append_le(directory, lie ? piece.central_bytes : content_bytes);
    append_le(directory, static_cast<std::uint16_t>(piece.name.size()));
    append_le(directory, static_cast<std::uint16_t>(piece.central_extra.size()));
    directory.append(10, '\0');  // comment length, disk, attributes
    append_le(directory, position);
    directory += piece.name + piece.central_extra;
  }

  void add_end64(std::uint64_t begin, std::uint64_t directory_bytes, std::string& out) const {
    append_le(out, kEnd64Signature);
    append_le(out, std::uint64_t{44});
    append_le(out, std::uint32_t{0});
    append_le(out, std::uint64_t{0});
    append_le(out, std::uint64_t{pieces.size()});
    append_le(out, std::uint64_t{pieces.size()});
    append_le(out, directory_bytes);
    append_le(out, begin);
    append_le(out, kLocatorSignature);
    append_le(out, std::uint32_t{0});
    append_le(out, begin + directory_bytes);
    append_le(out, std::uint32_t{1});
  }
};

Result<std::map<std::string, std::string>> read_all(const std::string& bytes) {
  const auto file = make_memory_file("a.zip", bytes);
  const Archive archive = SW_TRY(Archive::open(*file, {0, bytes.size()}));
  std::map<std::string, std::string> records;
  for (const Entry& entry : archive.entries()) {
    records[entry.name] = SW_TRY(archive.read(entry, 1 << 20));
  }
  return records;
}

void expect_zip_refused(const std::string& bytes, Code code, const std::string& fragment) {
  const auto result = read_all(bytes);
  ASSERT_FALSE(result.has_value()) << fragment;
  EXPECT_EQ(result.error().code, code) << result.error().message;
  EXPECT_THAT(result.error().message, HasSubstr(fragment));
  EXPECT_THAT(result.error().message, HasSubstr("a.zip@"));
}

TEST(ZipReader, ReadsWhatCommonToolsWrite) {
  Forge forge{.pieces = {{}, {.name = "archive/b", .contents = ""}}};
  EXPECT_EQ(read_all(forge.bytes()).value().at("archive/data.pkl"), "contents");
  forge.zip64 = true;
  EXPECT_EQ(read_all(forge.bytes()).value().size(), 2u);
  forge.pieces[0].flags = kFlagUtf8 | kFlagDescriptor;
  EXPECT_EQ(read_all(forge.bytes()).value().at("archive/data.pkl"), "contents");
  forge.pieces.push_back({.name = "archive/folder/", .contents = ""});
  EXPECT_EQ(read_all(forge.bytes()).value().size(), 2u) << "folders are not listed";
  EXPECT_TRUE(read_all(Forge{}.bytes()).value().empty());
}

TEST(ZipReader, ReadsAnyRecordOrder) {
  Forge forge{.pieces = {{.name = "a/1", .contents = "one"}, {.name = "a/2", .contents = "two"}}};
  forge.pieces[0].local_extra = std::string("FB\x03\0ZZZ", 7);
  forge.edit_directory = [](std::string& directory) {
    const std::size_t half = directory.size() / 2;
    directory = directory.substr(half) + directory.substr(0, half);
  };
  const auto records = read_all(forge.bytes()).value();
  EXPECT_EQ(records.at("a/1"), "one");
  EXPECT_EQ(records.at("a/2"), "two");
}

TEST(ZipReader, InflatesSmallRecords) {
  const std::string contents(5000, 'a');
  std::string packed(1000, '\0');
  const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> deflater(
      libdeflate_alloc_compressor(6), libdeflate_free_compressor);
  packed.resize(libdeflate_deflate_compress(deflater.get(), contents.data(), contents.size(),
                                            packed.data(), packed.size()));
  Piece piece{.contents = contents, .method = kDeflated, .stored = packed};
  piece.flags |= 0x0002;
  EXPECT_EQ(read_all(Forge{.pieces = {piece}}.bytes()).value().begin()->second, contents);
  for (std::size_t cut = 1; cut < packed.size(); ++cut) {
    piece.stored = packed.substr(0, packed.size() - cut);
    EXPECT_FALSE(read_all(Forge{.pieces = {piece}}.bytes()));
  }
  piece.stored = packed;
  Forge bomb{.pieces = {piece}};
  bomb.edit_directory = [](std::string& directory) {
    store_le<std::uint32_t>(reinterpret_cast<std::byte*>(directory.data()) + 24, 100 << 20);
  };
  expect_zip_refused(bomb.bytes(), Code::kZipUnsupported,
                     "'archive/data.pkl': found 104857600 compressed");
}

TEST(ZipReader, RefusesWhatItCannotReadByName) {
  expect_zip_refused(Forge{.pieces = {{.flags = kFlagEncrypted}}}.bytes(), Code::kZipUnsupported,
                     "record 'archive/data.pkl': found an encrypted record");
  expect_zip_refused(Forge{.pieces = {{.flags = 0x2000}}}.bytes(), Code::kZipUnsupported,
                     "flags 0x2000");
  expect_zip_refused(Forge{.pieces = {{.flags = 0x0002}}}.bytes(), Code::kZipUnsupported,
                     "flags 0x0002");
  expect_zip_refused(Forge{.pieces = {{.method = 12}}}.bytes(), Code::kZipUnsupported,
                     "compression method 12");
  expect_zip_refused(Forge{.pieces = {{}}, .comment = "hello"}.bytes(), Code::kZipCorrupt,
                     "no end of a zip directory");
}

TEST(ZipReader, RefusesNamesThatAreNotPlain) {
  for (const std::string& name :
       {std::string("../evil"), std::string("/abs"), std::string("a//b"), std::string("a/./b"),
        std::string("a\\b"), std::string("a\nb"), std::string("a\0b", 3), std::string("\xff\xfe"),
        std::string("a\x7f"), std::string(600, 'n'), std::string("a/..")}) {
    expect_zip_refused(Forge{.pieces = {{.name = name}}}.bytes(), Code::kZipCorrupt,
                       "found a record name of");
  }
  expect_zip_refused(Forge{.pieces = {{.name = "a/x"}, {.name = "a/x"}}}.bytes(), Code::kZipCorrupt,
                     "found the record 'a/x' twice");
  expect_zip_refused(Forge{.pieces = {{.name = "folder/"}}}.bytes(), Code::kZipCorrupt,
                     "expected an empty folder");
}

TEST(ZipReader, RefusesALocalHeaderThatDisagrees) {
  expect_zip_refused(Forge{.pieces = {{.local_name = "archive/data.pkX"}}}.bytes(),
                     Code::kZipCorrupt, "found another name in the local header");
  expect_zip_refused(
      Forge{.pieces = {{.local_extra = std::string("FB\0\0", 4), .local_name = "archive/data.pk"}}}
          .bytes(),
      Code::kZipCorrupt, "expected its name of 16");
  expect_zip_refused(Forge{.pieces = {{.local_crc = 7}}}.bytes(), Code::kZipCorrupt,
                     "another CRC or size in the local header");
  expect_zip_refused(
      Forge{.pieces = {{.flags = kFlagUtf8 | kFlagDescriptor, .local_crc = 7}}}.bytes(),
      Code::kZipCorrupt, "another CRC or size in the local header");
  expect_zip_refused(Forge{.pieces = {{.local_extra = "FB\x09"}}}.bytes(), Code::kZipCorrupt,
                     "broken extra fields in the local header");
  Forge flags{.pieces = {{}}};
  flags.edit_directory = [](std::string& directory) { directory[9] = 0; };
  expect_zip_refused(flags.bytes(), Code::kZipCorrupt, "other flags or another method");
  Forge moved{.pieces = {{}, {.name = "archive/b", .flags = kFlagUtf8 | kFlagDescriptor}}};
  moved.edit_directory = [](std::string& directory) { directory[42 + 46 + 16] += 1; };
  expect_zip_refused(moved.bytes(), Code::kZipCorrupt, "1 bytes lie between its end");
  moved.edit_directory = [](std::string& directory) {
    directory[42 + 46 + 16] += 1;
    directory = directory.substr(46 + 16) + directory.substr(0, 46 + 16);
  };
  expect_zip_refused(moved.bytes(), Code::kZipCorrupt, "no local header");
}

void set_extra_length(std::string& bytes, std::size_t header, std::uint16_t length) {
  store_le(reinterpret_cast<std::byte*>(bytes.data()) + header + 28, length);
}

// A payload begins where its local header ends, so a wrong length there would move it.
TEST(ZipReader, RefusesLengthsThatMoveThePayload) {
  for (const bool late : {false, true}) {
    for (const std::size_t padding : {0, 4, 8, 30}) {
      Piece piece;
      if (late) piece.flags |= kFlagDescriptor;
      append_le(piece.local_extra, kExtraPadding);
      append_le(piece.local_extra, static_cast<std::uint16_t>(padding));
      piece.local_extra.append(padding, 'Z');
      for (const bool is_last : {false, true}) {
        Forge forge{.pieces = {piece}};
        if (!is_last) forge.pieces.push_back({.name = "archive/b"});
        std::string bytes = forge.bytes();
        ASSERT_EQ(read_all(bytes).value().at("archive/data.pkl"), "contents");
        set_extra_length(bytes, 0, 0);
        expect_zip_refused(bytes, Code::kZipCorrupt, "wrong lengths or is not its own");
      }
    }
  }
}

TEST(ZipReader, ReadsADataDescriptorWithoutItsSignature) {
  std::string bytes = Forge{.pieces = {{.flags = kFlagUtf8 | kFlagDescriptor}}}.bytes();
  const std::string signature("PK\x07\x08");
  bytes.erase(bytes.find(signature), signature.size());
  bytes[bytes.size() - 6] = static_cast<char>(bytes[bytes.size() - 6] - 4);  // the directory moved
  EXPECT_EQ(read_all(bytes).value().at("archive/data.pkl"), "contents");
}

TEST(ZipReader, CountsFoldersAsWhatLiesBetweenRecords) {
  const Forge forge{.pieces = {{.name = "a/first/", .contents = ""},
                               {.name = "a/x", .contents = "x"},
                               {.name = "a/second/", .contents = ""},
                               {.name = "a/y", .contents = "y"},
                               {.name = "a/third/", .contents = ""}}};
  EXPECT_EQ(read_all(forge.bytes()).value(),
            (std::map<std::string, std::string>{{"a/x", "x"}, {"a/y", "y"}}));
}

TEST(ZipReader, RefusesLocalZip64SizesThatDisagree) {
  const auto with_sizes = [](std::uint64_t size, std::uint64_t stored) {
    Piece piece;
    append_le(piece.local_extra, kExtraZip64);
    append_le(piece.local_extra, std::uint16_t{16});
    append_le(piece.local_extra, size);
    append_le(piece.local_extra, stored);
    std::string bytes = Forge{.pieces = {piece}}.bytes();
    bytes.replace(18, 8, 8, '\xff');
    return bytes;
  };
  EXPECT_TRUE(read_all(with_sizes(8, 8)));
  expect_zip_refused(with_sizes(9, 8), Code::kZipCorrupt,
                     "broken extra fields in the local header");
  expect_zip_refused(with_sizes(8, 7), Code::kZipCorrupt,
                     "broken extra fields in the local header");
}

TEST(ZipReader, RefusesRecordsThatOverlap) {
  expect_zip_refused(Forge{.pieces = {{.central_bytes = 9}, {.name = "archive/b"}}}.bytes(),
                     Code::kZipCorrupt, "expected it to end before 54");
  expect_zip_refused(Forge{.pieces = {{}, {.name = "archive/b", .central_bytes = 9}}}.bytes(),
                     Code::kZipCorrupt, "expected it to end before");
  expect_zip_refused(Forge{.pieces = {{.central_bytes = 0x7fffffff}}}.bytes(), Code::kZipCorrupt,
                     "found 2147483647 bytes");
  Forge twins{.pieces = {{}, {.name = "archive/b"}}};
  twins.edit_directory = [](std::string& directory) { directory[42 + 46 + 16] = 0; };
  expect_zip_refused(twins.bytes(), Code::kZipCorrupt, "expected it to end before 0");
}

TEST(ZipReader, RefusesBytesBeforeOrBehindTheArchive) {
  expect_zip_refused(Forge{.pieces = {{}}, .front = "MZ"}.bytes(), Code::kZipCorrupt,
                     "found 2 bytes before the first record");
  expect_zip_refused(Forge{.pieces = {{}}}.bytes() + "x", Code::kZipCorrupt,
                     "no end of a zip directory in the last 22 bytes");
  expect_zip_refused("x" + Forge{.pieces = {{}}}.bytes(), Code::kZipCorrupt,
                     "expected it to end at");
}

TEST(ZipReader, RefusesADirectoryThatDoesNotAddUp) {
  expect_zip_refused(Forge{.pieces = {{}}, .count_delta = 1}.bytes(), Code::kZipCorrupt,
                     "found 2 records");
  Forge more{.pieces = {{}, {.name = "archive/b"}}, .count_delta = 0xFFFF};
  expect_zip_refused(more.bytes(), Code::kZipCorrupt, "behind the last directory record");
  Forge signature{.pieces = {{}}};
  signature.edit_directory = [](std::string& directory) { directory[0] = 'x'; };
  expect_zip_refused(signature.bytes(), Code::kZipCorrupt, "directory record 0 of ");
  Forge name{.pieces = {{}}};
  name.edit_directory = [](std::string& directory) { directory[28] = 90; };
  expect_zip_refused(name.bytes(), Code::kZipCorrupt, "found a directory record of 136 bytes");
  Forge disk{.pieces = {{}}};
  disk.edit_directory = [](std::string& directory) { directory[34] = 1; };
  expect_zip_refused(disk.bytes(), Code::kZipUnsupported, "another disk");
  Forge version{.pieces = {{}}};
  version.edit_directory = [](std::string& directory) { directory[6] = 64; };
  expect_zip_refused(version.bytes(), Code::kZipUnsupported, "a version of zip");
  Forge folder{.pieces = {{}}};
  folder.edit_directory = [](std::string& directory) { directory[38] = 0x10; };
  expect_zip_refused(folder.bytes(), Code::kZipCorrupt, "is marked as a folder");
  expect_zip_refused("", Code::kZipCorrupt, "no end of a zip directory");
}

TEST(ZipReader, RefusesEndRecordsThatContradictEachOther) {
  const std::string good = Forge{.pieces = {{}}, .zip64 = true}.bytes();
  ASSERT_TRUE(read_all(good));
  const std::size_t end = good.size() - kEndBytes;
  const std::size_t locator = end - kLocatorBytes;
  const std::size_t end64 = locator - kEnd64Bytes;
  const auto changed = [&](std::size_t position, char delta) {
    std::string bytes = good;
    bytes[position] = static_cast<char>(bytes[position] + delta);
    return bytes;
  };
  expect_zip_refused(changed(locator + 8, 1), Code::kZipCorrupt, "found a pointer to");
  expect_zip_refused(changed(end64, 1), Code::kZipCorrupt, "found no signature");
  expect_zip_refused(changed(end64 + 4, 1), Code::kZipCorrupt, "found another size");
  expect_zip_refused(changed(end64 + 16, 1), Code::kZipCorrupt, "found several disks");
  expect_zip_refused(changed(locator + 16, 1), Code::kZipCorrupt, "found several disks");
  for (const std::size_t field : {24, 32, 40, 48}) {
    expect_zip_refused(changed(end64 + field, 1), Code::kZipCorrupt, "numbers that contradict");
  }
  expect_zip_refused(changed(end + 4, 1), Code::kZipUnsupported, "several disks");
  expect_zip_refused(changed(end + 8, 1), Code::kZipCorrupt, "as the number of records");
  expect_zip_refused(changed(end + 20, 1), Code::kZipUnsupported, "an archive comment");
}

TEST(ZipReader, ReadsZip64FieldsInEveryForm) {
  const auto field64 = [](std::initializer_list<std::uint64_t> values) {
    std::string extra;
    append_le(extra, kExtraZip64);
    append_le(extra, static_cast<std::uint16_t>(values.size() * 8));
    for (const std::uint64_t value : values) append_le(extra, value);
    return extra;
  };
  const auto with = [&](std::string extra, bool sizes, bool offset) {
    Forge forge{.pieces = {{.central_extra = std::move(extra)}}};
    forge.edit_directory = [=](std::string& directory) {
      if (sizes) directory.replace(20, 8, 8, '\xff');
      if (offset) directory.replace(42, 4, 4, '\xff');
    };
    return forge.bytes();
  };
  EXPECT_TRUE(read_all(with(field64({8, 8}), true, false)));
  EXPECT_TRUE(read_all(with(field64({8, 8, 0}), true, true)));
  EXPECT_TRUE(read_all(with(field64({0}), false, true)));
  EXPECT_TRUE(read_all(with(field64({8, 8}), false, false))) << "not needed, so not looked at";
  EXPECT_TRUE(read_all(with("UX" + std::string("\x02\0zz", 4) + field64({0}), false, true)));
  for (const std::string& broken :
       {with("", true, false), with(field64({8}), true, false),
        with(field64({8, 8, 0}), true, false), with(field64({8, 8}) + field64({8, 8}), true, false),
        with(field64({8, 8}), true, true), with(field64({8, 8}).substr(0, 15), true, false),
        with("abc", false, false)}) {
    expect_zip_refused(broken, Code::kZipCorrupt, "found broken extra fields");
  }
  expect_zip_refused(with(field64({~std::uint64_t{0}, ~std::uint64_t{0}}), true, false),
                     Code::kZipCorrupt, "found 18446744073709551615 bytes");
  expect_zip_refused(with(field64({~std::uint64_t{0} - 3}), false, true), Code::kZipCorrupt,
                     "expected it to end before");
}

TEST(ZipReader, FindsADamagedRecord) {
  std::string bytes = Forge{.pieces = {{}}}.bytes();
  bytes[kLocalBytes + 16] ^= 1;
  expect_zip_refused(bytes, Code::kZipCorrupt, "record 'archive/data.pkl': found CRC-32");
  // torch can be told not to compute CRCs: 0 in every place.
  std::string none = bytes;
  const std::size_t central = none.find("PK\x01\x02");
  none.replace(14, 4, 4, '\0');
  none.replace(central + 16, 4, 4, '\0');
  EXPECT_EQ(read_all(none).value().begin()->second, "bontents");
}

TEST(ZipReader, KeepsToItsLimits) {
  const std::string bytes = Forge{.pieces = {{}, {.name = "archive/b"}}}.bytes();
  const auto file = make_memory_file("a.zip", bytes);
  const ByteRange all{0, bytes.size()};
  EXPECT_EQ(Archive::open(*file, all, 0, {.entries = 1}).error().code, Code::kLimit);
  EXPECT_EQ(Archive::open(*file, all, 0, {.directory_bytes = 99}).error().code, Code::kLimit);
  const Archive archive = Archive::open(*file, all).value();
  EXPECT_EQ(archive.read(archive.entries()[0], 7).error().code, Code::kLimit);
  EXPECT_EQ(archive.read(archive.entries()[0], 8).value(), "contents");
}

TEST(ZipReader, StaysInsideItsWindow) {
  const std::string first = golden_zip("2.13.0/14_bare_tensor.pt");
  const std::string second = golden_zip("2.13.0/01_state_dict.pt");
  const auto file = make_memory_file("items", first + second + "rest");
  const Archive archive = Archive::open(*file, {first.size(), second.size()}).value();
  const auto alone = read_all(second).value();
  for (const Entry& entry : archive.entries()) {
    EXPECT_EQ(archive.read(entry, 1 << 20).value(), alone.at(entry.name));
  }
  EXPECT_FALSE(Archive::open(*file, {first.size(), second.size() - 1}));
  EXPECT_FALSE(Archive::open(*file, {first.size() + 1, second.size() - 1}));
  const Status beyond = [&]() -> Status {
    SW_TRY(Archive::open(*file, {first.size(), second.size() + 5}));
    return {};
  }();
  EXPECT_EQ(beyond.error().code, Code::kShortRead);
  EXPECT_EQ(Archive::open(*file, {~std::uint64_t{0}, 2}).error().code, Code::kShortRead);
}

TEST(ZipReader, OpensInOneReadWhereTheGuessIsRight) {
  MemoryDirectory directory;
  const std::string bytes = golden_zip("2.13.0/09_many_storages.pt");
  directory.put("a.pt", bytes);
  for (const std::uint64_t guess : {std::uint64_t{4096}, std::uint64_t{0}}) {
    RecordingDirectory recording(directory);
    const auto file = recording.open("a.pt").value();
    const Archive archive = Archive::open(*file, {0, bytes.size()}, guess).value();
    const FileRecord record = recording.records().at("a.pt");
    EXPECT_EQ(record.reads.size(), guess == 0 ? 2u : 1u);
    if (guess > 0) continue;
    EXPECT_EQ(record.reads[1].length + 98, bytes.size() - archive.directory_offset());
  }
}

TEST(ZipReader, RefusesTheMaliciousArchives) {
  for (const auto& [name, fragment] : std::initializer_list<std::pair<const char*, const char*>>{
           {"z01_duplicate_data_pkl.pt", "twice"},
           {"z02_local_name_differs.pt", "another name in the local header"},
           {"z03_prepended.pt", "found"},
           {"z04_polyglot_pickle_then_zip.pt", "found"},
           {"z05_zip_bomb_deflate.pt", "compressed bytes"},
           {"z06_overlapping_records.pt", "expected it to end before"},
           {"z07_cd_size_2GiB.pt", "found"},
           {"z08_path_traversal_member.pt", "found a record name"},
           {"z09_truncated.pt", "no end of a zip directory"},
           {"z10_entry_count_lie.pt", "found"}}) {
    const auto result = read_all(golden_zip(std::string("malicious/") + name));
    ASSERT_FALSE(result.has_value()) << name;
    EXPECT_THAT(result.error().message, HasSubstr(fragment)) << name;
  }
}

/// Every cut and every flipped byte of a real file gives an error or the same bytes.
TEST(ZipReader, CutOrFlippedFilesNeverReadDifferently) {
  for (const char* name :
       {"2.13.0/01_state_dict.pt", "1.6.0/14_bare_tensor.pt", "2.13.0/my_model.x.pt"}) {
    const std::string good = golden_zip(name);
    const auto expected = read_all(good).value();
    for (std::size_t length = 0; length < good.size(); ++length) {
      ASSERT_FALSE(read_all(good.substr(0, length)).has_value()) << name << " cut to " << length;
    }
    int errors = 0;
    for (std::size_t position = 0; position < good.size(); ++position) {
      for (const int mask : {0x01, 0x80, 0xff}) {
        std::string bytes = good;
        bytes[position] = static_cast<char>(bytes[position] ^ mask);
        const auto result = read_all(bytes);
        errors += !result;
        ASSERT_EQ(result.value_or(expected), expected) << name << " flipped at " << position;
      }
    }
    EXPECT_GT(errors, static_cast<int>(good.size())) << "padding and dates only may change unseen";
  }
}

}  // namespace
}  // namespace shardwright::zip
