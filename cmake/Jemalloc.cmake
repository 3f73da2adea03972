# jemalloc inside the executables that measure: glibc's allocator maps and faults every activation
# above 32 MB anew in each step. Static, so that the executable carries it; not under a sanitizer,
# which brings its own.
add_library(stratagem_allocator INTERFACE)
if(STRATAGEM_SANITIZE)
  set(STRATAGEM_ALLOCATOR "sanitizer")
else()
  find_library(JEMALLOC_LIBRARY NAMES libjemalloc.a)
  if(NOT JEMALLOC_LIBRARY)
    message(FATAL_ERROR "libjemalloc.a is missing: install libjemalloc-dev")
  endif()
  set(STRATAGEM_ALLOCATOR "jemalloc")
  target_link_libraries(stratagem_allocator INTERFACE
    -Wl,--whole-archive ${JEMALLOC_LIBRARY} -Wl,--no-whole-archive
    Threads::Threads ${CMAKE_DL_LIBS} m)
endif()
