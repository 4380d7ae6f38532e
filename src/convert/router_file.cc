// SPDX-License-Identifier: Apache-2.0
#include "convert/router_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "base/crc32.h"
#include "base/fail.h"
#include "tensor/convert.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;
constexpr int kDraws = 6;  // of 64 bits, which are two uniform numbers each

// The finaliser of SplitMix64: states that follow each other give numbers that have nothing in
// common.
std::uint64_t mixed(std::uint64_t state) {
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9U;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebU;
  return state ^ (state >> 31);
}

std::uint64_t key_of(std::int64_t seed, const std::string& layer) {
  return mixed(static_cast<std::uint64_t>(seed) * kGolden + crc32(std::as_bytes(std::span(layer))));
}

// All sums are whole numbers below 2^36, hence exact.
double normal(std::uint64_t key, std::uint64_t index) {
  std::int64_t sum = 0;
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    const std::uint64_t bits = mixed(key + (index * kDraws + draw + 1) * kGolden);
    sum += static_cast<std::int64_t>(bits >> 32) + static_cast<std::int64_t>(bits & 0xffffffffU);
  }
  constexpr double kOne = 4294967296.0;  // 2^32
  constexpr std::int64_t kMiddle = kDraws * 0xffffffffLL;
  return static_cast<double>(sum - kMiddle) / kOne;
}

class RouterFile final : public ReadableFile {
 public:
  RouterFile(std::string name, RouterWeights weights)
      : name_(std::move(name)),
        weights_(std::move(weights)),
        width_(static_cast<std::uint64_t>(bytes_of(weights_.dtype))) {
    for (const std::string& layer : weights_.layers) {
      keys_.push_back(key_of(weights_.seed, layer));
    }
  }

  [[nodiscard]] std::uint64_t size() const override {
    return keys_.size() * static_cast<std::uint64_t>(weights_.per_layer) * width_;
  }

  // Others for another seed and deviation: a run that is resumed must not mix them.
  [[nodiscard]] FileVersion version() const override {
    const auto deviation = std::bit_cast<std::uint64_t>(weights_.deviation);
    const std::uint64_t mixed =
        static_cast<std::uint64_t>(weights_.seed) * 0x9e3779b97f4a7c15U ^ deviation;
    return {.size_bytes = size(), .modified_ns = static_cast<std::int64_t>(mixed)};
  }

  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> buffer) const override {
    if (offset > size() || buffer.size() > size() - offset) {
      return fail(Code::kShortRead, "{}: it ends at byte {}", name_, size());
    }
    const auto per_layer = static_cast<std::uint64_t>(weights_.per_layer);
    while (!buffer.empty()) {
      const std::uint64_t element = offset / width_;
      const double value =
          normal(keys_[element / per_layer], element % per_layer) * weights_.deviation;
      std::array<std::byte, sizeof(double)> bytes{};
      SW_TRY(convert_run({DType::kF64, weights_.dtype, 0.0}, 1,
                         reinterpret_cast<const std::byte*>(&value), sizeof value, bytes.data(),
                         static_cast<std::int64_t>(width_)));
      const std::uint64_t skipped = offset % width_;
      const auto count = std::min<std::size_t>(width_ - skipped, buffer.size());
      std::memcpy(buffer.data(), bytes.data() + skipped, count);
      buffer = buffer.subspan(count);
      offset += count;
    }
    return {};
  }

  [[nodiscard]] const std::string& name() const override { return name_; }

 private:
  std::string name_;
  RouterWeights weights_;
  std::uint64_t width_;
  std::vector<std::uint64_t> keys_;
};

}  // namespace

std::unique_ptr<ReadableFile> make_router_file(std::string name, RouterWeights weights) {
  return std::make_unique<RouterFile>(std::move(name), std::move(weights));
}

}  // namespace shardwright
