// SPDX-License-Identifier: Apache-2.0
#include "verify/malformed_fixture.h"

namespace shardwright {
namespace {

void make(Base base, const Planted& planted) {
  switch (base) {
    case Base::kHf:
      return Planted::copy("hf/llama3/hf", planted);
    case Base::kHfIndexed:
      return Planted::convert("hf/llama3/hf", "hf", {}, planted.path());
    case Base::kHfExperts:
      return Planted::copy("hf/mixtral/hf", planted);
    case Base::kTorchDist:
      return Planted::convert("hf/llama3/hf", "torch_dist", {2, 2, 1, 1, 2}, planted.path());
    case Base::kExperts:
      return Planted::convert("hf/mixtral/hf", "torch_dist", {1, 1, 1, 2, 1}, planted.path());
    case Base::kLegacy:
      return Planted::copy("hf/llama3/legacy_tp2pp2ep1", planted);
    case Base::kDcpPieces:
      std::filesystem::create_directories(planted.path());
      return;
  }
}

}  // namespace

void expect_named(const Malformed& malformed) {
  const Planted planted;
  make(malformed.base, planted);
  ASSERT_FALSE(::testing::Test::HasFatalFailure());
  if (malformed.base != Base::kDcpPieces) {
    const auto sound = verify_checkpoint(planted.path(), {});
    ASSERT_TRUE(sound) << sound.error().text();
    for (const VerifyFinding& finding : sound->findings) ADD_FAILURE() << finding.message;
  }
  malformed.damage(planted);
  const auto report = verify_checkpoint(planted.path(), {});
  std::string all;
  bool is_named = false;
  const auto look = [&](Code code, const std::string& message) {
    all += code_name(code) + " " + message + "\n";
    is_named |= code == malformed.code && message.find(malformed.message) != std::string::npos;
  };
  if (!report) {
    look(report.error().code, report.error().message);
    EXPECT_FALSE(Defects::is_one(report.error())) << "a finding was expected";
  }
  if (report) {
    for (const VerifyFinding& finding : report->findings) look(finding.code, finding.message);
  }
  EXPECT_TRUE(is_named) << "expected " << code_name(malformed.code) << " " << malformed.message
                        << "\nfound:\n"
                        << all;
}

}  // namespace shardwright
