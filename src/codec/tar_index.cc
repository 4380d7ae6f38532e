// SPDX-License-Identifier: Apache-2.0
#include "codec/tar_index.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "io/beneath.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kBlock = 512;
constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostExtraBytes = std::uint64_t{1} << 20;  // of a long name or pax records

using Block = std::array<char, kBlock>;

struct TarField {
  std::size_t begin = 0;
  std::size_t length = 0;
};
constexpr TarField kName{0, 100};
constexpr TarField kSize{124, 12};
constexpr TarField kChecksum{148, 8};
constexpr std::size_t kTypeAt = 156;
constexpr TarField kMagic{257, 5};
constexpr TarField kPrefix{345, 155};

// What files of gzip, zstd, bzip2 and xz begin with.
constexpr std::array<std::string_view, 4> kCompressed = {"\x1f\x8b", "\x28\xb5\x2f\xfd", "BZh",
                                                         "\xfd\x37zXZ"};

bool is_compressed(const Block& block) {
  const std::string_view head(block.data(), block.size());
  return std::ranges::any_of(kCompressed,
                             [&](std::string_view magic) { return head.starts_with(magic); });
}

// Up to its first NUL.
std::string text_of_field(const Block& block, TarField field) {
  const std::string_view whole(block.data() + field.begin, field.length);
  return std::string(whole.substr(0, whole.find('\0')));
}

// Octal digits between blanks, or GNU's binary form of larger numbers.
std::optional<std::uint64_t> number_of_field(const Block& block, TarField field) {
  std::string_view digits(block.data() + field.begin, field.length);
  if ((static_cast<unsigned char>(digits.front()) & 0x80U) != 0) {
    std::uint64_t number = 0;
    for (std::size_t i = 1; i < digits.size(); ++i) {
      if (number >> 55U != 0) return std::nullopt;
      number = number << 8U | static_cast<unsigned char>(digits[i]);
    }
    return (static_cast<unsigned char>(digits.front()) & 0x7FU) == 0 ? std::optional(number)
                                                                     : std::nullopt;
  }
  while (!digits.empty() && digits.front() == ' ') digits.remove_prefix(1);
  std::uint64_t number = 0;
  bool has_any = false;
  for (const char digit : digits) {
    if (digit < '0' || digit > '7') break;
    number = number * 8 + static_cast<std::uint64_t>(digit - '0');
    has_any = true;
  }
  return has_any ? std::optional(number) : std::nullopt;
}

bool has_its_checksum(const Block& block) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool is_of_sum = i >= kChecksum.begin && i < kChecksum.begin + kChecksum.length;
    sum += static_cast<unsigned char>(is_of_sum ? ' ' : block[i]);
  }
  return number_of_field(block, kChecksum) == sum;
}

class TarIndexer {
 public:
  explicit TarIndexer(const ReadableFile& file) : file_(file) {}

  Result<std::vector<TarEntry>> run() {
    for (std::uint64_t at = 0; at < file_.size();) {
      if (file_.size() - at < kBlock) return refuse(at, "found an end within a header");
      Block block{};
      SW_TRY(file_.read_at(at, std::as_writable_bytes(std::span(block))));
      if (std::ranges::all_of(block, [](char c) { return c == '\0'; })) break;
      if (!has_its_checksum(block)) return refuse_header(at, block);
      at = SW_TRY(take(block, at));
    }
    return std::move(entries_);
  }

 private:
  std::unexpected<Error> refuse(std::uint64_t at, std::string_view what) const {
    return fail(Code::kTarCorrupt, "{}@{}: {}; it was cut or damaged: copy it again", file_.name(),
                at, what);
  }

  std::unexpected<Error> refuse_header(std::uint64_t at, const Block& block) const {
    if (at == 0 && is_compressed(block)) {
      return fail(Code::kUnsupportedFormat,
                  "{}: this archive is compressed, so its tensors can't be read in place; unpack "
                  "it (tar -xf) and give the folder",
                  file_.name());
    }
    return refuse(at, "found no header of a tar archive, by its checksum");
  }

  // The offset of the next header.
  Result<std::uint64_t> take(const Block& block, std::uint64_t at) {
    const std::uint64_t begin = at + kBlock;
    const char type = block[kTypeAt];
    const bool is_extra = type == 'x' || type == 'L' || type == 'g' || type == 'K';
    std::optional<std::uint64_t> size = number_of_field(block, kSize);
    if (!is_extra && pax_size_) size = pax_size_;
    if (!size || *size > file_.size() - begin) {
      return refuse(at, "found an entry that ends behind the file");
    }
    if (is_extra) {
      SW_TRY(take_extra(type, begin, *size));
    } else {
      SW_TRY(take_entry(block, type, begin, *size));
      long_name_.clear();
      pax_size_.reset();
    }
    const std::uint64_t padded = (*size + kBlock - 1) / kBlock * kBlock;
    return begin + std::min(padded, file_.size() - begin);
  }

  // What describes the entry behind it; a global description changes nothing that is read here.
  Status take_extra(char type, std::uint64_t begin, std::uint64_t size) {
    if (type == 'g' || type == 'K') return {};
    if (size > kMostExtraBytes) {
      return fail(Code::kLimit, "{}@{}: found {} bytes that describe an entry, limit {}",
                  file_.name(), begin, size, kMostExtraBytes);
    }
    std::string text(static_cast<std::size_t>(size), '\0');
    SW_TRY(file_.read_at(begin, std::as_writable_bytes(std::span(text))));
    if (type == 'L') {
      long_name_ = text.substr(0, text.find('\0'));
      return {};
    }
    return take_pax(text, begin);
  }

  // `27 path=NAME\n`, the number counting all of it.
  Status take_pax(std::string_view records, std::uint64_t at) {
    while (!records.empty()) {
      std::string_view rest = records;
      const std::optional<std::int64_t> length = take_number(rest);
      const bool fits = length && *length > 0 && std::cmp_less_equal(*length, records.size()) &&
                        rest.starts_with(' ');
      if (!fits) return refuse(at, "found pax records whose lengths are wrong");
      const std::size_t head = records.size() - rest.size() + 1;
      std::string_view record = records.substr(0, static_cast<std::size_t>(*length));
      records.remove_prefix(record.size());
      if (record.size() <= head || !record.ends_with('\n')) {
        return refuse(at, "found pax records whose lengths are wrong");
      }
      record = record.substr(head, record.size() - head - 1);
      if (record.starts_with("path=")) long_name_ = record.substr(5);
      if (record.starts_with("GNU.sparse.")) return refuse(at, "found a sparse file");
      if (record.starts_with("size=")) {
        record.remove_prefix(5);
        const std::optional<std::int64_t> size = take_number(record);
        if (!size || !record.empty()) return refuse(at, "found a size that is no number");
        pax_size_ = static_cast<std::uint64_t>(*size);
      }
    }
    return {};
  }

  Status take_entry(const Block& block, char type, std::uint64_t begin, std::uint64_t size) {
    std::string name = name_of(block);
    while (name.starts_with("./")) name.erase(0, 2);
    const bool is_folder = type == '5' || name.ends_with('/');
    while (name.ends_with('/')) name.pop_back();
    if (is_folder && (name.empty() || name == ".")) return {};
    const Status is_safe = check_relative_path(name);
    if (!is_safe) {
      return std::unexpected(
          Error(is_safe.error()).within(fmt::format("{}@{}", file_.name(), begin - kBlock)));
    }
    if (is_folder) return {};
    if (type == '1' || type == '2') {
      return fail(Code::kNotAFile, "{}: {} is a link; give an archive of files", file_.name(),
                  printable(name));
    }
    if (type != '0' && type != '\0' && type != '7') {
      return refuse(begin - kBlock, "found an entry that is neither a file nor a folder");
    }
    if (!names_.insert(name).second) {
      return fail(Code::kDuplicateName, "{}: {} is in it twice", file_.name(), printable(name));
    }
    if (entries_.size() == kMostEntries) {
      return fail(Code::kLimit, "{}: found more than {} files", file_.name(), kMostEntries);
    }
    entries_.push_back({std::move(name), begin, size});
    return {};
  }

  [[nodiscard]] std::string name_of(const Block& block) const {
    if (!long_name_.empty()) return long_name_;
    const std::string name = text_of_field(block, kName);
    const bool is_ustar = text_of_field(block, kMagic) == "ustar" && block[262] == '\0';
    const std::string prefix = is_ustar ? text_of_field(block, kPrefix) : std::string();
    return prefix.empty() ? name : prefix + "/" + name;
  }

  const ReadableFile& file_;
  std::vector<TarEntry> entries_;
  std::set<std::string, std::less<>> names_;
  std::string long_name_;                  // of the entry to come
  std::optional<std::uint64_t> pax_size_;  // likewise
};

}  // namespace

Result<std::vector<TarEntry>> read_tar(const ReadableFile& file) { return TarIndexer(file).run(); }

}  // namespace shardwright
