if(STRATAGEM_SANITIZE)
  add_compile_options(-fsanitize=${STRATAGEM_SANITIZE} -fno-omit-frame-pointer -g1 -O1)
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
