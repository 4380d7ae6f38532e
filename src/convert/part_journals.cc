// SPDX-License-Identifier: Apache-2.0
#include "convert/part_journals.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>

#include "base/fail.h"
#include "base/text.h"
#include "convert/piece_shares.h"
#include "convert/saved_plan.h"
#include "io/output_place.h"
#include "io/partial_outputs.h"

namespace shardwright {
namespace {

using PartNumbers = std::set<std::uint32_t>;

// What of a part's journal is to be believed: that of a part which is done.
std::optional<FinishedPieces> finished_by(const Directory& folder, const PieceList& pieces,
                                          const JournalHead& head, Part part,
                                          const std::vector<std::uint32_t>& share) {
  const auto journal = read_journal(folder, part_journal_name(part));
  if (!journal || !(journal->head == head)) return std::nullopt;
  JournalledPieces found = journalled_pieces(*journal, pieces);
  if (!found.has_end) return std::nullopt;
  for (const std::uint32_t piece : share) {
    if (!found.finished[piece]) return std::nullopt;
  }
  return std::move(found.finished);
}

// The parts that have begun, by their count.
Result<std::map<std::uint32_t, PartNumbers>> begun_parts(const Directory& folder) {
  std::map<std::uint32_t, PartNumbers> begun;
  for (const DirectoryEntry& entry : SW_TRY(folder.list(""))) {
    if (const auto part = part_of_journal(entry.name)) begun[part->count].insert(part->number);
  }
  return begun;
}

// Takes what each part of a count has finished, and gives the parts that have not.
std::vector<Part> take_parts(const Directory& folder, const PieceList& pieces,
                             const JournalHead& head, const PartNumbers& begun,
                             FinishedParts& all) {
  std::vector<Part> missing;
  all.finished.assign(pieces.size(), std::nullopt);
  for (std::size_t i = 0; i < all.shares.size(); ++i) {
    const Part part = all.part(i);
    std::optional<FinishedPieces> finished;
    if (begun.contains(part.number)) {
      finished = finished_by(folder, pieces, head, part, all.shares[i]);
    }
    if (!finished) {
      missing.push_back(part);
      continue;
    }
    for (const std::uint32_t piece : all.shares[i]) {
      all.finished[piece] = std::move((*finished)[piece]);
    }
  }
  return missing;
}

// Whoever repeats a part that is done holds its journal.
Status check_idle(const std::string& path, std::uint32_t count) {
  for (std::uint32_t number = 1; number <= count; ++number) {
    SW_TRY(PieceJournal::hold(path + "/" + part_journal_name({number, count})));
  }
  return {};
}

std::string listed(const std::vector<Part>& parts) {
  constexpr std::size_t kMostNamed = 20;
  std::vector<std::string> names;
  for (const Part part : parts) names.push_back(part_text(part));
  if (names.size() == 1 || names.size() > kMostNamed) return name_list(names);
  const std::string last = names.back();
  names.pop_back();
  return name_list(names) + translated(" and ") + last;
}

// Whether all that the plan makes is in OUT, by names and sizes.
bool is_there(const PreparedConversion& conversion) {
  const Plan& plan = conversion.plan;
  const auto output = open_local_directory(conversion.request.output);
  if (!output) return false;
  for (std::size_t i = 0; i < plan.target.files.size(); ++i) {
    const Result<FileVersion> found = (*output)->version(plan.target.files[i]);
    if (!found || found->size_bytes != plan.file_sizes[i]) return false;
  }
  return true;
}

bool has_parts_folder(const PreparedConversion& conversion, const SavedPlan& plan) {
  const auto target = resolved_output(conversion.request.output);
  std::error_code ignored;
  return target &&
         std::filesystem::exists(parts_folder(target->string(), parts_id_of(plan)), ignored);
}

}  // namespace

std::string part_journal_name(Part part) {
  return fmt::format("{}-{}-of-{}", kJournalName, part.number, part.count);
}

std::optional<Part> part_of_journal(std::string_view name) {
  if (!name.starts_with(kJournalName)) return std::nullopt;
  std::string_view rest = name.substr(kJournalName.size());
  constexpr std::string_view kOf = "-of-";
  if (!rest.starts_with('-')) return std::nullopt;
  rest.remove_prefix(1);
  const auto number = take_number(rest);
  if (!number || !rest.starts_with(kOf)) return std::nullopt;
  rest.remove_prefix(kOf.size());
  const auto count = take_number(rest);
  if (!count || *count > kMostParts || *number < 1 || *number > *count) return std::nullopt;
  const Part part{static_cast<std::uint32_t>(*number), static_cast<std::uint32_t>(*count)};
  if (part_journal_name(part) != name) return std::nullopt;
  return part;
}

PartPieces pieces_of_parts(const PieceList& pieces, std::uint32_t count) {
  std::vector<std::uint32_t> all(pieces.size());
  std::iota(all.begin(), all.end(), 0U);
  PieceShares shares = shares_of_pieces(pieces, std::move(all), static_cast<int>(count));
  PartPieces parts(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    while (const auto piece = shares.take_own(static_cast<int>(i))) parts[i].push_back(*piece);
  }
  return parts;
}

std::unexpected<Error> parts_missing(const SavedPlan& plan, const std::vector<Part>& parts,
                                     std::string_view what) {
  const std::string numbers = listed(parts);
  return parts.size() == 1 ? fail(Code::kPartsMissing, "{}: part {} is {}; run it again",
                                  plan.request.output, numbers, what)
                           : fail(Code::kPartsMissing, "{}: parts {} are {}; run them again",
                                  plan.request.output, numbers, what);
}

Result<FinishedParts> find_finished_parts(const Directory& folder, const std::string& path,
                                          const PieceList& pieces, const SavedPlan& plan) {
  const JournalHead head = head_of(plan);
  FinishedParts all;
  std::vector<Part> missing;
  std::vector<std::uint32_t> counts;
  for (const auto& [count, begun] : SW_TRY(begun_parts(folder))) {
    all.shares = pieces_of_parts(pieces, count);
    std::vector<Part> of_count = take_parts(folder, pieces, head, begun, all);
    if (of_count.empty()) {
      SW_TRY(check_idle(path, count));
      return all;
    }
    counts.push_back(count);
    // Of several counts the one that has least to do.
    if (missing.empty() || of_count.size() < missing.size()) missing = std::move(of_count);
  }
  if (counts.empty()) {
    return fail(Code::kPartsMissing, "{}: no part of it is written; run the parts first",
                plan.request.output);
  }
  if (counts.size() == 1) return parts_missing(plan, missing, translated("missing"));
  return parts_missing(plan, missing,
                       translated("missing (parts of {} different counts are there, none of them "
                                  "all; this count lacks least)",
                                  counts.size()));
}

Error told_of_publishing(const PreparedConversion& conversion, const SavedPlan& plan, Error error) {
  const bool may_be_so = error.code == Code::kPartsMissing || error.code == Code::kTargetExists;
  if (!may_be_so || has_parts_folder(conversion, plan) || !is_there(conversion)) return error;
  return Error{error.code,
               translated("{}: no part is left to be published, and all files of the plan are "
                          "there, of the sizes that it says: an earlier 'publish' has done it "
                          "('verify' tells whether all is well), unless they are older",
                          conversion.request.output)};
}

}  // namespace shardwright
