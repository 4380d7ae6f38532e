// SPDX-License-Identifier: Apache-2.0
#include "io/file_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "io/named_file.h"
#include "shardwright/storage.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string kSha256(64, 'a');
const std::string kGitHash = "0123456789abcdef0123456789abcdef01234567";

/// A folder of links, and what reading and listing them give.
class FileLinkTest : public ::testing::Test {
 protected:
  void link(const std::string& target, const std::string& name) {
    fs::create_directories(fs::path(place_ / name).parent_path());
    fs::create_symlink(target, place_ / name);
  }
  std::unique_ptr<Directory> open(const std::string& folder) {
    return open_local_directory(place_ / folder).value();
  }
  // Reading and listing must agree; the bytes, or the code of the error that both give.
  std::string read(const std::string& folder, const std::string& path) {
    const auto directory = open(folder);
    EXPECT_TRUE(directory->exists(path)) << path;
    const auto bytes = read_whole(*directory, path, 99);
    const std::size_t slash = path.rfind('/');
    const std::string parent = slash == std::string::npos ? "" : path.substr(0, slash);
    const std::vector<DirectoryEntry> entries = directory->list(parent).value();
    for (const DirectoryEntry& entry : entries) {
      if (entry.name != path.substr(slash + 1)) continue;
      EXPECT_EQ(entry.problem.has_value(), !bytes.has_value()) << path;
      if (entry.problem && !bytes) {
        EXPECT_EQ(entry.problem->code, bytes.error().code) << path;
        EXPECT_EQ(entry.problem->message, bytes.error().message) << path;
        EXPECT_EQ(entry.size_bytes, 0U);
      }
      if (bytes) {
        EXPECT_EQ(entry.size_bytes, bytes->size()) << path;
      }
      last_message_ = bytes ? "" : bytes.error().message;
      return bytes ? *bytes : code_name(bytes.error().code);
    }
    ADD_FAILURE() << path << " is not listed";
    return "";
  }

  const std::string escapes_ = code_name(Code::kPathEscapes);
  const std::string no_file_ = code_name(Code::kNotAFile);
  std::string last_message_;
  TemporaryFolder place_;
};

TEST_F(FileLinkTest, FollowsTheLinksOfAHuggingFaceCache) {
  const std::string cache = "hub/models--a--b/";
  place_.put(cache + "blobs/" + kSha256, "weights");
  place_.put(cache + "blobs/" + kGitHash, "{}");
  const std::string snapshot = cache + "snapshots/0123abc";
  link("../../blobs/" + kSha256, snapshot + "/model.safetensors");
  link("../../blobs/" + kGitHash, snapshot + "/config.json");
  link("../../../blobs/" + kGitHash, snapshot + "/text/config.json");
  link("../../../../blobs/" + kGitHash, snapshot + "/text/deep/config.json");
  EXPECT_EQ(read(snapshot, "model.safetensors"), "weights");
  EXPECT_EQ(read(snapshot, "config.json"), "{}");
  EXPECT_EQ(read(snapshot, "text/config.json"), "{}");
  EXPECT_EQ(read(snapshot, "text/deep/config.json"), "{}");
  EXPECT_EQ(read(snapshot + "/text", "config.json"), "{}") << "a folder of the snapshot";
  EXPECT_EQ(read(cache, "snapshots/0123abc/config.json"), "{}") << "it stays inside";
  fs::create_directory_symlink(place_ / snapshot, place_ / "named");
  EXPECT_EQ(read("named", "config.json"), "{}") << "the user may name the folder by a link";
}

TEST_F(FileLinkTest, RefusesWhatOnlyLooksLikeACache) {
  const std::string cache = "hub/models--a--b/";
  place_.put(cache + "blobs/" + kSha256, "weights");
  place_.put(cache + "blobs/notes.txt", "x");
  place_.put(cache + "other/" + kSha256, "x");
  place_.put("hub/blobs/" + kSha256, "another model's");
  place_.put("outside", "x");
  link(place_ / "outside", cache + "blobs/" + kGitHash);
  fs::create_directory(place_ / (cache + "blobs/" + std::string(40, 'b')));
  const std::string snapshot = cache + "snapshots/0123abc";
  for (const std::string& target :
       {std::string("../../blobs/notes.txt"), "../../other/" + kSha256, "../../../blobs/" + kSha256,
        "../../blobs/" + kGitHash, "../../blobs/../blobs/" + kSha256, "./../../blobs/" + kSha256,
        place_ / (cache + "blobs/" + kSha256)}) {
    fs::remove(place_ / (snapshot + "/x"));
    link(target, snapshot + "/x");
    EXPECT_EQ(read(snapshot, "x"), escapes_) << target;
  }
  link("../../blobs/" + kSha256, cache + "elsewhere/0123abc/x");
  EXPECT_EQ(read(cache + "elsewhere/0123abc", "x"), escapes_) << "no folder of snapshots";
  fs::remove(place_ / (snapshot + "/x"));
  link("../../blobs/" + std::string(64, 'c'), snapshot + "/x");
  EXPECT_EQ(read(snapshot, "x"), no_file_) << "its download did not end";
}

TEST_F(FileLinkTest, RefusesALinkThatLeadsOutAndSaysWhatToDo) {
  place_.put("secret", "x");
  place_.put("ckpt-2/x", "x");
  for (const std::string& target :
       {place_ / "secret", std::string("../secret"), std::string("/etc/passwd"),
        std::string("/dev/zero"), std::string("../ckpt-2/x"), std::string("sub/../../secret")}) {
    fs::remove_all(place_ / "ckpt");
    place_.put("ckpt/sub/x", "");
    link(target, "ckpt/tokenizer.json");
    EXPECT_EQ(read("ckpt", "tokenizer.json"), escapes_) << target;
    EXPECT_THAT(last_message_, HasSubstr("ckpt/tokenizer.json is a link out of its folder, to "));
    EXPECT_THAT(last_message_, HasSubstr("replace it with a copy of that file"));
  }
  const auto named = read_named_file(place_ / "ckpt/tokenizer.json", 9);
  EXPECT_EQ(named.value_or("?"), "x") << "what the user names may be a link";
}

TEST_F(FileLinkTest, FollowsALinkThatStaysInside) {
  place_.put("ckpt/real/data", "bytes");
  link("real/data", "ckpt/relative");
  link(place_ / "ckpt/real/data", "ckpt/absolute");
  link("../relative", "ckpt/real/twice");
  fs::create_directory_symlink("real", place_ / "ckpt/folder");
  link("folder/data", "ckpt/through");
  for (const char* name : {"relative", "absolute", "real/twice", "through", "folder/data"}) {
    EXPECT_EQ(read("ckpt", name), "bytes") << name;
  }
}

TEST_F(FileLinkTest, TellsWhatIsNeitherFileNorFolder) {
  place_.put("ckpt/file", "x");
  link("gone", "ckpt/dangling");
  link("file/under", "ckpt/under_a_file");
  link("loop", "ckpt/loop");
  ASSERT_EQ(::mkfifo((place_ / "ckpt/fifo").c_str(), 0666), 0);
  link("fifo", "ckpt/to_fifo");
  for (const char* name : {"dangling", "under_a_file", "loop", "fifo", "to_fifo"}) {
    EXPECT_EQ(read("ckpt", name), no_file_) << name;
  }
  EXPECT_EQ(read("ckpt", "dangling"), no_file_);
  EXPECT_THAT(last_message_, HasSubstr("is a link to gone, which does not exist"));
  EXPECT_EQ(read("ckpt", "fifo"), no_file_);
  EXPECT_THAT(last_message_, HasSubstr("ckpt/fifo is a FIFO, where a file is expected"));
  const auto folder = open_local_directory(place_.path().string()).value()->open("ckpt");
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, Code::kNotAFile);
}

TEST_F(FileLinkTest, ALookThatFailsIsNoEmptyFile) {
  link(std::string(300, 'n'), "ckpt/config.json");  // ENAMETOOLONG
  EXPECT_EQ(read("ckpt", "config.json"), code_name(Code::kIo));
  EXPECT_THAT(last_message_, HasSubstr("cannot follow this link"));
}

TEST_F(FileLinkTest, ASocketIsNoFile) {
  const fs::path before = fs::current_path();
  fs::current_path(place_.path());
  sockaddr_un address{AF_UNIX, "socket"};
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  fs::current_path(before);
  EXPECT_EQ(read("", "socket"), no_file_);
  EXPECT_THAT(last_message_, HasSubstr("is a socket"));
}

}  // namespace
}  // namespace shardwright
