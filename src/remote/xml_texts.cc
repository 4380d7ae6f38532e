// SPDX-License-Identifier: Apache-2.0
#include "remote/xml_texts.h"

#include <expat.h>

#include <memory>
#include <type_traits>
#include <utility>

#include "base/fail.h"

namespace shardwright {
namespace {

constexpr std::size_t kMostXmlBytes = std::size_t{1} << 30;
constexpr std::size_t kMostTextBytes = 8192;
constexpr std::size_t kDeepestElement = 16;

/// What expat tells, gathered.
class TextGatherer {
 public:
  static void on_start(void* self, const char* name, const char** /*attributes*/) {
    static_cast<TextGatherer*>(self)->start(name);
  }
  static void on_end(void* self, const char* /*name*/) { static_cast<TextGatherer*>(self)->end(); }
  static void on_text(void* self, const char* bytes, int count) {
    static_cast<TextGatherer*>(self)->text_.append(bytes, static_cast<std::size_t>(count));
  }

  [[nodiscard]] std::string_view wrong() const { return wrong_; }
  [[nodiscard]] std::vector<XmlText> take() { return std::move(texts_); }

 private:
  void start(std::string_view name) {
    name = name.substr(name.rfind(':') + 1);  // without the name of a namespace
    if (ends_.size() >= kDeepestElement) {
      wrong_ = "is nested too deep";
      return;
    }
    ends_.push_back(place_.size());
    if (!place_.empty()) place_ += '/';
    place_ += name;
    text_.clear();
  }

  void end() {
    if (ends_.empty()) return;
    if (text_.size() > kMostTextBytes) wrong_ = "has a text that is too long";
    texts_.push_back({place_, std::exchange(text_, {})});
    place_.resize(ends_.back());
    ends_.pop_back();
  }

  std::vector<XmlText> texts_;
  std::string place_;
  std::vector<std::size_t> ends_;  // of the place of each open element's parent
  std::string text_;
  std::string_view wrong_;
};

struct FreeParser {
  void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
};

}  // namespace

Result<std::vector<XmlText>> xml_texts(std::string_view xml, std::string_view what) {
  const std::unique_ptr<std::remove_pointer_t<XML_Parser>, FreeParser> parser(
      XML_ParserCreate(nullptr));
  if (!parser) return fail(Code::kOutOfMemory, "no memory to read {}", what);
  TextGatherer gatherer;
  XML_SetUserData(parser.get(), &gatherer);
  XML_SetElementHandler(parser.get(), &TextGatherer::on_start, &TextGatherer::on_end);
  XML_SetCharacterDataHandler(parser.get(), &TextGatherer::on_text);
  if (xml.size() > kMostXmlBytes ||
      XML_Parse(parser.get(), xml.data(), static_cast<int>(xml.size()), XML_TRUE) !=
          XML_STATUS_OK) {
    return fail(Code::kRemote, "{} is no XML: {} at byte {}", what,
                XML_ErrorString(XML_GetErrorCode(parser.get())),
                XML_GetCurrentByteIndex(parser.get()));
  }
  if (!gatherer.wrong().empty()) return fail(Code::kRemote, "{} {}", what, gatherer.wrong());
  return gatherer.take();
}

}  // namespace shardwright
