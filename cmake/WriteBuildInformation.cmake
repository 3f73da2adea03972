# Script mode: fills build_information.cpp.in and plugin_interface.cpp.in (see
# BuildInformation.cmake).
execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
execute_process(COMMAND git -C ${SOURCE_DIR} status --porcelain --untracked-files=no
  OUTPUT_VARIABLE CHANGES ERROR_QUIET)
if(NOT COMMIT)
  set(COMMIT "unknown")
elseif(CHANGES)
  set(COMMIT "${COMMIT}-modified")
endif()

# A plug-in fits the headers that it was built against, and the LibTorch.
file(GLOB_RECURSE HEADERS RELATIVE ${SOURCE_DIR}
  ${SOURCE_DIR}/models/*.h ${SOURCE_DIR}/strategies/*.h)
list(SORT HEADERS)
set(HASHES "")
foreach(HEADER IN LISTS HEADERS)
  file(SHA256 ${SOURCE_DIR}/${HEADER} HASH)
  string(APPEND HASHES "${HEADER} ${HASH}\n")
endforeach()
string(SHA256 HASH "${HASHES}")
string(SUBSTRING ${HASH} 0 12 HASH)
set(PLUGIN_INTERFACE "stratagem ${VERSION}, LibTorch ${TORCH}, headers ${HASH}")
set(PLUGIN_MARK "Stratagem plug-in for ")

foreach(NAME build_information plugin_interface)
  configure_file(${SOURCE_DIR}/cmake/${NAME}.cpp.in ${FOLDER}/${NAME}.cpp @ONLY)
endforeach()
