# Writes OUTPUT, a C++ file with the texts of a document of docs/ (ENGLISH) and of its twin
# (CHINESE), as NAME_guide_english() and NAME_guide_chinese(): `explain` prints their sections, so the
# documents and the program are one text.
set(text "// Generated from docs/${NAME}.md and docs/${NAME}_zh.md.\n#include \"diagnose/code_page.h\"\n\nnamespace shardwright {\n")
foreach(language IN ITEMS english chinese)
  string(TOUPPER ${language} variable)
  file(READ ${${variable}} guide)
  string(APPEND text "\nstd::string_view ${NAME}_guide_${language}() {\n  return\n")
  # Compilers limit one string literal, so each section is one; cut at a heading no character is
  # cut in two.
  set(more TRUE)
  while(more)
    string(FIND "${guide}" "\n## " end)
    if(end EQUAL -1)
      set(piece "${guide}")
      set(more FALSE)
    else()
      math(EXPR end "${end} + 1")
      string(SUBSTRING "${guide}" 0 ${end} piece)
      string(SUBSTRING "${guide}" ${end} -1 guide)
      # The heading itself must not be found again.
      string(SUBSTRING "${guide}" 0 1 mark)
      string(SUBSTRING "${guide}" 1 -1 guide)
      string(APPEND piece "${mark}")
    endif()
    string(APPEND text "      R\"GUIDE(${piece})GUIDE\"\n")
  endwhile()
  string(APPEND text "      ;\n}\n")
endforeach()
string(APPEND text "\n}  // namespace shardwright\n")
file(WRITE ${OUTPUT}.new "${text}")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
