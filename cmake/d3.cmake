# SHARDWRIGHT_D3: d3.min.js, version 5 or later, which the pages of `report` draw with. Debian's
# node-d3 has it, and so has PyPI's mpld3, which `pip install` gets where nothing else is there.
if(NOT SHARDWRIGHT_D3)
  find_file(SHARDWRIGHT_D3 d3.min.js
            PATHS /usr/share/nodejs/d3/dist /usr/share/javascript/d3 /usr/lib/node_modules/d3/dist
                  /usr/local/lib/node_modules/d3/dist
            DOC "d3.min.js, version 5 or later")
endif()
if(NOT SHARDWRIGHT_D3)
  # The Python that builds a wheel is named by the build; its packages are not imported.
  find_package(Python3 COMPONENTS Interpreter QUIET)
  set(sw_d3_pythons ${Python_EXECUTABLE} ${PYTHON_EXECUTABLE} ${Python3_EXECUTABLE})
  foreach(python IN LISTS sw_d3_pythons)
    execute_process(
      COMMAND ${python} ${CMAKE_CURRENT_LIST_DIR}/find_d3.py
      OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(found)
      set(SHARDWRIGHT_D3 ${found} CACHE FILEPATH "d3.min.js, version 5 or later" FORCE)
      break()
    endif()
  endforeach()
endif()
if(NOT SHARDWRIGHT_D3)
  message(FATAL_ERROR "d3.min.js is missing, which the pages of 'shardwright report' draw with. "
                      "Install Debian's node-d3 or PyPI's mpld3, or give -DSHARDWRIGHT_D3=FILE.")
endif()
file(READ ${SHARDWRIGHT_D3} sw_d3_head LIMIT 200)
if(NOT sw_d3_head MATCHES "d3js.org v([0-9]+)" OR CMAKE_MATCH_1 LESS 5)
  message(FATAL_ERROR "${SHARDWRIGHT_D3} is not d3 of version 5 or later; give another file with "
                      "-DSHARDWRIGHT_D3=FILE")
endif()
