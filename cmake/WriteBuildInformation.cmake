# Script mode: fills build_information.cpp.in (see BuildInformation.cmake).
execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
execute_process(COMMAND git -C ${SOURCE_DIR} status --porcelain --untracked-files=no
  OUTPUT_VARIABLE CHANGES ERROR_QUIET)
if(NOT COMMIT)
  set(COMMIT "unknown")
elseif(CHANGES)
  set(COMMIT "${COMMIT}-modified")
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
