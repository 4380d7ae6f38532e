// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include "base/fail.h"
#include "cli/commands.h"
#include "cli/json_output.h"

namespace shardwright::cli {
namespace {

// A page is `SW0307 title`, an empty line and the text.
std::string page_json(std::string_view page, Language language) {
  const std::string_view heading = page.substr(0, page.find('\n'));
  const std::size_t space = std::min(heading.find(' '), heading.size());
  std::string_view text = page.substr(heading.size());
  while (text.starts_with('\n')) text.remove_prefix(1);
  JsonWriter json;
  begin_document(json, "explain");
  json.text("code", heading.substr(0, space));
  json.text("title", heading.substr(std::min(space + 1, heading.size())));
  json.text("language", language == Language::kChinese ? "zh" : "en").text("text", text).close();
  return json.take();
}

}  // namespace

Result<int> run(const ExplainCommand& command, Console& console) {
  const std::string page = SW_TRY(code_page(command.code, console.language()));
  console.print(command.json ? page_json(page, console.language()) : page);
  return kExitFine;
}

}  // namespace shardwright::cli
