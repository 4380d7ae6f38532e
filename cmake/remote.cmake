# SPDX-License-Identifier: Apache-2.0
# Whether SHARDWRIGHT_REMOTE can be had; it is ON or OFF from here on.
if(NOT SHARDWRIGHT_REMOTE STREQUAL "OFF")
  find_path(CURL_HEADERS curl/curl.h)
  find_path(EXPAT_HEADERS expat.h)
  find_library(EXPAT_LIBRARY expat)
  if(CURL_HEADERS AND EXPAT_HEADERS AND EXPAT_LIBRARY)
    set(SHARDWRIGHT_REMOTE ON)
  elseif(SHARDWRIGHT_REMOTE STREQUAL "AUTO")
    message(STATUS "Paths of servers are not read: there are no headers of libcurl, or no expat "
                   "(Debian: libcurl4-openssl-dev, libexpat1-dev)")
    set(SHARDWRIGHT_REMOTE OFF)
  else()
    message(FATAL_ERROR "SHARDWRIGHT_REMOTE needs the headers of libcurl, and expat "
                        "(Debian: libcurl4-openssl-dev, libexpat1-dev)")
  endif()
endif()
