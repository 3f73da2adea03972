# Bakes the version, the commit and a hash of the public headers into one object file, and versions
# and hash into the source that every plug-in compiles. They are looked up at every build, and the
# files are rewritten only when they changed.
set(STRATAGEM_BUILD_INFORMATION "${PROJECT_BINARY_DIR}/generated/build_information.cpp")
set(STRATAGEM_PLUGIN_INTERFACE "${PROJECT_BINARY_DIR}/generated/plugin_interface.cpp")
string(TOUPPER "${CMAKE_BUILD_TYPE}" STRATAGEM_BUILD_TYPE)
string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${STRATAGEM_BUILD_TYPE}}" STRATAGEM_SHARED_FLAGS)
add_custom_target(build_information_source
  COMMAND ${CMAKE_COMMAND}
    -DSOURCE_DIR=${PROJECT_SOURCE_DIR}
    -DFOLDER=${PROJECT_BINARY_DIR}/generated
    -DVERSION=${PROJECT_VERSION}
    -DTORCH=${LibTorch_VERSION}
    -DBUILD_TYPE=${CMAKE_BUILD_TYPE}
    -DSANITIZE=${STRATAGEM_SANITIZE}
    -DCUDA=${STRATAGEM_CUDA}
    -DCUDA_VERSION=${STRATAGEM_CUDA_VERSION}
    -DNCCL_VERSION=${STRATAGEM_NCCL_VERSION}
    "-DFLAGS=${STRATAGEM_SHARED_FLAGS}"
    -DCOMPILER=${CMAKE_CXX_COMPILER_ID}\ ${CMAKE_CXX_COMPILER_VERSION}
    -P ${PROJECT_SOURCE_DIR}/cmake/WriteBuildInformation.cmake
  BYPRODUCTS ${STRATAGEM_BUILD_INFORMATION} ${STRATAGEM_PLUGIN_INTERFACE}
  COMMENT "")
