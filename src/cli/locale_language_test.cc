// SPDX-License-Identifier: Apache-2.0
#include "cli/locale_language.h"

#include <gtest/gtest.h>

namespace shardwright::cli {
namespace {

TEST(LanguageOfLocale, IsChineseForSimplifiedCharactersOnly) {
  for (const char* locale : {"zh", "zh_CN", "zh_CN.UTF-8", "zh_CN.GB18030", "zh_SG.UTF-8",
                             "zh_Hans_CN", "zh_CN@pinyin"}) {
    EXPECT_EQ(language_of_locale(locale), Language::kChinese) << locale;
  }
  for (const char* locale : {"zh_TW", "zh_TW.UTF-8", "zh_HK.UTF-8", "zh_Hant_TW", "zha_CN",
                             "en_US.UTF-8", "C", "C.UTF-8", "POSIX", ""}) {
    EXPECT_EQ(language_of_locale(locale), Language::kEnglish) << locale;
  }
}

}  // namespace
}  // namespace shardwright::cli
