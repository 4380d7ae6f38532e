// SPDX-License-Identifier: Apache-2.0
#include "io/remote_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "shardwright/storage.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(RemotePath, UrlsGetTheCommandThatFetchesThem) {
  EXPECT_THAT(remote_hint("s3://bucket/run 1"), HasSubstr("aws s3 sync 's3://bucket/run 1' DIR"));
  EXPECT_THAT(remote_hint("gs://bucket/run"), HasSubstr("gcloud storage rsync"));
  EXPECT_THAT(remote_hint("https://host/model"), HasSubstr("download it, or mount it"));
  EXPECT_THAT(remote_hint("file:///data/run"), HasSubstr("without file://"));
  for (const std::string url : {"hf://org/model-1.5", "https://huggingface.co/org/model-1.5"}) {
    EXPECT_THAT(remote_hint(url), HasSubstr("hf download org/model-1.5 --local-dir model-1.5"));
  }
}

TEST(RemotePath, NamesOfTheHubAreTwoWordsOfWhichNoneIsThere) {
  EXPECT_THAT(remote_hint("meta-llama/Llama-3.1-8B"),
              HasSubstr("hf download meta-llama/Llama-3.1-8B --local-dir Llama-3.1-8B"));
  const TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder / "");
  folder.put("runs/one", "");
  EXPECT_EQ(remote_hint("runs/two"), "") << "a path that was mistyped";
  std::filesystem::current_path(before);
  for (const std::string path : {"/org/model", "./org/model", "model", "a/b/c", "org/", "org/a b",
                                 "../model", "c://x", "a b://c", ""}) {
    EXPECT_EQ(remote_hint(path), "") << path;
  }
}

TEST(RemotePath, IsSaidWhereAFolderIsNotThere) {
  const auto error = [](const std::string& path) { return open_local_directory(path).error(); };
  EXPECT_EQ(error("s3://bucket/run").code, Code::kNotFound);
  EXPECT_THAT(error("s3://bucket/run").message,
              HasSubstr("No such file or directory; s3:// is not read"));
  EXPECT_THAT(error("org/model").message, HasSubstr("hf download"));
}

TEST(RemotePath, OneSlashIsOneTooFew) {
  for (const std::string path : {"s3:/bucket/run", "hf:/org/model", "https:/x/y"}) {
    EXPECT_THAT(remote_hint(path), HasSubstr("has two slashes")) << path;
  }
  for (const std::string path : {"a:/b", "./s3:/b", "x/s3:/b", "s3", "s3:b"}) {
    EXPECT_THAT(remote_hint(path), Not(HasSubstr("slashes"))) << path;
  }
}

TEST(RemotePath, NothingIsWrittenToAFolderCalledS3) {
  for (const std::string path :
       {"s3://bucket/out", "hf://org/model", "https://x/y", "s3:/bucket/out"}) {
    const Status status = check_local_output(path);
    ASSERT_FALSE(status) << path;
    EXPECT_EQ(status.error().code, Code::kUsage);
  }
  for (const std::string path : {"out", "/tmp/out", "a:b", "org/model", "://x", "./s3:/x", ""}) {
    EXPECT_TRUE(check_local_output(path)) << path;
  }
}

}  // namespace
}  // namespace shardwright
