// SPDX-License-Identifier: Apache-2.0
#include "layout/zero_partition.h"

#include <algorithm>

#include "base/fail.h"
#include "base/text.h"

namespace shardwright {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 60;

// ZeRO counts a parameter without axes as one element.
Result<std::int64_t> elements_of(const ZeroParameter& parameter) {
  const auto elements = element_count(parameter.shape);
  if (elements && *elements <= kMostElements) return *elements;
  return fail(Code::kZeroLayout, "parameter {}: found shape {}, which no tensor can have",
              printable(parameter.name), to_string(parameter.shape));
}

// A run of flat buffers, of one rank or one after another of several.
struct Run {
  std::size_t rank = 0;
  std::size_t group = 0;
  std::int64_t begin = 0;  // in the whole
  std::int64_t end = 0;
};

// Adds the elements [begin, end) of the whole, which are those of the parameter from `first` on.
void append_pieces(std::span<const Run> runs, std::int64_t begin, std::int64_t end,
                   std::size_t parameter, std::int64_t first, std::vector<ZeroPiece>& pieces) {
  auto run = std::ranges::upper_bound(runs, begin, {}, &Run::end);
  for (std::int64_t next = begin; next < end && run != runs.end(); ++run) {
    const std::int64_t stop = std::min(end, run->end);
    if (stop == next) continue;
    pieces.push_back({parameter, run->rank, run->group, next - run->begin, first + next - begin,
                      first + stop - begin});
    next = stop;
  }
}

Result<std::int64_t> append_run(std::size_t rank, std::size_t group, std::int64_t size,
                                std::int64_t begin, std::vector<Run>& runs) {
  if (size < 0 || size > kMostElements - begin) {
    return fail(Code::kZeroLayout, "group {} of rank {}: found {} elements, which none can have",
                group, rank, size);
  }
  runs.push_back({rank, group, begin, begin + size});
  return begin + size;
}

std::int64_t align_up(std::int64_t number, std::int64_t unit) {
  return (number + unit - 1) / unit * unit;
}

Status check_group_count(const ZeroSizes& sizes, std::size_t rank, std::size_t groups) {
  if (sizes[rank].size() == groups) return {};
  return fail(Code::kZeroLayout, "rank {}: found {} groups of parameters, expected {}", rank,
              sizes[rank].size(), groups);
}

}  // namespace

Result<std::vector<ZeroPiece>> cut_groups(std::span<const ZeroGroup> groups,
                                          const ZeroSizes& sizes) {
  const auto ranks = static_cast<std::int64_t>(sizes.size());
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    SW_TRY(check_group_count(sizes, rank, groups.size()));
  }
  std::vector<ZeroPiece> pieces;
  std::size_t parameter = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<Run> runs;
    std::int64_t there = 0;
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      there = SW_TRY(append_run(rank, g, sizes[rank][g], there, runs));
    }
    std::int64_t next = 0;
    for (const ZeroParameter& one : groups[g]) {
      const std::int64_t elements = SW_TRY(elements_of(one));
      if (elements > there - next) {
        return fail(Code::kZeroLayout,
                    "parameter {}: found {} elements for it in the buffers of group {}, expected "
                    "{}; the files are of different runs or ranks, or one is cut off",
                    printable(one.name), std::max<std::int64_t>(0, there - next), g, elements);
      }
      append_pieces(runs, next, next + elements, parameter++, 0, pieces);
      next += elements;
      if (one.padding < 0 || one.padding > kMostElements - next) {
        return fail(Code::kZeroLayout, "parameter {}: found a padding of {} elements",
                    printable(one.name), one.padding);
      }
      next += one.padding;
    }
    // DeepSpeed pads to a multiple of two elements a rank, or cuts the padding off.
    if (align_up(next, 2 * ranks) != align_up(there, 2 * ranks)) {
      return fail(Code::kZeroLayout,
                  "group {}: found {} elements in its buffers, expected {} and padding up to a "
                  "multiple of {}; the parameters listed are not those of these buffers",
                  g, there, next, 2 * ranks);
    }
  }
  return pieces;
}

Result<std::vector<ZeroPiece>> cut_parameters(std::span<const ZeroGroup> groups,
                                              const ZeroSizes& sizes) {
  const auto ranks = static_cast<std::int64_t>(sizes.size());
  std::vector<std::vector<Run>> runs(sizes.size());
  std::vector<std::int64_t> there(sizes.size());
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    SW_TRY(check_group_count(sizes, rank, sizes.front().size()));
    for (std::size_t g = 0; g < sizes[rank].size(); ++g) {
      there[rank] = SW_TRY(append_run(rank, g, sizes[rank][g], there[rank], runs[rank]));
    }
  }
  std::vector<ZeroPiece> pieces;
  std::size_t parameter = 0;
  std::int64_t next = 0;
  for (const ZeroGroup& group : groups) {
    for (const ZeroParameter& one : group) {
      const std::int64_t elements = SW_TRY(elements_of(one));
      const std::int64_t each = elements / ranks + (elements % ranks == 0 ? 0 : 1);
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        if (each > there[static_cast<std::size_t>(rank)] - next) {
          return fail(Code::kZeroLayout,
                      "parameter {}: found {} elements for it in the buffers of rank {}, expected "
                      "{}; the files are of different runs or ranks, or one is cut off",
                      printable(one.name), there[static_cast<std::size_t>(rank)] - next, rank,
                      each);
        }
        const std::int64_t first = std::min(elements, rank * each);
        const std::int64_t last = std::min(elements, first + each);
        append_pieces(runs[static_cast<std::size_t>(rank)], next, next + last - first, parameter,
                      first, pieces);
      }
      ++parameter;
      next += each;
    }
  }
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    if (there[rank] == next) continue;
    return fail(Code::kZeroLayout,
                "rank {}: found {} elements in its buffers, expected {}; the parameters listed are "
                "not those of these buffers",
                rank, there[rank], next);
  }
  return pieces;
}

}  // namespace shardwright
