# Warnings are errors in our own code; every library's headers come in as system headers.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror)
# What an optimised build of GCC sees inside its own library where it is not: GCC 12 overlapping
# copies in std::string (GCC bug 105329), later ones, which go on with a warning, a std::optional that
# nobody has filled and a std::vector<bool> that ends too early.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    add_compile_options(-Wno-restrict)
  else()
    add_compile_options(-Wno-error=maybe-uninitialized -Wno-error=array-bounds
      -Wno-error=stringop-overflow)
  endif()
endif()
add_link_options(LINKER:--build-id=sha1)
