// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "codec/pickle_decode.h"
#include "codec/pickle_difference.h"
#include "codec/pickle_encode.h"
#include "testing/golden_files.h"

namespace shardwright::pickle {
namespace {

// Real pickles: Megatron's common state, a tensor of a torch.save archive, containers, `.metadata`.
const std::vector<std::string> kSamples = {
    "pickle/common_mcore_0.16.1.pkl", "pickle/14_bare_tensor_torch_2.13.pkl",
    "pickle/05_containers_torch_2.13.pkl", "pickle/07_numpy_torch_2.13.pkl",
    "metadata/torch_2.13_plain.metadata"};

// Of each sample a thousand places and more: to read it anew takes longer too the larger it is, and
// all bytes of the large ones would take most of a test run's time.
std::size_t step_of(const std::string& pickle) { return pickle.size() / 2'000 + 1; }

// A damaged pickle is an error or a tree of bounded size that can be written again.
void expect_survival(const std::string& bytes, const std::string& what) {
  const auto document = decode(as_bytes(bytes));
  if (!document) {
    ASSERT_FALSE(document.error().message.empty()) << what;
    return;
  }
  ASSERT_LE(document->node_count(), bytes.size() * 3 + 16) << what;
  ASSERT_LE(document->text_bytes(), bytes.size() * 3 + 16) << what;
  const auto encoded = encode(*document, Protocol::kFour);
  if (!encoded) return;
  const auto again = decode(as_bytes(*encoded));
  ASSERT_TRUE(again) << what << again.error().text();
  ASSERT_EQ(difference(*document, *again), "") << what;
}

TEST(PickleFuzz, TruncationsAreRefused) {
  for (const std::string& sample : kSamples) {
    const std::string pickle = read_golden(sample);
    ASSERT_TRUE(decode(as_bytes(pickle))) << sample;
    for (std::size_t length = 0; length < pickle.size(); length += step_of(pickle)) {
      const auto document = decode(as_bytes(std::string_view(pickle).substr(0, length)));
      ASSERT_FALSE(document) << sample << " cut to " << length;
      ASSERT_EQ(document.error().code, Code::kPickleCorrupt) << sample << " cut to " << length;
    }
  }
}

TEST(PickleFuzz, FlippedBytesAreSurvived) {
  for (const std::string& sample : kSamples) {
    std::string pickle = read_golden(sample);
    for (std::size_t at = 0; at < pickle.size(); at += step_of(pickle)) {
      for (unsigned mask : {0xffu, 0x01u}) {
        const char kept = pickle[at];
        pickle[at] = static_cast<char>(static_cast<unsigned char>(kept) ^ mask);
        expect_survival(pickle, sample + " flipped at " + std::to_string(at));
        pickle[at] = kept;
      }
    }
  }
}

}  // namespace
}  // namespace shardwright::pickle
