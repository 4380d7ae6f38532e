// SPDX-License-Identifier: Apache-2.0
#include "remote/s3_answers.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "remote/xml_texts.h"

namespace shardwright {

Result<std::string> parse_new_upload(std::string_view xml) {
  constexpr std::size_t kMostIdBytes = 2048;
  for (XmlText& one : SW_TRY(xml_texts(xml, "the answer about a new upload"))) {
    const bool is_id = one.place == "InitiateMultipartUploadResult/UploadId";
    if (is_id && !one.text.empty() && one.text.size() <= kMostIdBytes) return std::move(one.text);
  }
  return fail(Code::kRemote, "the answer about a new upload has no id");
}

// White space tells whoever waits that the server still works.
Result<S3Completion> parse_completion(std::string_view xml) {
  S3Completion completion;
  xml.remove_prefix(std::min(xml.find_first_not_of(" \t\r\n"), xml.size()));
  const std::vector<XmlText> texts = SW_TRY(xml_texts(xml, "the answer about a finished upload"));
  for (const XmlText& one : texts) {
    if (one.place == "Error/Code") completion.error = one.text;
    if (one.place == "Error/Message") completion.reason = one.text;
  }
  const std::string& whole = texts.back().place;
  if (whole == "CompleteMultipartUploadResult") return S3Completion{};
  if (whole == "Error" && !completion.error.empty()) return completion;
  return fail(Code::kRemote, "the answer about a finished upload says nothing of it");
}

Result<S3UploadList> parse_upload_list(std::string_view xml) {
  S3UploadList list;
  S3Upload upload;
  bool is_truncated = false;
  const std::vector<XmlText> texts = SW_TRY(xml_texts(xml, "a list of uploads"));
  if (texts.back().place != "ListMultipartUploadsResult") {
    return fail(Code::kRemote, "found no list of uploads");
  }
  for (const auto& [place, text] : texts) {
    if (place == "ListMultipartUploadsResult/IsTruncated") is_truncated = text == "true";
    if (place == "ListMultipartUploadsResult/NextKeyMarker") list.next_key = text;
    if (place == "ListMultipartUploadsResult/NextUploadIdMarker") list.next_id = text;
    if (place == "ListMultipartUploadsResult/Upload/Key") upload.key = text;
    if (place == "ListMultipartUploadsResult/Upload/UploadId") upload.id = text;
    if (place == "ListMultipartUploadsResult/Upload/Initiated") upload.begun = text;
    if (place == "ListMultipartUploadsResult/Upload") {
      list.uploads.push_back(std::exchange(upload, {}));
    }
  }
  if (!is_truncated) list.next_key.clear();
  if (is_truncated && list.next_key.empty()) {
    return fail(Code::kRemote, "a list of uploads has more pages and doesn't say where they begin");
  }
  return list;
}

}  // namespace shardwright
