// SPDX-License-Identifier: Apache-2.0
// What the parts of a conversion leave for each other: the saved plan, and their journals.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "convert/saved_plan.h"
#include "exec/piece_journal.h"
#include "expect.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

void read_plan(const std::string& text) {
  const Result<SavedPlan> plan = parse_plan_file(text, "saved.plan");
  if (!plan) return;
  const std::string written = plan_file_text(*plan);
  const Result<SavedPlan> again = parse_plan_file(written, "again.plan");
  expect(again.has_value(), "what was written can be read");
  expect(plan_file_text(*again) == written, "and means the same");
  expect(parts_id_of(*again) == parts_id_of(*plan), "for all parts");
}

// The request alone, in a plan of this version: a kept input outlives a release.
void read_request(const std::string& text) {
  const std::string digits(32, '0');
  read_plan(R"({"schema": "shardwright/saved-plan/1", "version": ")" SHARDWRIGHT_VERSION
            R"(", "source": ")" +
            digits + R"(", "plan": ")" + digits + R"(", "piece_bytes": 4096, "request": )" + text +
            "}");
}

// Two tensors that are written as zeros, cut into pieces.
Plan small_plan() {
  Plan plan;
  for (const char* name : {"a", "b"}) {
    StoredTensor tensor{{name, DType::kF32, {64}}, ChunkList(1), Encoding::kTorchItem};
    tensor.chunks.push_back({Box::whole({64}), 0, {}, {}});
    plan.target.tensors.push_back(std::move(tensor));
    plan.tensors.push_back({{}, 0.0, 0.0});
  }
  return plan;
}

void read_journal_of(const std::string& text) {
  MemoryDirectory directory;
  directory.put(std::string(kJournalName), text);
  const Result<ReadJournal> journal = read_journal(directory);
  if (!journal) return;
  const Plan plan = small_plan();
  const PieceList pieces(plan, 64);
  const JournalledPieces found = journalled_pieces(*journal, pieces);
  expect(found.finished.size() == pieces.size(), "a place for each piece");
  expect(found.whole_bytes >= journal->head_bytes, "the head is whole");
  expect(found.whole_bytes <= text.size(), "nothing is whole that is not there");
  // What is cut off behind the last whole record changes nothing.
  directory.put(std::string(kJournalName), text.substr(0, found.whole_bytes));
  const Result<ReadJournal> cut = read_journal(directory);
  expect(cut.has_value() && cut->head == journal->head, "the head is still there");
  expect(journalled_pieces(*cut, pieces).finished == found.finished, "and so are the pieces");
}

}  // namespace
}  // namespace shardwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  shardwright::read_plan(text);
  shardwright::read_request(text);
  shardwright::read_journal_of(text);
  return 0;
}
