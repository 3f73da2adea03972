if(STRATAGEM_SANITIZE)
  # With AddressSanitizer and UBSan, Clang compiles a unit of tests at -O0 in a third of its time at
  # -O1. Folders whose own loops are timed keep -O1 (stratagem_optimise in cmake/Folders.cmake), and
  # so does what a fuzzer calls.
  set(STRATAGEM_SANITIZED_LEVEL -O1)
  if(STRATAGEM_SANITIZE MATCHES "address" AND NOT STRATAGEM_SANITIZE MATCHES "fuzzer")
    set(STRATAGEM_SANITIZED_LEVEL -O0)
  endif()
  add_compile_options(-fsanitize=${STRATAGEM_SANITIZE} -fno-omit-frame-pointer -g1
    ${STRATAGEM_SANITIZED_LEVEL})
  add_link_options(-fsanitize=${STRATAGEM_SANITIZE})
  if(STRATAGEM_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  # With the code that a sanitizer adds, GCC no longer sees that parts of a moved variant, or of a
  # std::regex, were initialised.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()
