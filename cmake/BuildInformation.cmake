# Bakes the version and the commit into one object file. The commit is looked up at every build,
# and the file is rewritten only when it changed.
set(STRATAGEM_BUILD_INFORMATION "${PROJECT_BINARY_DIR}/generated/build_information.cpp")
add_custom_target(build_information_source
  COMMAND ${CMAKE_COMMAND}
    -DSOURCE_DIR=${PROJECT_SOURCE_DIR}
    -DTEMPLATE=${PROJECT_SOURCE_DIR}/cmake/build_information.cpp.in
    -DOUTPUT=${STRATAGEM_BUILD_INFORMATION}
    -DVERSION=${PROJECT_VERSION}
    -DBUILD_TYPE=${CMAKE_BUILD_TYPE}
    -DSANITIZE=${STRATAGEM_SANITIZE}
    -DCUDA=${STRATAGEM_CUDA}
    -DCOMPILER=${CMAKE_CXX_COMPILER_ID}\ ${CMAKE_CXX_COMPILER_VERSION}
    -P ${PROJECT_SOURCE_DIR}/cmake/WriteBuildInformation.cmake
  BYPRODUCTS ${STRATAGEM_BUILD_INFORMATION}
  COMMENT "")
