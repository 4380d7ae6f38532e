// SPDX-License-Identifier: Apache-2.0
// Conversions that end in the middle and are gone on with, into every format that is written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "base/crc32.h"
#include "convert/golden.h"
#include "convert/part_journals.h"
#include "convert/set_aside_journals.h"
#include "convert/unfinished_work.h"
#include "exec/execute.h"
#include "exec/payload_place.h"
#include "exec/piece_journal.h"
#include "io/memory_directory.h"
#include "io/recording_directory.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

// Smaller than tensors of the golden files: some are done in several pieces.
constexpr std::uint64_t kSmallPiece = 700;

struct Way {
  std::string golden;
  std::string format;
  ParallelConfig parallel;
};

PreparedConversion prepared(const Way& way) {
  ConvertRequest request;
  request.input = golden_path(way.golden);
  request.output = "/nonexistent/out";
  request.format = way.format;
  request.parallel = way.parallel;
  auto conversion = prepare_conversion(request);
  EXPECT_TRUE(conversion) << conversion.error().text();
  return *std::move(conversion);
}

std::map<std::string, std::string> contents_of(const MemoryDirectory& directory) {
  std::map<std::string, std::string> contents;
  for (const std::string& path : directory.paths()) contents[path] = directory.contents(path);
  return contents;
}

std::ptrdiff_t missing(const FinishedPieces& finished) {
  return std::ranges::count_if(finished, [](const auto& piece) { return !piece.has_value(); });
}

class Resume : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    ASSERT_GT(pieces_.size(), 5U);
    ASSERT_TRUE(execute(plan(), *conversion_.source.files, whole_, {}));
  }

  const Plan& plan() const { return conversion_.plan; }

  // A run that ends when `count` pieces are finished, and what it had told of them.
  FinishedPieces run_some(Directory& target, std::uint32_t count) {
    FinishedPieces told(pieces_.size());
    std::uint32_t finished = 0;
    WholeRun run;
    run.on_finished = [&](std::uint32_t piece, const PieceCrcs& crcs) -> Status {
      told[piece] = crcs;
      if (++finished < count) return {};
      return std::unexpected(Error{Code::kIo, "that is enough", 0});
    };
    EXPECT_FALSE(execute(plan(), pieces_, *conversion_.source.files, target, run, {}));
    return told;
  }

  Status go_on(Directory& target, FinishedPieces finished) {
    return execute(plan(), pieces_, *conversion_.source.files, target, {std::move(finished), {}},
                   {});
  }

  // Under sanitizers a run takes half a second.
  std::uint32_t step() const { return 1 + pieces_.size() / 25; }

  PreparedConversion conversion_ = prepared(GetParam());
  PieceList pieces_{conversion_.plan, kSmallPiece};
  MemoryDirectory whole_{"whole"};
};

TEST_P(Resume, PiecesAreEveryByteOnce) {
  std::uint64_t bytes = 0;
  for (std::uint32_t piece = 0; piece < pieces_.size(); ++piece) {
    std::uint64_t of_piece = 0;
    for (const PieceRun& run : pieces_.runs(piece)) of_piece += run.length;
    EXPECT_EQ(of_piece, pieces_.bytes(piece));
    bytes += of_piece;
  }
  EXPECT_EQ(bytes, pieces_.total_bytes());
  const PieceList large(plan(), std::uint64_t{1} << 40);
  EXPECT_EQ(large.size(), 1U);
  EXPECT_EQ(large.total_bytes(), bytes);
}

TEST_P(Resume, WritesTheSameBytesFromWhereverItEnded) {
  const auto expected = contents_of(whole_);
  for (std::uint32_t count = 1; count < pieces_.size(); count += step()) {
    MemoryDirectory target("target");
    FinishedPieces finished = run_some(target, count);
    const std::uint64_t kept =
        check_finished(plan(), pieces_, target, {.threads = 2}, finished).value();
    EXPECT_GT(kept, 0U);
    RecordingDirectory recorded(target);
    ASSERT_TRUE(go_on(recorded, finished));
    EXPECT_EQ(contents_of(target), expected) << "after " << count << " pieces";
    // What is written again is framing: heads, tails and what was new.
    MemoryDirectory from_nothing("from nothing");
    RecordingDirectory all(from_nothing);
    ASSERT_TRUE(execute(plan(), pieces_, *conversion_.source.files, all, {}, {}));
    EXPECT_EQ(recorded.bytes_written() + kept, all.bytes_written());
  }
}

// As after a power failure: what a journal says was never written, or not all of it.
TEST_P(Resume, DoesAgainWhatTheDiskHasNotKept) {
  const auto expected = contents_of(whole_);
  for (std::uint32_t lost = 0; lost < pieces_.size(); lost += step()) {
    MemoryDirectory target("target");
    FinishedPieces finished = run_some(target, pieces_.size());
    const std::vector<PieceRun> runs = pieces_.runs(lost);
    const PayloadPlace place = place_of(plan(), runs.back()).value();
    const std::string path = plan().target.files[place.file];
    const std::size_t last = place.offset + runs.back().length - 1;
    target.touch(path, last, static_cast<char>(~target.contents(path)[last]));
    ASSERT_TRUE(check_finished(plan(), pieces_, target, {}, finished));
    EXPECT_FALSE(finished[lost]);
    EXPECT_EQ(missing(finished), 1);
    ASSERT_TRUE(go_on(target, finished));
    EXPECT_EQ(contents_of(target), expected);
  }
}

// Nothing where not all blocks of the chunk are known.
Result<DigestBytes> known_digest(const PayloadDigests& digests, const StoredTensor& tensor,
                                 std::uint32_t number, std::uint32_t chunk) {
  std::vector<std::byte> buffer(kDigestBlockBytes);
  const auto refuse = [](std::uint64_t, std::span<std::byte>) -> Status {
    return std::unexpected(Error{Code::kIo, "it is not known", 0});
  };
  return digest_payload(payload_bytes(tensor, chunk), refuse, digests.blocks(number, chunk),
                        buffer);
}

// Digests of what an earlier run wrote come of reading it back; not of what the disk has not kept.
TEST_P(Resume, HasTheSameDigestsAsOneRun) {
  PayloadDigests whole(plan().target);
  ExecuteOptions options;
  options.digests = &whole;
  MemoryDirectory at_once("at once");
  ASSERT_TRUE(execute(plan(), pieces_, *conversion_.source.files, at_once, {}, options));
  EXPECT_EQ(whole.unknown(), 0U);
  for (const bool is_damaged : {false, true}) {
    MemoryDirectory target("target");
    FinishedPieces finished = run_some(target, pieces_.size() / 2);
    if (is_damaged) {
      const PayloadPlace place = place_of(plan(), pieces_.runs(0).back()).value();
      const std::string path = plan().target.files[place.file];
      target.touch(path, place.offset, static_cast<char>(~target.contents(path)[place.offset]));
    }
    PayloadDigests resumed(plan().target);
    options.digests = &resumed;
    ASSERT_TRUE(check_finished(plan(), pieces_, target, {}, finished, &resumed));
    ASSERT_TRUE(execute(plan(), pieces_, *conversion_.source.files, target,
                        {std::move(finished), {}}, options));
    EXPECT_LE(resumed.unknown(), is_damaged ? resumed.size() - 1 : 0);
    for (std::uint32_t t = 0; t < plan().target.tensors.size(); ++t) {
      const StoredTensor& tensor = plan().target.tensors[t];
      for (std::uint32_t c = 0; c < tensor.chunks.size(); ++c) {
        const auto found = known_digest(resumed, tensor, t, c);
        if (is_damaged && !found) continue;
        EXPECT_EQ(found.value(), known_digest(whole, tensor, t, c).value()) << tensor.desc.name;
      }
    }
  }
}

// A record is of another plan then, or was made up: one checksum less, or one more.
TEST_P(Resume, BelievesNoRecordOfOtherRuns) {
  MemoryDirectory target("target");
  const FinishedPieces told = run_some(target, pieces_.size());
  FinishedPieces less = told;
  less[0]->pop_back();
  FinishedPieces more = told;
  more[1]->push_back(0);
  ASSERT_TRUE(check_finished(plan(), pieces_, target, {}, less));
  ASSERT_TRUE(check_finished(plan(), pieces_, target, {}, more));
  EXPECT_FALSE(less[0]);
  EXPECT_FALSE(more[1]);
  EXPECT_EQ(missing(less), 1);
  EXPECT_EQ(missing(more), 1);
}

TEST_P(Resume, BelievesNoFileThatIsMissing) {
  MemoryDirectory target("target");
  FinishedPieces finished = run_some(target, pieces_.size());
  const MemoryDirectory nothing("nothing");
  EXPECT_EQ(check_finished(plan(), pieces_, nothing, {}, finished), 0U);
  EXPECT_EQ(missing(finished), static_cast<std::ptrdiff_t>(pieces_.size()));
}

INSTANTIATE_TEST_SUITE_P(Formats, Resume,
                         testing::Values(Way{"hf/llama3/hf", "torch_dist", {2, 2}},
                                         Way{"hf/llama3/hf", "legacy", {2, 2}},
                                         Way{"hf/llama3/hf", "hf", {}},
                                         Way{"hf/llama3/hf", "dcp", {}}),
                         [](const testing::TestParamInfo<Way>& test) { return test.param.format; });

TEST(Journal, ReadsWhatWasWrittenAndNoTornEnd) {
  const PreparedConversion conversion = prepared({"hf/llama3/hf", "torch_dist", {2, 1}});
  const PieceList pieces(conversion.plan, kSmallPiece);
  const TemporaryFolder folder;
  const std::string path = folder / std::string(kJournalName);
  const PieceCrcs crcs = {1, 0xfffffffe, 3};
  {
    const auto journal = PieceJournal::begin(path, {"1.2", "s", "p", kSmallPiece}).value();
    ASSERT_TRUE(journal->add(2, crcs));
    ASSERT_TRUE(journal->add(0, {}));
  }
  const auto directory = open_local_directory(folder / "").value();
  const ReadJournal read = read_journal(*directory).value();
  EXPECT_EQ(read.head.version, "1.2");
  EXPECT_EQ(read.head.source, "s");
  EXPECT_EQ(read.head.plan, "p");
  EXPECT_EQ(read.head.piece_bytes, kSmallPiece);
  const JournalledPieces all = journalled_pieces(read, pieces);
  EXPECT_EQ(all.finished[2], crcs);
  EXPECT_EQ(all.finished[0], PieceCrcs{});
  EXPECT_EQ(all.finished[1], std::nullopt);
  EXPECT_EQ(all.whole_bytes, fs::file_size(path));

  const std::uint64_t first_record = 12 + 4 * crcs.size();
  for (std::uint64_t cut = 0; cut < read.records.size(); ++cut) {
    ReadJournal torn = read;
    torn.records.resize(cut);
    const JournalledPieces found = journalled_pieces(torn, pieces);
    EXPECT_EQ(found.finished[2].has_value(), cut >= first_record) << cut;
    EXPECT_EQ(found.finished[0], std::nullopt) << cut;
    EXPECT_EQ(found.whole_bytes, read.head_bytes + (cut >= first_record ? first_record : 0));
  }
  for (std::size_t at = 0; at < first_record; ++at) {
    ReadJournal altered = read;
    altered.records[at] = static_cast<char>(altered.records[at] ^ 0x10);
    EXPECT_EQ(journalled_pieces(altered, pieces).finished[2], std::nullopt) << at;
  }
}

// Records whose checksum is right, from whoever could write one.
TEST(Journal, OfPiecesThatThereAreNotIsNotBelieved) {
  const PreparedConversion conversion = prepared({"hf/llama3/hf", "torch_dist", {2, 1}});
  const PieceList pieces(conversion.plan, kSmallPiece);
  const auto found_in = [&](std::uint32_t piece, std::uint32_t count) {
    std::string record(8, '\0');
    std::memcpy(record.data(), &piece, 4);
    std::memcpy(record.data() + 4, &count, 4);
    const std::uint32_t crc = crc32(std::as_bytes(std::span(record)));
    record.append(reinterpret_cast<const char*>(&crc), 4);
    return journalled_pieces({{}, record, 0}, pieces);
  };
  EXPECT_EQ(found_in(0, 0).finished[0], PieceCrcs{});
  for (const auto& [piece, count] :
       {std::pair(static_cast<std::uint32_t>(pieces.size()), 0U), std::pair(0xfffffffeU, 0U),
        std::pair(0U, 1U), std::pair(0U, 0x40000000U), std::pair(0U, 0xffffffffU)}) {
    const JournalledPieces found = found_in(piece, count);
    EXPECT_EQ(found.finished, FinishedPieces(pieces.size())) << piece << ' ' << count;
    EXPECT_EQ(found.whole_bytes, 0U);
  }
}

TEST(Journal, GoesOnBehindItsLastWholeRecord) {
  const PreparedConversion conversion = prepared({"hf/llama3/hf", "torch_dist", {2, 1}});
  const PieceList pieces(conversion.plan, kSmallPiece);
  const TemporaryFolder folder;
  const std::string path = folder / std::string(kJournalName);
  ASSERT_TRUE(PieceJournal::begin(path, {"1", "s", "p", 1}).value()->add(1, {7}));
  const std::uint64_t whole = fs::file_size(path);
  std::ofstream(path, std::ios::app) << "torn";
  ASSERT_TRUE(PieceJournal::resume(path, whole).value()->add(3, {8}));
  const auto directory = open_local_directory(folder / "").value();
  const JournalledPieces found = journalled_pieces(read_journal(*directory).value(), pieces);
  EXPECT_EQ(found.finished[1], PieceCrcs{7});
  EXPECT_EQ(found.finished[3], PieceCrcs{8});
}

// Of a part: nobody else has it, and its end says that no piece will come.
TEST(Journal, OfAPartIsHeldAndHasAnEnd) {
  const PreparedConversion conversion = prepared({"hf/llama3/hf", "torch_dist", {2, 1}});
  const PieceList pieces(conversion.plan, kSmallPiece);
  const TemporaryFolder folder;
  const auto directory = open_local_directory(folder / "").value();
  const std::string path = folder / "part";
  const auto read = [&] {
    return journalled_pieces(read_journal(*directory, "part").value(), pieces);
  };
  auto journal = PieceJournal::hold(path).value();
  EXPECT_EQ(PieceJournal::hold(path).error().code, Code::kTargetExists);
  ASSERT_TRUE(journal->restart({"1", "s", "p", 1}));
  ASSERT_TRUE(journal->add(1, {7}));
  EXPECT_FALSE(read().has_end);
  const std::uint64_t whole = read().whole_bytes;
  ASSERT_TRUE(journal->end());
  EXPECT_TRUE(read().has_end);
  EXPECT_EQ(read().finished[1], PieceCrcs{7});
  EXPECT_EQ(read().whole_bytes, whole) << "who goes on cuts the end off";
  ASSERT_TRUE(journal->add(2, {8}));
  EXPECT_FALSE(read().has_end) << "a piece came after it";
  EXPECT_EQ(read().finished[2], PieceCrcs{8});
  ASSERT_TRUE(journal->cut(whole));
  EXPECT_EQ(read().finished[2], std::nullopt);
  ASSERT_TRUE(journal->restart({"1", "s", "p", 1}));
  EXPECT_EQ(read().finished[1], std::nullopt);
  journal.reset();
  EXPECT_TRUE(PieceJournal::hold(path));
}

TEST(Journal, IsRefusedWhereItIsNone) {
  const TemporaryFolder folder;
  const auto directory = open_local_directory(folder / "").value();
  EXPECT_EQ(read_journal(*directory).error().code, Code::kNotFound);
  for (const std::string text :
       {"", "shardwright journal 2\n", "shardwright journal 1\nversion 1\n",
        "shardwright journal 1\nversion 1\nsource s\nplan p\n"
        "piece_bytes 12x\n\n"}) {
    std::ofstream(folder / std::string(kJournalName), std::ios::trunc) << text;
    EXPECT_EQ(read_journal(*directory).error().code, Code::kCannotResume) << text;
  }
}

// A file system that lets nothing appear.
class NoRename final : public PublishCalls {
 public:
  int rename(const std::string&, const std::string&) override { return EIO; }
};

TEST(Journal, IsThereAgainWhereNothingAppeared) {
  const TemporaryFolder place;
  PublishOptions options;
  options.target = place / "out";
  options.keeps_unfinished = true;
  auto publication = Publication::begin(options, std::make_shared<NoRename>()).value();
  const std::string hidden = publication->partial_path();
  const std::vector<std::string> names = {std::string(kJournalName), part_journal_name({2, 3})};
  for (const std::string& name : names) std::ofstream(hidden + "/" + name) << "of " << name;
  std::ofstream(hidden + "/data") << "x";
  SetAsideJournals journals(*publication);
  std::size_t files = 0;
  const auto take = [&]() -> Status {
    SW_TRY(journals.take());
    files = static_cast<std::size_t>(std::distance(fs::directory_iterator(hidden), {}));
    return {};
  };
  EXPECT_FALSE(publication->commit({take, [&] { journals.put_back(); }}));
  EXPECT_EQ(files, 1U) << "none of them appears";
  publication.reset();
  for (const std::string& name : names) {
    std::ifstream in(hidden + "/" + name);
    EXPECT_EQ(std::string((std::istreambuf_iterator<char>(in)), {}), "of " + name);
  }
}

// Memory runs out in the place of a rename.
class OutOfMemoryAtRename final : public PublishCalls {
 public:
  int rename(const std::string&, const std::string&) override { throw std::bad_alloc(); }
};

TEST(Journal, IsThereAgainWhereMemoryRanOut) {
  const TemporaryFolder place;
  PublishOptions options;
  options.target = place / "out";
  options.keeps_unfinished = true;
  auto publication = Publication::begin(options, std::make_shared<OutOfMemoryAtRename>()).value();
  const std::string journal = publication->partial_path() + "/" + std::string(kJournalName);
  std::ofstream(journal) << "of this";
  const auto commit = [&] {
    SetAsideJournals journals(*publication);
    (void)publication->commit({[&] { return journals.take(); }, [] {}});
  };
  EXPECT_THROW(commit(), std::bad_alloc);
  std::ifstream in(journal);
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(in)), {}), "of this");
  EXPECT_EQ(std::distance(fs::directory_iterator(place.path()), {}), 1) << "nothing lies aside";
}

// What was replaced has the hidden folder's name then, and is no unfinished work.
TEST(Journal, IsNotPutIntoWhatWasReplaced) {
  const TemporaryFolder place;
  PublishOptions options;
  options.target = place / "out";
  fs::create_directory(options.target);
  std::ofstream(options.target + "/old") << "x";
  options.may_replace = [](const std::string&) { return Replace::kWhole; };
  options.may_stay = []() -> Status { throw std::bad_alloc(); };
  auto publication = Publication::begin(options).value();
  const std::string hidden = publication->partial_path();
  std::ofstream(hidden + "/" + std::string(kJournalName)) << "of this";
  const auto commit = [&] {
    SetAsideJournals journals(*publication);
    (void)publication->commit({[&] { return journals.take(); }, [] {}});
  };
  EXPECT_THROW(commit(), std::bad_alloc);
  EXPECT_TRUE(fs::exists(hidden + "/old"));
  EXPECT_FALSE(fs::exists(hidden + "/" + std::string(kJournalName)));
}

// Ends the process in the place of a rename.
class EndsAtRename final : public PublishCalls {
 public:
  int rename(const std::string&, const std::string&) override { ::_exit(9); }
};

TEST(Journal, IsThereAgainAfterAKillAtTheEnd) {
  const TemporaryFolder place;
  const std::string out = place / "out";
  const std::vector<std::string> names = {std::string(kJournalName), part_journal_name({2, 3})};
  const pid_t child = ::fork();
  if (child == 0) {
    PublishOptions options;
    options.target = out;
    options.keeps_unfinished = true;
    auto publication = Publication::begin(options, std::make_shared<EndsAtRename>()).value();
    for (const std::string& name : names) {
      std::ofstream(publication->partial_path() + "/" + name) << "of " << name;
    }
    SetAsideJournals journals(*publication);
    (void)publication->commit({[&] { return journals.take(); }, [] {}});
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(WEXITSTATUS(status), 9);
  EXPECT_EQ(stale_partials(out).size(), 2U) << "the output, and its journals";
  return_set_aside(out);
  const std::vector<std::string> left = stale_partials(out);
  ASSERT_EQ(left.size(), 1U);
  for (const std::string& name : names) {
    std::ifstream in(left[0] + "/" + name);
    EXPECT_EQ(std::string((std::istreambuf_iterator<char>(in)), {}), "of " + name);
  }
  return_set_aside(out);
  EXPECT_EQ(stale_partials(out), left);
}

// A whole run that finds what another one left beside its target.
class ResumeFromDisk : public testing::Test {
 protected:
  ConvertRequest request() const {
    ConvertRequest request;
    request.input = source_;
    request.output = place_ / "out";
    request.format = "torch_dist";
    request.parallel.tensor = 2;
    request.resume = true;
    return request;
  }

  void SetUp() override {
    fs::copy(golden_path("hf/llama3/hf"), source_, fs::copy_options::recursive);
    const auto conversion = prepare_conversion(request());
    ASSERT_TRUE(conversion) << conversion.error().text();
    UnfinishedWork work = begin_or_resume(*conversion, kSmallPiece, {}, nullptr).value();
    EXPECT_TRUE(work.folder.empty());
    // No process has this number.
    folder_ = place_ / ".out.partial-99999999-0";
    fs::create_directory(folder_);
    const auto journal = open_journal(work, folder_).value();
    const auto target = open_local_directory(folder_).value();
    WholeRun run;
    run.on_finished = [&](std::uint32_t piece, const PieceCrcs& crcs) {
      return journal->add(piece, crcs);
    };
    ASSERT_TRUE(
        execute(conversion->plan, work.pieces, *conversion->source.files, *target, run, {}));
  }

  TemporaryFolder place_;
  std::string source_ = place_ / "in";
  std::string folder_;
};

TEST_F(ResumeFromDisk, TakesItOver) {
  const auto conversion = prepare_conversion(request()).value();
  ConvertProgress last;
  RunOptions options;
  options.on_progress = [&](const ConvertProgress& progress) { last = progress; };
  std::map<RunPhase, std::uint64_t> phases;
  options.on_phase = [&](RunPhase phase, std::uint64_t bytes) { phases.emplace(phase, bytes); };
  const auto report = run_conversion(conversion, options);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_GT(report->bytes_resumed, 0U);
  EXPECT_EQ(phases[RunPhase::kRead], report->bytes_resumed) << "what was there is read back";
  EXPECT_EQ(last.bytes_done, last.bytes_total) << "what was there counts as done";
  EXPECT_FALSE(fs::exists(folder_));
  EXPECT_FALSE(fs::exists(place_ / ("out/" + std::string(kJournalName))));
  EXPECT_EQ(difference(read_all_tensors(place_ / "out").value(),
                       read_all_tensors(golden_path("hf/llama3")).value()),
            "");
}

// A signature among them would not be of what is beside it, nor by anyone's key.
TEST_F(ResumeFromDisk, PublishesNoGuardsThatAnEarlierRunMade) {
  const std::vector<std::string> guards = {"shardwright-digests.jsonl", "integrity.json",
                                           "model.sig"};
  for (const std::string& name : guards) {
    place_.put(fs::path(folder_).filename().string() + "/iter_0000000/" + name, "of another run");
  }
  ConvertRequest guarded = request();
  guarded.sha256 = true;
  const auto report = convert_now(guarded);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_FALSE(fs::exists(folder_));
  for (const std::string& name : guards) {
    const std::string path = "out/iter_0000000/" + name;
    EXPECT_EQ(fs::exists(place_ / path), name == "integrity.json") << name;
  }
  EXPECT_THAT(place_.get("out/iter_0000000/integrity.json"), Not(HasSubstr("of another run")));
}

TEST_F(ResumeFromDisk, NamesWhatLiesInThePlaceOfAFile) {
  const fs::path file = fs::path(folder_) / "iter_0000000/__0_0.distcp";
  const fs::path other = place_ / "other";
  fs::copy_file(file, other);
  const std::array<std::pair<const char*, std::function<void()>>, 4> ways = {{
      {": found a link, expected", [&] { fs::create_symlink(other, file); }},
      {": found something that is no file, expected", [&] { fs::create_directory(file); }},
      {": found a file of several names, expected", [&] { fs::create_hard_link(other, file); }},
      {": found a file of 99999999 bytes, expected an unfinished file of at most ",
       [&] {
         fs::copy_file(other, file);
         fs::resize_file(file, 99'999'999);
       }},
  }};
  for (const auto& [said, put] : ways) {
    fs::remove(file);
    put();
    const auto refused = convert_now(request());
    ASSERT_FALSE(refused) << said;
    EXPECT_EQ(refused.error().code, Code::kCannotResume);
    EXPECT_THAT(refused.error().message, HasSubstr(file.string() + said));
    EXPECT_THAT(refused.error().message, HasSubstr("remove that, and the same command goes on"));
  }
  fs::remove(file);
  const auto report = convert_now(request());
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(difference(read_all_tensors(place_ / "out").value(),
                       read_all_tensors(golden_path("hf/llama3")).value()),
            "");
}

TEST_F(ResumeFromDisk, LeavesItAloneWithoutBeingAsked) {
  ConvertRequest anew = request();
  anew.resume = false;
  const auto report = convert_now(anew);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_TRUE(fs::exists(folder_));
}

TEST_F(ResumeFromDisk, RefusesAnotherConversion) {
  ConvertRequest other = request();
  other.dtype = DType::kF32;
  const auto report = convert_now(other);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kCannotResume);
  EXPECT_THAT(report.error().message, HasSubstr("another conversion"));
  EXPECT_TRUE(fs::exists(folder_)) << "what another run may go on with is not lost";
  EXPECT_FALSE(fs::exists(place_ / "out"));
}

TEST_F(ResumeFromDisk, RefusesASourceThatChanged) {
  for (const auto& entry : fs::directory_iterator(source_)) {
    if (entry.path().extension() != ".safetensors") continue;
    fs::last_write_time(entry, fs::last_write_time(entry) + std::chrono::seconds(1));
    break;
  }
  const auto report = convert_now(request());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kCannotResume);
  EXPECT_THAT(report.error().message, HasSubstr("files of the source changed"));
}

// As archives and `rsync -t` make them: two models whose files have equal names, sizes and times.
TEST_F(ResumeFromDisk, RefusesAnotherSourceOfEqualTimes) {
  const std::string other = place_ / "other";
  fs::copy(source_, other, fs::copy_options::recursive);
  for (const auto& entry : fs::directory_iterator(source_)) {
    fs::last_write_time(other / entry.path().filename(), fs::last_write_time(entry));
  }
  ConvertRequest from_other = request();
  from_other.input = other;
  const auto report = convert_now(from_other);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kCannotResume);
  EXPECT_THAT(report.error().message, HasSubstr("others of the same names"));
  EXPECT_TRUE(fs::exists(folder_));
}

TEST_F(ResumeFromDisk, RefusesAnotherVersion) {
  const std::string path = folder_ + "/" + std::string(kJournalName);
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  text.insert(text.find("version ") + 8, "0");
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  const auto report = convert_now(request());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kCannotResume);
  EXPECT_THAT(report.error().message, HasSubstr("another version"));
}

TEST_F(ResumeFromDisk, CanBeStoppedWhileItReadsBack) {
  const auto conversion = prepare_conversion(request()).value();
  std::atomic<bool> cancelled = false;
  RunOptions options;
  options.cancelled = &cancelled;
  options.on_phase = [&](RunPhase phase, std::uint64_t) { cancelled = phase == RunPhase::kRead; };
  const auto report = run_conversion(conversion, options);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kCancelled);
  EXPECT_THAT(report.error().message, HasSubstr("stopped before everything was read"));
  EXPECT_TRUE(fs::exists(folder_)) << "it is as it was";
}

// What could not be finished is there for the next time.
TEST_F(ResumeFromDisk, KeepsWhatItCouldNotFinish) {
  const auto conversion = prepare_conversion(request()).value();
  std::atomic<bool> cancelled = false;
  RunOptions options;
  options.cancelled = &cancelled;
  options.on_phase = [&](RunPhase phase, std::uint64_t) { cancelled = phase == RunPhase::kCopy; };
  const auto report = run_conversion(conversion, options);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kCancelled);
  EXPECT_FALSE(fs::exists(folder_)) << "it was taken over";
  const auto again = run_conversion(prepare_conversion(request()).value(), {});
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_GT(again->bytes_resumed, 0U);
}

}  // namespace
}  // namespace shardwright
