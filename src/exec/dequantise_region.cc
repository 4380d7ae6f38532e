// SPDX-License-Identifier: Apache-2.0
#include "exec/dequantise_region.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/fail.h"
#include "plan/quantised.h"
#include "tensor/bfloat16.h"
#include "tensor/dequantise.h"

namespace shardwright {
namespace {

constexpr std::int64_t kRunValues = 512;  // products on their way from float32 to the target's type

// What an element of the region has, without what its last axis adds.
struct Place {
  std::int64_t value = 0;  // counted from the loaded values
  std::int64_t scale = 0;  // entries of the stored tensors
  std::int64_t zero = 0;
};

// One walk over a region: all axes but the last one by recursion, the last one in runs of equal
// scale and zero.
class Walk {
 public:
  Walk(const LoadedRegion& loaded, const Conversion& conversion, const Dims& strides)
      : loaded_(loaded),
        piece_(loaded.piece),
        quantised_(*piece_.quantised),
        source_(*quantised_.source),
        conversion_(conversion),
        strides_(strides),
        per_word_(values_per_word(source_)) {
    const StoredTensor& scales = quantised_.catalog->tensors[source_.scales];
    scale_type_ = scales.desc.dtype;
    scale_bytes_ = bytes_of(scale_type_);
    first_scale_ = bytes_before(scales, loaded.scales);
    if (source_.zeros) {
      first_zero_ = bytes_before(quantised_.catalog->tensors[source_.zeros->tensor], loaded.zeros);
    }
    if (source_.second) {
      const StoredTensor& second = quantised_.catalog->tensors[source_.second->tensor];
      second_ = load_scale(second.desc.dtype, loaded.second.bytes);
    }
    if (source_.groups) {
      first_group_ =
          bytes_before(quantised_.catalog->tensors[source_.groups->tensor], loaded.groups) /
          std::int64_t{sizeof(std::int32_t)};
    }
  }

  Status run(std::byte* target) {
    Place place{loaded_.first_value, 0, 0};
    for (int s = 0; s < quantised_.first.size(); ++s) {
      if (std::ranges::find(quantised_.axis, s) != quantised_.axis.end()) continue;
      place.scale += scale_entry(s, quantised_.first[s]);
      place.zero += zero_entry(s, quantised_.first[s]);
    }
    return visit(0, place, target);
  }

 private:
  // What of a tensor lies in front of the loaded window.
  static std::int64_t bytes_before(const StoredTensor& tensor, const LoadedWindow& window) {
    return static_cast<std::int64_t>(window.begin - tensor.chunks.range(0).offset);
  }

  [[nodiscard]] std::int64_t coordinate(int axis, std::int64_t i) const {
    const std::int64_t moved = loaded_.region.origin[axis] + i - piece_.box.origin[axis];
    return quantised_.first[static_cast<int>(quantised_.axis[axis])] +
           moved * quantised_.step[axis];
  }

  [[nodiscard]] bool is_grouped(int s) const { return source_.groups && source_.groups->axis == s; }

  [[nodiscard]] std::int64_t group_of(std::int64_t c) const {
    std::int32_t group = 0;
    std::memcpy(&group, loaded_.groups.bytes + (c - first_group_) * std::int64_t{sizeof group},
                sizeof group);
    return group;
  }

  [[nodiscard]] std::int64_t scale_entry(int s, std::int64_t c) const {
    return (is_grouped(s) ? group_of(c) : c / source_.block[s]) * source_.stride[s];
  }

  [[nodiscard]] std::int64_t zero_entry(int s, std::int64_t c) const {
    if (!source_.zeros) return 0;
    const ZeroPoints& zeros = *source_.zeros;
    const std::int64_t index = is_grouped(s) ? group_of(c) : c / zeros.block[s];
    return index * zeros.stride[s] +
           (zeros.words.axis == s ? slot_of(zeros.words, per_word_, c) : 0);
  }

  [[nodiscard]] std::int64_t value_entry(int axis, std::int64_t i) const {
    if (!has_words_along(axis)) return i * piece_.strides[axis];
    const std::int64_t c = coordinate(axis, i);
    return (c / per_word_ - coordinate(axis, 0) / per_word_) * piece_.strides[axis] +
           slot_of(source_.words, per_word_, c);
  }

  [[nodiscard]] bool has_words_along(int axis) const {
    return source_.words.axis >= 0 && quantised_.axis[axis] == source_.words.axis;
  }

  Status visit(int axis, const Place& place, std::byte* target) {
    if (loaded_.region.axes() == 0) return write(place, 0, 0, 1, target);
    if (axis + 1 == loaded_.region.axes()) return visit_last(axis, place, target);
    const int s = static_cast<int>(quantised_.axis[axis]);
    for (std::int64_t i = 0; i < loaded_.region.shape[axis]; ++i) {
      Place next = place;
      next.value += value_entry(axis, i);
      if (s >= 0) {
        next.scale += scale_entry(s, coordinate(axis, i));
        next.zero += zero_entry(s, coordinate(axis, i));
      }
      SW_TRY(visit(axis + 1, next, target + i * strides_[axis]));
    }
    return {};
  }

  Status visit_last(int axis, const Place& place, std::byte* target) {
    const std::int64_t count = loaded_.region.shape[axis];
    const int s = static_cast<int>(quantised_.axis[axis]);
    for (std::int64_t done = 0; done < count;) {
      Place next = place;
      std::int64_t run = 1;  // an axis of extent 1 where it names none of the values
      if (s >= 0) {
        next.scale += scale_entry(s, coordinate(axis, done));
        next.zero += zero_entry(s, coordinate(axis, done));
        run = equal_run(axis, s, done, std::min(count - done, kRunValues));
      }
      SW_TRY(write(next, axis, done, run, target + done * strides_[axis]));
      done += run;
    }
    return {};
  }

  // How many elements from number `i` on have the scale and the zero that it has.
  [[nodiscard]] std::int64_t equal_run(int axis, int s, std::int64_t i, std::int64_t most) const {
    const std::int64_t c = coordinate(axis, i);
    const std::int64_t step = quantised_.step[axis];
    if (source_.zeros && source_.zeros->words.axis == s) return 1;
    if (is_grouped(s)) {
      const std::int64_t group = group_of(c);
      std::int64_t run = 1;
      while (run < most && group_of(c + run * step) == group) ++run;
      return run;
    }
    const auto rest = [&](std::int64_t block) {
      return ceil_div((c / block + 1) * block - c, step);
    };
    std::int64_t run = std::min(most, rest(source_.block[s]));
    if (source_.zeros) run = std::min(run, rest(source_.zeros->block[s]));
    return run;
  }

  [[nodiscard]] float scale_at(std::int64_t entry) const {
    const float scale =
        load_scale(scale_type_, loaded_.scales.bytes + (entry * scale_bytes_ - first_scale_));
    if (!source_.second) return scale;
    return source_.second->divides ? scale / second_ : scale * second_;
  }

  [[nodiscard]] Status refuse_scale(std::int64_t entry) const {
    const bool is_of_all = source_.second && !is_factor(second_);
    return std::unexpected(is_of_all
                               ? unusable_scale(*quantised_.catalog, source_.second->tensor, 0)
                               : unusable_scale(*quantised_.catalog, source_.scales, entry));
  }

  [[nodiscard]] float zero_at(std::int64_t entry) const {
    if (!source_.zeros) return static_cast<float>(source_.zero);
    const std::int64_t at = entry - first_zero_ * 8 / source_.bits;
    if (source_.zeros->added == 0) {
      return static_cast<float>(integer_at(loaded_.zeros.bytes, at, source_.bits));
    }
    std::uint32_t word = 0;
    std::memcpy(&word, loaded_.zeros.bytes + at / per_word_ * std::int64_t{sizeof word},
                sizeof word);
    word += source_.zeros->added;
    const std::uint32_t mask = (1U << source_.bits) - 1U;
    return static_cast<float>(word >> (at % per_word_ * source_.bits) & mask);
  }

  // `count` elements along `axis` from number `first` on; of no axis at all there is one.
  Status write(const Place& place, int axis, std::int64_t first, std::int64_t count,
               std::byte* target) {
    const float scale = scale_at(place.scale);
    if (!std::isfinite(scale) || !is_factor(second_)) return refuse_scale(place.scale);
    QuantisedRun run{piece_.dtype, loaded_.values, place.value,        1,
                     scale,        source_.bits,   zero_at(place.zero)};
    std::array<std::byte, kRunValues> codes;
    std::int64_t stride = 0;
    if (loaded_.region.axes() > 0) {
      stride = strides_[axis];
      if (has_words_along(axis)) {
        unpack(place.value, axis, first, count, codes.data());
        run.bytes = codes.data();
        run.first = 0;
        run.stride = source_.bits != 0 ? 1 : 2;  // a code of fp4 has the lower half of its byte
        run.bits = source_.bits != 0 ? 8 : 0;
      } else {
        run.first += value_entry(axis, first);
        run.stride = piece_.strides[axis];
      }
    }
    return write_run(run, count, target, stride);
  }

  // Integers, or codes of fp4, of words that lie apart, as bytes.
  void unpack(std::int64_t value, int axis, std::int64_t first, std::int64_t count,
              std::byte* codes) const {
    const std::int64_t base = coordinate(axis, 0) / per_word_;
    std::int64_t c = coordinate(axis, first);
    const int bits = bits_in_words(source_);
    const std::uint32_t mask = (1U << bits) - 1U;
    const auto word_bytes = static_cast<std::size_t>(per_word_ * bits / 8);
    for (std::int64_t i = 0; i < count;) {
      const std::int64_t word = c / per_word_;
      const std::int64_t at = value + (word - base) * piece_.strides[axis];
      std::uint32_t loaded = 0;
      std::memcpy(&loaded, loaded_.values + at * bits / 8, word_bytes);
      for (; i < count && c / per_word_ == word; ++i, c += quantised_.step[axis]) {
        const std::int64_t slot = slot_of(source_.words, per_word_, c);
        codes[i] = static_cast<std::byte>(loaded >> (slot * bits) & mask);
      }
    }
  }

  Status write_run(const QuantisedRun& values, std::int64_t count, std::byte* target,
                   std::int64_t stride) {
    std::array<float, kRunValues> products;
    dequantise_run(values, count, products.data());
    if (conversion_.to == DType::kBF16 && conversion_.add == 0.0) {
      // Two loops, because compilers make vectors of the first only where it has no stride.
      std::array<std::uint16_t, kRunValues> rounded;
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        rounded[i] = bf16_from_f32(products[i]);
      }
      if (stride == sizeof(std::uint16_t)) {
        std::memcpy(target, rounded.data(), static_cast<std::size_t>(count) * sizeof rounded[0]);
        return {};
      }
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        std::memcpy(target + static_cast<std::int64_t>(i) * stride, &rounded[i], sizeof rounded[i]);
      }
      return {};
    }
    return convert_run({DType::kF32, conversion_.to, conversion_.add}, count,
                       reinterpret_cast<const std::byte*>(products.data()), sizeof(float), target,
                       stride);
  }

  const LoadedRegion& loaded_;
  const SourcePiece& piece_;
  const QuantisedPiece& quantised_;
  const QuantisedSource& source_;
  const Conversion& conversion_;
  const Dims& strides_;
  int per_word_;
  DType scale_type_ = DType::kF32;
  std::int64_t scale_bytes_ = 4;
  std::int64_t first_scale_ = 0;  // bytes of each tensor in front of what is loaded
  std::int64_t first_zero_ = 0;
  std::int64_t first_group_ = 0;  // and groups
  float second_ = 1.0F;
};

}  // namespace

bool is_factor(float scale_of_all) { return std::isfinite(scale_of_all) && scale_of_all != 0; }

Error unusable_scale(const Catalog& catalog, std::uint32_t scales, std::int64_t number) {
  const StoredTensor& tensor = catalog.tensors[scales];
  return {
      Code::kPayloadDamaged,
      translated("{}: tensor {}: scale number {} is NaN, infinite or divides by 0, so the "
                 "weights that it is of mean nothing; get the file anew, or leave the tensor out "
                 "(--exclude)",
                 catalog.files[tensor.chunks.file(0)], tensor.desc.name, number),
      0};
}

Status dequantise_region(const LoadedRegion& loaded, const Conversion& conversion,
                         std::byte* target, const Dims& strides) {
  return Walk(loaded, conversion, strides).run(target);
}

}  // namespace shardwright
