// SPDX-License-Identifier: Apache-2.0
// Pickles that run code in a loader that obeys them: found everywhere, carried nowhere.
#include <gmock/gmock.h>

#include <array>
#include <string>
#include <vector>

#include "codec/pickle_decode.h"
#include "codec/pickle_encode.h"
#include "codec/torch_archive.h"
#include "codec/torch_layout.h"
#include "diagnose/diagnose.h"
#include "io/memory_directory.h"
#include "verify/planted_fixture.h"

namespace shardwright {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using std::string_literals::operator""s;

const std::string kIteration = "iter_0000000/";
// A dict with a call of posix.system that is dropped again.
const std::string kPopped = "\x80\x02}cposix\nsystem\nX\x02\x00\x00\x00id\x85R0."s;

// The same pickle with an attribute of its object that calls a function.
std::string with_call(const std::string& bytes, const char* module, const char* name) {
  pickle::Document document = pickle::decode(as_bytes(bytes)).value();
  const std::array<pickle::Value, 1> arguments = {document.string("id")};
  const pickle::Value call =
      document.reduce(document.global(module, name), document.tuple(arguments));
  document.set_attribute(document.root(), "extra", call);
  return pickle::encode(document, pickle::Protocol::kFour).value();
}

struct TorchDist : Planted {
  TorchDist() { convert("hf/llama3/hf", "torch_dist", {2, 1, 1, 1, 2}, path()); }
};

std::vector<std::string> findings_of(const std::string& path) {
  const auto report = verify_checkpoint(path, {});
  EXPECT_TRUE(report) << (report ? "" : report.error().text());
  std::vector<std::string> texts;
  if (!report) return texts;
  for (const VerifyFinding& finding : report->findings) {
    texts.push_back(code_name(finding.code) + (finding.severity == Severity::kError ? " " : "? ") +
                    finding.message);
  }
  return texts;
}

std::vector<std::string> diagnosis_of(const std::string& path) {
  const auto diagnosis = diagnose({path});
  EXPECT_TRUE(diagnosis) << (diagnosis ? "" : diagnosis.error().text());
  std::vector<std::string> texts;
  if (!diagnosis) return texts;
  for (const Finding& finding : diagnosis->findings) {
    texts.push_back(finding.code + " " + finding.message.english + "|" + finding.message.chinese);
  }
  return texts;
}

TEST(HostilePickle, SoundCheckpointsHaveNone) {
  for (const char* path :
       {"hf/llama3/legacy_tp2pp2ep1", "mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full",
        "mcore/dense_te/v0.20.0dev/tp2pp1dp2-torch_dist-full",
        "mcore/dense/v0.15.3/tp2pp1dp2-torch_dist-zero",
        "mcore/moe_te_grouped/v0.16.1/tp1pp2ep2dp2-torch_dist-full"}) {
    for (const std::string& finding : findings_of(golden_path(path))) {
      EXPECT_THAT(finding, ::testing::Not(HasSubstr("SW0224"))) << path;
    }
  }
}

TEST(HostilePickle, OfMetadataIsFoundAndNamed) {
  const TorchDist planted;
  planted.put(kIteration + ".metadata",
              with_call(planted.get(kIteration + ".metadata"), "posix", "system"));
  EXPECT_THAT(
      findings_of(planted.path()),
      Contains(AllOf(HasSubstr("SW0224 "), HasSubstr(".metadata"), HasSubstr("posix.system"))));
  EXPECT_THAT(diagnosis_of(planted.path()),
              Contains(AllOf(HasSubstr("L43"), HasSubstr("posix.system"), HasSubstr("会运行"))));
}

TEST(HostilePickle, OfMetadataIsNamedWhereNothingElseCanBeReadOfIt) {
  const TorchDist planted;
  planted.put(kIteration + ".metadata", kPopped);
  EXPECT_THAT(findings_of(planted.path()),
              Contains(AllOf(HasSubstr("SW0224 "), HasSubstr("posix.system"))));
}

TEST(HostilePickle, UnknownClassesAreAWarning) {
  const TorchDist planted;
  planted.put(kIteration + "notes.pkl", "cmy_lab.trainer\nState\n)\x81.");
  EXPECT_THAT(findings_of(planted.path()),
              Contains(AllOf(HasSubstr("SW0224? "), HasSubstr("my_lab.trainer.State"))));
  EXPECT_FALSE(verify_checkpoint(planted.path(), {}).value().has_errors());
  EXPECT_THAT(diagnosis_of(planted.path()),
              Contains(AllOf(HasSubstr("L44"), HasSubstr("my_lab.trainer.State"))));
}

TEST(HostilePickle, BytesBehindTheEndAreFound) {
  const TorchDist planted;
  planted.append(kIteration + ".metadata", "more");
  EXPECT_THAT(findings_of(planted.path()),
              Contains(AllOf(HasSubstr("SW0220 .metadata"), HasSubstr("4 bytes follow"))));
  EXPECT_THAT(diagnosis_of(planted.path()), Contains(HasSubstr("4 bytes follow")));
}

TEST(HostilePickle, OfARanksFileAndOfFilesBesideIsFound) {
  const Planted planted;
  Planted::copy("hf/llama3/legacy_tp2pp2ep1", planted);
  planted.put("iter_0000001/mp_rank_01_001/rng.pkl", kPopped);
  planted.put("iter_0000001/optimizer.pt", encode_torch_object("\x80\x02"
                                                               "cbuiltins\neval\nX\x01\x00\x00\x00"
                                                               "1\x85R."s,
                                                               TorchLayoutOptions{})
                                               .value());
  EXPECT_THAT(findings_of(planted.path()),
              AllOf(Contains(AllOf(HasSubstr("mp_rank_01_001/rng.pkl"), HasSubstr("posix.system"))),
                    Contains(AllOf(HasSubstr("optimizer.pt"), HasSubstr("builtins.eval")))));
  EXPECT_THAT(diagnosis_of(planted.path()),
              Contains(AllOf(HasSubstr("L43"), HasSubstr("mp_rank_01_001/rng.pkl"))));
}

Result<PreparedConversion> prepared(const std::string& path, std::string_view format) {
  ConvertRequest request;
  request.input = path;
  request.output = path + "-out";
  request.format = format;
  return prepare_conversion(request);
}

TEST(HostilePickle, OfTheCommonStateIsNotCarriedOn) {
  const TorchDist planted;
  const std::string common = planted.get(kIteration + "common.pt");
  const auto file = make_memory_file("common.pt", common);
  const TorchArchive archive = TorchArchive::open(*file).value();
  pickle::Document document =
      pickle::decode(as_bytes(archive.zip().read(*archive.record("data.pkl"), 1 << 20).value()))
          .value();
  const std::array<pickle::Value, 1> arguments = {document.string("id")};
  document.add_pair(document.root(), document.string("extra"),
                    document.reduce(document.global("posix", "system"), document.tuple(arguments)));
  planted.put(kIteration + "common.pt",
              archive.with_pickle(pickle::encode(document, pickle::Protocol::kTwo).value(), 1 << 20)
                  .value());
  EXPECT_THAT(findings_of(planted.path()),
              Contains(AllOf(HasSubstr("SW0224 common.pt"), HasSubstr("posix.system"))));
  const auto refused = prepared(planted.path(), "torch_dist");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kPickleRunsCode);
  EXPECT_THAT(refused.error().message, HasSubstr("convert with --to hf"));
  const auto allowed = prepared(planted.path(), "hf");
  EXPECT_TRUE(allowed) << allowed.error().text();
}

}  // namespace
}  // namespace shardwright
